"""Single facts about an address or a frame. Expressions ask for them at many moments, so each reads
no more than it must.

A `watch` evaluates again only when something that was read is written (`reads.py`): a question that
reads a whole walk, TLB included, would be asked at every access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.kernel.include.mm_types import MM_COUNTER_NAMES, mm_struct, page
from kemu.kernel.include.mmzone import nr_free_pages
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.kernel.mm.rmap import folio_mapcount
from kemu.machine import mmu
from kemu.observe.entries import (
    LEADING,
    TableAt,
    entry_kind,
    is_table,
    leaves,
    sign_extend,
    tables,
    user_end,
)
from kemu.observe.frames import frame_state
from kemu.observe.look import looking
from kemu.observe.names import Names
from kemu.observe.space import space_of

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel


def physical(kernel: Kernel, task: task_struct, address: int, names: Names = None) -> int | None:
    """The physical address that the task's tables lead to; None where nothing is mapped."""
    with looking(kernel):
        steps = _walk(task, address, names)
        return mmu.physical(system.geometry, steps[-1], address) if steps else None


def byte(kernel: Kernel, task: task_struct, address: int, names: Names = None) -> int | None:
    """The byte there; None where nothing is mapped, or no RAM."""
    found = physical(kernel, task, address, names)
    with looking(kernel):
        return (
            system.phys.read(found, 1)[0]
            if found is not None and found < system.phys.size
            else None
        )


def entry(kernel: Kernel, task: task_struct, address: int, names: Names = None) -> int | None:
    """The entry of the last level on the way; None where a table is missing."""
    with looking(kernel):
        mm, geometry = space_of(task, names), system.geometry
        if not geometry.canonical(_checked(address)):
            return None
        step = mmu.walk(system.phys, geometry, mm.pgd, address)[0][-1]
        return (
            step.entry
            if step.level == len(geometry.levels) - 1 and not is_table(step.level, step.entry)
            else None
        )


def mapped_frames(kernel: Kernel, task: task_struct, names: Names = None) -> set[int]:
    """The frames that the task's tables map in the user half, without the zero page."""
    with looking(kernel):
        found: set[int] = set()
        for table in tables(space_of(task, names).pgd, user_end()):
            _add_mapped(table, found)
        found.discard(system.zero_pfn)
        return found


def _add_mapped(table: TableAt, found: set[int]) -> None:
    """Add the frames to which the entries of one table lead, except further tables. There are
    thousands of entries, at many moments, so little is done for each."""
    bits = system.bits
    mask, shift, present = bits.pfn_mask, bits.pfn_shift, bits.present
    entries: Mapping[int, int] = system.phys.frames.get(table.pfn, {})
    if table.level == len(system.geometry.levels) - 1:
        leading = [(word & mask) >> shift for word in entries.values() if word & present]
        found.update(leading)
        if len(leading) == len(entries):
            return
    size, end = 1 << system.geometry.levels[table.level].shift, user_end()
    for index, word in entries.items():
        leads = entry_kind(table.level, word) in LEADING
        if leads and sign_extend(table.va + index * size) < end:
            found.add(system.geometry.entry_pfn(word))


def frames_from(
    kernel: Kernel, task: task_struct, first: int, end: int, names: Names = None
) -> list[int]:
    """The frame of each entry of [first, end) in the user half that leads to one, in order of
    address."""
    with looking(kernel):
        root = space_of(task, names).pgd
        entries = (leaf for leaf in leaves(root, first, min(end, user_end())) if leaf.va >= first)
        return [
            system.geometry.entry_pfn(leaf.entry)
            for leaf in entries
            if entry_kind(leaf.level, leaf.entry) in LEADING
        ]


def zero_frame(kernel: Kernel) -> int:
    """The frame of the zero page."""
    with looking(kernel):
        return system.zero_pfn


def free_frames(kernel: Kernel) -> int:
    """The number of free frames."""
    with looking(kernel):
        return nr_free_pages()


def table_levels(kernel: Kernel, task: task_struct, names: Names = None) -> list[str]:
    """The level of each table of the user half, the root first."""
    with looking(kernel):
        levels = system.geometry.levels
        return [levels[table.level].name for table in tables(space_of(task, names).pgd, user_end())]


def refcount(kernel: Kernel, pfn: int) -> int:
    """``_refcount`` of the frame.  ``UsageError`` if the machine has no such frame."""
    with looking(kernel):
        return _page(pfn)._refcount


def frame_of(kernel: Kernel, pfn: int) -> page:
    """The struct page of the frame.  ``UsageError`` if the machine has no such frame."""
    with looking(kernel):
        return _page(pfn)


def counter_of(mm: mm_struct, name: str) -> int | None:
    """The counter of resident pages with that name (MM_ANONPAGES ...); None for another name."""
    return mm.rss_stat[MM_COUNTER_NAMES.index(name)] if name in MM_COUNTER_NAMES else None


def word(kernel: Kernel, address: int) -> int:
    """The word of eight bytes at a physical address.  ``UsageError`` outside of RAM."""
    with looking(kernel):
        if address >= system.phys.size:
            raise UsageError(
                f"there is no RAM at {address:#x}", hint=f"it ends at {system.phys.size:#x}"
            )
        return system.phys.load(address & ~7)


def tlb_frame(kernel: Kernel, address: int, cpu: int) -> int | None:
    """The frame that the CPU's TLB has for the page; None without one."""
    with looking(kernel):
        if cpu >= len(system.cpus):
            raise UsageError(
                f"no CPU {cpu}", hint=f"the machine has CPUs 0 to {len(system.cpus) - 1}"
            )
        tlb = system.cpus[cpu].hw.tlb
        found = tlb.slots.get((address >> 12) % tlb.size)
        return found.pfn if found is not None and found.vpn == address >> 12 else None


def in_page_cache(kernel: Kernel, pfn: int) -> bool:
    """Whether the frame holds a page of a file or of shared memory. ``UsageError`` if the machine
    has no such frame."""
    with looking(kernel):
        return frame_state(_page(pfn)) in ("file", "shmem")


def mapcount(kernel: Kernel, pfn: int) -> int:
    """How many entries map the frame.  ``UsageError`` if the machine has no such frame."""
    with looking(kernel):
        return folio_mapcount(_page(pfn))


def _walk(task: task_struct, address: int, names: Names) -> list[mmu.Step]:
    """The steps of a walk that ends in a frame; [] of any other."""
    mm, geometry = space_of(task, names), system.geometry
    if not geometry.canonical(_checked(address)):
        return []
    steps, stopped = mmu.walk(system.phys, geometry, mm.pgd, address)
    return [] if stopped else steps


def _checked(address: int) -> int:
    if not 0 <= address < 1 << 64:
        raise UsageError(f"{address:#x} is not an address", hint="addresses have 64 bits")
    return address


def _page(pfn: int) -> page:
    last = system.phys.nr_frames - 1
    if not 0 <= pfn <= last:
        raise UsageError(
            f"frame {pfn:#x} does not exist", hint=f"the machine has the frames 0 to {last:#x}"
        )
    return system.mem_map.get(pfn) or page(pfn=pfn)
