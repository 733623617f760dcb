"""First touch: nothing is mapped yet (mm/memory.c).

private anonymous   read   do_anonymous_page   the zero page, uncounted
write  do_anonymous_page   a new exclusive page
a file mapping      read   do_read_fault       what is cached around it, else the page itself
write  do_cow_fault        private: straight to a copy
write  do_shared_fault     shared: the file's own page
"""

from __future__ import annotations

from kemu.kernel.arch.pgtable import (
    maybe_mkwrite,
    mk_pte,
    pfn_pte,
    pte_alloc,
    pte_mkdirty,
    pte_mkspecial,
    pte_mkyoung,
    pte_none,
    pte_offset_map_lock,
    pte_unmap_unlock,
    ptep_get,
    set_pte_at,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    PAGE_SHIFT,
    folio,
    mm_struct,
    page,
    vm_fault,
    vma_pages,
)
from kemu.kernel.include.pagemap import folio_lock, folio_unlock
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import folio_mark_dirty, mm_counter_file, set_pte_range
from kemu.kernel.mm.lru import folio_add_lru_vma
from kemu.kernel.mm.page_alloc import GFP_KERNEL, GFP_ZERO, alloc_page, folio_put
from kemu.kernel.mm.rmap import folio_add_new_anon_rmap, vmf_anon_prepare
from kemu.kernel.mm.util import inc_mm_counter
from kemu.trace.frames import linux

# ---------------------------------------------------------------- demand zero


@linux("mm/memory.c")
def do_anonymous_page(vmf: vm_fault) -> int:
    """First touch of private anonymous memory: the zero page for a read, a new page for a write."""
    vma, mm = vmf.vma, vmf.mm
    if vma.vm_flags & VM_SHARED:
        return VM_FAULT_SIGBUS  #: shared memory has no anonymous pages
    if pte_alloc(mm, vmf.pmd):
        return VM_FAULT_OOM  #: {pte_alloc}
    if not vmf.flags & FAULT_FLAG_WRITE:
        return _map_zero_page(vmf)
    if vmf_anon_prepare(vmf):
        return VM_FAULT_OOM  #: {vmf_anon_prepare}
    folio = alloc_anon_folio(vmf)
    if folio is None:
        return VM_FAULT_OOM  #: {alloc_anon_folio}
    folio.flags |= PG_uptodate
    entry = pte_mkyoung(mk_pte(folio, vma.vm_page_prot))
    if vma.vm_flags & VM_WRITE:
        entry = maybe_mkwrite(pte_mkdirty(entry), vma)
    vmf.pte = pte_offset_map_lock(mm, vmf.pmd, vmf.address)
    if not pte_none(ptep_get(vmf.pte)):
        pte_unmap_unlock(vmf.pte)
        folio_put(folio)
        return 0
    inc_mm_counter(mm, MM_ANONPAGES)
    folio_add_new_anon_rmap(folio, vma, vmf.address)
    folio_add_lru_vma(folio, vma)
    set_pte_at(mm, vmf.address, vmf.pte, entry)
    pte_unmap_unlock(vmf.pte)
    return 0


def _map_zero_page(vmf: vm_fault) -> int:
    """A read of untouched memory: map the one frame of zeros that all share, which is not
    counted."""
    mm = vmf.mm
    entry = pte_mkspecial(pfn_pte(system.zero_pfn, vmf.vma.vm_page_prot))
    vmf.pte = pte_offset_map_lock(mm, vmf.pmd, vmf.address)
    ret = 0
    if pte_none(ptep_get(vmf.pte)):
        ret = check_stable_address_space(mm)
        if not ret:
            set_pte_at(mm, vmf.address, vmf.pte, entry)
    pte_unmap_unlock(vmf.pte)
    return ret


def check_stable_address_space(mm: mm_struct) -> int:
    """SIGBUS once the OOM reaper has begun to reap this address space."""
    #: the OOM reaper is taking this memory away
    return VM_FAULT_SIGBUS if mm.flags & MMF_UNSTABLE else 0


@linux("mm/memory.c")
def alloc_anon_folio(vmf: vm_fault) -> folio | None:
    """A zeroed page for ``vmf``; None when out of memory."""
    return alloc_page(GFP_ZERO)


# ---------------------------------------------------------------- file and shared memory


@linux("mm/memory.c")
def do_fault(vmf: vm_fault) -> int:
    """First touch of a mapping of a file."""
    if vmf.vma.vm_ops is None or vmf.vma.vm_ops.fault is None:
        return VM_FAULT_SIGBUS  #: this mapping has no pages at {vmf.address:#x}
    if not vmf.flags & FAULT_FLAG_WRITE:
        return do_read_fault(vmf)
    if not vmf.vma.vm_flags & VM_SHARED:
        return do_cow_fault(vmf)
    return do_shared_fault(vmf)


@linux("mm/memory.c")
def do_read_fault(vmf: vm_fault) -> int:
    """A read: map the cached pages around it, else read the page in."""
    ops = vmf.vma.vm_ops
    assert ops is not None
    if ops.map_pages is not None and system.sysctl.fault_around_bytes >> PAGE_SHIFT > 1:
        ret = do_fault_around(vmf)
        if ret:
            return ret
    ret = __do_fault(vmf)
    if ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE | VM_FAULT_RETRY):
        return ret
    page = found_page(vmf)
    ret |= finish_fault(vmf)
    folio_unlock(page)
    if ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE | VM_FAULT_RETRY):
        folio_put(page)
    return ret


