"""Stepping: the stops are what `trace` shows, each says why, and a stop comes before the answer."""

from __future__ import annotations

import pytest

from kemu.api import Session
from kemu.debugger.stops import EVENT_KINDS
from kemu.errors import UsageError
from kemu.observe.events import is_shown
from kemu.observe.report import Script, film

STORY = (
    "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; mark before; "
    "write kid 0x10000 8; read app 0; "
)


@pytest.fixture(scope="module")
def story():
    session = Session()
    session.run(STORY)
    return session


@pytest.fixture
def session(story):
    story.goto(story.end)
    story.debugger.stops = []
    story.debugger.enter(None)
    return story


def shown(session, kinds=None):
    found = session.reading("trace before end").events
    return [event.number for event in found if kinds is None or event.kind in kinds]


def walked(session, word, far):
    """The moments at which `word` stops on its way from here."""
    found = []
    while session.now != far:
        session.run(word)
        found.append(session.now)
    return found


def test_step_stops_where_trace_has_a_line(session):
    session.run("goto before")
    visited = walked(session, "step", session.end)
    assert [moment for moment in visited if moment < session.end] == [
        number for number in shown(session) if number < session.end
    ]


def test_back_stops_at_the_same_moments(session):
    session.run("goto end")
    last = shown(session)[-1]
    visited = walked(session, "back", shown(session)[0])
    assert visited[::-1] == [number for number in shown(session) if number < session.end]
    assert last in (session.end, visited[0])


def test_step_all_and_back_all_stop_at_every_event(session):
    session.run("goto before; step all 5")
    assert session.now == session.marks["before"] + 5
    session.run("back all 2")
    assert session.now == session.marks["before"] + 3


@pytest.mark.parametrize("kind", ["pte", "frame", "vma", "signal"])
def test_step_goes_to_the_next_change_of_a_kind(session, kind):
    session.run("goto before")
    if kind not in EVENT_KINDS:
        with pytest.raises(UsageError, match="how: expected"):
            session.run(f"step {kind}")
        return
    expected = [number for number in shown(session, {kind}) if number > session.now]
    session.run(f"step {kind}")
    assert session.now == (expected[0] if expected else session.end)


@pytest.mark.parametrize("count", ["refcount", "mapcount"])
def test_step_goes_to_the_next_change_of_a_count(session, count):
    session.run("goto before")
    found = session.reading("trace before end").events
    expected = next(event.number for event in found if event.field == f"_{count}")
    assert session.reading(f"step {count}").event.number == expected


def test_next_passes_over_what_trace_hides(session):
    session.run("goto before; until refcount(pfn(app, 0x10000)) == 3")
    stops = set()
    while session.now < session.end:
        before = session.now
        reading = session.reading("next")
        if session.now == before + 1 and reading.event is not None:
            stops.add((session.now, is_shown(reading.event)))
    assert stops
    assert all(whether for _, whether in stops)


def test_every_stop_says_why_as_the_report_does(session):
    rules = film(session.kernel, 0, session.end, Script("", ()), session.name_of).rules
    session.run("goto before")
    said = 0
    while session.now < session.end:
        reading = session.reading("step")
        assert reading.rule == rules[session.now - 1]
        said += bool(reading.rule)
    assert said > 20


def test_the_reason_is_one_line_under_the_event(session):
    lines = session.text("goto before; step pte").splitlines()
    assert any(line.startswith("#") for line in lines[1:-1])
    assert lines[-1].startswith("       fork") or lines[-1].startswith("       the")
    assert all(len(line) <= 80 for line in lines)


def test_why_alone_explains_the_event_at_hand(session):
    session.run("goto before; step pte")
    reading, moment = session.reading("why"), session.reading("step all; back all")
    assert reading.events[-1].number == session.now
    assert (reading.rule, reading.command) == (moment.rule, "write kid 0x10000 8")
    assert "exc_page_fault" in reading.calls


def test_why_alone_after_a_failure_explains_it(session):
    assert session.reading("goto end; why").thing.startswith("SIGSEGV")
    with pytest.raises(UsageError, match="why: nothing has happened"):
        session.run("goto 0; why")


@pytest.mark.parametrize("word", ["break", "tbreak"])
def test_a_stop_stands_at_the_entry_of_the_function(word):
    session = Session()
    session.run(f"spawn app; mmap app 0x10000 1p rw; {word} do_anonymous_page")
    (result,) = session.run("write app 0x10000 7")
    inside = session.reading("bt").calls
    assert inside[-1].function == "do_anonymous_page"
    session.run("step all")
    assert "do_anonymous_page" in [call.function for call in session.reading("bt").calls]
    assert (result.reading.entered, result.reading.event) == ("do_anonymous_page", None)


def test_the_answer_comes_when_the_command_ends():
    session = Session()
    session.run("spawn app; mmap app 0x10000 1p rw; break do_anonymous_page")
    assert "new page" not in session.text("write app 0x10000 7")
    assert "ok" not in session.text("step").splitlines()[0]
    assert "new page: pfn" in session.text("continue")
    assert session.reading("back; step").outcome is None


def test_last_is_set_when_the_command_ends():
    session = Session()
    session.run("spawn app; break do_mmap; mmap app 0x10000 1p rw")
    assert session.value("$last") != 0x10000
    session.run("continue")
    assert session.value("$last") == 0x10000


def test_continue_leaves_the_entry_and_reverse_continue_returns_to_it():
    session = Session()
    session.run("spawn app; mmap app 0x10000 2p rw; break do_anonymous_page")
    session.run("write app 0x10000 7")
    first = session.now
    session.run("continue")
    assert not session.past
    session.run("write app 0x11000 7")
    second = session.now
    session.run("reverse-continue")
    assert session.now == first
    session.run("continue")
    assert session.now == second


def test_finish_and_next_at_an_entry_are_about_the_function():
    session = Session()
    session.run("spawn app; mmap app 0x10000 1p rw; break do_anonymous_page; write app 0x10000 7")
    entry = session.now
    session.run("next")
    assert "do_anonymous_page" in [call.function for call in session.reading("bt").calls]
    session.goto(entry)
    session.run("reverse-continue; continue; finish")
    assert session.now > entry
    assert "do_anonymous_page" not in [
        call.function for call in session.reading("step all; bt").calls
    ]


def test_a_change_before_the_end_forgets_the_answer():
    session = Session()
    session.run("spawn app; mmap app 0x10000 1p rw; tbreak do_anonymous_page; write app 0x10000 7")
    session.run("undo; write app 0x10000 9")
    assert session.debugger.held is None
