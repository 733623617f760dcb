"""why, history, source and cost: what they name is what the journal holds."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.explain import why as things
from kemu.explain.rules import RULES
from kemu.observe.moves import first_words
from kemu.trace.frames import FUNCTIONS
from kemu.trace.index import STRETCH

STORY = (
    "spawn app; mmap app 0x10000 3p rw; write app 0x10000 7; read app 0x11000; write app 0x12000 "
    "7; fork app as kid; "
    "write kid 0x10000 8; write app 0x10000 9; write kid 0x11000 1; mprotect app 0x12000 1p r; "
    "munmap kid 0x12000 1p; "
    "mmap app 0x200000 70p rw populate; fork app as third; write third 0x200000 1"
)


@pytest.fixture(scope="module")
def story():
    made = Session()
    made.run(STORY)
    return made


@pytest.fixture
def session(story):
    story.goto(story.end)
    return story


def chain(session, thing):
    return [number for number, _, _ in things.writers(session.journal, thing, session.now)]


def entry(session, name, address):
    return things.entry(session.find(name), address, name)


@pytest.mark.parametrize(
    ("expression", "make"),
    [
        ("pte(app, 0x10000)", lambda s: entry(s, "app", 0x10000)),
        ("pte(kid, 0x10000)", lambda s: entry(s, "kid", 0x10000)),
        ("pte(kid, 0x11000)", lambda s: entry(s, "kid", 0x11000)),
        ("pte(app, 0x12000)", lambda s: entry(s, "app", 0x12000)),
        ("pte(third, 0x200000)", lambda s: entry(s, "third", 0x200000)),
        ("refcount(0x112)", lambda _: things.frame(0x112, "_refcount")),
        ("mapcount(0x112)", lambda _: things.frame(0x112, "_mapcount")),
        ("kid.total_vm", lambda s: things.counter(s.find("kid"), "total_vm", "kid")),
        ("app.minor", lambda s: things.of_task(s.find("app"), "min_flt", "app")),
    ],
)
def test_why_names_just_the_events_that_wrote_the_thing(session, expression, make):
    """Each event of the chain changes the value, and between them it stays; a value that is not
    there yet counts as 0."""
    from kemu.debugger.stops import value_at
    from kemu.language.expr import compile_text

    numbers = set(chain(session, make(session)))
    assert numbers
    compiled = compile_text(expression)
    missing = ("not there", None)
    with session.traveling():
        old = value_at(session, compiled, 0)
        for number in range(1, session.end + 1):
            new = value_at(session, compiled, number)
            if number in numbers:
                assert new != old or new in missing, number
            elif old not in missing and new not in missing:
                assert new == old, number
            old = new


def test_why_of_an_entry_tells_the_rule_and_the_command(session):
    reading = session.reading("why pte app 0x12000")
    assert reading.command == "mprotect app 0x12000 1p r"
    assert reading.calls[-1] == "change_pte_range"
    first = Session()
    first.run("spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid")
    reading = first.reading("why pte app 0x10000")
    assert (
        reading.rule
        == "write-protected by fork: both sides must trap, so that the first writer copies"
    )
    assert reading.command == "fork app as kid"
    assert [event.function for event in reading.events] == [
        "do_anonymous_page",
        "__copy_present_ptes",
    ]


def test_why_looks_into_a_row(session):
    reading = session.reading("why pte app 0x201000")
    assert reading.command == "fork app as third"
    assert reading.events[-1].note == "W cleared"


def test_why_of_what_was_made_with_its_object_tells_of_the_birth(session):
    assert session.reading("why vma third 0x200000 vm_flags").calls[-1] == "dup_mmap"
    assert session.reading("why task third tgid").command == "fork app as third"


def test_why_of_a_mapping_that_is_gone(session):
    assert session.reading("why vma kid 0x12000").command == "munmap kid 0x12000 1p"


def test_why_of_a_number_of_the_whole_machine(session):
    reading = session.run("why counter PGFAULT")[-1].reading
    assert reading.thing == "kernel PGFAULT"
    assert reading.events[-1].function == "handle_mm_fault"
    assert reading.command == "write third 0x200000 1"
    assert "fault" in reading.rule
    history = session.run("history counter nr_free_pages")[-1].reading
    assert all(abs(int(one.new) - int(one.old)) >= 1 for one in history.changes)
    for text, what in (
        ("why counter", "why counter: NAME is missing"),
        ("history counter", "history counter: NAME is missing"),
        ("history frame", "history frame: PFN is missing"),
        ("why pte app", "why pte: ADDRESS is missing"),
        ("why counter PGFALT", "no kernel counter"),
    ):
        with pytest.raises(UsageError, match=what):
            session.run(text)


@pytest.mark.parametrize(
    "thing",
    [
        "pte app 0x10000", "frame 0x112", ("frame 0x112 "
                                          "_mapcount"), "frame 0x112 flags", "vma app 0x10000",
        "vma kid 0x12000", "mm app total_vm", ("mm app "
                                              "MM_ANONPAGES"), "mm kid mm_users", "mm app pgtables_bytes",
        "task app", "task kid mm", "task app min_flt", "tlb 0x200000", "counter PGALLOC",
    ],
)  # fmt: skip
def test_why_gives_events_function_command_and_rule_of_every_kind_of_thing(session, thing):
    reading = session.run(f"why {thing}")[-1].reading
    assert reading.events
    assert all(event.number <= session.now for event in reading.events)
    assert reading.calls[-1] == reading.events[-1].function
    assert reading.command
    assert reading.rule
    assert "\n" not in reading.rule


def test_why_of_a_tlb_entry(session):
    reading = session.reading("why tlb 0x200000")
    assert reading.calls[-1] == "page_walk"
    assert reading.command == "write third 0x200000 1"


@pytest.mark.parametrize(
    ("line", "place", "word"),
    [
        ("read app 0", "bad_area_nosemaphore", "no mapping"),
        ("write app 0x10000 1", "bad_area_access_error", "does not allow"),
    ],
)
def test_why_signal_tells_the_check_and_the_way_out(line, place, word):
    session = Session()
    session.run(f"spawn app; mmap app 0x10000 1p r; signal app SEGV handle; {line}")
    reading = session.reading("why signal")
    assert reading.place == place
    assert word in reading.rule
    assert reading.advice
    assert session.reading("why last") == reading


@pytest.mark.parametrize(
    ("line", "function"),
    [
        ("munmap app 0x10001 1p", "do_vmi_munmap"),
        ("mmap app 0x10000 0p r", "do_mmap"),
        ("wait app", "do_wait"),
    ],
)
def test_why_errno_finds_the_function_that_decided_and_changes_nothing(line, function):
    session = Session()
    session.run(f"spawn app; {line}")
    before = (session.state_hash(), session.end, session.now)
    reading = session.reading("why errno")
    assert reading.calls[-1] == function
    assert function in reading.place
    assert reading.advice
    assert (session.state_hash(), session.end, session.now) == before


def test_history_has_every_value(session):
    values = session.reading("history frame 0x112 _mapcount").changes
    assert values[0].old == "-1"
    for one, other in pairwise(values):
        assert one.new == other.old


def test_source_names_both_places(session):
    lines = session.reading("source do_wp_page").lines
    assert any("kemu/kernel/mm/fault_wp.py:" in line for line in lines)
    assert "  Linux: mm/memory.c" in lines


def test_rules_name_functions_of_the_kernel():
    known = {function.name for function in FUNCTIONS}
    assert not {rule.function for rule in RULES if rule.function} - known


def test_the_cost_of_fork_and_one_write():
    session = Session()
    session.run(
        "spawn app; mmap app 0x10000 3p rw; write app 0x10000 7; write app 0x11000 7; write app "
        "0x12000 7; mark before"
    )
    session.run("fork app as kid; write kid 0x10000 8")
    reading = session.reading("cost before")
    rows = {row.what: (row.now, row.eager) for row in reading.rows}
    assert (reading.shared, reading.copied) == (3, 1)
    assert rows["frames allocated"][1] - rows["frames allocated"][0] == 2
    assert rows["bytes copied"] == (4096, 3 * 4096)
    assert rows["faults"] == (1, 0)


def test_the_cost_of_a_row_is_that_of_its_entries():
    session = Session()
    session.run("spawn app; mmap app 0x200000 80p rw populate; mark before; fork app as kid")
    assert session.reading("cost before").shared == 80


def test_why_in_another_future_knows_nothing_of_the_first():
    """With more events than a stretch of the index has."""
    session = Session()
    session.run("spawn app; mmap app 0x10000000 300p rw populate; goto start")
    session.run("spawn other; mmap other 0x20000000 300p rw populate; write other 0x20000000 1")
    reading = session.run("why vma other 0x20000000")[-1].reading
    assert reading.events[-1].number < STRETCH
    assert reading.command.startswith("mmap other")


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (
            "why pte kid 0x50000",
            "never written: no page has been mapped at this address",
        ),
        ("why vma app 0x90000", "no mapping was ever made there"),
        (
            "why tlb 0x5000",
            "no entry: the CPU has not translated an address in this page",
        ),
        ("why task init pid", "no event has written it: it has its value from the boot"),
    ],
)
def test_what_nobody_has_written_is_told_apart_from_what_was_never_there(line, rule):
    session = Session()
    session.run("spawn app; fork app as kid")
    assert session.reading(line).rule == rule


def test_a_frame_outside_of_the_memory_is_no_unused_one():
    session = Session()
    with pytest.raises(UsageError, match="has never been used"):
        session.run("why frame 0x3ffe")
    with pytest.raises(UsageError, match="does not exist"):
        session.run("why frame 0x4000")


def test_a_task_without_memory_is_called_by_its_name():
    session = Session()
    session.run("spawn parent; fork parent as child; exit child")
    with pytest.raises(UsageError, match=r"^child \(pid 4\) has no address space"):
        session.run("history pte child 0x10000")


def test_what_a_function_says_of_itself_is_shown_without_the_marks_of_its_source():
    session = Session()
    session.run("spawn app")
    marked = [function.name for function in FUNCTIONS if "``" in function.doc]
    assert marked
    for name in marked:
        assert "`" not in first_words(name)
        assert not any("``" in line for line in session.reading(f"source {name}").lines)
    assert first_words("expand") == (
        "Split a block of order high down to low: each upper half becomes a free block."
    )
    assert first_words("nosuch") == ""
