"""Pages of locked memory, and the per-CPU batch that delays their accounting (mm/mlock.c).

    mlock, munlock, and the unmapping of a locked page only put the page in a batch, with a
    reference; the batch is processed when it is full or drained

Until then the page has one reference more than its mappings explain, so that a write by its last
sharer copies it.
"""

from __future__ import annotations

from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_inline import lruvec_add_folio, lruvec_del_folio
from kemu.kernel.include.mm_types import folio, vm_area_struct
from kemu.kernel.include.sched_types import percpu
from kemu.kernel.include.system import system
from kemu.kernel.mm.page_alloc import folio_get, folio_put
from kemu.trace.frames import linux

PAGEVEC_SIZE = 31
MUNLOCK, LRU_FOLIO, NEW_FOLIO = range(3)


def _batch_add(folio: folio, what: int) -> None:
    """Add the page to the batch; process the batch if it is full, or at once if batches are off."""
    cpu = system.cpu
    folio_get(folio)
    cpu.mlock_fbatch += ((folio, what),)
    if len(cpu.mlock_fbatch) == PAGEVEC_SIZE or not system.sysctl.lru_batch:
        mlock_folio_batch(cpu)


@linux("mm/mlock.c")
def mlock_folio(folio: folio) -> None:
    """A mapped page is locked."""
    folio.flags |= PG_mlocked
    _batch_add(folio, LRU_FOLIO)


@linux("mm/mlock.c")
def mlock_new_folio(folio: folio) -> None:
    """A new page, not on any list yet, is mapped into locked memory."""
    folio.flags |= PG_mlocked
    _batch_add(folio, NEW_FOLIO)


@linux("mm/mlock.c")
def munlock_folio(folio: folio) -> None:
    """One locked mapping of the page is gone."""
    _batch_add(folio, MUNLOCK)


@linux("mm/mlock.c")
def mlock_drain_local() -> None:
    """Process the batch of this CPU."""
    if system.cpu.mlock_fbatch:
        mlock_folio_batch(system.cpu)


@linux("mm/mlock.c")
def mlock_folio_batch(cpu: percpu) -> None:
    """Process a batch and drop its references."""
    batch = cpu.mlock_fbatch
    cpu.mlock_fbatch = ()
    for folio, what in batch:
        if what == LRU_FOLIO:
            __mlock_folio(folio)
        elif what == NEW_FOLIO:
            __mlock_new_folio(folio)
        else:
            __munlock_folio(folio)
        folio_put(folio)


@linux("mm/mlock.c")
def __mlock_folio(folio: folio) -> None:
    """Move the page to the unevictable list, or count one more lock of it."""
    if not folio.flags & PG_lru:
        return
    if folio.flags & PG_unevictable:
        folio.mlock_count += 1
        return
    lruvec_del_folio(folio)
    __mlock_new_folio(folio)


def __mlock_new_folio(folio: folio) -> None:
    """Put a page that is not on any list on the unevictable one."""
    if folio.flags & PG_mlocked:
        folio.flags = folio.flags & ~PG_active | PG_unevictable
        folio.mlock_count = 1
    lruvec_add_folio(folio)


@linux("mm/mlock.c")
def __munlock_folio(folio: folio) -> None:
    """Remove one lock; without locks the page becomes evictable again."""
    isolated = bool(folio.flags & PG_lru)
    if isolated and folio.flags & PG_unevictable:
        if folio.mlock_count:
            folio.mlock_count -= 1
        if folio.mlock_count:
            return
    folio.flags &= ~PG_mlocked
    if isolated and folio.flags & PG_unevictable:
        lruvec_del_folio(folio)
        folio.flags &= ~PG_unevictable
        lruvec_add_folio(folio)


def mlock_vma_folio(folio: folio, vma: vm_area_struct) -> None:
    """The page is mapped into ``vma``: count the lock if ``vma`` is locked."""
    if vma.vm_flags & (VM_LOCKED | VM_SPECIAL) == VM_LOCKED:
        mlock_folio(folio)


def munlock_vma_folio(folio: folio, vma: vm_area_struct) -> None:
    """The page is unmapped from ``vma``."""
    if vma.vm_flags & VM_LOCKED:
        munlock_folio(folio)
