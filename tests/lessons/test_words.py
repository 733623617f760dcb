"""`kemu lesson ...` on the command line: exit codes, files, and one line for each mistake."""

import json
import os
import subprocess
import sys

import pytest

from kemu.completion.expect import candidates
from kemu.front.cli import lessons as words
from kemu.front.cli.main import parse as parse_options
from tests.lessons.hands import HEAD, LESSONS, Student, lesson_named

SAMPLE = str(LESSONS / "nine-kinds.md")
STEP = '```check state\nid = "one"\nmust = ["alive(app)"]\nhints = ["spawn"]\nsolution = ["spawn app"]\n```\n'
GOOD = HEAD.format(front="") + STEP


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to work in, with a state folder of its own."""
    monkeypatch.setenv("KEMU_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KEMU_STUDENT", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def lesson(*said):
    """The exit code of `kemu lesson WORDS`, in this process."""
    return words.main(parse_options(["lesson", *map(str, said)]))


def kemu(*said, text="", **more):
    """A process of its own, for what reads standard input."""
    command = [sys.executable, "-m", "kemu", *map(str, said)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        input=text,
        env=os.environ,
        **more,
    )


def test_a_good_lesson_passes_and_a_bad_one_ends_with_4(place, capsys):
    (place / "good.md").write_text(GOOD)
    (place / "bad.md").write_text(GOOD.replace("spawn app", "spwan app"))
    assert lesson("check", "--seeds", 1, "--students", 0, "good.md") == 0
    assert "1 lesson: no mistakes" in capsys.readouterr().out
    assert lesson("check", "--seeds", 1, "--students", 0, "bad.md") == 4
    assert "bad.md:10: M02" in capsys.readouterr().err


def test_problems_as_json(place, capsys):
    (place / "bad.md").write_text(GOOD.replace("spawn app", "spwan app"))
    assert lesson("check", "--json", "bad.md") == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["code"], found["line"], found["severity"]) == ("M02", 10, "error")


def test_a_new_lesson_passes_its_own_check(capsys):
    assert lesson("new", "my/first") == 0
    assert lesson("check", "first.md") == 0
    assert "no mistakes" in capsys.readouterr().out
    assert "already exists" in said_by("new", "my/first")


def said_by(*said):
    from kemu.errors import UsageError

    with pytest.raises(UsageError) as caught:
        lesson(*said)
    assert "\n" not in caught.value.what
    return f"{caught.value.what} {caught.value.hint}"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (("dance",), "unknown word 'dance'"),
        (("check",), "expected a file or a folder"),
        (("check", "nowhere"), "does not exist"),
        (("check", "--seeds"), "expected a value after"),
        (("check", "--seeds", "0", "x"), "expected a number"),
        (("check", "--what", "x"), "unknown option"),
        (("start",), "expected one lesson"),
        (("new", "no id"), "expected an id"),
        (("export", SAMPLE), "expected --html or --notebook"),
        (("pack", SAMPLE), "an output folder"),
        (("translate", SAMPLE), "a lesson and a language"),
        (("translate", SAMPLE, "../x"), "a lesson and a language"),
        (("submit", SAMPLE), "who you are"),
        (("preview",), "expected one lesson"),
        (("start", SAMPLE, "--student", "a\nb"), "expected an id"),
    ],
)
def test_a_mistake_is_one_line(said, wanted):
    assert wanted in said_by(*said)


def test_taking_submitting_and_going_on():
    assert lesson("student", "ab123") == 0
    n = Student(lesson_named("nine-kinds"), name="ab123", salt="").guide.stay.world.values["n"]
    done = kemu("lesson", "start", SAMPLE, text=f"answer {n}\ntask\n")
    assert done.returncode == 0, done.stderr
    assert f"{n}. Yes." in done.stdout
    assert "Step 2 of 9" in done.stdout
    assert "Step 2 of 9" in kemu("lesson", "start", SAMPLE).stdout
    assert lesson("submit", SAMPLE, "-o", "mine.jsonl") == 0
    assert kemu("grade", SAMPLE, "mine.jsonl").stdout.startswith("ab123                     2/13")


def test_a_path_may_hold_blanks_quotes_and_any_letters(place):
    for name in ("\N{CJK UNIFIED IDEOGRAPH-8BFE} one.md", 'it\'s "two".md', "back\\slash.md"):
        (place / name).write_text(GOOD)
        assert "Step 1 of 1" in kemu("lesson", "start", name).stdout


def test_a_check_that_is_not_satisfied_ends_with_3():
    done = kemu("lesson", "start", SAMPLE, text="answer 991\n")
    assert done.returncode == 3
    assert "You said" in done.stdout


def test_a_lesson_that_cannot_be_read_is_told_in_the_shell_too(place):
    (place / "bad.md").write_text("+++\nnothing\n")
    done = kemu("-c", "lesson start bad.md")
    assert done.returncode == 4
    assert "L02" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("said", ["--lang zh-CN 7", "7 --lang=zh-CN", "7 zh-CN"])
def test_a_language_is_asked_for_inside_as_outside(said):
    inside = kemu("-c", f"lesson start {said}")
    outside = kemu("lesson", "start", "7", "--lang", "zh-CN", text="")
    assert (inside.returncode, inside.stderr) == (0, "")
    assert "第 1 步" in inside.stdout
    assert inside.stdout == outside.stdout


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("7 --langg zh-CN", "unknown option '--langg'"),
        ("7 --lang", "expected a value after --lang"),
        ("7 zh-CN fr", "unexpected 'fr'"),
        ("--lang zh-CN", "expected a lesson"),
        ("7 --lang xx", "not available in xx"),
    ],
)
def test_a_mistake_behind_lesson_start_is_named(said, wanted):
    done = kemu("-c", f"lesson start {said}")
    assert done.returncode == 1
    assert wanted in done.stderr


def test_answers_in_json_are_objects():
    done = kemu("--json", "-c", f"lesson start {SAMPLE}; lesson steps; lesson")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"title", "prose", "ask", "note"} <= {line["data"].get("role") for line in lines}
    assert lines[-2]["data"]["rows"][0]["state"] == "open"


def test_words_of_a_lesson_without_one_say_so():
    done = kemu("-c", "lesson hint")
    assert "no lesson has been started" in done.stderr
    assert "kemu lesson check one.md" in kemu("-c", "lesson check one.md").stderr


def test_recording_makes_a_lesson_that_passes(place):
    script = "spawn a; mmap a 0x10000 2p rw populate; lesson record begin; fork a as b; write b 0x10000 1; lesson record made.md"
    assert kemu("-c", script).returncode == 0
    text = (place / "made.md").read_text()
    assert '"shared(a, b) == 1"' in text
    assert lesson("check", "--seeds", 2, "--students", 0, "made.md") == 0
    assert "the task has no beginning" in kemu("-c", "lesson record x.md").stderr
    assert "nothing has been done" in kemu("-c", "lesson record begin; lesson record y.md").stderr


@pytest.mark.parametrize(
    ("form", "name"), [("--html", "nine-kinds.html"), ("--notebook", "nine-kinds.ipynb")]
)
def test_exporting_writes_a_file(place, form, name):
    assert lesson("export", form, SAMPLE) == 0
    assert (place / name).stat().st_size > 2000


def test_preview_shows_hints_and_solutions(capsys):
    assert lesson("preview", SAMPLE, "--student", "ada") == 0
    shown = capsys.readouterr().out
    for part in (
        "Reading never splits a page.",
        "solution: write child",
        "answer: answer",
        "You can now",
    ):
        assert part in shown


def test_translating_writes_a_skeleton(place):
    (place / "one.md").write_text(GOOD)
    assert lesson("translate", "one.md", "zh-CN") == 0
    assert "text one.hints.1 " in (place / "one.zh-CN.md").read_text()


def test_completion_offers_lessons_and_words():
    from kemu.api import Session

    session = Session()
    offered = dict(candidates(session, "lesson start ")[1])
    assert all("/" in name for name in offered)
    ada = Student(lesson_named("nine-kinds"))
    assert {"hint", "skip", "task"} <= dict(candidates(ada.session, "lesson ")[1]).keys()
    assert [name for name, _ in candidates(ada.session, "hin")[1]] == ["hint"]


def test_the_toolbar_of_the_shell_says_lesson_and_step():
    from kemu.front.terminal.prompt import toolbar

    ada = Student(lesson_named("nine-kinds"))
    assert "t/nine-kinds 1/9" in toolbar(ada.session)
