"""The kernel's global variables, in one holder.

C has ``current``, ``init_mm``, ``mem_map`` and others as globals.  One Python process can hold
several experiments, so kemu keeps the globals of the running one in ``system``; ``Kernel.activate``
(boot.py) fills it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu.errors import KernelBug
from kemu.kernel.include.mm_types import inode, mm_struct, page
from kemu.kernel.include.sched_types import (
    counters,
    percpu,
    pglist_data,
    siginfo,
    sysctl,
    task_struct,
    vm_event_state,
)
from kemu.machine.geometry import EntryBits, Geometry
from kemu.machine.mmu import Trap
from kemu.machine.physmem import PhysMem
from kemu.trace.barrier import Table, maker


class System:
    """The globals.  ``cpu`` is the CPU that executes; ``mem_map`` holds the ``struct page`` of
    every frame that was ever looked up; ``vdso_pfn`` is the first of the kernel's frames that
    programs can see (vdso.py); ``delivered`` has the signals that tasks took since the caller
    emptied it; the last four are the hooks through which lower modules call upwards (filled at
    boot)."""

    __slots__ = (
        "phys", "geometry", "bits", "protection_map", "pgd_shift", "p4d_shift", "pud_shift",
        "pmd_shift", "cpus", "cpu", "mem_map", "node_data", "init_mm", "init_task", "tasks",
        "files", "zero_pfn", "vdso_pfn", "vmstat", "sysctl", "counters", "trap", "delivered",
        "out_of_memory", "reclaim", "mmdrop", "fatal_signal",
    )  # fmt: skip

    phys: PhysMem
    geometry: Geometry
    bits: EntryBits
    protection_map: tuple[int, ...]
    pgd_shift: int
    p4d_shift: int
    pud_shift: int
    pmd_shift: int
    cpus: list[percpu]
    cpu: percpu
    mem_map: dict[int, page]
    node_data: tuple[pglist_data, ...]
    init_mm: mm_struct
    init_task: task_struct
    tasks: Table[int, task_struct]
    files: Table[str, inode]
    zero_pfn: int
    vdso_pfn: int
    vmstat: vm_event_state
    sysctl: sysctl
    counters: counters
    trap: Trap
    delivered: list[siginfo]
    out_of_memory: Callable[[], bool]
    reclaim: Callable[[int], int]
    mmdrop: Callable[[mm_struct], None]
    fatal_signal: Callable[[task_struct], None]

    def values(self) -> dict[str, Any]:
        """The current values of the globals."""
        return {name: getattr(self, name) for name in self.__slots__ if hasattr(self, name)}

    def fill(self, values: Mapping[str, Any]) -> None:
        """Set the globals to these values."""
        for name, value in values.items():
            setattr(self, name, value)

    def clear(self) -> None:
        """Clear all globals."""
        for name in self.values():
            delattr(self, name)


system = System()


def current() -> task_struct:
    """The task that runs on the executing CPU (the C macro ``current``)."""
    task: task_struct = system.cpu.curr
    return task


def current_mm() -> mm_struct:
    """``current->mm``, where it is known to exist: in a system call of a user task."""
    mm = current().mm
    if mm is None:
        raise KernelBug(f"{current()} has no address space")
    return mm


make_struct_page = maker(page)
BLOCK = 64
"""The number of frames whose ``struct page`` are made together."""


def pfn_to_page(pfn: int) -> page:
    """The ``struct page`` of frame ``pfn``; made on first use (until then the frame is free and
    empty)."""
    found = system.mem_map.get(pfn)
    return make_page(pfn) if found is None else found


def folio_page(folio: page, n: int) -> page:
    """Page ``n`` of the folio."""
    return pfn_to_page(folio.pfn + n) if n else folio


def make_page(pfn: int) -> page:
    """Make the ``struct page`` of a frame on first use.  Its neighbours are made with it, to be
    adjacent in the host's memory too: fork visits one page after the other, and separate objects
    would each be a cache miss.  The first of a block is made alone, since only the first frame of a
    large free block is looked up."""
    mem_map = system.mem_map
    first = pfn - pfn % BLOCK
    for number in (pfn,) if pfn == first else range(first, first + BLOCK):
        if number not in mem_map:
            mem_map[number] = make_struct_page(pfn=number)
    return mem_map[pfn]
