"""Moving through time: each move ends where gdb's word for it promises, and its reverse is its
mirror image."""

from __future__ import annotations

import random

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.observe import moves

STORY = (
    "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; write app 0x11000 7; fork app as kid; "
    "mark before; "
    "write kid 0x10000 8; write app 0x10000 9; exit kid; wait app"
)


@pytest.fixture(scope="module")
def story():
    session = Session()
    session.run(STORY)
    return session


@pytest.fixture
def session(story):
    story.goto(story.end)
    story.debugger.stops, story.debugger.displays, story.desk.granularity = [], {}, "event"
    story.debugger.given = dict.fromkeys(story.debugger.given, 0)
    return story


def depth(session, moment):
    return moves.place(session.journal, moment).depth


def test_next_at_a_boundary_goes_over_a_whole_call(session):
    session.run("goto before; next")
    assert session.now > session.marks["before"]
    assert depth(session, session.now) == 0


def test_next_stays_in_the_function_or_returns_to_its_caller(session):
    for now in range(session.marks["before"], session.end, 3):
        after = moves.after_next(session.journal, now)
        assert after > now
        assert depth(session, after) <= depth(session, now)


def test_reverse_next_is_the_mirror_of_next(session):
    for now in range(session.marks["before"], session.end, 3):
        after = moves.after_next(session.journal, now)
        if depth(session, after) == depth(session, now):
            assert moves.before_next(session.journal, after) == now


def test_finish_and_reverse_finish_leave_the_function(session):
    for now in range(session.marks["before"] + 1, session.end, 5):
        if not depth(session, now):
            continue
        assert (
            moves.after_finish(session.journal, now)
            > now
            > moves.before_finish(session.journal, now) - 1
        )
        assert depth(session, moves.after_finish(session.journal, now)) < depth(session, now)
        assert depth(session, moves.before_finish(session.journal, now)) < depth(session, now)


def test_finish_takes_the_name_of_an_open_function(session):
    session.run("goto before; until refcount(pfn(app, 0x10000)) == 3; finish do_wp_page")
    assert "do_wp_page" not in moves.open_names(session.journal, session.now + 1)
    with pytest.raises(UsageError, match="copy_mm is not open"):
        session.run("back; finish copy_mm")


