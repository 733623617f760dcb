"""A lesson at a small terminal: a page at a time, the question or the verdict always, and no key is
lost."""

import io

import pytest

from kemu.api import Session
from kemu.front.cli.options import Options
from kemu.front.terminal.history import StateHistory
from kemu.front.terminal.output import TextOutput
from kemu.front.terminal.plain import Runner
from kemu.front.terminal.repl import Repl
from tests.lessons.hands import Student, lesson_of

LONG = "\n".join(f"Line {number} of a long text.\n" for number in range(40))


@pytest.fixture
def keys(monkeypatch):
    """What is typed at each end of a page, a line each; a screen has 24 rows."""
    typed = []
    monkeypatch.setattr("builtins.input", lambda _: typed.pop(0))
    return typed


def shown(results, session):
    """What is written directly, when the results of one line are shown."""
    out = io.StringIO()
    output = TextOutput(out, io.StringIO())
    output.paged = True
    for result in results:
        output.show(result, session, "")
    output.flush()
    return out.getvalue()


STEP = '```check predict\nid = "p"\nask = "How many?"\nsetup = ["spawn app"]\nreveal = {reveal}\nexpect = "tasks()"\n```\n'


def test_a_long_lead_is_shown_a_page_at_a_time(keys):
    ada = Student(lesson_of(LONG + STEP.format(reveal='["ps"]')))
    keys += ["", " ", "", "", ""]
    direct = shown(ada.first, ada.session)
    assert "Line 0 " in direct
    assert "Line 39" in direct
    assert "How many?" in direct
    assert len(keys) < 3


def test_whoever_leaves_the_text_still_reads_the_question(keys):
    ada = Student(lesson_of(LONG + STEP.format(reveal='["ps"]')))
    keys += ["q"]
    direct = shown(ada.first, ada.session)
    assert "Line 39" not in direct
    assert "Step 1 of 1" in direct
    assert "answer VALUE" in direct


def test_a_question_without_a_text_before_it_is_shown_whatever_is_typed(keys):
    long = STEP.format(reveal='["ps"]').replace("How many?", "How many? " * 300)
    keys += ["q"]
    ada = Student(lesson_of(long))
    direct = shown(ada.types("task"), ada.session)
    assert direct.count("many?") == 300
    assert "answer VALUE" in direct


REVEAL = str([f"mmap app {0x10000 + number * 0x10000:#x} 1p rw" for number in range(30)]).replace(
    "'", '"'
)


def test_whoever_leaves_what_came_of_an_answer_still_reads_the_verdict(keys):
    ada = Student(lesson_of(STEP.format(reveal=REVEAL)))
    keys += ["q"]
    direct = shown(ada.types("answer 77"), ada.session)
    assert "0x1e0000" not in direct
    assert "You said 77" in direct
    assert "task goes to the next step" in direct


@pytest.mark.parametrize("typed", ["answer 4", "maps app", "a", "4"])
def test_what_is_typed_between_two_pages_is_the_next_command(keys, typed):
    out = io.StringIO()
    runner = Runner(Options(), Session(), TextOutput(out, io.StringIO()))
    runner.stay = runner.output.paged = True
    ada = Student(lesson_of(LONG + STEP.format(reveal='["ps"]')))
    runner.session = ada.session
    ran = []
    run_line = runner.line
    runner.line = lambda text: ran.append(text) or run_line(text)
    keys += [typed]
    Repl(runner, None).lines("task")
    assert ran == ["task", typed]
    assert (
        out.getvalue().index("Line 39")
        < out.getvalue().index("How many?")
        < out.getvalue().index(f"> {typed}\n")
    )


def test_what_is_typed_between_two_pages_is_in_the_history_once(keys, tmp_path):
    runner = Runner(Options(), Session(), TextOutput(io.StringIO(), io.StringIO()))
    runner.stay = runner.output.paged = True
    runner.session = Student(lesson_of(LONG + STEP.format(reveal='["ps"]'))).session
    history = StateHistory(tmp_path)
    history.append_string("task")
    repl = Repl(runner, None, history=history)
    keys += ["task", "ps", "ps"]
    repl.lines("task")
    assert not keys[1:]
    repl.lines("task")
    assert history.get_strings() == ["task", "ps"]
    assert (tmp_path / "history").read_text() == "task\nps\n"


@pytest.mark.parametrize("leaves", [EOFError, KeyboardInterrupt])
def test_ctrl_c_and_ctrl_d_go_to_the_question(monkeypatch, leaves):
    def ask(_):
        raise leaves

    monkeypatch.setattr("builtins.input", ask)
    ada = Student(lesson_of(LONG + STEP.format(reveal='["ps"]')))
    assert "answer VALUE" in shown(ada.first, ada.session)


def test_keys_that_write_nothing_turn_the_page(keys):
    ada = Student(lesson_of(LONG + STEP.format(reveal='["ps"]')))
    keys += ["\x1b[B"] * 9
    assert "How many?" in shown(ada.first, ada.session)


def test_without_paging_all_is_written(keys):
    ada = Student(lesson_of(LONG + STEP.format(reveal='["ps"]')))
    ada.types("set paging off")
    assert "Line 39" in shown(ada.first, ada.session)
    assert keys == []


def test_what_fits_is_not_paged(keys):
    ada = Student(lesson_of(STEP.format(reveal='["ps"]')))
    assert "How many?" in shown(ada.first, ada.session)
    assert keys == []
