"""madvise: advice about the use of a range (mm/madvise.c).

    flags       RANDOM, SEQUENTIAL, DONTFORK, WIPEONFORK, DONTDUMP ...   merge or split, set flags
    pages       DONTNEED and FREE drop them, REMOVE also from the file, COLD and PAGEOUT age them
    prefault    POPULATE_READ, POPULATE_WRITE, WILLNEED
    guards      GUARD_INSTALL, GUARD_REMOVE   (madvise_guard.py)

A hole is skipped and makes the result -ENOMEM; a VMA that refuses ends the walk, and what was done
before stays done.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import (
    pte_dirty,
    pte_mkclean,
    pte_mkold,
    pte_offset_map_lock,
    pte_present,
    pte_unmap_unlock,
    pte_young,
    ptep_get_and_clear,
    set_pte,
    set_pte_at,
)
from kemu.kernel.fs.files import is_shmem
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    folio,
    mm_struct,
    vm_area_struct,
    vma_is_anonymous,
)
from kemu.kernel.include.pagemap import folio_trylock, folio_unlock
from kemu.kernel.include.swapops import classify, only_marker
from kemu.kernel.include.system import current_mm
from kemu.kernel.mm.gup import faultin_page_range
from kemu.kernel.mm.lru import folio_deactivate, folio_mark_lazyfree, lru_add_drain
from kemu.kernel.mm.madvise_guard import madvise_guard_install, madvise_guard_remove
from kemu.kernel.mm.mmap_lock import (
    mmap_read_lock,
    mmap_read_unlock,
    mmap_write_lock,
    mmap_write_unlock,
    vma_start_write,
)
from kemu.kernel.mm.reclaim import reclaim_pages
from kemu.kernel.mm.rmap import folio_mapcount
from kemu.kernel.mm.truncate import generic_fadvise, vfs_fallocate
from kemu.kernel.mm.vma import VM_IGNORE_MERGE, find_vma, vma_modify_flags
from kemu.kernel.mm.zap import (
    mmu_gather,
    pmds_in,
    ptes_in,
    tlb_finish_mmu,
    tlb_gather_mmu,
    tlb_track,
    vm_normal_folio,
    zap_details,
    zap_page_range_single,
)
from kemu.trace.frames import linux

VALID_ADVICE = {value for name, value in globals().items() if name.startswith("MADV_")} - {
    MADV_HWPOISON,
    MADV_SOFT_OFFLINE,
}
"""madvise_behavior_valid without CONFIG_MEMORY_FAILURE."""

DISCARDING = {
    MADV_FREE, MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_REMOVE, MADV_DONTFORK, MADV_WIPEONFORK,
    MADV_GUARD_INSTALL,
}  # fmt: skip
"""Advice that loses contents: refused for sealed anonymous memory that is not writable."""


# ---------------------------------------------------------------- flags


def _changed_flags(vma: vm_area_struct, behavior: int) -> int:
    """The VMA's flags after an advice that only changes flags; -EINVAL where it does not apply."""
    flags = vma.vm_flags
    if behavior in REFUSED and REFUSED[behavior](vma):
        return -EINVAL  #: the advice does not apply to the mapping {vma:range}
    clear, add = FLAG_ADVICE[behavior]
    return flags & ~clear | add


FLAG_ADVICE = {
    MADV_NORMAL: (VM_RAND_READ | VM_SEQ_READ, 0),
    MADV_SEQUENTIAL: (VM_RAND_READ, VM_SEQ_READ),
    MADV_RANDOM: (VM_SEQ_READ, VM_RAND_READ),
    MADV_DONTFORK: (0, VM_DONTCOPY),
    MADV_DOFORK: (VM_DONTCOPY, 0),
    MADV_WIPEONFORK: (0, VM_WIPEONFORK),
    MADV_KEEPONFORK: (VM_WIPEONFORK, 0),
    MADV_DONTDUMP: (0, VM_DONTDUMP),
    MADV_DODUMP: (VM_DONTDUMP, 0),
    MADV_HUGEPAGE: (VM_NOHUGEPAGE, VM_HUGEPAGE),
    MADV_NOHUGEPAGE: (VM_HUGEPAGE, VM_NOHUGEPAGE),
    MADV_MERGEABLE: (0, VM_MERGEABLE),
    MADV_UNMERGEABLE: (VM_MERGEABLE, 0),
}
"""The flags that an advice clears and sets."""

