"""Copy-on-write: a write to a present entry that does not allow it (mm/memory.c).

    shared mapping                          wp_page_shared    tell the file system, write in place
    anonymous and exclusive,
    or this entry is its only reference     wp_page_reuse     write in place, no copy
    everything else                         wp_page_copy      copy, flush the old entry, map it

PageAnonExclusive decides, then the reference count.  The number of entries that map the page does
not matter: a page with another holder by a plain reference must be copied although it is mapped
once.
"""

from __future__ import annotations

from kemu.kernel.arch.pgtable import (
    maybe_mkwrite,
    mk_pte,
    pte_mkdirty,
    pte_mkyoung,
    pte_offset_map_lock,
    pte_unmap_unlock,
    ptep_clear_flush,
    ptep_get,
    ptep_set_access_flags,
    set_pte_at,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    folio,
    folio_test_large,
    mm_struct,
    page,
    page_folio,
    vm_area_struct,
    vm_fault,
)
from kemu.kernel.include.pagemap import folio_lock, folio_trylock, folio_unlock
from kemu.kernel.include.system import system
from kemu.kernel.mm.fault_missing import do_page_mkwrite, fault_dirty_shared_page
from kemu.kernel.mm.filemap import mm_counter_file
from kemu.kernel.mm.lru import folio_add_lru_vma, lru_add_drain
from kemu.kernel.mm.page_alloc import (
    GFP_KERNEL,
    GFP_ZERO,
    alloc_page,
    folio_get,
    folio_put,
)
from kemu.kernel.mm.rmap import (
    PageAnonExclusive,
    SetPageAnonExclusive,
    folio_add_new_anon_rmap,
    folio_move_anon_rmap,
    folio_remove_rmap_pte,
    folio_test_anon,
    vmf_anon_prepare,
)
from kemu.kernel.mm.util import dec_mm_counter, inc_mm_counter
from kemu.kernel.mm.zap import vm_normal_page
from kemu.trace.frames import linux

# ---------------------------------------------------------------- write-protected


@linux("mm/memory.c")
def do_wp_page(vmf: vm_fault) -> int:
    """A write (or an unshare) to a present entry without write permission, in a VMA that allows it.
    The table is locked."""
    vma = vmf.vma
    unshare = vmf.flags & FAULT_FLAG_UNSHARE
    page = vm_normal_page(vma, vmf.address, vmf.orig_pte)
    vmf.page = page
    folio = page_folio(page) if page is not None else None
    if vma.vm_flags & (VM_SHARED | VM_MAYSHARE):
        return wp_page_shared(vmf, page) if page is not None else wp_pfn_shared(vmf)
    if (
        page is not None
        and folio is not None
        and folio_test_anon(folio)
        and (PageAnonExclusive(page) or wp_can_reuse_anon_folio(folio, vma))
    ):
        if not PageAnonExclusive(page):
            SetPageAnonExclusive(page)
        if unshare:
            pte_unmap_unlock(vmf.pte)
            return 0
        wp_page_reuse(vmf)
        return 0
    if folio is not None:
        folio_get(folio)
    pte_unmap_unlock(vmf.pte)
    return wp_page_copy(vmf)


@linux("mm/memory.c")
def wp_can_reuse_anon_folio(folio: folio, vma: vm_area_struct) -> bool:
    """True if this entry is the page's only reference; the page then moves to this VMA's anon_vma.
    The first two checks of the count avoid the lock where reuse is unlikely; the one under the
    lock decides.  A page of a large folio is always copied."""
    if folio_test_large(folio) or folio._refcount > 3:
        return False
    if not folio.flags & PG_lru:
        lru_add_drain()
    if folio._refcount > 1:
        return False
    if not folio_trylock(folio):
        return False
    if folio._refcount != 1:
        folio_unlock(folio)
        return False
    folio_move_anon_rmap(folio, vma)
    folio_unlock(folio)
    return True


@linux("mm/memory.c")
def wp_page_reuse(vmf: vm_fault) -> None:
    """Write in place: the entry becomes young, dirty and writable.  No flush is needed: the entry
    only becomes less strict."""
    entry = maybe_mkwrite(pte_mkdirty(pte_mkyoung(vmf.orig_pte)), vmf.vma)
    ptep_set_access_flags(vmf.vma, vmf.address, vmf.pte, entry, True)
    pte_unmap_unlock(vmf.pte)
    system.vmstat.PGREUSE += 1


