"""Locks: a held lock has a holder, and no lock is held between two commands (number 76)."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.invariants.registry import ALWAYS, QUIESCENT, Finding, invariant
from kemu.invariants.scan import Scan
from kemu.kernel.include.flags import PG_locked


@invariant(76, when=ALWAYS)
def locked_pages_are_held(scan: Scan) -> Iterator[Finding]:
    """A locked page is referenced: whoever holds the lock also holds a reference.

    The reference is taken before the lock and dropped after it.  mm/page_alloc.c:
    PAGE_FLAGS_CHECK_AT_FREE."""
    for pfn, p in scan.pages.items():
        if p.flags & PG_locked and p._refcount <= 0:
            yield f"page {pfn:#x}", "PG_locked", f"its _refcount is {p._refcount}: it has no holder"


@invariant(76, when=QUIESCENT)
def no_lock_is_held_at_rest(scan: Scan) -> Iterator[Finding]:
    """Outside of kernel functions no page, page table, VMA or address space is locked.

    No task returns to user space holding a lock.  kernel/locking/lockdep.c: lockdep_sys_exit."""
    for pfn, p in scan.pages.items():
        if p.flags & PG_locked or p.ptl:
            has = "PG_locked" if p.flags & PG_locked else "ptl is held"
            yield f"page {pfn:#x}", has, "no kernel function is open that could release it"
    for mm in scan.spaces:
        if mm.mmap_lock:
            yield f"mm of {scan.space(mm)}", f"mmap_lock {mm.mmap_lock}", "it has no holder"
        for vma in mm.mm_mt:
            if vma.vm_refcnt != 1:
                yield (
                    f"{scan.space(mm)} {vma.vm_start:#x}",
                    f"vm_refcnt {vma.vm_refcnt}",
                    "no fault is under way: it is 1",
                )
