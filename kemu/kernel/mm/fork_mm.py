"""fork: duplicating an address space (mm/mmap.c: dup_mmap, mm/memory.c: copy_page_range).

    dup_mm -> dup_mmap -> for each VMA: anon_vma_fork, copy_page_range
                             -> copy_p4d_range -> copy_pud_range -> copy_pmd_range -> copy_pte_range
                                -> copy_present_ptes -> __copy_present_ptes

No page is copied, only entries, and those only of VMAs that have anonymous pages.  For each entry:
one more mapping and reference, PageAnonExclusive cleared, and W cleared on *both* sides.  The first
write by either must fault, so that the page is copied for the writer and kept for the other.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import (
    entry_none,
    maybe_mkwrite,
    mk_pte,
    p4d_alloc,
    p4d_offset,
    pgd_offset,
    pmd_alloc,
    pmd_offset,
    pte_alloc,
    pte_mkclean,
    pte_mkdirty,
    pte_mkold,
    pte_offset_map_lock,
    pte_present,
    pte_unmap_unlock,
    pte_write,
    pte_wrprotect,
    ptep_set_wrprotect,
    pud_alloc,
    pud_offset,
    set_pte_at,
)
from kemu.kernel.arch.tlbflush import flush_tlb_mm
from kemu.kernel.fs.file_table import get_file
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    PAGE_SHIFT,
    is_cow_mapping,
    mm_struct,
    page,
    page_folio,
    vm_area_struct,
    vma_pages,
)
from kemu.kernel.include.swapops import classify, no_handler
from kemu.kernel.include.system import system
from kemu.kernel.kernel.mm_life import allocate_mm, mm_init, mmput, set_mm_exe_file
from kemu.kernel.mm.filemap import mm_counter_file
from kemu.kernel.mm.fork_row import copy_row
from kemu.kernel.mm.lru import folio_add_lru_vma
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock, vma_start_write
from kemu.kernel.mm.page_alloc import GFP_KERNEL, alloc_page, folio_get, folio_put
from kemu.kernel.mm.rmap import (
    anon_vma_fork,
    folio_add_new_anon_rmap,
    folio_dup_file_rmap_pte,
    folio_maybe_dma_pinned,
    folio_test_anon,
    folio_try_dup_anon_rmap_pte,
)
from kemu.kernel.mm.util import __vm_enough_memory, get_mm_rss, vm_stat_account, vm_unacct_memory
from kemu.kernel.mm.vma import (
    vm_area_dup,
    vma_link,
)
from kemu.kernel.mm.zap import addr_end, ptes_in, vm_normal_page
from kemu.trace.frames import linux


@linux("kernel/fork.c")
def dup_mm(oldmm: mm_struct) -> mm_struct | None:
    """A copy of the address space; None when out of memory, with everything undone."""
    mm = allocate_mm()
    if mm is None:
        return None
    for field in INHERITED:
        setattr(mm, field, getattr(oldmm, field))
    if oldmm.membarrier_state:
        mm.membarrier_state = oldmm.membarrier_state
    if mm_init(mm) is None:
        return None
    if dup_mmap(mm, oldmm):
        mmput(mm)
        return None
    mm.hiwater_rss = get_mm_rss(mm)
    mm.hiwater_vm = mm.total_vm
    return mm


INHERITED = (
    "def_flags", "mmap_base", "mmap_legacy_base", "start_code", "end_code", "start_data",
    "end_data", "start_brk", "brk", "start_stack", "arg_start", "arg_end", "env_start", "env_end",
    "saved_auxv", "vdso",
)  # fmt: skip
"""The fields that the byte copy of the structure keeps (mm_init resets the rest)."""


@linux("mm/mmap.c")
def dup_mmap(mm: mm_struct, oldmm: mm_struct) -> int:
    """Copy the VMAs and, where needed, the entries; 0 or -ENOMEM.  At the end the parent's old,
    writable translations are flushed."""
    mmap_write_lock(oldmm)
    if oldmm.exe_file is not None:
        set_mm_exe_file(mm, oldmm.exe_file)
    for field in ("total_vm", "data_vm", "exec_vm", "stack_vm"):
        setattr(mm, field, getattr(oldmm, field))
    error = 0
    for mpnt in oldmm.mm_mt:
        vma_start_write(mpnt)
        if mpnt.vm_flags & VM_DONTCOPY:
            vm_stat_account(mm, mpnt.vm_flags, -vma_pages(mpnt))
            continue
        error = dup_vma(mm, oldmm, mpnt)
        if error:
            break
    flush_tlb_mm(oldmm)
    mmap_write_unlock(oldmm)
    return error


def dup_vma(mm: mm_struct, oldmm: mm_struct, mpnt: vm_area_struct) -> int:
    """One VMA of ``dup_mmap``: charge, copy, link, copy its entries; 0 or -ENOMEM."""
    charge = vma_pages(mpnt) if mpnt.vm_flags & VM_ACCOUNT else 0
    if charge and __vm_enough_memory(oldmm, charge):
        return -ENOMEM  #: {__vm_enough_memory}
    tmp = vm_area_dup(mpnt)
    if tmp is None:
        vm_unacct_memory(charge)
        return -ENOMEM  #: {vm_area_dup}
    tmp.vm_mm = mm
    if tmp.vm_flags & VM_WIPEONFORK:
        tmp.anon_vma = None
    elif anon_vma_fork(tmp, mpnt):
        vm_unacct_memory(charge)
        return -ENOMEM  #: {anon_vma_fork}
    tmp.vm_flags &= ~VM_LOCKED_MASK
    if tmp.vm_file is not None:
        get_file(tmp.vm_file)
    if tmp.vm_ops is not None and tmp.vm_ops.open is not None:
        tmp.vm_ops.open(tmp)
    vma_link(mm, tmp)
    if tmp.vm_flags & VM_WIPEONFORK:
        return 0
    return copy_page_range(tmp, mpnt)


# ---------------------------------------------------------------- copying entries


def vma_needs_copy(dst_vma: vm_area_struct, src_vma: vm_area_struct) -> bool:
    """False if the child can fault its pages in again: the VMA never had anonymous pages."""
    return (
        bool(src_vma.vm_flags & (VM_PFNMAP | VM_MIXEDMAP | VM_MAYBE_GUARD))
        or src_vma.anon_vma is not None
    )


@linux("mm/memory.c")
def copy_page_range(dst_vma: vm_area_struct, src_vma: vm_area_struct) -> int:
    """Copy the entries of ``src_vma`` to the child's tables; 0 or -ENOMEM."""
    if not vma_needs_copy(dst_vma, src_vma):
        return 0
    src_mm = src_vma.vm_mm
    dst_mm = dst_vma.vm_mm
    is_cow = is_cow_mapping(src_vma.vm_flags)
    if is_cow:
        src_mm.write_protect_seq += 1
    addr, end, ret = src_vma.vm_start, src_vma.vm_end, 0
    while addr < end and not ret:
        next = addr_end(addr, end, system.pgd_shift)
        src_pgd = pgd_offset(src_mm, addr)
        if not entry_none(src_pgd):
            ret = copy_p4d_range(dst_vma, src_vma, pgd_offset(dst_mm, addr), src_pgd, addr, next)
        addr = next
    if is_cow:
        src_mm.write_protect_seq += 1
    return ret


