"""How the kernel looks up user pages: get_user_pages (mm/gup.c).

    __get_user_pages   for each page: follow_page_pte, else faultin_page and again

Two ways to hold a page: FOLL_GET, a plain reference, for looking at it briefly; FOLL_PIN, 1024
references, for reading or writing its contents.  Only an exclusive anonymous page may be pinned, so
a pin for reading first *unshares* a page that fork left shared: copies it, or takes it over,
without making it writable.  This keeps a pinned page with its owner.

GUP checks the VMA's permissions first, never expands a stack, and charges the faults that it takes
to the calling task.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import (
    pmd_of,
    pte_dirty,
    pte_offset_map,
    pte_offset_map_lock,
    pte_pfn,
    pte_present,
    pte_protnone,
    pte_special,
    pte_unmap_unlock,
    pte_write,
    ptep_get,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_SHIFT,
    PAGE_SIZE,
    folio,
    is_cow_mapping,
    mm_struct,
    page,
    page_folio,
    vm_area_struct,
)
from kemu.kernel.include.system import current, current_mm, pfn_to_page, system
from kemu.kernel.kernel.signal import fatal_signal_pending
from kemu.kernel.mm.fault import handle_mm_fault
from kemu.kernel.mm.filemap import folio_mark_dirty
from kemu.kernel.mm.lru import folio_mark_accessed, lru_add_drain
from kemu.kernel.mm.mmap_lock import mmap_read_lock, mmap_read_unlock
from kemu.kernel.mm.page_alloc import folio_get, folio_put, folio_put_refs, folio_ref_add
from kemu.kernel.mm.rmap import PageAnonExclusive, folio_test_anon
from kemu.kernel.mm.vma import find_vma_intersection, vma_lookup
from kemu.kernel.mm.zap import vm_normal_page
from kemu.trace.frames import linux

FOLL_WRITE, FOLL_GET, FOLL_FORCE = 0x1, 0x2, 0x8
FOLL_LONGTERM = 0x100
FOLL_TOUCH = 1 << 16
FOLL_TRIED = 1 << 17
FOLL_PIN = 1 << 19
FOLL_MADV_POPULATE = 1 << 22
INSISTING = FOLL_GET | FOLL_PIN | FOLL_MADV_POPULATE
"""The callers that, where a page had to be read, fault again at once, which counts as a major fault
(``__get_user_pages_locked``).  Populating for mmap and mlock starts again instead, and finds the
page."""
GUP_PIN_COUNTING_BIAS = 1024


def check_vma_flags(vma: vm_area_struct, gup_flags: int) -> int:
    """0, or -EFAULT if the VMA does not allow the access."""
    vm_flags = vma.vm_flags
    if vm_flags & (VM_IO | VM_PFNMAP):
        return -EFAULT  #: {vma:range} maps no memory that can be referenced
    if gup_flags & FOLL_WRITE:
        if gup_flags & (
            FOLL_PIN | FOLL_LONGTERM
        ) == FOLL_PIN | FOLL_LONGTERM and vma_needs_dirty_tracking(vma):
            #: {vma:range} maps a file that tracks writes: it cannot be pinned for long
            return -EFAULT
        if not vm_flags & VM_WRITE and not (gup_flags & FOLL_FORCE and is_cow_mapping(vm_flags)):
            return -EFAULT  #: {vma:range} may not be written -> mprotect it with w
    elif not vm_flags & VM_READ and not (gup_flags & FOLL_FORCE and vm_flags & VM_MAYREAD):
        return -EFAULT  #: {vma:range} may not be read -> mprotect it with r
    return 0


def vma_needs_dirty_tracking(vma: vm_area_struct) -> bool:
    """True if the file system tracks writes to the mapping, which a long-term pin would hide."""
    if vma.vm_flags & (VM_WRITE | VM_SHARED) != VM_WRITE | VM_SHARED:
        return False
    return vma.vm_ops is not None and vma.vm_ops.page_mkwrite is not None


def gup_must_unshare(gup_flags: int, page: page, vma: vm_area_struct) -> bool:
    """True if the page must be unshared before a pin: a read-only pin of a page that is not
    exclusive."""
    if gup_flags & (FOLL_WRITE | FOLL_PIN) != FOLL_PIN:
        return False
    if not folio_test_anon(page_folio(page)):
        return bool(gup_flags & FOLL_LONGTERM) and is_cow_mapping(vma.vm_flags)
    return not PageAnonExclusive(page)


def try_grab_folio(folio: folio, gup_flags: int, mm: mm_struct) -> None:
    """Take a reference or a pin, as ``flags`` say; the zero page is not pinned."""
    if gup_flags & FOLL_PIN:
        if not mm.flags & MMF_HAS_PINNED:
            mm.flags |= MMF_HAS_PINNED
        if folio.pfn != system.zero_pfn:
            folio_ref_add(folio, GUP_PIN_COUNTING_BIAS)
    elif gup_flags & FOLL_GET:
        folio_get(folio)


def gup_put_folio(folio: folio, gup_flags: int) -> None:
    """Drop what ``try_grab_folio`` took."""
    if gup_flags & FOLL_PIN:
        if folio.pfn != system.zero_pfn:
            folio_put_refs(folio, GUP_PIN_COUNTING_BIAS)
    else:
        folio_put(folio)


def can_follow_write_pte(pte: int, page: page | None, vma: vm_area_struct, gup_flags: int) -> bool:
    """True if a write through GUP may go to this entry's page: it is writable, or FOLL_FORCE on a
    private mapping that is not, whose page is already a private copy (exclusive)."""
    if pte_write(pte):
        return True
    if not gup_flags & FOLL_FORCE or vma.vm_flags & (VM_MAYSHARE | VM_SHARED | VM_WRITE):
        return False
    return (
        bool(vma.vm_flags & VM_MAYWRITE)
        and page is not None
        and folio_test_anon(page_folio(page))
        and PageAnonExclusive(page)
    )


@linux("mm/gup.c")
def follow_page_pte(vma: vm_area_struct, address: int, gup_flags: int) -> page | int:
    """The page mapped at ``address``, held as ``flags`` say; 0 if the access would fault; -EMLINK
    if the page must be unshared first."""
    pmd = pmd_of(vma.vm_mm, address)
    ptep = pte_offset_map_lock(vma.vm_mm, pmd, address) if pmd else 0
    if not ptep:
        return 0
    found = _follow_entry(vma, address, ptep_get(ptep), gup_flags)
    pte_unmap_unlock(ptep)
    return found


def _follow_entry(vma: vm_area_struct, address: int, entry: int, gup_flags: int) -> page | int:
    """The rest of ``follow_page_pte``, with the table locked: the page cannot be freed before it is
    held."""
    if not pte_present(entry) or (pte_protnone(entry) and vma.vm_flags & VM_ACCESS_FLAGS):
        return 0
    page = vm_normal_page(vma, address, entry)
    if gup_flags & FOLL_WRITE and not can_follow_write_pte(entry, page, vma, gup_flags):
        return 0
    found = page if page is not None else pfn_to_page(pte_pfn(entry))
    if not pte_write(entry) and gup_must_unshare(gup_flags, found, vma):
        return -EMLINK  #: {address:#x} is shared and must be copied before it is pinned
    folio = page_folio(found)
    try_grab_folio(folio, gup_flags, vma.vm_mm)
    if gup_flags & FOLL_TOUCH and page is not None:
        if gup_flags & FOLL_WRITE and not pte_dirty(entry) and not folio.flags & PG_dirty:
            folio_mark_dirty(folio)
        folio_mark_accessed(folio)
    return found


def mapped_entry(mm: mm_struct, address: int) -> int:
    """The entry for ``address``, 0 if its table does not exist."""
    pmd = pmd_of(mm, address)
    ptep = pte_offset_map(pmd, address) if pmd else 0
    return ptep_get(ptep) if ptep else 0


@linux("mm/gup.c")
def faultin_page(vma: vm_area_struct, address: int, gup_flags: int, *, unshare: bool) -> int:
    """Fault the page in for the access (or ``unshare`` it); 0, -ENOMEM, -EFAULT; -EBUSY if the
    fault had to wait: then the address space is no longer locked."""
    flags = FAULT_FLAG_ALLOW_RETRY | (FAULT_FLAG_WRITE if gup_flags & FOLL_WRITE else 0)
    flags |= (FAULT_FLAG_UNSHARE if unshare else 0) | (
        FAULT_FLAG_TRIED if gup_flags & FOLL_TRIED else 0
    )
    ret = handle_mm_fault(vma, address, flags)
    if ret & VM_FAULT_OOM:
        return -ENOMEM  #: {handle_mm_fault}
    if ret & VM_FAULT_RETRY:
        return -EBUSY  #: the fault had to wait for the disk
    return -EFAULT if ret & VM_FAULT_ERROR else 0  #: {handle_mm_fault}


@linux("mm/gup.c")
def __get_user_pages(
    mm: mm_struct, start: int, nr_pages: int, gup_flags: int, pages: list[page] | None = None
) -> int:
    """Make ``nr_pages`` pages from ``start`` accessible, and append them, held, to ``pages``; the
    number of pages, or the error of the first."""
    for i in range(nr_pages):
        found = get_user_page(mm, start + i * PAGE_SIZE, gup_flags)
        if isinstance(found, int):
            return i or found
        if pages is not None:
            pages.append(found)
    return nr_pages


def get_user_page(mm: mm_struct, address: int, gup_flags: int) -> page | int:
    """One page, held as ``flags`` say, or a negative error: -EFAULT, -ENOMEM, -EINTR.  ``mm`` is
    locked for reading."""
    vma = vma_lookup(mm, address)
    #: nothing is mapped at {address:#x} -> an address that maps shows
    error = -EFAULT if vma is None else check_vma_flags(vma, gup_flags)
    while not error and vma is not None:
        found = follow_page_pte(vma, address, gup_flags)
        if not isinstance(found, int):
            return found
        error = faultin_page(vma, address, gup_flags, unshare=found == -EMLINK)
        if error == -EBUSY:
            mmap_read_lock(mm)
            vma = vma_lookup(mm, address)
            #: nothing is mapped at {address:#x} any more -> an address that maps shows
            error = -EFAULT if vma is None else check_vma_flags(vma, gup_flags)
            gup_flags |= FOLL_TRIED if gup_flags & INSISTING else 0
        if fatal_signal_pending(current()):
            error = -EINTR  #: a fatal signal is pending
    return error


@linux("mm/gup.c")
def get_user_pages_remote(
    mm: mm_struct, start: int, nr_pages: int, gup_flags: int, pages: list[page]
) -> int:
    """Take plain references to pages of any address space; the number of pages, or an error."""
    return __get_user_pages(mm, start, nr_pages, gup_flags | FOLL_TOUCH | FOLL_GET, pages)


@linux("mm/gup.c")
def pin_user_pages_remote(
    mm: mm_struct, start: int, nr_pages: int, gup_flags: int, pages: list[page]
) -> int:
    """Pin pages of any address space; the number of pages, or an error."""
    return __get_user_pages(mm, start, nr_pages, gup_flags | FOLL_TOUCH | FOLL_PIN, pages)


@linux("mm/gup.c")
def gup_fast_fallback(start: int, nr_pages: int, gup_flags: int, pages: list[page]) -> int:
    """Pages of the current task: from the entries alone while these allow the access, the rest by
    the slow path."""
    mm = current_mm()
    while len(pages) < nr_pages:
        found = gup_fast(mm, start + len(pages) * PAGE_SIZE, gup_flags)
        if found is None:
            break
        pages.append(found)
    done = len(pages)
    if done == nr_pages:
        return done
    mmap_read_lock(mm)
    ret = __get_user_pages(
        mm, start + done * PAGE_SIZE, nr_pages - done, gup_flags | FOLL_TOUCH, pages
    )
    mmap_read_unlock(mm)
    return done or ret if ret < 0 else done + ret


def gup_fast(mm: mm_struct, address: int, gup_flags: int) -> page | None:
    """One page if its entry alone allows the access; None for the slow path
    (``gup_fast_pte_range``)."""
    vma = vma_lookup(mm, address)
    entry = mapped_entry(mm, address) if vma is not None else 0
    if vma is None or not pte_present(entry) or pte_protnone(entry) or pte_special(entry):
        return None
    if gup_flags & FOLL_WRITE and not pte_write(entry):
        return None
    page = pfn_to_page(pte_pfn(entry))
    if gup_flags & FOLL_LONGTERM and gup_flags & FOLL_WRITE and vma_needs_dirty_tracking(vma):
        return None
    if not pte_write(entry) and gup_must_unshare(gup_flags, page, vma):
        return None
    folio = page_folio(page)
    try_grab_folio(folio, gup_flags, mm)
    folio.flags |= PG_referenced
    return page


@linux("mm/gup.c")
def populate_vma_page_range(vma: vm_area_struct, start: int, end: int) -> int:
    """Fault in [start, end) of one VMA, for writing if it is private and writable, so no later
    write has to copy; the number of pages, or an error.  This CPU's batches are drained at the
    end, but not if nothing was tried: under VM_LOCKONFAULT, or without any access (measured)."""
    if vma.vm_flags & VM_LOCKONFAULT:
        return (end - start) >> PAGE_SHIFT
    if not vma.vm_flags & VM_ACCESS_FLAGS:
        return -EFAULT  #: {vma:range} may not be read -> mprotect it with r
    gup_flags = FOLL_TOUCH | FOLL_FORCE
    if vma.vm_flags & (VM_WRITE | VM_SHARED) == VM_WRITE:
        gup_flags |= FOLL_WRITE
    ret = __get_user_pages(vma.vm_mm, start, (end - start) >> PAGE_SHIFT, gup_flags)
    lru_add_drain()
    return ret


@linux("mm/gup.c")
def faultin_page_range(mm: mm_struct, start: int, end: int, write: bool) -> int:
    """Prefault part of [start, end), within one VMA, for reading or writing; the number of pages,
    or an error.  In any case the batches of this CPU are empty afterwards."""
    vma = find_vma_intersection(mm, start, end)
    gup_flags = FOLL_TOUCH | FOLL_MADV_POPULATE | (FOLL_WRITE if write else 0)
    if vma is None or vma.vm_start > start:
        #: nothing is mapped at {start:#x} -> a range that is mapped without a gap: see maps
        ret = -ENOMEM
    elif check_vma_flags(vma, gup_flags):
        ret = -EINVAL  #: {check_vma_flags}
    else:
        ret = __get_user_pages(mm, start, (min(end, vma.vm_end) - start) >> PAGE_SHIFT, gup_flags)
    lru_add_drain()
    return ret


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
