"""Events, calls and differences of a real run: named right, complete, and true of every moment."""

import random
import re
from itertools import pairwise

import pytest

from kemu.abi.uapi import MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PROT_READ, PROT_WRITE
from kemu.api import Session
from kemu.errors import UsageError
from kemu.kernel.include.system import system
from kemu.kernel.mm.rows import bulk
from kemu.machine.geometry import RISCV_SV39
from kemu.observe.calls import calls
from kemu.observe.describe import LOW
from kemu.observe.difference import ORDER, diff
from kemu.observe.events import events, one_event
from kemu.readings import CallReading, EventReading
from kemu.views.terminal import render
from tests.views.story import BASE, PAGE, Story

KINDS = {*ORDER, *LOW, "row", "count", "other"}


@pytest.fixture(scope="module")
def story():
    return Story().tell()


def texts(story, label, kind="", **options):
    """The events of a step in words, those of one kind."""
    found = events(story.kernel, *story.at[label], story.names, **options).events
    return [event.text for event in found if kind in ("", event.kind)]


def changes(story, label, kind):
    """The differences that a step made, of one kind, as (what, field, old, new, note)."""
    found = diff(story.kernel, *story.at[label], story.names).changes
    return [(c.what, c.field, c.old, c.new, c.note) for c in found if c.kind == kind]


# ---------------------------------------------------------------- events


def test_fork_takes_write_from_the_parent_and_gives_the_child_the_same_frame(story):
    pte = [text for text in texts(story, "fork", "pte") if text.startswith("pte ")]
    assert pte == [
        "pte parent 0x10000 0x8000000000112067 -> 0x8000000000112065 (W cleared)",
        "pte child 0x10000 0x0 -> 0x8000000000112045 (pfn 0x112 P-U-D---N)",
        "pte child 0x11000 0x0 -> 0x8000000000101205 (pfn 0x101 P-U----SN)",
    ]
    assert texts(story, "fork", "frame")[-3:] == [
        "pfn 0x112 _refcount 1 -> 2",
        "pfn 0x112 flags 0x20828 -> 0x20028 (-anon_exclusive)",
        "pfn 0x112 _mapcount 0 -> 1",
    ]


def test_a_new_table_is_named_from_its_first_entry_on(story):
    tables = [
        text
        for text in texts(story, "fork", "pte")
        if " child " in text and not text.startswith("pte ")
    ]
    assert [text.split(" -> ")[0] for text in tables[-3:]] == [
        "pgd child 0x0 0x0",
        "pud child 0x0 0x0",
        "pmd child 0x0 0x0",
    ]
    assert tables[0].startswith("pgd child 0xffff888000000000 0x0 -> ")


def test_copy_on_write_is_told_in_linux_order(story):
    told = [
        text
        for text in texts(story, "cow copy")
        if re.match(r"pte|pfn 0x112 _|pfn \S+ _refcount 0 -> 1|page|ram", text)
    ]
    new = re.search(r"pfn (0x\w+) _refcount 0 -> 1", " ".join(told)).group(1)
    assert told == [
        "pfn 0x112 _refcount 2 -> 3",
        f"pfn {new} _refcount 0 -> 1",
        f"page {new}000 zeros -> 1 words of data (filled)",
        "pte child 0x10000 0x8000000000112045 -> 0x0 (pfn 0x112 unmapped)",
        f"pte child 0x10000 0x0 -> 0x8000000000{new[2:]}067 (pfn {new} PWUAD---N)",
        "pfn 0x112 _mapcount 1 -> 0",
        "pfn 0x112 _refcount 3 -> 2",
        "pfn 0x112 _refcount 2 -> 1",
        f'ram {new}000 0x6f6c6c6568 -> 0x6f6c6c6579 ("y", child 0x10000)',
    ]


def test_the_last_sharer_only_gets_its_bit_back(story):
    assert texts(story, "cow reuse", "pte") == [
        "pte parent 0x10000 0x8000000000112065 -> 0x8000000000112067 (W set)"
    ]
    assert not [text for text in texts(story, "cow reuse", "frame") if "_refcount" in text]


def test_an_event_stands_under_the_function_that_caused_it(story):
    found = events(story.kernel, *story.at["cow copy"], story.names).events
    by_function = {event.function: event for event in found if event.kind == "pte"}
    assert by_function.keys() == {"ptep_clear_flush", "wp_page_copy"}
    assert by_function["wp_page_copy"].path == "mm/memory.c"
    store = found[-1]
    assert (store.kind, store.function) == ("ram", "")


