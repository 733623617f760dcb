"""Putting pages on the LRU, through per-CPU batches (mm/swap.c).

    folio_add_lru -> batch of this CPU (holds one reference per page) -> full or drained -> lruvec
    list, reference dropped

A page in a batch has one reference in addition to its mappings.  So the last sharer of a page that
another CPU still has in its batch copies it instead of reusing it.  With ``sysctl.lru_batch`` off,
pages go to the list at once, and a new page has one reference.
"""

from __future__ import annotations

from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_inline import lruvec_add_folio, lruvec_del_folio
from kemu.kernel.include.mm_types import folio, vm_area_struct
from kemu.kernel.include.sched_types import percpu
from kemu.kernel.include.system import system
from kemu.kernel.mm.mlock_folio import mlock_drain_local, mlock_folio_batch, mlock_new_folio
from kemu.kernel.mm.page_alloc import folio_get, folio_put
from kemu.trace.frames import linux

PAGEVEC_SIZE = 31


@linux("mm/swap.c")
def folio_add_lru(folio: folio) -> None:
    """Put a new page on its LRU list, through this CPU's batch."""
    if not system.sysctl.lru_batch:
        lru_add(folio)
        return
    cpu = system.cpu
    folio_get(folio)
    cpu.lru_add += (folio,)
    if len(cpu.lru_add) == PAGEVEC_SIZE:
        folio_batch_move_lru(cpu)


def folio_add_lru_vma(folio: folio, vma: vm_area_struct) -> None:
    """Put a new page of ``vma`` on its LRU list; in a locked VMA it is unevictable from the
    start."""
    if vma.vm_flags & (VM_LOCKED | VM_SPECIAL) == VM_LOCKED:
        mlock_new_folio(folio)
    else:
        folio_add_lru(folio)


@linux("mm/swap.c")
def folio_batch_move_lru(cpu: percpu) -> None:
    """Move the lru_add batch of ``cpu`` to the lists and drop its references."""
    batch = cpu.lru_add
    cpu.lru_add = ()
    for folio in batch:
        lru_add(folio)
        folio_put(folio)


def lru_add(folio: folio) -> None:
    """Add the page to the list that its flags give (callback of the batch)."""
    if folio.flags & PG_mlocked:
        folio.flags = folio.flags & ~PG_active | PG_unevictable
    lruvec_add_folio(folio)


@linux("mm/swap.c")
def lru_add_drain() -> None:
    """Empty the batches of this CPU; those of other CPUs stay."""
    lru_add_drain_cpu(system.cpu)
    mlock_drain_local()


@linux("mm/swap.c")
def lru_add_drain_all() -> None:
    """Empty the batches of every CPU."""
    for cpu in system.cpus:
        lru_add_drain_cpu(cpu)
        if cpu.mlock_fbatch:
            mlock_folio_batch(cpu)


@linux("mm/swap.c")
def lru_add_drain_cpu(cpu: percpu) -> None:
    """Empty the batches of ``cpu``: additions, then lazily freed pages, then activations."""
    if cpu.lru_add:
        folio_batch_move_lru(cpu)
    batch, cpu.lru_lazyfree = cpu.lru_lazyfree, ()
    for folio in batch:
        lru_lazyfree(folio)
        folio_put(folio)
    batch, cpu.lru_activate = cpu.lru_activate, ()
    for folio in batch:
        lru_activate(folio)
        folio_put(folio)


def lru_activate(folio: folio) -> None:
    """Move the page to its active list (callback of the batch)."""
    if folio.flags & PG_lru and not folio.flags & (PG_active | PG_unevictable):
        lruvec_del_folio(folio)
        folio.flags |= PG_active
        lruvec_add_folio(folio)


def folio_deactivate(folio: folio) -> None:
    """Move an active page to its inactive list."""
    if folio.flags & PG_lru and folio.flags & PG_active and not folio.flags & PG_unevictable:
        lruvec_del_folio(folio)
        folio.flags &= ~PG_active
        lruvec_add_folio(folio)


@linux("mm/swap.c")
def folio_mark_lazyfree(folio: folio) -> None:
    """MADV_FREE: the page may be dropped without being written anywhere, unless it is written again
    before."""
    if not folio.flags & PG_swapbacked or folio.flags & PG_unevictable:
        return
    cpu = system.cpu
    folio_get(folio)
    cpu.lru_lazyfree += (folio,)
    if len(cpu.lru_lazyfree) == PAGEVEC_SIZE or not system.sysctl.lru_batch:
        lru_add_drain_cpu(cpu)


def lru_lazyfree(folio: folio) -> None:
    """Move the page to the inactive file list, as one that needs no swap (callback of the
    batch)."""
    if folio.flags & PG_lru and folio.flags & PG_swapbacked and not folio.flags & PG_unevictable:
        lruvec_del_folio(folio)
        folio.flags &= ~(PG_active | PG_referenced | PG_swapbacked)
        lruvec_add_folio(folio)


@linux("mm/swap.c")
def folio_mark_accessed(folio: folio) -> None:
    """Second chance: the first call marks the page referenced, the second activates it."""
    if not folio.flags & PG_referenced:
        folio.flags |= PG_referenced
    elif not folio.flags & (PG_unevictable | PG_active):
        _activate(folio)
        folio.flags &= ~PG_referenced


def _activate(folio: folio) -> None:
    """``folio_activate``, or only the flag while the page is still in the lru_add batch."""
    cpu = system.cpu
    if not folio.flags & PG_lru:
        if folio in cpu.lru_add:
            folio.flags |= PG_active
    elif not system.sysctl.lru_batch:
        lru_activate(folio)
    else:
        folio_get(folio)
        cpu.lru_activate += (folio,)
        if len(cpu.lru_activate) == PAGEVEC_SIZE:
            lru_add_drain_cpu(cpu)
