"""Reclaiming pages without swap (mm/vmscan.c): the pages named by MADV_PAGEOUT and, when memory is
short, those that have been on the LRU lists of files longest (direct reclaim).

    clean page of a file, unmapped everywhere, held by nobody else   -> out of the cache, freed
    dirty page of a file                                             -> unmapped, stays in the cache
    anonymous page that may be lost (MADV_FREE, MAP_DROPPABLE)       -> freed unless written
    any other anonymous page                                         -> stays where it is

There is no swap device, so anonymous memory cannot be reclaimed, and shared memory only if it was
never written.
"""

from __future__ import annotations

from itertools import product

from kemu.kernel.arch.pgtable import (
    pte_dirty,
    pte_pfn,
    pte_unmap_unlock,
    ptep_clear_flush,
    set_pte_at,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.lists import list_for_each
from kemu.kernel.include.mm_types import MM_ANONPAGES, folio, folio_nr_pages
from kemu.kernel.include.pagemap import folio_trylock, folio_unlock
from kemu.kernel.include.sched_types import LRU_ACTIVE_FILE, LRU_INACTIVE_FILE
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.filemap import filemap_remove_folio, folio_mark_dirty, mm_counter_file
from kemu.kernel.mm.lru import lru_add_drain
from kemu.kernel.mm.page_alloc import folio_put, folio_try_get
from kemu.kernel.mm.rmap import (
    folio_mapcount,
    folio_remove_rmap_pte,
    folio_test_anon,
    lock_mapped,
    rmap_walk,
)
from kemu.kernel.mm.util import dec_mm_counter
from kemu.trace.frames import linux


@linux("mm/vmscan.c")
def try_to_free_pages(nr: int) -> int:
    """Direct reclaim: free about ``nr`` pages, inactive ones first, each list from its tail, where
    the oldest page is; returns how many were freed.  It does not matter whether a page was used
    while it was on the list (Linux gives such a page a second chance)."""
    lru_add_drain()
    freed = 0
    for node, lru in product(system.node_data, (LRU_INACTIVE_FILE, LRU_ACTIVE_FILE)):
        for folio in reversed(list(list_for_each(node.lruvec.lists[lru]))):
            nr_pages = folio_nr_pages(folio)
            freed += nr_pages if shrink_folio(folio) else 0
            if freed >= nr:
                return freed
    return freed


@linux("mm/vmscan.c")
def reclaim_pages(folios: list[folio]) -> int:
    """Try to free each page; returns how many were freed."""
    return sum(shrink_folio(page) for page in folios)


def shrink_folio(folio: folio) -> bool:
    """One page of ``shrink_folio_list``: True if it was freed.  It never waits: a page that is
    locked stays."""
    if not folio_try_get(folio):
        return False
    freed = False
    if folio_trylock(folio):
        freed = _give_up(folio)
        folio_unlock(folio)
    folio_put(folio)
    return freed


def _give_up(folio: folio) -> bool:
    """Remove everything that holds a locked page except the caller's reference; True on success."""
    if folio.flags & PG_unevictable:
        return False
    if folio_test_anon(folio):
        return not folio.flags & PG_swapbacked and discard_lazyfree(folio)
    if folio_mapcount(folio):
        try_to_unmap(folio)
    if (
        folio_mapcount(folio)
        or folio.flags & PG_dirty
        or folio._refcount != 2
        or folio.mapping is None
    ):
        return False
    filemap_remove_folio(folio)
    return True


@linux("mm/rmap.c")
def try_to_unmap(folio: folio) -> None:
    """Clear every entry that maps the page of a file, which is locked; a dirty entry makes the page
    dirty."""
    for vma, address, ptep in rmap_walk(folio):
        if vma.vm_flags & VM_LOCKED or not lock_mapped(ptep, folio):
            continue
        pte = ptep_clear_flush(vma, address, ptep)
        if pte_dirty(pte):
            folio_mark_dirty(folio)
        dec_mm_counter(vma.vm_mm, mm_counter_file(folio))
        folio_remove_rmap_pte(folio, pfn_to_page(pte_pfn(pte)), vma)
        pte_unmap_unlock(ptep)
        folio_put(folio)


def discard_lazyfree(folio: folio) -> bool:
    """``try_to_unmap_one`` for anonymous memory that needs no swap: True if the page was dropped.
    A page written since MADV_FREE becomes ordinary memory again; one with other references is left
    alone."""
    for vma, address, ptep in rmap_walk(folio):
        if vma.vm_flags & VM_LOCKED:
            return False
        if not lock_mapped(ptep, folio):
            continue
        pte = ptep_clear_flush(vma, address, ptep)
        if pte_dirty(pte):
            folio.flags |= PG_dirty
        redirtied = folio.flags & PG_dirty and not vma.vm_flags & VM_DROPPABLE
        if redirtied or folio._refcount != 1 + folio_mapcount(folio):
            set_pte_at(vma.vm_mm, address, ptep, pte)
            folio.flags |= PG_swapbacked if redirtied else 0
            pte_unmap_unlock(ptep)
            return False
        dec_mm_counter(vma.vm_mm, MM_ANONPAGES)
        folio_remove_rmap_pte(folio, pfn_to_page(pte_pfn(pte)), vma)
        pte_unmap_unlock(ptep)
        folio_put(folio)
    return True
