"""Nothing happens to a student's machine or answer without a word."""

import io
import time

import pytest

from kemu.front.cli.options import Options
from kemu.front.terminal import waiting
from kemu.front.terminal.output import TextOutput
from kemu.front.terminal.plain import Runner
from kemu.front.terminal.repl import Repl
from tests.lessons.hands import Student, lesson_of, texts

PREDICT = """\
```check predict
id = "p"
confidence = true
setup = ["spawn app"]
reveal = "fork app as b"
expect = "tasks()"
```
"""


@pytest.mark.parametrize("line", ["ps", "maps app", "help fork", "goto 0"])
def test_any_command_leaves_the_answer_open_and_the_question_is_asked_again(line):
    ada = Student(lesson_of(PREDICT))
    ada.types("answer 5")
    assert texts(ada.types(line)).count("How sure are you") == 1
    assert ada.visit.state == "open"
    assert "5. Yes" in ada.reads("guess")


@pytest.mark.parametrize("line", ["spwan", "fork app as c", "hint"])
def test_what_cannot_be_done_leaves_the_answer_open_too(line):
    ada = Student(lesson_of(PREDICT))
    ada.types("answer 5", line)
    assert ada.visit.state == "open"


@pytest.mark.parametrize("line", ["task", "lesson task", "answer 5"])
def test_the_question_is_asked_once_a_line(line):
    ada = Student(lesson_of(PREDICT))
    ada.types("answer 6")
    assert ada.reads(line).count("How sure are you") == 1


def test_it_is_said_what_the_rating_is_for():
    assert "It does not affect your points" in Student(lesson_of(PREDICT)).reads("answer 5")


STATE = (
    '```check state\nid = "{id}"\nmust = "tasks() >= {n}"\nsolution = ["spawn x{n}"]\n{more}```\n'
)


def steps(*more):
    """A lesson of so many steps, each one process more."""
    return lesson_of(
        "".join(STATE.format(id=f"s{at}", n=4 + at, more=text) for at, text in enumerate(more))
    )


def test_a_step_on_a_fresh_machine_says_so():
    ada = Student(steps("", 'start = "boot"\n'))
    assert "fresh machine" not in texts(ada.first)
    ada.types("spawn a", "check")
    assert "starts on a fresh machine, at #0" in ada.reads("task")


def test_a_step_that_goes_back_to_what_the_lesson_left_says_where():
    ada = Student(steps("", ""))
    ada.types("spawn a", "mmap a 0x10000 1p rw", "check")
    said = ada.reads("task")
    assert f"This step starts at #{ada.session.now}, where the lesson left the machine" in said


def test_a_step_that_goes_on_from_here_says_nothing():
    ada = Student(steps("", ""))
    ada.types(*ada.solves(), "check")
    assert "This step starts" not in ada.reads("task")


def test_a_report_says_where_it_goes():
    ada = Student(lesson_of(PREDICT))
    assert "Nothing has been sent" in ada.reads("problem the question has two answers")


class Terminal(io.StringIO):
    """A stream that looks like one."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("seconds", "signs"), [(0.0, 1), (60.0, 0)])
def test_a_line_that_takes_long_gives_a_sign_of_life_before_all_else(monkeypatch, seconds, signs):
    ada = Student(lesson_of(PREDICT))
    out = Terminal()
    runner = Runner(Options(), ada.session, TextOutput(out, io.StringIO()))
    runner.stay = runner.output.paged = True
    monkeypatch.setattr(waiting.Wait.__init__, "__defaults__", (seconds,))
    run_line = runner.line
    monkeypatch.setattr(runner, "line", lambda text: (time.sleep(0.2), run_line(text)))
    Repl(runner, None).lines("task")
    assert out.getvalue().count("working ...") == signs
    assert out.getvalue().find("working ...") < out.getvalue().index("Step 1 of 1")
    assert runner.output.wait is None


def test_outside_a_lesson_results_are_the_sign():
    ada = Student(lesson_of(PREDICT))
    assert waiting.is_held(ada.session, "ps")
    ada.types("leave")
    assert not waiting.is_held(ada.session, "ps")
    assert waiting.is_held(ada.session, "lesson start 3")


def test_where_many_answers_are_right_one_is_told_the_own_one():
    accept = "race_outcome('get-last-put', answer) != 'ok'"
    body = f'```check answer\nid = "a"\naccept = "{accept}"\nsample = "\'1010\'"\n```\n'
    assert "1100. Yes" in Student(lesson_of(body)).reads("answer 1100")


def test_a_command_that_is_nearly_right_says_which_part_to_look_at():
    wanted = "race get-last-put --unless-zero"
    body = f'```check run\nid = "r"\ncommands = ["{wanted}"]\nsolution = ["{wanted}"]\n```\n'
    assert "the command is right. Check again: --unless-zero" in Student(lesson_of(body)).reads(
        "race get-last-put"
    )


def test_a_state_that_is_not_reached_is_told_in_the_authors_words_with_both_sides_behind():
    must = '{ that = "tasks() == 4", say = "{more} more task must run" }'
    body = f'```check state\nid = "s"\nsolution = ["spawn a"]\nmust = [{must}]\n```\n'
    said = Student(lesson_of(body, front="vars = { more = '1' }\n")).reads("check")
    assert "1 more task must run (tasks() is 3; wanted: equal to 4)" in said