def test_back_and_step_are_inverse_in_any_number(session):
    rng = random.Random(4)
    for _ in range(40):
        count = rng.randrange(1, 200)
        here = session.now
        if here < count:
            continue
        session.run(f"back all {count}; step all {count}")
        assert session.now == here
        session.goto(rng.randrange(session.end // 2, session.end))


def test_any_walk_of_moves_ends_in_the_state_of_a_fresh_replay(session):
    fresh = Session()
    fresh.run(STORY)
    rng = random.Random(7)
    words = [
        "step",
        "back",
        "next",
        "reverse-next",
        "finish",
        "reverse-finish",
        "step 40",
        "back 70",
        "undo",
    ]
    for _ in range(60):
        try:
            session.run(rng.choice(words))
        except UsageError:
            session.goto(rng.randrange(session.end))
    here = session.now
    fresh.goto(here)
    assert session.state_hash() == fresh.state_hash()


def test_granularity_is_a_choice_and_no_change_of_the_machine(session):
    before = session.state_hash()
    session.run("set granularity command; back")
    assert session.boundary(session.now)
    commands = len(session.timeline.records)
    session.run("set granularity function; step; back; set granularity event")
    session.goto(session.end)
    assert (session.state_hash(), len(session.timeline.records), len(session.timelines)) == (
        before,
        commands,
        1,
    )


def test_undo_goes_before_the_last_changing_command_and_again_before_the_one_before(session):
    session.run("undo; undo")
    texts = [record.text for record in session.timeline.records if record.last <= session.now]
    assert texts[-1] == "write app 0x10000 9"


def test_until_and_back_until_find_the_moment_or_stay(session):
    session.run("goto before; until kid.rss == 0")
    assert session.value("kid.rss") == 0
    session.run("back until kid.rss == 2")
    assert session.value("kid.rss") == 2
    here = session.now
    with pytest.raises(UsageError, match="never true"):
        session.run("until tasks() == 99")
    assert session.now == here


# ---------------------------------------------------------------- stops


def test_a_break_lets_the_command_end_and_shows_the_entry_of_the_function():
    session = Session()
    session.run(
        "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; break do_wp_page"
    )
    (result,) = session.run("write kid 0x10000 8")
    assert result.last == session.end
    assert session.past
    assert "do_wp_page" not in moves.open_names(session.journal, session.now)
    assert "do_wp_page" in moves.open_names(session.journal, session.now + 1)
    assert result.reading.stops[0] == "break 1: do_wp_page() in mm/memory.c"
    assert result.reading.entered == open_names(session)[-1] == "do_wp_page"


def open_names(session):
    """The functions that `bt` shows, outermost first."""
    return [call.function for call in session.reading("bt").calls]


def test_after_a_stop_next_and_finish_mean_the_function_that_it_was_set_at():
    session = Session()
    session.run(
        "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; break "
        "wp_page_copy"
    )
    session.run("write kid 0x10000 8")
    stopped = session.now
    assert open_names(session)[-1] == "wp_page_copy"
    seen = []
    while "wp_page_copy" in open_names(session):
        session.run("next")
        seen.append(moves.open_names(session.journal, session.now))
    assert seen[0][-1] == "__alloc_pages_noprof"
    inside = [names for names in seen if "wp_page_copy" in names]
    assert 5 < len(inside) < session.end - stopped
    session.run(f"goto {stopped}; rc; continue; finish")
    assert moves.open_names(session.journal, session.now)[-1] == "wp_page_copy"
    assert "wp_page_copy" not in moves.open_names(session.journal, session.now + 1)


def test_a_stop_shows_the_moment_and_not_the_whole_command():
    from kemu.commands.context import shown_after

    session = Session()
    session.desk.context = "short"
    session.run(
        "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; break "
        "wp_page_copy"
    )
    (result,) = session.run("write kid 0x10000 8")
    assert not list(shown_after(session, result.command, result.first, result.last))
    reading = result.reading
    assert reading.now == session.now < result.last
    assert "wp_page_copy" in [call.function for call in reading.calls]


def test_stops_are_the_same_in_both_directions(session):
    session.run("break copy_present_ptes; watch refcount(pfn(app, 0x11000)); goto 0")
    forwards = []
    while session.now < session.end:
        session.run("continue")
        forwards.append(session.now)
    backwards = []
    while session.now:
        session.run("reverse-continue")
        backwards.append(session.now)
    assert forwards[:-1] == backwards[-2::-1]
    assert len(forwards) > 3


def test_a_watch_says_old_and_new_and_who(session):
    session.run("watch pfn(kid, 0x10000); goto before")
    reading = session.reading("continue")
    assert reading.stops[0].endswith("-> none, by ptep_clear_flush")


def test_a_condition_must_hold(session):
    session.run("break exc_page_fault if app.minor == 2 and kid.minor == 1; goto 0; continue")
    assert session.value("app.minor") == 2
    assert session.command_at(session.now).text == "write app 0x10000 9"


def test_a_temporary_stop_stops_once_and_a_disabled_one_never(session):
    session.run("tbreak copy_mm; break do_exit; disable 2; goto 0; continue")
    assert [stop.text for stop in session.debugger.stops] == ["do_exit"]
    session.run("continue")
    assert session.now == session.end
    assert session.text("info breakpoints").endswith("(0 hits, disabled)")


@pytest.mark.parametrize(
    ("what", "function"),
    [
        ("fault", "exc_page_fault"),
        ("signal", "__send_signal_locked"),
        ("syscall", "ksys_mmap_pgoff"),
    ],
)
def test_catch_stops_where_it_happens(what, function):
    session = Session()
    session.run(
        f"spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; read app 0; catch {what}; goto 0"
    )
    while function not in (reading := session.reading("continue")).stops[0]:
        assert session.past
    assert reading.stops[0].startswith("catch 1: ")
    assert open_names(session)[-1] == function


def test_catch_oom():
    session = Session(mem=8 << 20)
    session.run("spawn app; mmap app 0x10000000 1000p rw populate; mmap app 0x20000000 900p rw")
    session.run("catch oom; mmap app 0x30000000 1000p rw populate")
    assert open_names(session)[-1] == "out_of_memory"


def test_no_number_is_given_twice():
    session = Session()
    session.run(
        "break do_exit; tbreak do_wp_page; delete 1 2; watch init.rss; display 1; delete display "
        "1; display 2"
    )
    assert [stop.number for stop in session.debugger.stops] == [3]
    assert list(session.debugger.displays) == [2]


def test_display_only_shows(session):
    session.run("display app.rss; goto 0; continue")
    assert session.now == session.end
    assert session.reading("back").shown[0].startswith("1: app.rss = ")


def test_a_break_at_nothing_known_suggests(session):
    with pytest.raises(UsageError) as caught:
        session.run("break do_wp_pag")
    assert "do_wp_page" in caught.value.hint


@pytest.mark.parametrize("granularity", ["event", "function", "command"])
@pytest.mark.parametrize(
    ("line", "end"), [("step", True), ("next", True), ("back", False), ("reverse-next", False)]
)
def test_more_steps_than_there_are_end_where_nothing_moves_any_more(
    session, granularity, line, end
):
    session.run(f"set granularity {granularity}; goto {session.end // 2}; {line} 99999999")
    assert session.now == (session.end if end else 0)
    session.goto(session.end)
    session.run("set granularity event")
