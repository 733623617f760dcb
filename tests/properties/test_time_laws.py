"""The laws of time at the level of commands: moves, saved experiments, and the answers of why."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.api import Session
from kemu.commands.asking import _thing
from kemu.errors import UsageError
from kemu.explain.why import writers
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.rows import Row, bulk
from kemu.machine import mmu
from kemu.machine.physmem import Frame

START = "spawn app; mmap app 0x10000 4p rw; write app 0x10000 7"
COMMANDS = (
    "write app 0x10000 8",
    "write app 0x11000 9",
    "read app 0x12000",
    "fork app as kid",
    "fork kid as grandkid",
    "vfork app as lent",
    "write kid 0x10000 1",
    "write kid 0x12000 1",
    "write grandkid 0x10000 2",
    "exit kid",
    "exit lent",
    "wait app",
    "mprotect app 0x10000 2p r",
    "mprotect app 0x10000 2p rw",
    "munmap app 0x11000 1p",
    "mmap app 0x11000 1p rw fixed",
    "madvise app 0x10000 1p dontneed",
    "mremap app 0x12000 1p 1p maymove fixed to 0x40000",
    "mlock app 0x13000 1p",
    "clone app vm fs files sighand thread as worker",
    "write worker 0x13000 3",
    "on 1 write worker 0x10000 4",
    "schedule kthreadd",
    "read app 0x900000",
    "mkfile /data 2p; mmap app 0x50000 2p rw file /data shared; write app 0x50000 5",
    "pin app 0x10000 1p",
)
MOVES = (
    "step",
    "back",
    "next",
    "reverse-next",
    "finish",
    "reverse-finish",
    "continue",
    "reverse-continue",
    "undo",
    "goto end",
)

commands = st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=7)


def story(lines, rows=64):
    """A session in which the commands were run, those left out that cannot be done in this order;
    fork copies tables of at least `rows` entries as one event."""
    session = Session()
    session.run(START)
    bulk.min_entries = rows
    try:
        for line in lines:
            attempt(session, line)
    finally:
        bulk.min_entries = 64
    return session


def attempt(session, line):
    try:
        session.run(line)
    except UsageError:
        return False
    return True


def replayed(session):
    """A fresh session with the same commands."""
    fresh = Session()
    for record in session.timeline.records:
        fresh.run(record.text)
    return fresh


@settings(max_examples=12)
@given(
    commands,
    st.lists(st.tuples(st.sampled_from(MOVES), st.integers(1, 90)), max_size=14),
    st.booleans(),
)
def test_any_walk_of_moves_ends_in_the_state_of_a_fresh_replay(lines, moves, stops):
    session = story(lines)
    if stops:
        session.run("break do_wp_page; watch app.rss")
    for word, count in moves:
        attempt(session, f"{word} {count}" if word in ("step", "back") else word)
    fresh = replayed(session)
    assert fresh.end == session.end
    fresh.goto(session.now)
    assert fresh.state_hash() == session.state_hash()


@settings(max_examples=10)
@given(commands, st.integers(0, 2**16), st.integers(1, 400))
def test_back_and_step_by_the_same_number_is_the_identity(lines, at, count):
    session = story(lines)
    session.goto(at % (session.end + 1))
    here, state = session.now, session.state_hash()
    count = min(count, here)
    if count:
        session.run(f"back all {count}; step all {count}")
    assert (session.now, session.state_hash()) == (here, state)


@settings(max_examples=10)
@given(commands, st.integers(0, 2**16), st.integers(1, 40))
def test_among_the_events_that_trace_shows_back_and_step_are_inverse(lines, at, count):
    session = story(lines)
    shown = [event.number for event in session.reading("trace 0 end").events]
    here = shown[at % len(shown)]
    session.goto(here)
    count = min(count, shown.index(here))
    if count:
        session.run(f"back {count}; step {count}")
    assert session.now == here


@settings(max_examples=8)
@given(commands, commands, st.integers(0, 2**16))
def test_a_saved_experiment_restores_to_the_same_state(lines, others, at):
    import tempfile
    from pathlib import Path

    session = story(lines)
    session.goto(session.timeline.records[at % len(session.timeline.records)].last)
    for line in others:
        attempt(session, line)
    session.goto(session.end)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "experiment.kemu"
        session.run(f"save '{path}'")
        other = Session()
        other.run(f"restore '{path}'")
        assert (other.end, other.state_hash()) == (session.end, session.state_hash())
        assert [record.text for record in other.timeline.records] == [
            record.text for record in session.timeline.records
        ]


def things(session):
    """(what, at, field) of a thing, and how to read its value; none where app has ended."""
    app = session.tasks.get(session.names().get("app", -1))
    if app is None or app.mm is None:
        return
    mm = app.mm
    for address in (0x10000, 0x11000, 0x12000):
        yield ("pte", address, ""), partial(system.phys.load, entry_address(mm, address))
    for pfn in {
        pfn for address in (0x10000, 0x12000) if (pfn := frame_of(mm, address)) is not None
    }:
        for field in ("_refcount", "_mapcount", "flags"):
            yield ("frame", pfn, field), partial(getattr, pfn_to_page(pfn), field)
    for field in ("total_vm", "map_count", "mm_users"):
        yield ("mm", None, field), partial(getattr, mm, field)
    for field in ("state", "min_flt", "mm"):
        yield ("task", None, field), partial(getattr, app, field)
    yield ("vma", 0x11000, ""), partial(covering, mm, 0x11000)
    for cpu in (0, 1):
        yield ("tlb", 0x10000, str(cpu)), partial(remembered, cpu, 0x10000)


def entry_address(mm, address):
    """Where the last entry on the way lies."""
    return mmu.walk(system.phys, system.geometry, mm.pgd, address)[0][-1].entry_pa


def frame_of(mm, address):
    steps, stopped = mmu.walk(system.phys, system.geometry, mm.pgd, address)
    return None if stopped else system.geometry.entry_pfn(steps[-1].entry)


def covering(mm, address):
    return next((vma for vma in mm.mm_mt if vma.vm_start <= address < vma.vm_end), None)


def remembered(cpu, address):
    tlb = system.cpus[cpu].hw.tlb
    found = tlb.slots.get((address >> 12) % tlb.size)
    return found if found is not None and found.vpn == address >> 12 else None


@settings(max_examples=8)
@given(commands, st.sampled_from([1, 64]))
def test_why_never_names_an_event_that_did_not_write_the_thing(lines, rows):
    session = story(lines, rows)
    for (what, at, field), read in things(session):
        here = session.now
        thing = _thing(session, what, session.find("app"), at, field)
        reading = session.run(f"why {what} app {'' if at is None else hex(at)} {field}")[-1].reading
        written = [number for number, _, _ in writers(session.journal, thing, here)]
        if written or thing.birth is None:
            assert {event.number for event in reading.events} <= set(written)
        for number in written[:40]:
            session.goto(number - 1)
            before = read()
            session.goto(number)
            assert read() != before, f"{what} {at} {field}: #{number} left it at {before}"
        session.goto(here)


@settings(max_examples=8)
@given(commands, st.sampled_from([1, 64]))
def test_why_names_the_newest_event_that_wrote_the_thing(lines, rows):
    """Found by looking at the thing behind every event."""
    session = story(lines, rows)
    here, low = session.end, max(0, session.end - 300)
    asked = [
        (name, read, _thing(session, name[0], session.find("app"), *name[1:]))
        for name, read in things(session)
    ]
    seen = []
    for moment in range(low, here + 1):
        session.goto(moment)
        seen.append([read() for _, read, _ in asked])
    for column, (name, _, thing) in enumerate(asked):
        values = [row[column] for row in seen]
        changed = [low + i for i in range(1, len(values)) if values[i] != values[i - 1]]
        newest = next((number for number, _, _ in writers(session.journal, thing, here)), 0)
        assert newest == changed[-1] if changed else newest <= low, name


@settings(max_examples=6)
@given(st.integers(64, 120), st.integers(0, 2**16))
def test_the_state_after_a_row_is_the_state_after_its_sub_steps(pages, seed):
    rng = random.Random(seed)
    lines = [f"spawn app; mmap app 0x200000 {pages}p rw populate"]
    lines += [
        f"madvise app {0x200000 + rng.randrange(pages) * 4096:#x} 1p dontneed"
        for _ in range(rng.randrange(3))
    ]
    session, plain = Session(), Session()
    for line in lines:
        session.run(line)
        plain.run(line)
    session.run("fork app as kid")
    rows = [
        number
        for number in range(1, session.end + 1)
        if isinstance(session.journal.event(number)[0], Row)
    ]
    bulk.enabled = False
    try:
        plain.run("fork app as kid")
    finally:
        bulk.enabled = True
    assert session.state_hash() == plain.state_hash()
    shown = session.run(f"expand {rows[0]}")[-1].reading if rows else None
    if shown:
        written = [
            event.what
            for event in shown.events
            if event.kind == "pte" and event.what.startswith("pte kid")
        ]
        made = [
            new
            for obj, _, old, new in session.journal.event(rows[0])[0].changes()
            if isinstance(obj, Frame) and old is None
        ]
        assert len(written) == len(set(written)) == len(made)


@settings(max_examples=6)
@given(
    st.integers(64, 120),
    st.sampled_from(["munmap app 0x200000 {}p", "exit kid", "madvise app 0x200000 {}p dontneed"]),
)
def test_the_sub_steps_of_what_is_taken_away_clear_each_entry_and_free_each_page(pages, line):
    """The parent's first and last page are its own, and so is what kid wrote."""
    session = Session()
    for before in (
        f"spawn app; mmap app 0x200000 {pages}p rw populate; fork app as kid",
        "write kid 0x201000 1; write kid 0x203000 1; write app 0x200000 1",
        line.format(pages),
    ):
        session.run(before)
    start = session.command_of(session.end).first
    rows = {
        session.journal.event(number)[1]: number
        for number in range(start + 1, session.end + 1)
        if isinstance(session.journal.event(number)[0], Row)
    }
    assert set(rows) == {"zapped", "put"}
    for what, kind in (("zapped", "pte"), ("put", "frame")):
        shown = session.run(f"expand {rows[what]}")[-1].reading
        changed = [
            event.what
            for event in shown.events
            if event.kind == kind and event.field in ("", "_refcount") and event.new in ("0x0", "0")
        ]
        changes = list(session.journal.event(rows[what])[0].changes())
        gone = [
            obj
            for obj, field, _, new in changes
            if (isinstance(obj, Frame) and new is None) or (field == "_refcount" and new == 0)
        ]
        assert len(changed) == len(gone) > 0


def test_the_stories_are_not_all_empty():
    session = story(COMMANDS)
    assert session.end > 1000
    with pytest.raises(UsageError):
        session.run("back 1; write app 0x10000 9")