def test_hardware_is_named_as_hardware(story):
    found = [
        event
        for event in events(story.kernel, *story.at["cow copy"], story.names).events
        if event.kind == "tlb"
    ]
    assert ("page_walk", "(hardware)") in {(event.function, event.path) for event in found}


def test_a_vma_is_named_by_what_it_covers_and_whose_it_is(story):
    told = texts(story, "munmap", "vma")
    assert any("of child" in text and "0x11000" in text for text in told)
    assert "(removed)" in " ".join(told)
    assert "mm of child map_count" in " ".join(texts(story, "munmap", "mm"))


def test_the_end_of_a_task_is_told_with_its_name_although_it_is_gone(story):
    told = texts(story, "exit")
    assert "task child (4) exit_state none -> EXIT_ZOMBIE" in told
    assert "maps of child 0x10000-0x11000 -> none (removed)" in told
    assert any(text.startswith("pmd child 0x0 ") and "unlinked" in text for text in told)
    assert "tasks 4 child (4) -> none" in texts(story, "wait", "task")


def test_every_event_has_words(story):
    end = len(story.kernel.journal)
    told = events(story.kernel, 0, end, story.names, low=True)
    assert [event.number for event in told.events] == list(range(1, end + 1))
    assert not told.hidden
    for event in told.events:
        assert event.kind in KINDS
        assert event.kind != "other", event
        assert event.what, event
        assert "object at 0x" not in event.text


def test_what_is_hidden_is_counted(story):
    shown = events(story.kernel, *story.at["fork"], story.names)
    first, last = story.at["fork"]
    assert len(shown.events) + shown.hidden == last - first
    assert all(event.kind not in LOW and event.old != event.new for event in shown.events)


