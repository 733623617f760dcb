"""mprotect: change the protection of a range (mm/mprotect.c).

    do_mprotect_pkey     VMA by VMA; if one fails, those before it stay changed
    mprotect_fixup       charge, merge or split, set the flags
    change_pte_range     rewrite the entries: frame, A and D stay; W only if no fault is needed

A write-protected page that becomes writable again gets W immediately if it is anonymous and
exclusive.  A page shared by fork, the zero page and a cached page must fault first, since the fault
makes the copy.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import (
    pte_dirty,
    pte_mkwrite,
    pte_modify,
    pte_needs_flush,
    pte_offset_map_lock,
    pte_present,
    pte_protnone,
    pte_unmap_unlock,
    pte_write,
    ptep_get_and_clear,
    set_pte_at,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_MASK,
    PAGE_SHIFT,
    U64,
    mm_struct,
    page_folio,
    vm_area_struct,
    vma_is_anonymous,
)
from kemu.kernel.include.swapops import only_marker
from kemu.kernel.include.system import current_mm
from kemu.kernel.mm.gup import populate_vma_page_range
from kemu.kernel.mm.mmap import calc_vm_prot_bits
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock, vma_start_write
from kemu.kernel.mm.rmap import PageAnonExclusive, folio_test_anon
from kemu.kernel.mm.util import __vm_enough_memory, may_expand_vm, vm_stat_account, vm_unacct_memory
from kemu.kernel.mm.vma import (
    VM_IGNORE_MERGE,
    find_vma,
    vma_modify_flags,
    vma_set_page_prot,
    vma_wants_writenotify,
)
from kemu.kernel.mm.zap import (
    mmu_gather,
    pmds_in,
    ptes_in,
    tlb_finish_mmu,
    tlb_gather_mmu,
    tlb_track,
    vm_normal_page,
)
from kemu.trace.frames import linux


def can_change_pte_writable(vma: vm_area_struct, addr: int, pte: int) -> bool:
    """True if the entry may become writable without a fault."""
    if not vma.vm_flags & VM_WRITE or pte_protnone(pte):
        return False
    if vma.vm_flags & VM_SHARED:
        return pte_dirty(pte)
    page = vm_normal_page(vma, addr, pte)
    return page is not None and folio_test_anon(page_folio(page)) and PageAnonExclusive(page)


@linux("mm/mprotect.c")
def change_pte_range(
    tlb: mmu_gather, vma: vm_area_struct, pmd: int, addr: int, end: int, try_writable: bool
) -> int:
    """Change the entries of one table; returns how many changed."""
    mm = tlb.mm
    ptep = pte_offset_map_lock(mm, pmd, addr)
    pages = 0
    for at, address, oldpte in ptes_in(ptep, addr, end):
        if not pte_present(oldpte):
            only_marker(oldpte)
            continue
        oldpte = ptep_get_and_clear(mm, address, at)
        ptent = pte_modify(oldpte, vma.vm_page_prot)
        if try_writable and not pte_write(ptent) and can_change_pte_writable(vma, address, ptent):
            ptent = pte_mkwrite(ptent)
        set_pte_at(mm, address, at, ptent)
        if pte_needs_flush(oldpte, ptent):
            tlb_track(tlb, address)
        pages += 1
    pte_unmap_unlock(ptep)
    return pages


@linux("mm/mprotect.c")
def change_protection(
    tlb: mmu_gather, vma: vm_area_struct, start: int, end: int, try_writable: bool
) -> int:
    """Make all entries of the range follow ``vm_page_prot``; returns how many changed."""
    pages = 0
    for pmd, first, last in pmds_in(tlb.mm, start, end):
        pages += change_pte_range(tlb, vma, pmd, first, last, try_writable)
    return pages


def vma_wants_manual_pte_write_upgrade(vma: vm_area_struct) -> bool:
    """True if individual entries may get W although the template lacks it."""
    if vma.vm_flags & VM_SHARED:
        return vma_wants_writenotify(vma)
    return bool(vma.vm_flags & VM_WRITE)


@linux("mm/mprotect.c")
def mprotect_fixup(
    tlb: mmu_gather, vma: vm_area_struct, start: int, end: int, newflags: int
) -> int:
    """Give [start, end) of ``vma`` the flags; 0, -EPERM, -ENOMEM."""
    mm = tlb.mm
    oldflags = vma.vm_flags
    if oldflags & VM_SEALED:
        #: the mapping {vma:range} is sealed
        #: -> a range without a sealed mapping: mseal cannot be undone
        return -EPERM
    if newflags == oldflags:
        return 0
    nrpages = (end - start) >> PAGE_SHIFT
    charged = 0
    if newflags & VM_WRITE:
        if not may_expand_vm(mm, newflags, nrpages) and may_expand_vm(mm, oldflags, nrpages):
            return -ENOMEM  #: {may_expand_vm}
        if not oldflags & (VM_ACCOUNT | VM_WRITE | VM_HUGETLB | VM_SHARED | VM_NORESERVE):
            if __vm_enough_memory(mm, nrpages):
                return -ENOMEM  #: {__vm_enough_memory}
            charged = nrpages
            newflags |= VM_ACCOUNT
    elif oldflags & VM_ACCOUNT and vma_is_anonymous(vma) and vma.anon_vma is None:
        newflags &= ~VM_ACCOUNT
    changed = vma_modify_flags(vma, start, end, newflags)
    if isinstance(changed, int):
        vm_unacct_memory(charged)
        return changed
    vma_start_write(changed)
    changed.vm_flags = newflags | changed.vm_flags & VM_IGNORE_MERGE
    vma_set_page_prot(changed)
    change_protection(tlb, changed, start, end, vma_wants_manual_pte_write_upgrade(changed))
    if oldflags & VM_ACCOUNT and not newflags & VM_ACCOUNT:
        vm_unacct_memory(nrpages)
    if oldflags & (VM_WRITE | VM_SHARED | VM_LOCKED) == VM_LOCKED and newflags & VM_WRITE:
        populate_vma_page_range(changed, start, end)
    vm_stat_account(mm, oldflags, -nrpages)
    vm_stat_account(mm, newflags, nrpages)
    return 0


def _first_vma(
    mm: mm_struct, start: int, end: int, grows: int
) -> tuple[vm_area_struct | None, int]:
    """(the first VMA, the start of the range), which PROT_GROWSDOWN moves down to the VMA's start;
    or (None, error)."""
    vma = find_vma(mm, start)
    if vma is None:
        #: nothing is mapped at {start:#x} -> a range that is mapped without a gap: see maps
        return None, -ENOMEM
    if grows & PROT_GROWSDOWN:
        if vma.vm_start >= end:
            #: nothing is mapped below {end:#x} -> a range that is mapped without a gap: see maps
            return None, -ENOMEM
        #: {vma:range} does not grow downwards -> leave growsdown out
        return (vma, vma.vm_start) if vma.vm_flags & VM_GROWSDOWN else (None, -EINVAL)
    if vma.vm_start > start:
        #: nothing is mapped at {start:#x} -> a range that is mapped without a gap: see maps
        return None, -ENOMEM
    #: no mapping of x86 grows upwards -> leave growsup out
    return (None, -EINVAL) if grows & PROT_GROWSUP else (vma, start)


@linux("mm/mprotect.c")
def do_mprotect_pkey(start: int, length: int, prot: int, pkey: int = -1) -> int:
    """mprotect(2) of ``length`` bytes: 0, -EINVAL, -ENOMEM (hole), -EACCES, -EPERM.  There are no
    protection keys, so only ``pkey`` -1 is valid."""
    grows = prot & (PROT_GROWSDOWN | PROT_GROWSUP)
    prot &= ~grows
    if grows == PROT_GROWSDOWN | PROT_GROWSUP:
        return -EINVAL  #: growsdown and growsup exclude each other -> only one of the two
    if start & ~PAGE_MASK & U64:
        #: the address {start:#x} is not a multiple of the page size -> an address that ends in 000
        return -EINVAL
    if not length:
        return 0
    length = PAGE_ALIGN(length)
    end = (start + length) & U64
    if end <= start:
        return -ENOMEM  #: the range ends beyond the address space -> a shorter range
    if prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM) or pkey != -1:
        return -EINVAL  #: the only permissions are r, w and x, without keys -> r, w, x, none
    mm = current_mm()
    mmap_write_lock(mm)
    vma, first = _first_vma(mm, start, end, grows)
    error = first if vma is None else _protect_range(mm, first, end, calc_vm_prot_bits(prot))
    mmap_write_unlock(mm)
    return error


def _protect_range(mm: mm_struct, start: int, end: int, prot_bits: int) -> int:
    """Walk the VMAs; stop at the first hole, or at the first VMA that refuses."""
    tlb = tlb_gather_mmu(mm)
    at, error = start, 0
    while at < end and not error:
        vma = find_vma(mm, at)
        if vma is None or vma.vm_start > at:
            #: nothing is mapped at {at:#x} -> a range that is mapped without a gap: see maps
            error = -ENOMEM
            break
        newflags = prot_bits | vma.vm_flags & ~VM_ACCESS_FLAGS
        if newflags & ~(newflags >> 4) & VM_ACCESS_FLAGS:
            #: {vma:range} may not get that permission: its file is not open for it
            #: -> open the file rdwr and map it again
            error = -EACCES
            break
        last = min(vma.vm_end, end)
        error = mprotect_fixup(tlb, vma, at, last, newflags)
        at = last
    tlb_finish_mmu(tlb)
    return error
