"""Work in bulk: which functions run without their calls while nothing is recorded (trace/inline.py).

Chosen by what a fault, a copy and a fork run through, and measured (tests/bench).  Everything else stays as it is written.
"""

from __future__ import annotations

from functools import cache

from kemu.kernel import (
    entry,
    fault,
    fault_missing,
    fault_wp,
    filemap,
    lists,
    lru,
    mlock_folio,
    mm_inline,
    mm_types,
    mmap_lock,
    page_alloc,
    pgtable,
    rmap,
    swapops,
    system,
    tlbflush,
    uaccess,
    util,
    zap,
)
from kemu.machine import atomic, mmu, physmem, tlb
from kemu.trace import barrier, steps
from kemu.trace.frames import use_expanded
from kemu.trace.inline import expand

MODULES = (
    entry, fault, fault_missing, fault_wp, filemap, lists, lru, mlock_folio, mm_inline, mm_types, mmap_lock, page_alloc, pgtable,
    rmap, swapops, system, tlbflush, uaccess, util, zap, atomic, mmu, physmem, tlb, barrier, steps,
)  # fmt: skip
"""What is read again."""

NAMES = {
    "phys": physmem.PhysMem,
    "tlb": tlb.Tlb,
    "mm_mt": mm_types.maple_tree,
    "frames": barrier.Table,
    "frame": barrier.Table,
    "slots": barrier.Table,
    "rss_stat": barrier.Table,
    "nr": barrier.Table,
    "ctxs": barrier.Table,
}
"""What hides behind a name in all of these modules."""


@cache
def prepare() -> None:
    """Once a process, half a second: put the calls in.  In force whenever nothing is recorded."""
    use_expanded(expand(MODULES, NAMES))