@linux("mm/memory.c")
def copy_p4d_range(
    dst_vma: vm_area_struct,
    src_vma: vm_area_struct,
    dst_pgd: int,
    src_pgd: int,
    addr: int,
    end: int,
) -> int:
    """The entries below one PGD entry; the child's table is made first."""
    while addr < end:
        dst_p4d = p4d_alloc(dst_vma.vm_mm, dst_pgd, addr)
        if not dst_p4d:
            return -ENOMEM  #: {p4d_alloc}
        src_p4d = p4d_offset(src_pgd, addr)
        next = addr_end(addr, end, system.p4d_shift) if system.p4d_shift else end
        if not entry_none(src_p4d) and copy_pud_range(
            dst_vma, src_vma, dst_p4d, src_p4d, addr, next
        ):
            return -ENOMEM  #: {copy_pud_range}
        addr = next
    return 0


@linux("mm/memory.c")
def copy_pud_range(
    dst_vma: vm_area_struct,
    src_vma: vm_area_struct,
    dst_p4d: int,
    src_p4d: int,
    addr: int,
    end: int,
) -> int:
    """The entries below one P4D entry."""
    while addr < end:
        dst_pud = pud_alloc(dst_vma.vm_mm, dst_p4d, addr)
        if not dst_pud:
            return -ENOMEM  #: {pud_alloc}
        src_pud = pud_offset(src_p4d, addr)
        next = addr_end(addr, end, system.pud_shift) if system.pud_shift else end
        if not entry_none(src_pud) and copy_pmd_range(
            dst_vma, src_vma, dst_pud, src_pud, addr, next
        ):
            return -ENOMEM  #: {copy_pmd_range}
        addr = next
    return 0


@linux("mm/memory.c")
def copy_pmd_range(
    dst_vma: vm_area_struct,
    src_vma: vm_area_struct,
    dst_pud: int,
    src_pud: int,
    addr: int,
    end: int,
) -> int:
    """The entries below one PUD entry."""
    while addr < end:
        dst_pmd = pmd_alloc(dst_vma.vm_mm, dst_pud, addr)
        if not dst_pmd:
            return -ENOMEM  #: {pmd_alloc}
        src_pmd = pmd_offset(src_pud, addr)
        next = addr_end(addr, end, system.pmd_shift)
        if not entry_none(src_pmd) and copy_pte_range(
            dst_vma, src_vma, dst_pmd, src_pmd, addr, next
        ):
            return -ENOMEM  #: {copy_pte_range}
        addr = next
    return 0


