"""Reclaiming pages one by one (mm/vmscan.c), as far as it goes without swap.

    clean page of a file, unmapped everywhere, held by nobody else   -> out of the cache, freed
    dirty page of a file                                             -> unmapped, stays in the cache
    anonymous page                                                   -> stays where it is

There is no swap device, so anonymous memory cannot go anywhere, and shared memory only if it was never written.
"""

from __future__ import annotations

from kemu.kernel.filemap import filemap_remove_folio, folio_mark_dirty, mm_counter_file
from kemu.kernel.flags import VM_LOCKED, PG_dirty, PG_locked, PG_unevictable
from kemu.kernel.mm_types import folio
from kemu.kernel.page_alloc import folio_put
from kemu.kernel.pgtable import pte_dirty, ptep_clear_flush
from kemu.kernel.rmap import folio_mapcount, folio_remove_rmap_pte, folio_test_anon, rmap_walk
from kemu.kernel.util import dec_mm_counter
from kemu.trace.frames import linux


@linux("mm/vmscan.c")
def reclaim_pages(folios: list[folio]) -> int:
    """Try to free each page; how many went."""
    return sum(shrink_folio(page) for page in folios)


def shrink_folio(folio: folio) -> bool:
    """One page of ``shrink_folio_list``: True if it was freed."""
    if folio_test_anon(folio):
        return False
    if folio.flags & (PG_locked | PG_unevictable):
        return False
    if folio_mapcount(folio):
        try_to_unmap(folio)
    if folio_mapcount(folio) or folio.flags & PG_dirty or folio._refcount != 1 or folio.mapping is None:
        return False
    filemap_remove_folio(folio)
    return True


@linux("mm/rmap.c")
def try_to_unmap(folio: folio) -> None:
    """Clear every entry that maps the page of a file; a dirty entry makes the page dirty."""
    for vma, address, ptep in list(rmap_walk(folio)):
        if vma.vm_flags & VM_LOCKED:
            continue
        pte = ptep_clear_flush(vma, address, ptep)
        if pte_dirty(pte):
            folio_mark_dirty(folio)
        dec_mm_counter(vma.vm_mm, mm_counter_file(folio))
        folio_remove_rmap_pte(folio, vma)
        folio_put(folio)