REFUSED: dict[int, Callable[[vm_area_struct], object]] = {
    MADV_DOFORK: lambda vma: vma.vm_flags & VM_IO,
    MADV_WIPEONFORK: lambda vma: vma.vm_file is not None or vma.vm_flags & VM_SHARED,
    MADV_KEEPONFORK: lambda vma: vma.vm_flags & VM_DROPPABLE,
    MADV_DODUMP: lambda vma: vma.vm_flags & (VM_SPECIAL | VM_DROPPABLE),
}
"""Mappings to which an advice does not apply."""

KSM_INCOMPATIBLE = (
    VM_SHARED
    | VM_MAYSHARE
    | VM_PFNMAP
    | VM_IO
    | VM_DONTEXPAND
    | VM_HUGETLB
    | VM_MIXEDMAP
    | VM_DROPPABLE
)


@linux("mm/madvise.c")
def madvise_update_vma(vma: vm_area_struct, start: int, end: int, new_flags: int) -> int:
    """Change the flags of [start, end); 0, -EAGAIN (too many mappings)."""
    if new_flags == vma.vm_flags:
        return 0
    changed = vma_modify_flags(vma, start, end, new_flags)
    if isinstance(changed, int):
        #: {vma_modify_flags} -> fewer mappings: munmap some
        return -EAGAIN if changed == -ENOMEM else changed
    vma_start_write(changed)
    changed.vm_flags = new_flags | changed.vm_flags & VM_IGNORE_MERGE
    return 0


# ---------------------------------------------------------------- pages


def can_madv_lru_vma(vma: vm_area_struct) -> bool:
    """False for memory whose pages must stay: locked, or raw frames."""
    return not vma.vm_flags & (VM_LOCKED | VM_PFNMAP | VM_HUGETLB)


@linux("mm/madvise.c")
def madvise_dontneed_free(vma: vm_area_struct, start: int, end: int, behavior: int) -> int:
    """DONTNEED, DONTNEED_LOCKED, FREE of the bytes from ``start`` to ``end``: 0, -EINVAL."""
    if not can_madv_lru_vma(vma) and not (
        behavior == MADV_DONTNEED_LOCKED and not vma.vm_flags & VM_PFNMAP
    ):
        return -EINVAL  #: {vma:range} is locked in memory, or a special mapping -> munlock it first
    if behavior == MADV_FREE:
        return madvise_free_single_vma(vma, start, end)
    zap_page_range_single(vma, start, end - start, zap_details(reclaim_pt=True))
    return 0


@linux("mm/madvise.c")
def madvise_free_single_vma(vma: vm_area_struct, start: int, end: int) -> int:
    """Mark anonymous pages as droppable; 0, -EINVAL for other memory."""
    if not vma_is_anonymous(vma):
        #: {vma:range} is not private anonymous memory -> a private mapping without a file
        return -EINVAL
    lru_add_drain()
    tlb = tlb_gather_mmu(vma.vm_mm)
    for pmd, first, last in pmds_in(vma.vm_mm, start, end):
        madvise_free_pte_range(tlb, vma, pmd, first, last)
    tlb_finish_mmu(tlb)
    return 0


@linux("mm/madvise.c")
def madvise_free_pte_range(
    tlb: mmu_gather, vma: vm_area_struct, pmd: int, addr: int, end: int
) -> None:
    """The pages of one table: make their entries clean and old, so that a later write can be
    detected."""
    mm = tlb.mm
    ptep = pte_offset_map_lock(mm, pmd, addr)
    for at, address, pte in ptes_in(ptep, addr, end):
        if not pte_present(pte):
            if classify(pte) == "poison":
                set_pte(at, 0)
            else:
                only_marker(pte)
            continue
        folio = vm_normal_folio(vma, address, pte)
        if folio is None:
            continue
        if folio.flags & PG_dirty:
            if not folio_trylock(folio):
                continue
            if folio_mapcount(folio) != 1:
                folio_unlock(folio)
                continue
            folio.flags &= ~PG_dirty
            folio_unlock(folio)
        if pte_young(pte) or pte_dirty(pte):
            ptep_get_and_clear(mm, address, at)
            set_pte_at(mm, address, at, pte_mkclean(pte_mkold(pte)))
            tlb_track(tlb, address)
        folio_mark_lazyfree(folio)
    pte_unmap_unlock(ptep)


