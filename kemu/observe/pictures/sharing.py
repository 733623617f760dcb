"""Sharing: the page tables of several processes, joined at the frames that they map.

    a's tables -> entry -> frame <- entry <- b's tables

Every entry of every process is looked at once and put under its frame. Frames that look alike, and
whose entries follow each other in each process, are one group: a thousand pages that fork shared
are one line. Only what groups need is described in full, so the cost of a page is a few dictionary
operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kemu.kernel.include.mm_types import mm_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.kernel.mm.rmap import PageAnonExclusive, folio_mapcount, folio_test_anon
from kemu.machine import mmu
from kemu.observe.entries import Leaf, is_table, leaves, read_entry, tables, user_end
from kemu.observe.frames import read_frame
from kemu.observe.look import looking
from kemu.observe.names import Names, entry_legend, name_of
from kemu.observe.pictures.writes import write_would
from kemu.observe.space import need_mm
from kemu.readings import (
    FrameReading,
    Holder,
    SharingEdge,
    SharingFrame,
    SharingGraph,
    SharingSpace,
    SharingTable,
)

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

MOST_GROUPS = 24
"""Maximum number of groups drawn; the rest are counted."""
PFNS = 4
"""Maximum number of frames of a group that are named."""


class Place(NamedTuple):
    """An entry that maps a frame; ``vma``: where the mapping that covers it ends, 0 for none."""

    space: int
    leaf: Leaf
    vma: int


class Group(NamedTuple):
    """Frames that look alike: their numbers, and the places of the first."""

    pfns: list[int]
    places: list[Place]


def sharing(
    kernel: Kernel,
    tasks: list[task_struct],
    names: Names = None,
    *,
    cuts: frozenset[int] = frozenset(),
) -> SharingGraph:
    """The user halves of the tasks' tables, joined at the frames; tasks with one mm are one. No
    group goes on across an address of ``cuts``. ``UsageError`` for a task without an address
    space."""
    with looking(kernel):
        users: dict[int, list[task_struct]] = {}
        for task in tasks:
            users.setdefault(need_mm(task, names).id, []).append(task)
        spaces = [need_mm(found[0], names) for found in users.values()]
        by_frame = _by_frame(spaces)
        groups = sorted(_groups(by_frame, cuts), key=_order)
        drawn, rest = groups[:MOST_GROUPS], groups[MOST_GROUPS:]
        return SharingGraph(
            geometry=system.geometry.title,
            legend=entry_legend(system.bits),
            spaces=tuple(_space(mm, users[mm.id], names) for mm in spaces),
            tables=tuple(_tables(spaces, drawn)),
            frames=tuple(_frame(spaces, group, names) for group in drawn),
            pages=sum(map(len, by_frame.values())),
            left_out=sum(len(group.pfns) * len(group.places) for group in rest),
            groups_left=len(rest),
        )


def _space(mm: mm_struct, tasks: list[task_struct], names: Names) -> SharingSpace:
    """One address space, called after the tasks that use it."""
    name = " = ".join(dict.fromkeys(name_of(task, names) for task in tasks))
    return SharingSpace(tasks[0].pid, name, mm.id, sum(1 for _ in tables(mm.pgd, user_end())))


def _by_frame(spaces: list[mm_struct]) -> dict[tuple[int, int], list[Place]]:
    """The places by (frame, 0). The zero page, which may be mapped anywhere, is told apart by the
    address."""
    bits, mask, shift, zero = (
        system.bits,
        system.bits.pfn_mask,
        system.bits.pfn_shift,
        system.zero_pfn,
    )
    found: dict[tuple[int, int], list[Place]] = {}
    for number, mm in enumerate(spaces):
        vma = until = 0
        for leaf in leaves(mm.pgd, 0, user_end()):
            if leaf.va >= until:
                vma, until = _mapping(mm, leaf.va)
            if leaf.entry & (bits.present | bits.protnone):
                pfn = (leaf.entry & mask) >> shift
                found.setdefault((pfn, leaf.va if pfn == zero else 0), []).append(
                    Place(number, leaf, vma)
                )
    return found


def _mapping(mm: mm_struct, va: int) -> tuple[int, int]:
    """The end of the mapping that covers ``va`` (0 for none), and the end of the range for which
    that is so."""
    vma = mm.mm_mt.find(va)
    if vma is None:
        return 0, 1 << 64
    return (vma.vm_end, vma.vm_end) if vma.vm_start <= va else (0, vma.vm_start)


def _groups(by_frame: dict[tuple[int, int], list[Place]], cuts: frozenset[int]) -> Iterator[Group]:
    """Frames in runs that look alike."""
    group: Group | None = None
    look: object = None
    for (pfn, _), places in by_frame.items():
        now = _look(pfn, places)
        if (
            group is not None
            and now == look
            and _follows(group, places)
            and not (cuts and places[0].leaf.va in cuts)
        ):
            group.pfns.append(pfn)
            continue
        if group is not None:
            yield group
        group, look = Group([pfn], places), now
    if group is not None:
        yield group


def _look(pfn: int, places: list[Place]) -> object:
    """What must be equal within a group: the counts and marks of the frame, the bits of the
    entries."""
    keep = ~system.bits.pfn_mask
    bits = tuple(
        [(place.space, place.vma, place.leaf.level, place.leaf.entry & keep) for place in places]
    )
    found = system.mem_map.get(pfn)
    if found is None:
        return bits
    return bits, found._refcount, found._mapcount, found.page_type, found.flags, type(found.mapping)


def _follows(group: Group, places: list[Place]) -> bool:
    """Whether these are the next page after the group in every process."""
    count = len(group.pfns)
    for first, place in zip(group.places, places, strict=True):
        if place.leaf.va != first.leaf.va + (
            count << system.geometry.levels[place.leaf.level].shift
        ):
            return False
    return True


def _order(group: Group) -> tuple[int, int]:
    first = group.places[0]
    return min(place.leaf.va for place in group.places), first.space


def _frame(spaces: list[mm_struct], group: Group, names: Names) -> SharingFrame:
    """The group as a reading, described by its first frame."""
    pfn, places = group.pfns[0], group.places
    found = system.mem_map.get(pfn)
    state = read_frame(pfn, names) if found is not None and pfn < system.phys.nr_frames else None
    return SharingFrame(
        count=len(group.pfns),
        pfns=tuple(group.pfns[:PFNS]),
        state=state.state if state else "no RAM",
        refcount=found._refcount if found else 0,
        mapcount=folio_mapcount(found) if found else 0,
        exclusive=bool(found and folio_test_anon(found) and PageAnonExclusive(found)),
        edges=tuple(_edge(spaces[place.space], place) for place in places),
        others=_others(spaces, state) if state and state.state != "zero" else (),
    )


def _edge(mm: mm_struct, place: Place) -> SharingEdge:
    leaf = place.leaf
    steps, stopped = mmu.walk(system.phys, system.geometry, mm.pgd, leaf.va)
    writable = not stopped and mmu.rights(system.geometry, steps).write
    outcome, why = write_would(mm, leaf.va, leaf.entry, leaf.level, writable)
    entry = read_entry(leaf.level, leaf.entry_pa, leaf.entry)
    return SharingEdge(place.space, leaf.va, leaf.entry_pa >> 12, entry, writable, outcome, why)


def _others(spaces: list[mm_struct], state: FrameReading) -> tuple[str, ...]:
    """Other holders: everything except entries of the drawn processes."""
    pids = {pid for pid, task in system.tasks.items() if any(task.mm is mm for mm in spaces)}
    held = [holder for holder in state.holders if holder.what != "pte" or holder.pid not in pids]
    missing = (f"{state.missing} unknown",) if state.missing else ()
    return (*map(_holder, held), *missing)


def _holder(holder: Holder) -> str:
    text = f"{holder.name} {holder.address:#x}" if holder.what == "pte" else holder.what
    return text + (f" x{holder.count}" if holder.count > 1 else "")


def _tables(spaces: list[mm_struct], groups: list[Group]) -> Iterator[SharingTable]:
    """The tables on the way to the first page of each group, for each space parents first, each of
    them once."""
    for number, mm in enumerate(spaces):
        seen: set[int] = set()
        for va in sorted(
            {place.leaf.va for group in groups for place in group.places if place.space == number}
        ):
            for table in _way(number, mm, va):
                if table.pfn not in seen:
                    seen.add(table.pfn)
                    yield table


def _way(number: int, mm: mm_struct, va: int) -> Iterator[SharingTable]:
    geometry = system.geometry
    yield SharingTable(number, geometry.levels[0].name, 0, mm.pgd >> 12, 0, 0, 0)
    steps, _ = mmu.walk(system.phys, geometry, mm.pgd, va)
    for step in steps:
        if is_table(step.level, step.entry):
            start = va & ~((1 << geometry.levels[step.level].shift) - 1)
            below, index = geometry.entry_pfn(step.entry), step.entry_pa % 4096 // 8
            level = geometry.levels[step.level + 1].name
            yield SharingTable(
                number, level, step.level + 1, below, step.entry_pa >> 12, index, start
            )


def borders(reading: SharingGraph) -> frozenset[int]:
    """Where the groups of a picture begin and end: two moments that are cut at the borders of both
    can be compared."""
    found = set()
    for frame in reading.frames:
        for edge in frame.edges:
            found |= {edge.address, edge.address + (frame.count << 12)}
    return frozenset(found)