def test_one_event_is_the_same_as_in_the_list(story):
    first, last = story.at["fork"]
    listed = {
        event.number: event
        for event in events(story.kernel, first, last, story.names, low=True).events
    }
    for number in (first + 1, (first + last) // 2, last):
        assert one_event(story.kernel, number, story.names) == listed[number]


@pytest.mark.parametrize("span", [(-1, 3), (3, 2), (0, 10**9)])
def test_events_that_do_not_exist_are_refused(story, span):
    with pytest.raises(UsageError, match="there are no events"):
        events(story.kernel, *span)
    with pytest.raises(UsageError, match="there are no events"):
        diff(story.kernel, *span)
    with pytest.raises(UsageError, match="there are no events"):
        calls(story.kernel, *span)


def test_without_a_journal_there_is_no_past():
    story = Story(record=False)
    story.begin()
    with pytest.raises(UsageError, match="keeps no journal"):
        events(story.kernel, 0, 0)


def test_a_row_is_one_event_that_says_how_much_it_copied():
    story = Story()
    story.begin()
    flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
    story.call(
        "mmap many", "parent", "mmap", 0x200000, 512 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0
    )
    for page in range(bulk.min_entries + 6):
        story.store("fill", "parent", 0x200000 + page * PAGE, b"x")
    story.fork()
    rows = [
        event
        for event in events(story.kernel, *story.at["fork"], story.names).events
        if event.kind == "row"
    ]
    assert [(event.what, event.new) for event in rows] == [
        ("pte table of child from 0x200000", "70 entries")
    ]
    assert rows[0].note == "W cleared in 70 of parent, 70 pages shared"
    ptes = [change for change in changes(story, "fork", "pte") if change[0].startswith("pte ")]
    assert (
        len([change for change in ptes if "parent" in change[0] and change[4] == "W cleared"]) == 71
    )
    assert len([change for change in ptes if change[0].startswith("pte child 0x2")]) == 70


# ---------------------------------------------------------------- calls


def spans(node, depth=0):
    """(depth, first, last, name) of all calls below a node."""
    yield depth, node.first, node.last, node.function
    for child in node.children:
        if isinstance(child, CallReading):
            yield from spans(child, depth + 1)


def test_the_calls_of_a_fault_lead_from_the_trap_to_the_copy(story):
    tree = calls(story.kernel, *story.at["cow copy"], story.names)
    assert [root.function for root in tree.roots] == [
        "context_switch",
        "page_walk",
        "exc_page_fault",
        "page_walk",
    ]
    names = [name for _, _, _, name in spans(tree.roots[2])]
    path = [
        "exc_page_fault",
        "handle_page_fault",
        "do_user_addr_fault",
        "handle_mm_fault",
        "__handle_mm_fault",
    ]
    path += ["handle_pte_fault", "do_wp_page", "wp_page_copy", "folio_add_new_anon_rmap"]
    assert [name for name in names if name in path] == path


def test_children_lie_within_their_parents_and_in_order(story):
    tree = calls(story.kernel, 0, len(story.kernel.journal), story.names)

    def check(nodes, first, last):
        at = first
        for node in nodes:
            assert at <= node.first <= node.last <= last
            check(node.children, node.first, node.last)
            at = node.last

    check(tree.roots, 0, len(story.kernel.journal))


def test_every_shown_event_stands_in_the_tree_once_and_in_order(story):
    first, last = story.at["fork"]
    tree = calls(story.kernel, first, last, story.names, with_events=True)

    def numbers(nodes):
        for node in nodes:
            if isinstance(node, EventReading):
                yield node.number
            else:
                yield from numbers(node.children)

    shown = events(story.kernel, first, last, story.names).events
    assert list(numbers(tree.roots)) == [event.number for event in shown]


def test_the_calls_of_a_part_keep_the_functions_around_it(story):
    first, last = story.at["cow copy"]
    number = next(
        e.number
        for e in events(story.kernel, first, last, story.names).events
        if e.function == "ptep_clear_flush"
    )
    tree = calls(story.kernel, number - 1, number, story.names, with_events=True)
    node, path = tree.roots[0], []
    while isinstance(node, CallReading):
        path.append(node.function)
        node = node.children[0]
    assert path[0] == "exc_page_fault"
    assert path[-2:] == ["wp_page_copy", "ptep_clear_flush"]
    assert node.number == number


def test_calls_of_one_step_do_not_leak_into_the_next(story):
    labels = sorted(story.at, key=lambda label: story.at[label])
    for label in labels:
        first, last = story.at[label]
        tree = calls(story.kernel, first, last, story.names)
        assert all(first <= root.first <= root.last <= last for root in tree.roots)
    assert "do_wp_page" not in {
        name for root in calls(story.kernel, *story.at["fork"]).roots for *_, name in spans(root)
    }


# ---------------------------------------------------------------- differences


def test_the_one_bit_that_fork_changed_in_the_parent(story):
    parent = [change for change in changes(story, "fork", "pte") if "parent" in change[0]]
    assert parent == [
        ("pte parent 0x10000", "", "0x8000000000112067", "0x8000000000112065", "W cleared")
    ]


def test_a_difference_is_net(story):
    frames = dict.fromkeys(what for what, *_ in changes(story, "cow copy", "frame"))
    assert "pfn 0x112" in frames
    counts = [
        change[1:4] for change in changes(story, "cow copy", "frame") if change[0] == "pfn 0x112"
    ]
    assert counts == [("_refcount", "2", "1"), ("_mapcount", "1", "0")]


def test_a_task_that_was_born_shows_what_matters(story):
    born = changes(story, "fork", "task")
    assert ("tasks", "4", "none", "child (4)", "") in born
    assert ("task child (4)", "real_parent", "none", "parent (3)", "") in born
    assert ("maps of child", "", "none", "0x10000-0x14000", "inserted") in changes(
        story, "fork", "vma"
    )


def test_a_split_vma_is_one_that_changed_and_one_that_came(story):
    assert sorted(
        change[3] for change in changes(story, "mprotect", "vma") if change[4] == "inserted"
    ) == ["0x11000-0x14000"]


def test_nothing_differs_between_a_moment_and_itself(story):
    for moment in (0, story.at["fork"][1], len(story.kernel.journal)):
        assert diff(story.kernel, moment, moment).changes == ()


def test_differences_join_and_agree_with_each_other(story):
    """For moments a < b < c: what b gave up is what c took over, and a -> c is the join of both; of
    frames and entries."""
    chance = random.Random(7)
    end = len(story.kernel.journal)
    for _ in range(12):
        a, b, c = sorted(chance.sample(range(end + 1), 3))
        one, two, both = (values(story, *span) for span in ((a, b), (b, c), (a, c)))
        for key in one.keys() & two.keys():
            assert one[key][1] == two[key][0], key
        joined = {
            key: (one.get(key, two.get(key))[0], two.get(key, one.get(key))[1])
            for key in one.keys() | two.keys()
        }
        assert {key: pair for key, pair in joined.items() if pair[0] != pair[1]} == both


def values(story, first, last):
    """Differences of frames by (what, field) as (old, new)."""
    found = diff(story.kernel, first, last, story.names, low=True).changes
    return {
        (c.what, c.field): (c.old, c.new)
        for c in found
        if c.what.startswith("pfn ") and c.field in FIELDS
    }


FIELDS = {"_refcount", "_mapcount", "flags", "index"}


def test_what_existed_at_neither_moment_is_no_difference():
    session = Session()
    session.run(
        "spawn p; mmap p 0x10000 4p rw; write p 0x10000 7; mark before; fork p as c; write c "
        "0x10000 8"
    )
    session.run("open c /f rdwr creat; pipe c; exit c; wait p")
    kinds = ("task", "mm", "vma", "anon", "other")
    named = {
        change.what for change in session.reading("diff before").changes if change.kind in kinds
    }
    assert named == {"mm of p", "regs of p", "signal of p"}


def test_what_came_or_went_had_no_value_before_or_has_none_behind_it():
    session = Session()
    session.run("spawn p; mark born; fork p as c; mark forked; exit c; wait p; mark gone")
    for span, place in (("born forked", "old"), ("forked gone", "new")):
        parts = [
            c
            for c in session.reading(f"diff {span}").changes
            if c.what in ("signal of c", "rlim of c", "files of c")
        ]
        assert parts
        assert {getattr(change, place) for change in parts} == {"none"}


def test_a_difference_of_a_tlb_is_one_of_what_it_remembers():
    session = Session()
    session.run(
        "spawn p; mmap p 0x10000 8p rw populate; read p 0x10000 8p; mark first; read p 0x11000; "
        "fork p as c"
    )
    session.run(
        "write c 0x11000 1; read p 0x13000; mprotect p 0x10000 2p r; on 1 write c 0x12000 1; mark "
        "last"
    )
    marks = [session.marks[name] for name in ("first", "last")]
    moments = [*marks, *random.Random(3).sample(range(*marks), 10)]
    kept, seen = {}, set()
    for moment in moments:
        session.goto(moment)
        kept[moment] = [dict(cpu.hw.tlb.slots) for cpu in system.cpus]
    for first, last in pairwise(sorted(moments)):
        changed = {
            (f"CPU {number} TLB slot", str(slot))
            for number, (was, now) in enumerate(zip(kept[first], kept[last], strict=True))
            for slot in was.keys() | now.keys()
            if was.get(slot) != now.get(slot)
        }
        shown = [
            (c.what, c.field)
            for c in session.reading(f"diff {first} {last}").changes
            if c.what.endswith("TLB slot")
        ]
        assert sorted(shown) == sorted(changed)
        seen |= changed
    assert len(seen) > 4


def test_a_moment_in_the_past_is_read_without_moving_the_present(story):
    journal = story.kernel.journal
    journal.seek(story.at["fork"][0])
    state = story.kernel.state_hash()
    diff(story.kernel, 0, len(journal), story.names)
    events(story.kernel, *story.at["cow copy"], story.names)
    assert journal.cursor == story.at["fork"][0]
    assert story.kernel.state_hash() == state
    journal.seek(len(journal))


def test_all_of_it_can_be_drawn(story):
    end = len(story.kernel.journal)
    for reading in (
        events(story.kernel, 0, end, story.names, low=True),
        calls(story.kernel, 0, end, story.names, with_events=True),
        diff(story.kernel, 0, end, story.names, low=True),
    ):
        text = render(reading)
        assert len(text.splitlines()) > 20


def test_riscv_entries_speak_riscv():
    story = Story(geometry=RISCV_SV39)
    story.begin()
    story.fork()
    parent = [text for text in texts(story, "fork", "pte") if text.startswith("pte parent")]
    assert len(parent) == 1
    assert parent[0].endswith("(W cleared)")
    assert system.geometry.name == "sv39"
    assert story.walk("child", BASE).steps[-1].letters.startswith("VR-")