@linux("mm/memory.c")
def copy_pte_range(
    dst_vma: vm_area_struct,
    src_vma: vm_area_struct,
    dst_pmd: int,
    src_pmd: int,
    addr: int,
    end: int,
) -> int:
    """The entries of one table.  A table of plain entries is copied as one row (fork_row.py); the
    loop here does the same entry by entry, for a table that a row cannot hold and for detailed
    study."""
    dst_mm, src_mm = dst_vma.vm_mm, src_vma.vm_mm
    if pte_alloc(dst_mm, dst_pmd):
        return -ENOMEM  #: {pte_alloc}
    dst_pte = pte_offset_map_lock(dst_mm, dst_pmd, addr)
    src_pte = pte_offset_map_lock(src_mm, src_pmd, addr)
    pinned = bool(src_mm.flags & MMF_HAS_PINNED)
    ret = 0
    rss = None if pinned else copy_row(src_vma, dst_pte, src_pte, (end - addr) >> PAGE_SHIFT)
    if rss is None:
        rss = [0, 0, 0, 0]
        for at, address, pte in ptes_in(src_pte, addr, end):
            ret = copy_present_ptes(dst_vma, src_vma, dst_pte + at - src_pte, at, address, pte, rss)
            if ret:
                break
    for member, nr in enumerate(rss):
        if nr:
            dst_mm.rss_stat.put(member, dst_mm.rss_stat[member] + nr)
    pte_unmap_unlock(src_pte)
    pte_unmap_unlock(dst_pte)
    return ret


@linux("mm/memory.c")
def copy_present_ptes(
    dst_vma: vm_area_struct,
    src_vma: vm_area_struct,
    dst_pte: int,
    src_pte: int,
    addr: int,
    pte: int,
    rss: list[int],
) -> int:
    """One entry: count the page for the child, then copy the entry; 0 or -ENOMEM."""
    if not pte_present(pte):
        copy_nonpresent_pte(dst_vma, dst_pte, addr, pte)
        return 0
    page = vm_normal_page(src_vma, addr, pte)
    if page is not None:
        folio = page_folio(page)
        folio_get(folio)
        if folio_test_anon(folio):
            pinned = bool(src_vma.vm_mm.flags & MMF_HAS_PINNED) and folio_maybe_dma_pinned(folio)
            if not folio_try_dup_anon_rmap_pte(page, pinned):
                folio_put(folio)
                return copy_present_page(dst_vma, src_vma, dst_pte, src_pte, addr, rss, page)
            rss[MM_ANONPAGES] += 1
        else:
            folio_dup_file_rmap_pte(page)
            rss[mm_counter_file(folio)] += 1
    __copy_present_ptes(dst_vma, src_vma, dst_pte, src_pte, pte, addr)
    return 0


@linux("mm/memory.c")
def copy_nonpresent_pte(dst_vma: vm_area_struct, dst_pte: int, addr: int, pte: int) -> None:
    """Copy a guard or poison marker; one of userfaultfd is copied only if the child's VMA is
    registered too (``copy_pte_marker``)."""
    kind = classify(pte)
    if kind in {"guard", "poison"} or (kind == "uffd-wp" and dst_vma.vm_flags & VM_UFFD_WP):
        set_pte_at(dst_vma.vm_mm, addr, dst_pte, pte)
    elif kind not in {"none", "uffd-wp"}:
        raise no_handler(pte)


@linux("mm/memory.c")
def __copy_present_ptes(
    dst_vma: vm_area_struct,
    src_vma: vm_area_struct,
    dst_pte: int,
    src_pte: int,
    pte: int,
    addr: int,
) -> None:
    """Write-protect both sides of a private page; the child's entry is old, and clean if the
    mapping is shared."""
    if is_cow_mapping(src_vma.vm_flags) and pte_write(pte):
        ptep_set_wrprotect(src_vma.vm_mm, addr, src_pte)
        pte = pte_wrprotect(pte)
    if src_vma.vm_flags & VM_SHARED:
        pte = pte_mkclean(pte)
    set_pte_at(dst_vma.vm_mm, addr, dst_pte, pte_mkold(pte))


@linux("mm/memory.c")
def copy_present_page(
    dst_vma: vm_area_struct,
    src_vma: vm_area_struct,
    dst_pte: int,
    src_pte: int,
    addr: int,
    rss: list[int],
    page: page,
) -> int:
    """The page is pinned: the child gets a copy at once; the parent keeps its page, W and
    exclusivity."""
    new = alloc_page(GFP_KERNEL)
    if new is None:
        return -ENOMEM  #: {alloc_page}
    system.phys.copy_page(new.pfn, page.pfn)
    new.flags |= PG_uptodate
    folio_add_new_anon_rmap(new, dst_vma, addr)
    folio_add_lru_vma(new, dst_vma)
    rss[MM_ANONPAGES] += 1
    entry = maybe_mkwrite(pte_mkdirty(mk_pte(new, dst_vma.vm_page_prot)), dst_vma)
    set_pte_at(dst_vma.vm_mm, addr, dst_pte, entry)
    return 0
