"""Progress survives a kill at any moment, an edited lesson, and two shells at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.front.cli import authoring
from kemu.front.cli.options import Options
from kemu.lessons.format.course import lesson_files
from kemu.lessons.format.parse import parse
from kemu.lessons.taking.guide import Guide
from kemu.lessons.taking.progress import FILE, Log, fold, parsed, read_records
from kemu.lessons.taking.shelf import Shelf
from tests.lessons.hands import HEAD, LESSONS, Student, lesson_named

COW = lesson_named("nine-kinds")


def resumed(records, lesson=COW):
    """A student who comes back with these records."""
    return Student(lesson, records=records)


def test_coming_back_goes_on_at_the_first_step_that_is_not_done():
    ada = Student(COW)
    ada.step()
    ada.step(right=False)
    again = resumed(ada.records)
    assert again.guide.stay.index == 2
    assert again.guide.stay.diary.done()["frames-after-fork"].state == "passed"
    assert again.guide.stay.diary.done()["split-one"].state == "shown"


def test_a_file_cut_anywhere_is_the_progress_up_to_there(tmp_path):
    ada = Student(COW)
    log = Log(tmp_path)
    for record in ada.takes_all().records:
        log.append(record)
    whole = (tmp_path / FILE).read_bytes()
    before = -1
    for cut in [*range(0, len(whole), 97), len(whole)]:
        (tmp_path / FILE).write_bytes(whole[:cut])
        found = fold(read_records(tmp_path / FILE), COW)
        done = sum(one.state == "passed" for one in found.values())
        assert done >= before
        before = done
    assert before == len(COW.steps)


def test_what_follows_a_torn_line_is_not_swallowed(tmp_path):
    log = Log(tmp_path)
    ada = Student(COW)
    log.append(ada.records[0])
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"v": 1, "lesson": "t/ni')
    log.append(ada.records[0])
    assert len(log.records("t/nine-kinds")) == 2


def test_a_kill_while_the_shell_runs_keeps_all_but_the_last_command(tmp_path):
    script = (
        "import os, sys\n"
        "from kemu.api import Session\nfrom kemu.commands.run import run\n"
        "from pathlib import Path\nfrom kemu.lessons.taking.shelf import Shelf\n"
        "session = Session()\n"
        f"Shelf(Path({str(tmp_path)!r})).begin(session, {str(LESSONS / 'nine-kinds.md')!r})\n"
        "run(session, 'answer 991')\nrun(session, 'task')\nrun(session, "
        "'hint')\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == -9, done.stderr
    found = fold(Log(tmp_path).records(), COW)
    assert found["frames-after-fork"].state == "failed"
    assert found["split-one"].hints == 1


def test_two_shells_at_once_lose_nothing(tmp_path):
    script = (
        "import sys\nfrom pathlib import Path\nfrom kemu.lessons.taking.progress import Log\n"
        f"log = Log(Path({str(tmp_path)!r}))\n"
        "for number in range(300):\n"
        "    log.append({'v': 1, 'run': sys.argv[1], 'lesson': 't/x', 'step': f's{number}', 'do': "
        "'hint', 'text': 'x' * 200})\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", script, name]) for name in ("one", "two")]
    assert [process.wait(60) for process in both] == [0, 0]
    records = Log(tmp_path).records("t/x")
    assert len(records) == 600
    for name in ("one", "two"):
        assert [record["step"] for record in records if record["run"] == name] == [
            f"s{number}" for number in range(300)
        ]


def test_two_shells_in_one_lesson_both_count(tmp_path):
    shelf = Shelf(tmp_path)
    one, two = Session(), Session()
    for session in (one, two):
        shelf.begin(session, str(LESSONS / "nine-kinds.md"))
    one.run("answer 991; task")
    assert isinstance(two.desk.guide, Guide)
    two.run("hint")
    found = fold(shelf.log().records(), COW)
    assert found["frames-after-fork"].state == "failed"
    assert found["frames-after-fork"].hints == 1


def edited(change):
    """The sample lesson with its text changed."""
    return parse(change((LESSONS / "nine-kinds.md").read_text()), Path("nine-kinds.md"))


def test_an_edited_lesson_keeps_what_was_done():
    ada = Student(COW).takes_all(wrong={"split-one"})
    for change in (
        lambda text: text.replace("Two processes, one frame", "Another title"),
        lambda text: text.replace('id = "who-pays"', 'id = "who-pays-now"'),
        lambda text: (
            text[: text.index("```check state")]
            + text[text.index("```show") :].replace("maps child", "ps")
        ),
    ):
        lesson = edited(change)
        again = resumed(ada.records, lesson)
        kept = {step.id for step in lesson.steps} & {step.id for step in COW.steps}
        assert all(
            again.guide.stay.diary.done()[name].state in ("passed", "shown") for name in kept
        )
        assert "has changed since" in "\n".join(str(result.reading) for result in again.first)
    assert len(ada.records) == len(Student(COW).takes_all(wrong={"split-one"}).records)


def test_a_new_step_of_an_edited_lesson_is_where_one_goes_on():
    ada = Student(COW).takes_all()
    lesson = edited(lambda text: text.replace('id = "who-pays"', 'id = "who-pays-now"'))
    assert resumed(ada.records, lesson).guide.stay.visit.step.id == "who-pays-now"


NO_RECORDS = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"7",
    b'"x"',
    b'{"v": 2, "do": "hint", "lesson": "t/x", "step": "a"}',
    b"\xff\xfe",
    b"{}" * 9,
    b"[" * 90000,
    b'{"v": 1, "do": "hint", "lesson": 7, "step": "a"}',
    b'{"v": 1, "do": "fly", "lesson": "t/x", "step": "a"}',
]


@pytest.mark.parametrize("line", NO_RECORDS)
def test_a_line_that_is_no_record_is_left_out(line):
    assert parsed(line) is None


def test_a_claim_out_of_range_is_no_result():
    for share in ("1", 2, -1, True, None):
        record = {
            "v": 1,
            "run": "r",
            "lesson": COW.id,
            "step": "split-one",
            "do": "result",
            "state": "passed",
            "share": share,
        }
        assert fold([record], COW)["split-one"].state == "open"


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    session = Session()
    results = Shelf(blocked / "state").begin(session, str(LESSONS / "nine-kinds.md"))
    assert "progress is not saved" in results[-1].reading.text
    assert session.run("hint")


def test_the_list_shows_what_is_done(tmp_path):
    folder = tmp_path / "lessons"
    folder.mkdir()
    (folder / "one.md").write_text((LESSONS / "nine-kinds.md").read_text())
    (folder / "broken.md").write_text("+++\nnothing\n")
    (folder / "two.md").write_text(HEAD.format(front="") + '```check explain\nid = "one"\n```\n')
    shelf = Shelf(tmp_path / "state", folder)
    assert [row.state for row in shelf.listing().rows] == ["new", "new"]
    session = Session()
    shelf.begin(session, "lesson")
    session.run("answer yes; task")
    shelf.begin(session, "nine-kinds")
    session.run("answer 991")
    listing = shelf.listing(session.desk.guide.stay.lesson.id)
    assert {row.id: (row.done, row.state) for row in listing.rows} == {
        "t/nine-kinds": (1, "begun"),
        "t/lesson": (1, "done"),
    }
    assert "broken.md" in listing.problems[0]


def test_who_one_is_is_kept_and_checked(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path)
    assert shelf.student() == ""
    shelf.be("ab123")
    assert shelf.student() == "ab123"
    monkeypatch.setenv("KEMU_STUDENT", "zz9")
    assert shelf.student() == "zz9"
    for name in ("", "x" * 100, "a\nb"):
        with pytest.raises(Exception, match="student: expected an id"):
            shelf.be(name)


def test_records_are_plain_json(tmp_path):
    ada = Student(COW)
    log = Log(tmp_path)
    for record in ada.takes_all().records:
        log.append(record)
    lines = (tmp_path / FILE).read_text().splitlines()
    assert [json.loads(line) for line in lines] == ada.records


def test_progress_that_cannot_be_read_is_said_and_not_taken_for_none(tmp_path, monkeypatch):
    (tmp_path / FILE).mkdir()
    shelf = Shelf(tmp_path)
    assert f"progress cannot be read: {tmp_path / FILE}: Is a directory" in shelf.listing().problems
    monkeypatch.setenv("KEMU_HOME", str(tmp_path))
    monkeypatch.setenv("KEMU_STUDENT", "ada")
    with pytest.raises(UsageError, match="lesson submit: progress cannot be read"):
        authoring.submit(Options(), [str(LESSONS / "nine-kinds.md")])


def test_progress_that_can_be_kept_no_longer_is_said_once(tmp_path):
    session = Session()
    results = Shelf(tmp_path).begin(session, str(LESSONS / "nine-kinds.md"))
    assert not [result for result in results if "not saved" in result.reading.text]
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    said = [
        result.reading.text for line in ("hint", "hint", "hint") for result in session.run(line)
    ]
    assert [text for text in said if "not saved" in text] == [
        f"progress is not saved: {tmp_path / FILE}: Is a directory"
    ]


def not_text(path):
    """A file that is no text."""
    path.write_bytes(b"\xff")


@pytest.mark.parametrize(
    ("make", "reason"), [(Path.mkdir, "Is a directory"), (not_text, "not UTF-8")]
)
def test_a_student_who_cannot_be_read_is_not_nobody(tmp_path, make, reason):
    make(tmp_path / "student")
    with pytest.raises(UsageError, match=reason):
        Shelf(tmp_path).student()
    assert Shelf(tmp_path / "nothing").student() == ""


def test_translations_hidden_files_and_other_pages_are_no_lessons(tmp_path):
    text = (LESSONS / "nine-kinds.md").read_text()
    for name in ("one.md", "one.zh-CN.md", ".one.md.swp.md"):
        (tmp_path / name).write_text(text)
    (tmp_path / "README.md").write_text("# no lesson\n")
    assert lesson_files([tmp_path]) == [tmp_path / "one.md"]


def test_the_list_has_a_bar_of_the_progress(tmp_path):
    from kemu.lessons.taking.shelf import Shelf
    from kemu.views.terminal import render

    reading = Shelf(tmp_path).listing()
    steps = sum(row.steps for row in reading.rows)
    assert f"[{'.' * 40}]  0/{steps}" in render(reading)
    half = reading.replace(rows=tuple(row.replace(done=row.steps) for row in reading.rows))
    assert f"[{'#' * 40}]  {steps}/{steps}" in render(half)


def test_lesson_next_outside_of_a_lesson_goes_on_with_one(tmp_path, monkeypatch):
    from kemu.api import Session
    from kemu.errors import UsageError
    from kemu.lessons.taking.shelf import Shelf

    monkeypatch.setenv("KEMU_HOME", str(tmp_path))
    shelf = Shelf(tmp_path)
    assert shelf.following() == "1"
    session = Session()
    session.run("lesson next")
    assert session.desk.guide.stay.lesson.id == shelf.listing().rows[0].id
    reading = shelf.listing()
    done = reading.replace(rows=tuple(row.replace(state="done") for row in reading.rows))
    monkeypatch.setattr(Shelf, "listing", lambda _: done)
    with pytest.raises(UsageError, match="all lessons are done"):
        shelf.following()