@linux("mm/madvise.c")
def madvise_cold(vma: vm_area_struct, start: int, end: int) -> int:
    """COLD: mark the pages as not recently used; 0, -EINVAL."""
    if not can_madv_lru_vma(vma):
        return -EINVAL  #: {vma:range} is locked in memory, or a special mapping -> munlock it first
    lru_add_drain()
    tlb = tlb_gather_mmu(vma.vm_mm)
    for pmd, first, last in pmds_in(vma.vm_mm, start, end):
        madvise_cold_or_pageout_pte_range(tlb, vma, pmd, first, last, None)
    tlb_finish_mmu(tlb)
    return 0


@linux("mm/madvise.c")
def madvise_pageout(vma: vm_area_struct, start: int, end: int) -> int:
    """PAGEOUT: reclaim the pages now; 0, -EINVAL."""
    if not can_madv_lru_vma(vma):
        return -EINVAL  #: {vma:range} is locked in memory, or a special mapping -> munlock it first
    lru_add_drain()
    tlb = tlb_gather_mmu(vma.vm_mm)
    pages: list[folio] = []
    for pmd, first, last in pmds_in(vma.vm_mm, start, end):
        madvise_cold_or_pageout_pte_range(tlb, vma, pmd, first, last, pages)
    tlb_finish_mmu(tlb)
    reclaim_pages(pages)
    return 0


@linux("mm/madvise.c")
def madvise_cold_or_pageout_pte_range(
    tlb: mmu_gather, vma: vm_area_struct, pmd: int, addr: int, end: int, pageout: list[folio] | None
) -> None:
    """The pages of one table that are on the LRU and mapped once: make them old, or collect them in
    ``pageout``."""
    mm = tlb.mm
    ptep = pte_offset_map_lock(mm, pmd, addr)
    for at, address, pte in ptes_in(ptep, addr, end):
        folio = vm_normal_folio(vma, address, pte) if pte_present(pte) else None
        if folio is None or not folio.flags & PG_lru or folio_mapcount(folio) != 1:
            continue
        if pageout is None and pte_young(pte):
            ptep_get_and_clear(mm, address, at)
            set_pte_at(mm, address, at, pte_mkold(pte))
            tlb_track(tlb, address)
        folio.flags &= ~PG_referenced
        if pageout is None:
            folio_deactivate(folio)
        elif not folio.flags & PG_unevictable:
            pageout.append(folio)
    pte_unmap_unlock(ptep)


@linux("mm/madvise.c")
def madvise_remove(vma: vm_area_struct, start: int, end: int) -> int:
    """REMOVE: punch a hole into the file of a shared writable mapping, given by addresses; 0,
    -EINVAL, -EACCES."""
    if vma.vm_flags & VM_LOCKED or vma.vm_file is None:
        #: {vma:range} is locked, or maps no file -> a shared mapping of a file, not locked
        return -EINVAL
    if vma.vm_flags & (VM_SHARED | VM_MAYWRITE) != VM_SHARED | VM_MAYWRITE:
        #: {vma:range} is not a shared mapping that may be written
        #: -> a shared mapping of a file that is open rdwr
        return -EACCES
    offset = start - vma.vm_start + (vma.vm_pgoff << PAGE_SHIFT)
    return vfs_fallocate(
        vma.vm_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, end - start
    )


@linux("mm/madvise.c")
def madvise_willneed(vma: vm_area_struct, start: int, end: int) -> int:
    """WILLNEED: read a file's pages ahead; for other memory only the batches of this CPU are
    emptied; 0."""
    if vma.vm_file is None or is_shmem(vma.vm_file.f_inode):
        lru_add_drain()
    else:
        offset = start - vma.vm_start + (vma.vm_pgoff << PAGE_SHIFT)
        return generic_fadvise(vma.vm_file.f_inode, offset, end - start, POSIX_FADV_WILLNEED)
    return 0


# ---------------------------------------------------------------- the call


