"""`report` and `kemu report`: what goes into the page, and every way to ask wrongly."""

import io
import json
import os
import random
import re
import subprocess
import sys

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.front.cli import main as cli
from kemu.front.terminal import reporting
from kemu.views.report import data
from tests.report.plays import LESSON, LONG, SITUATIONS, film_of, page_of, session_of
from tests.structure.sources import ROOT

STORY = SITUATIONS["after_one_copy"]


def film_in(path):
    """The data of a written page."""
    html = path.read_text(encoding="utf-8")
    return json.loads(
        re.search(r'<script type="application/json" id="films">(.*?)</script>', html, re.DOTALL)[1]
    )[0]


def kemu(*words, text=None, cwd=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    whole = [sys.executable, "-m", "kemu", *words]
    return subprocess.run(
        whole, input=text, capture_output=True, text=True, env=environment, cwd=cwd, check=False
    )


# ---------------------------------------------------------------- what is in it


def test_the_page_holds_every_command_and_every_event(tmp_path):
    session = session_of(STORY + "; ps")
    path = tmp_path / "story.html"
    said = session.text(f"report -o {path} title 'Who copies'")
    assert said == f"{path}: {session.end} events, 7 commands, {path.stat().st_size} bytes"
    film = film_in(path)
    assert [row[0] for row in film["commands"]] == [
        result.command for result in session.desk.shown[:-1]
    ]
    assert film["events"]["number"] == list(range(1, session.end + 1))
    assert "<title>Who copies</title>" in path.read_text(encoding="utf-8")
    assert session.now == session.end


def test_a_part_is_widened_to_whole_commands(tmp_path):
    session = session_of(STORY)
    fork = next(record for record in session.timeline.records if record.text.startswith("fork"))
    session.goto(fork.first + 3)
    session.run(f"report {fork.first + 5} {fork.last - 5} -o {tmp_path / 'fork.html'}")
    film = film_in(tmp_path / "fork.html")
    assert (film["first"], film["last"]) == (fork.first, fork.last)
    assert [row[0] for row in film["commands"]] == [fork.text]
    assert session.now == fork.first + 3


def test_another_timeline_is_no_part_of_it():
    session = session_of(
        "spawn app; mmap app 0x10000 1p rw; mark here1; write app 0x10000 1; ps; goto here1"
    )
    session.run("write app 0x10000 2; ps")
    texts = [entry.text for entry in reporting.played(session)]
    assert texts == [
        "spawn app",
        "mmap app 0x10000 1p rw",
        "mark here1",
        "goto here1",
        "write app 0x10000 2",
        "ps",
    ]


def test_commands_that_failed_are_shown_as_failed():
    session = Session()
    with pytest.raises(UsageError):
        session.run("spawn app; mmap nobody 1p rw")
    played = reporting.played(session)
    assert [(entry.text, entry.ok) for entry in played] == [
        ("spawn app", True),
        ("mmap nobody 1p rw", False),
    ]
    assert "error:" in played[-1].output
    assert '<b class="bad">failed</b>' in page_of(session)[0]


def test_marks_are_kept():
    session = session_of("spawn app; mark born; mmap app 0x10000 1p rw")
    assert film_of(session).marks == (("born", session.marks["born"]),)


def test_an_experiment_without_events_has_a_page(tmp_path):
    path = tmp_path / "empty.html"
    Session().run(f"report -o {path}")
    assert film_in(path)["last"] == 0


def test_differences_are_stored_and_not_states():
    """Twice the events take about twice the room, whatever the state is by then."""
    size = {}
    for pages in (4, 8):
        writes = "; ".join(f"write app {0x100000 + 4096 * i:#x} {i}" for i in range(pages))
        size[pages] = len(
            json.dumps(data(film_of(session_of(f"spawn app; mmap app 0x100000 16p rw; {writes}"))))
        )
    session = session_of(LONG)
    assert session.end >= 2000
    assert size[8] < 2 * size[4]
    assert len(page_of(session)[0].encode()) < 1_000_000


def test_the_chain_of_every_entry_is_the_one_that_why_gives():
    session = session_of(
        STORY + "; write app 0x10000 'C'; write child 0x11000 'D'; munmap app 0x10000 1p"
    )
    film, compared = film_of(session), 0
    events = [
        event
        for event in film.events
        if event.kind == "pte" and event.what.startswith("pte ") and event.new != "0x0"
    ]
    for event in random.Random(1).sample(events, 6):
        _, task, address = event.what.split()
        session.goto(event.number)
        if task not in session.names():
            continue
        why = session.reading(f"why pte {task} {address}")
        chain, at = [], event.number
        while at and len(chain) < 6:
            chain.append(at)
            at = film.before[at - 1]
        assert chain[::-1] == [found.number for found in why.events], event
        assert film.rules[event.number - 1] == why.rule
        compared += 1
    assert compared >= 3


def test_the_chain_of_a_count_is_the_one_that_why_gives():
    session = session_of(STORY)
    pfn = session.value("pfn(app, 0x10000)")
    why = session.reading(f"why frame {pfn}")
    film = film_of(session)
    chain, at = [], why.events[-1].number
    while at and len(chain) < 6:
        chain.append(at)
        at = film.before[at - 1]
    assert chain[::-1] == [found.number for found in why.events]


def test_a_copied_row_is_one_step_that_changes_both_tables():
    session = session_of("spawn app; mmap app 0x200000 100p rw populate; fork app as child")
    film = film_of(session)
    rows = [event for event in film.events if event.kind == "row"]
    assert len(rows) == 1
    changes = film.changes[rows[0].number - 1]
    assert {op[0] for op in changes} == {0, 3}
    assert len(changes) < 10
    assert film.before[rows[0].number - 1] == 0


# ---------------------------------------------------------------- asked wrongly


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("report", "expected an output file"),
        ("report 0 10", "expected an output file"),
        ("report -o", "missing"),
        ("report -o /no/such/folder/x.html", "cannot write"),
        ("report -o /dev/null", "is not a file"),
        ("report -o .", "is not a file"),
        ("report 0 99999 -o x.html", "no #99999"),
        ("report nowhere -o x.html", "no mark named"),
        ("report -o 'a\0b'", "zero byte"),
        ("report -o x.html colour red", "unexpected"),
    ],
)
def test_a_mistake_is_one_clear_line(text, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = session_of("spawn app")
    with pytest.raises(UsageError, match=what):
        session.run(text)
    assert not list(tmp_path.iterdir())


def test_a_session_that_is_too_long_says_how_to_take_a_part(monkeypatch, tmp_path):
    monkeypatch.setattr(reporting, "MOST_EVENTS", 100)
    session = session_of("spawn app; mmap app 0x10000 1p rw")
    with pytest.raises(UsageError, match="too many for one page") as caught:
        session.run(f"report -o {tmp_path / 'x.html'}")
    assert "report 0 100 -o" in caught.value.hint


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "x.html"
    path.write_text("kemu: old")
    (tmp_path / "x.html.part").mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        session_of("spawn app").run(f"report -o {path}")
    assert path.read_text() == "kemu: old"


# ---------------------------------------------------------------- kemu report


def test_one_line_makes_the_report_of_a_script(tmp_path):
    script = tmp_path / "story.kemu"
    script.write_text(
        "# A process is born\nspawn app\nmmap app 0x10000 1p rw\nwrite app 0x10000 7\n"
    )
    made = kemu("report", str(script), "-o", str(tmp_path / "story.html"))
    assert (made.returncode, made.stderr) == (0, "")
    assert "3 commands" in made.stdout
    assert "<title>A process is born</title>" in (tmp_path / "story.html").read_text(
        encoding="utf-8"
    )


def test_standard_input_and_a_title(tmp_path):
    made = kemu(
        "report", "-", "-o", "x.html", "--title", "<b>mine</b>", text="spawn app\n", cwd=tmp_path
    )
    assert made.returncode == 0
    assert "<h1>&lt;b&gt;mine&lt;/b&gt;</h1>" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_a_part_of_a_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "stdin", io.StringIO("spawn app\nmmap app 0x10000 1p rw\nwrite app 0x10000 7\n")
    )
    assert cli.main(["report", "-", "-o", "x.html", "--first", "115", "--last", "116"]) == 0
    assert [row[0] for row in film_in(tmp_path / "x.html")["commands"]] == [
        "mmap app 0x10000 1p rw"
    ]