@linux("mm/memory.c")
def do_fault_around(vmf: vm_fault) -> int:
    """The aligned block of ``fault_around_bytes`` addresses around the fault, clipped to the VMA
    and the table."""
    vma, ops = vmf.vma, vmf.vma.vm_ops
    assert ops is not None
    assert ops.map_pages is not None
    nr_pages = system.sysctl.fault_around_bytes >> PAGE_SHIFT
    pte_off = (vmf.address >> PAGE_SHIFT) & 511
    vma_off = vmf.pgoff - vma.vm_pgoff
    from_pte = max(pte_off & -nr_pages, pte_off - min(pte_off, vma_off))
    to_pte = min(from_pte + nr_pages, 512, pte_off + vma_pages(vma) - vma_off) - 1
    return ops.map_pages(vmf, vmf.pgoff + from_pte - pte_off, vmf.pgoff + to_pte - pte_off)


@linux("mm/memory.c")
def __do_fault(vmf: vm_fault) -> int:
    """Get the page from the mapping, referenced and locked, in ``vmf.page``."""
    ops = vmf.vma.vm_ops
    assert ops is not None
    assert ops.fault is not None
    ret = ops.fault(vmf)
    if ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE | VM_FAULT_RETRY):
        return ret
    if not ret & VM_FAULT_LOCKED:
        folio_lock(found_page(vmf))
    return ret


def found_page(vmf: vm_fault) -> page:
    """The page that ``vm_ops->fault`` brought."""
    assert vmf.page is not None
    return vmf.page


@linux("mm/memory.c")
def do_cow_fault(vmf: vm_fault) -> int:
    """A first write to a private file mapping: copy at once; the file's page is never mapped."""
    if vmf_anon_prepare(vmf):
        return VM_FAULT_OOM  #: {vmf_anon_prepare}
    copy = alloc_page(GFP_KERNEL)
    if copy is None:
        return VM_FAULT_OOM  #: {alloc_page}
    vmf.cow_page = copy
    ret = __do_fault(vmf)
    if ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE | VM_FAULT_RETRY):
        folio_put(copy)
        return ret
    page = found_page(vmf)
    system.phys.copy_page(copy.pfn, page.pfn)
    copy.flags |= PG_uptodate
    ret |= finish_fault(vmf)
    folio_unlock(page)
    folio_put(page)
    if ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE | VM_FAULT_RETRY):
        folio_put(copy)
    return ret


@linux("mm/memory.c")
def do_shared_fault(vmf: vm_fault) -> int:
    """A first write to a shared mapping: the file's own page, writable; the file system is told."""
    ret = __do_fault(vmf)
    if ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE | VM_FAULT_RETRY):
        return ret
    page = found_page(vmf)
    ops = vmf.vma.vm_ops
    if ops is not None and ops.page_mkwrite is not None:
        folio_unlock(page)
        told = do_page_mkwrite(vmf)
        if not told or told & (VM_FAULT_ERROR | VM_FAULT_NOPAGE):
            folio_put(page)
            return told
    ret |= finish_fault(vmf)
    if ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE | VM_FAULT_RETRY):
        folio_unlock(page)
        folio_put(page)
        return ret
    return ret | fault_dirty_shared_page(vmf)


@linux("mm/memory.c")
def do_page_mkwrite(vmf: vm_fault) -> int:
    """Tell the file system that the page will be written; it comes back locked."""
    ops = vmf.vma.vm_ops
    assert ops is not None
    assert ops.page_mkwrite is not None
    return ops.page_mkwrite(vmf)


@linux("mm/memory.c")
def fault_dirty_shared_page(vmf: vm_fault) -> int:
    """After a write fault on a shared page: mark it dirty and unlock it."""
    page = found_page(vmf)
    folio_mark_dirty(page)
    folio_unlock(page)
    return 0


@linux("mm/memory.c")
def finish_fault(vmf: vm_fault) -> int:
    """Install the page (the private copy, if there is one) unless another task was faster."""
    vma, mm = vmf.vma, vmf.mm
    is_cow = bool(vmf.flags & FAULT_FLAG_WRITE) and not vma.vm_flags & VM_SHARED
    page = vmf.cow_page if is_cow else vmf.page
    assert page is not None
    if not vma.vm_flags & VM_SHARED:
        ret = check_stable_address_space(mm)
        if ret:
            return ret
    if pte_alloc(mm, vmf.pmd):
        return VM_FAULT_OOM  #: {pte_alloc}
    vmf.pte = pte_offset_map_lock(mm, vmf.pmd, vmf.address)
    if not pte_none(ptep_get(vmf.pte)):
        pte_unmap_unlock(vmf.pte)
        return VM_FAULT_NOPAGE
    set_pte_range(vmf, page, vmf.address)
    inc_mm_counter(mm, MM_ANONPAGES if is_cow else mm_counter_file(page))
    pte_unmap_unlock(vmf.pte)
    return 0
