"""The state that a film plays is the state that the readings of each moment have."""

import random

import pytest

from kemu.kernel.include.system import system
from kemu.observe import frames as look_frames
from kemu.observe.space import address_space
from kemu.observe.tasks import process_list
from kemu.observe.translation import page_tables
from kemu.views.report_player import Player
from tests.golden.runner import SCRIPTS
from tests.report.plays import SITUATIONS, film_of, golden_session, session_of

MOMENTS = 4
"""Moments of each session at which everything is compared."""


def expand(table):
    """(level, table, index, value, kind, letters, pfn, note) of a table's entries, runs written
    out."""
    step = 1 << system.bits.pfn_shift
    for run in table.runs:
        entry = run.entry
        if entry is None:
            continue
        for i in range(run.count):
            pfn = None if entry.pfn is None else entry.pfn + i
            yield (
                table.level,
                table.pfn,
                run.first + i,
                entry.value + i * step,
                entry.kind,
                entry.letters,
                pfn,
                entry.note,
            )
        if run.table is not None:
            yield from expand(run.table)


def entries(player, number):
    """The same of the player's state."""
    for entry in sorted(player.walk(player.space(number).root), key=lambda e: (e.va, e.level)):
        pfn = None if entry.kind in ("swap", "marker") else entry.pfn
        level = player.film.machine.levels[entry.level][0]
        yield (
            level,
            entry.table,
            entry.slot,
            player.value(entry),
            entry.kind,
            entry.look.letters,
            pfn,
            player.note(entry),
        )


def compare(session, player):
    """All that the player has, against readings."""
    kernel, names = session.kernel, session.name_of
    assert tuple(player.tasks) == process_list(kernel, names).tasks
    for task in session.tasks.values():
        if task.mm is not None:
            assert player.vmas(task.mm.id) == address_space(task, names).vmas
            assert list(entries(player, task.mm.id)) == list(
                expand(page_tables(kernel, task, names).root)
            )
    memory = look_frames.memory_map(kernel, names)
    assert player.letters() == {
        pfn: run.letter
        for run in memory.runs
        if run.letter != "."
        for pfn in range(run.first, run.first + run.count)
    }
    for pfn, look in player.frames.items():
        if look.state not in ("free", "kernel"):
            found = look_frames.read_frame(pfn, names)
            assert (look.state, look.refcount, look.mapcount) == (
                found.state,
                found.refcount,
                found.mapcount,
            )
            assert look.exclusive is found.exclusive
            if look.state in ("anon", "file", "shmem"):
                assert look.preview == found.preview.rstrip(b"\0")


def compare_at_moments(session, seed, first=0):
    film = film_of(session, first)
    player = Player(film)
    inner = random.Random(seed).sample(
        range(first, film.last + 1), min(MOMENTS, film.last + 1 - first)
    )
    for moment in sorted({first, film.last, *inner}):
        session.goto(moment)
        with session.looking():
            compare(session, player.goto(moment))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_film_of_a_golden_script_shows_what_the_readings_say(path):
    session = golden_session(path)
    compare_at_moments(session, path.stem)


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_film_of_a_situation_at_many_events(name):
    session = session_of(SITUATIONS[name])
    player = Player(film_of(session))
    for moment in range(0, session.end + 1, 17):
        session.goto(moment)
        with session.looking():
            compare(session, player.goto(moment))


@pytest.mark.parametrize("geometry", ["sv39", "x86-64-la57"])
def test_the_film_of_another_machine(geometry):
    session = session_of(SITUATIONS["after_one_copy"], geometry=geometry)
    compare_at_moments(session, geometry)


UNUSUAL = {
    "no_swap": "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; write app 0x11000 8; "
               "madvise app 0x10000 2p pageout; "
    "fork app as kid; read app 0x10000",
    "guarded": "spawn app; mmap app 0x10000 3p rw; madvise app 0x11000 1p guard_install; write "
               "app 0x10000 7",
    "protnone": "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; mprotect app 0x10000 2p "
                "none; fork app as kid",
    "batches": "set lru_batch on; spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; munmap "
               "app 0x10000 2p",
    "a_row": "spawn app; mmap app 0x200000 80p rw populate; fork app as kid; write kid 0x210000 "
             "7; exit kid",
    "borrowed": "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; schedule kthreadd; on 1 "
                "fork app as kid; exit app",
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSUAL)
def test_the_film_of_an_unusual_state(name):
    session = session_of(UNUSUAL[name])
    compare_at_moments(session, name)


def test_a_film_that_begins_later_has_the_same_states():
    session = session_of(SITUATIONS["three_sharers"])
    first = session.timeline.records[2].last
    compare_at_moments(session, "later", first)