def test_a_script_that_fails_is_shown_up_to_there(tmp_path):
    made = kemu(
        "report", "-", "-o", "x.html", text="spawn app\nmmap nobody 1p rw\nps\n", cwd=tmp_path
    )
    assert made.returncode == 1
    assert made.stderr.startswith("error: -:2:")
    assert [row[0] for row in film_in(tmp_path / "x.html")["commands"]] == [
        "spawn app",
        "mmap nobody 1p rw",
    ]


def test_other_machines_have_reports_too(tmp_path):
    made = kemu(
        "--geometry",
        "sv39",
        "report",
        "-",
        "-o",
        "x.html",
        text="spawn app\nmmap app 0x10000 1p rw\n",
        cwd=tmp_path,
    )
    assert made.returncode == 0
    assert len(film_in(tmp_path / "x.html")["machine"]["levels"]) == 3


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "expected one script"),
        (("x.kemu",), "expected one script"),
        (("a", "b", "-o", "x.html"), "expected one script"),
        (("x.kemu", "-o"), "expected a value"),
        (("x.kemu", "--colour", "-o", "x"), "unknown option"),
        (("missing.kemu", "-o", "x.html"), "cannot read"),
        (("-", "-o", "x.html", "--first", "1e3"), "expected the number of an event"),
        (("-", "-o", "x.html", "--last", "99999"), "no #99999"),
        ((".", "-o", "x.html"), "cannot read"),
        (("-", "-o", "/no/such/folder/x.html"), "cannot write"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(words, what, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("spawn app\n"))
    assert cli.main(["report", *words]) == 2
    assert what in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html"))


def test_a_lesson_is_played_with_a_part_for_each_machine(tmp_path, capsys):
    path = tmp_path / "lesson.md"
    path.write_text(LESSON, encoding="utf-8")
    assert cli.main(["report", str(path), "-o", str(tmp_path / "x.html")]) == 0
    assert "x.html: " in capsys.readouterr().out
    html = (tmp_path / "x.html").read_text(encoding="utf-8")
    films = json.loads(re.search(r'id="films">(.*?)</script>', html, re.DOTALL)[1])
    assert [[row[0] for row in film["commands"]][-1] for film in films] == [
        "write app 0x10000 7",
        "read app 0x10000",
    ]
    at, heading, text = films[0]["notes"][0]
    assert (at, heading) == (films[0]["opening"], "Step 1 of 2: first")
    assert (
        text == "app has a page, and nobody has touched it.\n\nHow many faults does a write cost?"
    )
    assert html.count("<script") == 2
    assert 'href="#p2e' in html


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("no lesson", "lesson.md"),
        (LESSON.replace("write app", "write nobody"), "no task 'nobody'"),
        (LESSON.replace("format = 1", "format = 9"), "lesson.md"),
    ],
)
def test_a_lesson_that_is_not_in_order_says_where(tmp_path, capsys, text, what):
    path = tmp_path / "lesson.md"
    path.write_text(text, encoding="utf-8")
    assert cli.main(["report", str(path), "-o", str(tmp_path / "x.html")]) == 4
    assert what in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_bytes_that_are_no_text_do_not_stop_it(tmp_path):
    script = tmp_path / "ugly.kemu"
    script.write_bytes(
        b"# \xff\x00 title\nspawn app\nmkfile '/\xfe\xff' 1p\nmmap app 0x10000 1p r file "
        b"'/\xfe\xff'\n"
    )
    made = kemu("report", str(script), "-o", str(tmp_path / "x.html"))
    assert made.returncode in (0, 1)
    assert "Traceback" not in made.stderr
    assert (tmp_path / "x.html").read_bytes().startswith(b"<!doctype html>")


def test_a_part_that_ends_before_it_begins_is_a_mistake(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("spawn app\n"))
    assert cli.main(["report", "-", "-o", "x.html", "--first", "10", "--last", "5"]) == 2
    assert "--first 10 is after --last 5" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()
