"""The kernel looks up user pages by itself: get_user_pages (mm/gup.c).

    __get_user_pages   for each page: follow_page_pte - is it there with the right wanted? -> else faultin_page -> again

Used to populate mappings (MAP_POPULATE, locked memory).  GUP asks the VMA for the right first, never expands a stack, and charges
the faults that it takes to the calling task.
"""

from __future__ import annotations

from kemu.kernel.fault import handle_mm_fault
from kemu.kernel.filemap import folio_mark_dirty
from kemu.kernel.flags import (
    FAULT_FLAG_ALLOW_RETRY,
    FAULT_FLAG_WRITE,
    VM_ACCESS_FLAGS,
    VM_FAULT_ERROR,
    VM_FAULT_OOM,
    VM_IO,
    VM_LOCKONFAULT,
    VM_MAYREAD,
    VM_MAYSHARE,
    VM_MAYWRITE,
    VM_PFNMAP,
    VM_READ,
    VM_SHARED,
    VM_WRITE,
    PG_dirty,
)
from kemu.kernel.lru import folio_mark_accessed
from kemu.kernel.mm_types import (
    PAGE_MASK,
    PAGE_SHIFT,
    PAGE_SIZE,
    folio,
    is_cow_mapping,
    mm_struct,
    vm_area_struct,
)
from kemu.kernel.mman import EFAULT, EINTR, ENOMEM
from kemu.kernel.mmap_lock import mmap_read_lock, mmap_read_unlock
from kemu.kernel.pgtable import pte_dirty, pte_offset_map, pte_pfn, pte_present, pte_write, ptep_get
from kemu.kernel.rmap import PageAnonExclusive, folio_test_anon
from kemu.kernel.signal import fatal_signal_pending
from kemu.kernel.system import current, current_mm, pfn_to_page
from kemu.kernel.vma import find_vma_intersection, vma_lookup
from kemu.kernel.zap import pmds_in, vm_normal_page
from kemu.trace.frames import linux

FOLL_WRITE, FOLL_GET, FOLL_DUMP, FOLL_FORCE, FOLL_NOFAULT = 0x1, 0x2, 0x4, 0x8, 0x20
FOLL_TOUCH = 1 << 16
FOLL_PIN = 1 << 19


def check_vma_flags(vma: vm_area_struct, gup_flags: int) -> int:
    """0, or -EFAULT if the VMA does not give the right that is wanted."""
    vm_flags = vma.vm_flags
    if vm_flags & (VM_IO | VM_PFNMAP):
        return -EFAULT
    if gup_flags & FOLL_WRITE:
        if not vm_flags & VM_WRITE and not (gup_flags & FOLL_FORCE and is_cow_mapping(vm_flags)):
            return -EFAULT
    elif not vm_flags & VM_READ and not (gup_flags & FOLL_FORCE and vm_flags & VM_MAYREAD):
        return -EFAULT
    return 0


def can_follow_write_pte(pte: int, page: folio | None, vma: vm_area_struct, gup_flags: int) -> bool:
    """True if a write through GUP may go to this entry's page: it is writable, or FOLL_FORCE on a private mapping that is
    not, whose page is already a private copy (exclusive)."""
    if pte_write(pte):
        return True
    if not gup_flags & FOLL_FORCE or vma.vm_flags & (VM_MAYSHARE | VM_SHARED | VM_WRITE):
        return False
    return bool(vma.vm_flags & VM_MAYWRITE) and page is not None and folio_test_anon(page) and PageAnonExclusive(page)


@linux("mm/gup.c")
def follow_page_pte(vma: vm_area_struct, address: int, gup_flags: int) -> folio | None:
    """The page that is mapped at ``address`` if the access that is wanted could go to it; else None."""
    entry = mapped_entry(vma.vm_mm, address)
    if not pte_present(entry):
        return None
    page = vm_normal_page(vma, address, entry)
    if gup_flags & FOLL_WRITE and not can_follow_write_pte(entry, page, vma, gup_flags):
        return None
    found = page if page is not None else pfn_to_page(pte_pfn(entry))
    if gup_flags & FOLL_TOUCH and page is not None:
        if gup_flags & FOLL_WRITE and not pte_dirty(entry) and not page.flags & PG_dirty:
            folio_mark_dirty(page)
        folio_mark_accessed(page)
    return found


def mapped_entry(mm: mm_struct, address: int) -> int:
    """The entry for ``address``, 0 if its table does not exist."""
    for pmd, _, _ in pmds_in(mm, address & PAGE_MASK, (address & PAGE_MASK) + PAGE_SIZE):
        return ptep_get(pte_offset_map(pmd, address))
    return 0


@linux("mm/gup.c")
def faultin_page(vma: vm_area_struct, address: int, gup_flags: int) -> int:
    """Fault the page in as the access that is wanted would; 0, -ENOMEM, -EFAULT."""
    flags = FAULT_FLAG_ALLOW_RETRY | (FAULT_FLAG_WRITE if gup_flags & FOLL_WRITE else 0)
    ret = handle_mm_fault(vma, address, flags)
    if ret & VM_FAULT_OOM:
        return -ENOMEM
    return -EFAULT if ret & VM_FAULT_ERROR else 0


@linux("mm/gup.c")
def __get_user_pages(mm: mm_struct, start: int, nr_pages: int, gup_flags: int) -> int:
    """Make ``nr_pages`` pages from ``start`` present with the right wanted; how many were, or the error of the first."""
    for i in range(nr_pages):
        address = start + i * PAGE_SIZE
        vma = vma_lookup(mm, address)
        error = -EFAULT if vma is None else check_vma_flags(vma, gup_flags)
        while not error and vma is not None and follow_page_pte(vma, address, gup_flags) is None:
            error = faultin_page(vma, address, gup_flags)
            if fatal_signal_pending(current()):
                error = -EINTR
        if error:
            return i or error
    return nr_pages


@linux("mm/gup.c")
def populate_vma_page_range(vma: vm_area_struct, start: int, end: int) -> int:
    """Fault in [start, end) of one VMA: by write where it is private and writable, so that nothing is left to copy; pages
    done, or an error."""
    if vma.vm_flags & VM_LOCKONFAULT:
        return (end - start) >> PAGE_SHIFT
    gup_flags = FOLL_TOUCH
    if vma.vm_flags & (VM_WRITE | VM_SHARED) == VM_WRITE:
        gup_flags |= FOLL_WRITE
    if vma.vm_flags & VM_ACCESS_FLAGS:
        gup_flags |= FOLL_FORCE
    return __get_user_pages(vma.vm_mm, start, (end - start) >> PAGE_SHIFT, gup_flags)


@linux("mm/gup.c")
def __mm_populate(start: int, length: int, ignore_errors: bool) -> int:
    """Populate every VMA in the range (``mm_populate`` ignores errors); 0 or the first error."""
    mm = current_mm()
    end = start + length
    at = start
    mmap_read_lock(mm)
    error = 0
    while at < end and not error:
        vma = find_vma_intersection(mm, at, end)
        if vma is None:
            break
        first, last = max(at, vma.vm_start), min(end, vma.vm_end)
        at = last
        if vma.vm_flags & (VM_IO | VM_PFNMAP):
            continue
        ret = populate_vma_page_range(vma, first, last)
        if ret < 0:
            error = 0 if ignore_errors else ret
        elif ret < (last - first) >> PAGE_SHIFT:
            at = first + (ret << PAGE_SHIFT)
    mmap_read_unlock(mm)
    return error