@linux("mm/memory.c")
def wp_page_copy(vmf: vm_fault) -> int:
    """Copy the page and map the copy.  The old entry is cleared and flushed before the new one is
    set; the old page is uncounted and put only after that, so no CPU can reach a freed frame.
    ``vmf.page`` has a reference (or is None: the zero page)."""
    vma, mm, old = vmf.vma, vmf.mm, vmf.page
    unshare = vmf.flags & FAULT_FLAG_UNSHARE
    new = _copy_for_write(vmf, old)
    if new is None:
        if old is not None:
            folio_put(page_folio(old))
        return VM_FAULT_OOM  #: {_copy_for_write}
    vmf.pte = pte_offset_map_lock(mm, vmf.pmd, vmf.address)
    if ptep_get(vmf.pte) == vmf.orig_pte:
        _count_copied(mm, old)
        entry = pte_mkyoung(mk_pte(new, vma.vm_page_prot))
        if not unshare:
            entry = maybe_mkwrite(pte_mkdirty(entry), vma)
        ptep_clear_flush(vma, vmf.address, vmf.pte)
        folio_add_new_anon_rmap(new, vma, vmf.address)
        folio_add_lru_vma(new, vma)
        set_pte_at(mm, vmf.address, vmf.pte, entry)
        if old is not None:
            folio_remove_rmap_pte(page_folio(old), old, vma)
            spare = page_folio(old)
        else:
            spare = None
    else:
        spare = new
    pte_unmap_unlock(vmf.pte)
    if spare is not None:
        folio_put(spare)
    if old is not None:
        folio_put(page_folio(old))
    return 0


def _copy_for_write(vmf: vm_fault, old: page | None) -> folio | None:
    """A page with the contents of ``old`` (None: zeros), not mapped yet; None when out of memory
    (``folio_prealloc`` and ``__wp_page_copy_user``)."""
    if vmf_anon_prepare(vmf):
        return None
    new = alloc_page(GFP_ZERO if old is None else GFP_KERNEL)
    if new is not None:
        if old is not None:
            system.phys.copy_page(new.pfn, old.pfn)
        new.flags |= PG_uptodate
    return new


def _count_copied(mm: mm_struct, old: page | None) -> None:
    """Adjust the rss counters: the copy is anonymous; the page it replaces counted as anonymous, as
    a file page, or not at all."""
    if old is None:
        inc_mm_counter(mm, MM_ANONPAGES)
    elif not folio_test_anon(page_folio(old)):
        dec_mm_counter(mm, mm_counter_file(page_folio(old)))
        inc_mm_counter(mm, MM_ANONPAGES)


@linux("mm/memory.c")
def wp_pfn_shared(vmf: vm_fault) -> int:
    """A raw frame in a shared mapping: nothing to copy."""
    wp_page_reuse(vmf)
    return 0


@linux("mm/memory.c")
def wp_page_shared(vmf: vm_fault, page: page) -> int:
    """A shared page that was write-protected to notify the file system of the write: tell it, then
    allow the write."""
    folio = page_folio(page)
    folio_get(folio)
    ops = vmf.vma.vm_ops
    if ops is not None and ops.page_mkwrite is not None:
        pte_unmap_unlock(vmf.pte)
        told = do_page_mkwrite(vmf)
        if not told or told & (VM_FAULT_ERROR | VM_FAULT_NOPAGE):
            folio_put(folio)
            return told
        ret = finish_mkwrite_fault(vmf)
        if ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE):
            folio_unlock(folio)
            folio_put(folio)
            return ret
    else:
        wp_page_reuse(vmf)
        folio_lock(folio)
    ret = fault_dirty_shared_page(vmf)
    folio_put(folio)
    return ret


@linux("mm/memory.c")
def finish_mkwrite_fault(vmf: vm_fault) -> int:
    """After ``page_mkwrite``: allow the write if the entry is still the one that was seen."""
    vmf.pte = pte_offset_map_lock(vmf.mm, vmf.pmd, vmf.address)
    if ptep_get(vmf.pte) != vmf.orig_pte:
        pte_unmap_unlock(vmf.pte)
        return VM_FAULT_NOPAGE
    wp_page_reuse(vmf)
    return 0
