"""A lesson at a small terminal: its text goes through the pager as one, and a verdict is never behind it."""

import io

import pytest

from kemu.shell import paging
from kemu.shell.output import TextOutput
from tests.tutor.hands import Student, lesson_of

LONG = "\n".join(f"Line {number} of a long text.\n" for number in range(40))


@pytest.fixture
def pages(monkeypatch):
    """What the pager is given, a text each; a screen has 24 rows."""
    seen = []
    monkeypatch.setattr(paging, "show_paged", lambda text, *_: seen.append(text))
    monkeypatch.setattr(paging, "is_long", lambda text, *_: text.count("\n") >= 23)
    return seen


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


def test_a_long_lead_is_paged_and_the_question_stands_behind_it(pages):
    ada = Student(lesson_of(LONG + STEP.format(reveal='["ps"]')))
    direct = shown(ada.first, ada.session)
    assert len(pages) == 1
    assert "Line 39" in pages[0]
    assert "How many?" in direct
    assert "Line 1 " not in direct


def test_a_short_lead_is_paged_with_its_question_where_both_do_not_fit(pages):
    lead = "\n\n".join(f"Line {number}." for number in range(9))
    ada = Student(lesson_of(lead + "\n" + STEP.format(reveal='["ps"]').replace("How many?", "How many? " * 60)))
    shown(ada.first, ada.session)
    assert [("Line 1." in page, "How many?" in page) for page in pages] == [(True, True)]


def test_a_verdict_is_written_behind_the_pager(pages):
    reveal = str([f"mmap app {0x10000 + number * 0x10000:#x} 1p rw" for number in range(30)]).replace("'", '"')
    ada = Student(lesson_of(STEP.format(reveal=reveal)))
    direct = shown(ada.types("answer 77"), ada.session)
    assert len(pages) == 1
    assert "You said 77" in direct
    assert "type task for the next step" in direct


def test_what_fits_is_not_paged(pages):
    ada = Student(lesson_of(STEP.format(reveal='["ps"]')))
    assert "How many?" in shown(ada.first, ada.session)
    assert pages == []
