"""Where the kernel is: bt has the open functions, list the code with a mark at the current line."""

from __future__ import annotations

import inspect

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.kernel.mm import fault_wp
from kemu.observe import moves

STORY = (
    "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; mark before; "
    "write kid 0x10000 8"
)


@pytest.fixture
def session():
    session = Session()
    session.run(STORY)
    return session


def marked(listing):
    return listing.lines[listing.marked - listing.first].strip()


@pytest.mark.parametrize("word", ["bt", "where", "backtrace"])
def test_bt_numbers_the_open_functions_from_the_innermost(session, word):
    session.run("goto before; step pte")
    lines = session.text(word).splitlines()
    names = moves.open_names(session.journal, session.now)[::-1]
    assert [line.split()[:2] for line in lines] == [
        [f"#{number}", f"{name}()"] for number, name in enumerate(names)
    ]


def test_bt_between_two_commands_says_that_nothing_is_open(session):
    assert session.reading("goto before; bt").calls == ()
    assert "no kernel function is open" in session.text("bt")


def test_list_marks_the_line_that_made_the_event(session):
    session.run("goto before")
    seen = {}
    while session.now < session.end - 1:
        event = session.reading("step all").event
        if event.function:
            listing = session.reading("list")
            assert listing.function == event.function
            assert listing.marked, event.text
            seen[event.text] = marked(listing)
    assert seen["pfn 0x112 _refcount 2 -> 3"] == "folio_get(folio)"
    assert seen["mm of kid tlb_gen 0 -> 1"].startswith("inc_mm_tlb_gen") or "tlb_gen" in str(seen)


def test_list_changes_nothing(session):
    session.run("goto before; step pte")
    before = (session.now, session.end, session.state_hash())
    session.run("list; l; list do_wp_page")
    assert (session.now, session.end, session.state_hash()) == before


def test_at_the_entry_of_a_function_its_head_is_marked(session):
    session.run("goto before; break do_wp_page; continue")
    assert marked(session.reading("list")).startswith("def do_wp_page(")


def test_list_of_a_name_shows_the_function_as_it_is_written(session):
    listing = session.reading("list do_wp_page")
    source = inspect.getsource(fault_wp).split("\n")
    assert list(listing.lines) == source[listing.first - 1 :][: len(listing.lines)]


def test_a_long_function_is_shown_around_the_line(session):
    session.run("goto before; until refcount(pfn(app, 0x10000)) == 1; back all")
    listing = session.reading("list")
    assert listing.function == "wp_page_copy"
    assert listing.first <= listing.marked < listing.first + len(listing.lines)
    assert len(listing.lines) <= 40


def test_list_says_what_it_needs(session):
    with pytest.raises(UsageError, match=r"no kernel function is open.*") as caught:
        session.run("goto before; list")
    assert "list do_wp_page" in caught.value.hint
    with pytest.raises(UsageError, match="no kernel function 'do_wp_pag'"):
        session.run("list do_wp_pag")


def test_in_a_race_there_is_no_mark(session):
    session.run('race replay "write app 0x10000 2" "write kid 0x10000 3" 0*3; step all 3')
    name = session.reading("step; bt").calls[-1].function
    assert session.reading(f"list {name}").marked == 0
