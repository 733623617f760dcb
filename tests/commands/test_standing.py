"""What a move shows of the way there: the calls that are new, what changed, the page in question
before and after."""

from __future__ import annotations

import pytest

from kemu.api import Session
from kemu.observe import moves
from kemu.readings import Moment, SubSteps

STORY = 'spawn app; mmap app 0x10000 4p rw; write app 0x10000 "x"; fork app as kid; mark before; write kid 0x10000 "y"'
ROW = "spawn app; mmap app 0x200000 80p rw populate; fork app as kid"


@pytest.fixture(scope="module")
def story():
    session = Session()
    session.run(STORY + "; mark after")
    return session


@pytest.fixture
def session(story):
    story.goto(story.end)
    story.desk.context = "short"
    return story


def go(session, line):
    reading = session.run(line)[-1].reading
    assert isinstance(reading, Moment)
    return reading


def test_without_context_a_move_shows_only_where_it_ends(session):
    session.desk.context = "off"
    reading = go(session, "goto before; step 20; back 5")
    assert (reading.calls, reading.changes, reading.picture, reading.marked) == (
        (),
        (),
        None,
        False,
    )


def test_only_calls_that_were_not_open_before_are_drawn(session):
    session.run("goto before")
    shown = []
    while session.now < session.marks["after"] - 1:
        reading = go(session, "step")
        names = [call.function for call in reading.calls]
        assert tuple(names) == moves.open_names(session.journal, session.now)
        shown += names[reading.kept :]
        assert reading.kept <= len(names)
    entered = [
        node.function
        for node in _nodes(session.run("calls before after")[-1].reading.roots)
        if node.first < node.last
    ]
    assert [name for name in shown if name in entered] == shown
    assert "wp_page_copy" in shown
    assert shown.count("do_wp_page") == 1


def _nodes(nodes):
    for node in nodes:
        if hasattr(node, "function") and hasattr(node, "children"):
            yield node
            yield from _nodes(node.children)


def test_going_over_a_call_says_what_changed_in_it_and_going_back_takes_it_back(session):
    there = go(session, "goto before; until refcount(pfn(app, 0x10000)) == 3; finish do_wp_page")
    back = go(session, "reverse-finish exc_page_fault")
    assert there.changes
    assert not there.marked
    entry = next(change for change in back.changes if change.what == "pte kid 0x10000")
    assert "-> 0x117" not in entry.note
    assert entry.old.endswith("117067")
    assert entry.new.endswith("112045")


def test_the_picture_shows_the_page_before_and_after_and_is_left_out_where_nothing_moved(session):
    session.run("goto before")
    seen = []
    while session.now < session.end - 1:
        reading = go(session, "step")
        if reading.picture:
            (page,) = reading.picture.pages
            assert (page.name, page.address) == ("kid", 0x10000)
            assert page.before != page.after
            seen.append((page.before.entry.pfn, page.after.entry.pfn))
    assert (0x112, None) in seen
    assert (None, 0x117) in seen


def test_the_picture_of_a_fork_shows_parent_and_child(session):
    from kemu.commands.picturing import picture_of

    record = next(record for record in session.timeline.records if record.text == "fork app as kid")
    pages = picture_of(session, record.text, record.first, record.last).pages
    assert [(page.name, page.address) for page in pages] == [("app", 0x10000), ("kid", 0x10000)]
    assert pages[0].before.entry.letters[1] == "W"
    assert pages[0].after.entry.letters[1] == "-"
    assert pages[1].before is None
    assert pages[1].after.frame.refcount == 2


def test_mappings_without_pages_are_pictured_too():
    from kemu.commands.picturing import picture_of

    session = Session()
    session.run("spawn app; mmap app 0x10000 4p rw")
    first = session.end
    session.run("munmap app 0x11000 1p")
    (page,) = picture_of(session, "", first, session.end).pages
    assert (page.name, page.address) == ("app", 0x11000)
    assert page.before.vma.start == 0x10000
    assert page.after.vma is None
    assert picture_of(session, "", first, first) is None


def test_the_drawing_stars_what_changed_and_keeps_what_did_not(session):
    text = session.text("goto before; until pfn(kid, 0x10000) == none")
    lines = text.split("\n")
    assert "  VMA    0x10000-0x14000 rw-p anonymous" in lines
    assert any(line.startswith("* PTE    pfn 0x112") and line.endswith("-> none") for line in lines)


def test_step_into_shows_the_entries_of_a_row_one_by_one_and_then_goes_on():
    session = Session()
    session.run(ROW + "; break row; reverse-continue; delete")
    row = session.now
    moment = go(session, "goto 1; goto " + str(row))
    assert "step into" in moment.hint
    session.run("back")
    first = session.run("step into")[-1].reading
    assert isinstance(first, SubSteps)
    assert (first.number, [event.number for event in first.events], session.now) == (row, [1], row)
    more = session.run("step into 3")[-1].reading
    assert [event.number for event in more.events] == [2, 3, 4]
    whole = session.run(f"expand {row}")[-1].reading
    assert first.events + more.events == whole.events[:4]
    rest = session.run("step into 100000")[-1].reading
    assert rest.events[-1].number == whole.total
    assert go(session, "step into").now > row


@pytest.mark.parametrize(
    "way", ["", "back; step", "goto 1; goto {row}", "back; step into 3; back; step"]
)
def test_at_a_row_that_was_moved_to_step_into_shows_its_first_entry(way):
    session = Session()
    session.run(ROW + "; break row; reverse-continue; delete")
    row = session.now
    session.run(f"back; step into 3; goto end; goto {row};" + way.format(row=row))
    first = session.run("step into")[-1].reading
    assert isinstance(first, SubSteps)
    assert (first.number, [event.number for event in first.events]) == (row, [1])


def test_step_into_elsewhere_is_step(session):
    expected = go(session, "goto before; step").now
    assert go(session, "goto before; step into").now == expected


def test_granularity_counts_in_events_calls_or_commands(session):
    session.run("set granularity command; back; back")
    assert session.now == session.timeline.records[-2].first
    session.run("set granularity event; step all 2")
    assert session.now == session.timeline.records[-2].first + 2
    session.run("set granularity function; goto before; step")
    assert session.now > session.marks["before"]
    session.run("set granularity event")


def test_where_pages_follow_each_other_the_picture_is_of_the_page_that_the_event_writes():
    session = Session()
    session.run("spawn app; context short; mmap app 0x10000 3p rw populate; goto start")
    seen = []
    while session.now < session.end:
        reading = go(
            session,
            "until pte(app, {0}) != none and pte(app, {0}) != 0".format(
                hex(0x10000 + len(seen) * 4096)
            ),
        )
        seen.append([page.address for page in reading.picture.pages])
        if len(seen) == 3:
            break
    assert seen == [[0x10000], [0x11000], [0x12000]]