@linux("mm/madvise.c")
def madvise_vma_behavior(vma: vm_area_struct, start: int, end: int, behavior: int) -> int:
    """One VMA: 0 or the error that ends the walk."""
    sealed = vma.vm_flags & VM_SEALED and vma_is_anonymous(vma) and not vma.vm_flags & VM_WRITE
    if sealed and behavior in DISCARDING:
        #: the mapping {vma:range} is sealed and read-only -> a mapping that may be written
        return -EPERM
    if behavior in PAGE_ADVICE:
        return PAGE_ADVICE[behavior](vma, start, end)
    if behavior == MADV_COLLAPSE:
        return -EINVAL  #: the range cannot hold a huge page, and kemu does not have huge pages
    if behavior in (MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_FREE):
        return madvise_dontneed_free(vma, start, end, behavior)
    if behavior in (MADV_MERGEABLE, MADV_UNMERGEABLE) and vma.vm_flags & KSM_INCOMPATIBLE:
        return 0
    new_flags = _changed_flags(vma, behavior)
    return new_flags if new_flags < 0 else madvise_update_vma(vma, start, end, new_flags)


PAGE_ADVICE = {
    MADV_REMOVE: madvise_remove,
    MADV_WILLNEED: madvise_willneed,
    MADV_COLD: madvise_cold,
    MADV_PAGEOUT: madvise_pageout,
    MADV_GUARD_INSTALL: madvise_guard_install,
    MADV_GUARD_REMOVE: madvise_guard_remove,
}
"""The function for each advice."""


@linux("mm/madvise.c")
def madvise_walk_vmas(mm: mm_struct, start: int, end: int, behavior: int) -> int:
    """Apply to each VMA between two addresses in turn; 0, -ENOMEM if there was a hole, or the error
    at which it stopped."""
    unmapped = 0
    at = start
    while at < end:
        vma = find_vma(mm, at)
        if vma is None:
            #: nothing is mapped at {at:#x} -> a range that is mapped without a gap: see maps
            return -ENOMEM
        if at < vma.vm_start:
            #: nothing is mapped at {at:#x} -> a range that is mapped without a gap: see maps
            unmapped, at = -ENOMEM, vma.vm_start
            if at >= end:
                break
        last = min(vma.vm_end, end)
        error = madvise_vma_behavior(vma, at, last, behavior)
        if error:
            return error
        at = last
    return unmapped


@linux("mm/madvise.c")
def madvise_populate(mm: mm_struct, start: int, end: int, behavior: int) -> int:
    """Prefault by reads or writes; 0, -ENOMEM (hole, memory), -EINVAL (permissions), -EFAULT
    (beyond the end of the file)."""
    write = behavior == MADV_POPULATE_WRITE
    mmap_read_lock(mm)
    error, at = 0, start
    while at < end and not error:
        pages = faultin_page_range(mm, at, end, write)
        if pages > 0:
            at += pages << PAGE_SHIFT
        else:
            #: {faultin_page_range}
            #: -> a range that is mapped without a gap and allows the access
            error = {-EFAULT: -EFAULT, -EINVAL: -EINVAL, -EINTR: -EINTR}.get(pages, -ENOMEM)
    mmap_read_unlock(mm)
    return error


@linux("mm/madvise.c")
def do_madvise(start: int, len_in: int, behavior: int) -> int:
    """madvise(2) of bytes: 0, -EINVAL, -ENOMEM, -EACCES, -EAGAIN, -EPERM, -EFAULT."""
    mm = current_mm()
    if behavior not in VALID_ADVICE:
        return -EINVAL  #: unknown advice {behavior}
    if start % PAGE_SIZE:
        #: the address {start:#x} is not a multiple of the page size -> an address that ends in 000
        return -EINVAL
    length = PAGE_ALIGN(len_in)
    if (len_in and not length) or start + length > U64:
        return -EINVAL  #: the range ends beyond the address space -> a shorter range
    if not length:
        return 0
    end = start + length
    if behavior in (MADV_POPULATE_READ, MADV_POPULATE_WRITE):
        return madvise_populate(mm, start, end, behavior)
    mmap_write_lock(mm)
    error = madvise_walk_vmas(mm, start, end, behavior)
    mmap_write_unlock(mm)
    return error
