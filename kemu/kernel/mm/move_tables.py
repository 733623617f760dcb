"""Moving page-table entries to other addresses of the same address space (mm/mremap.c).

    old  | a | b | c |   |  each entry is removed and set again at its new address:
    new  |   | a | b | c |  the pages stay where they are in RAM

exec uses this to move a stack, which was built at the top of the address space, to its random
place.  If both addresses are aligned, Linux can move a whole table through one entry of the level
above; the result is the same, so kemu does not.
"""

from __future__ import annotations

from kemu.kernel.arch.pgtable import (
    p4d_alloc,
    pgd_offset,
    pmd_alloc,
    pte_alloc,
    pte_offset_map,
    pte_offset_map_lock,
    pte_present,
    pte_unmap_unlock,
    ptep_get_and_clear,
    pud_alloc,
    set_pte_at,
)
from kemu.kernel.arch.tlbflush import flush_tlb_range
from kemu.kernel.include.mm_types import mm_struct, vm_area_struct
from kemu.kernel.include.swapops import classify, no_handler
from kemu.kernel.include.system import system
from kemu.kernel.mm.zap import addr_end, pmds_in, ptes_in
from kemu.trace.frames import linux


@linux("mm/mremap.c")
def move_page_tables(vma: vm_area_struct, old_addr: int, new_addr: int, length: int) -> int:
    """Move the entries of [old_addr, old_addr+length) to ``new_addr``, lower addresses first; the
    number of bytes covered, less than ``length`` when out of memory."""
    mm = vma.vm_mm
    for old_pmd, first, last in pmds_in(mm, old_addr, old_addr + length):
        at = first
        while at < last:
            new = at - old_addr + new_addr
            extent = addr_end(new, new + last - at, system.pmd_shift) - new
            new_pmd = alloc_new_pmd(mm, new)
            if not new_pmd or pte_alloc(mm, new_pmd):
                return at - old_addr
            move_ptes(vma, old_pmd, at, at + extent, new_pmd, new)
            at += extent
    return length


@linux("mm/mremap.c")
def alloc_new_pmd(mm: mm_struct, addr: int) -> int:
    """The PMD entry for ``addr``, making the tables above it; 0 when out of memory."""
    p4d = p4d_alloc(mm, pgd_offset(mm, addr), addr)
    pud = pud_alloc(mm, p4d, addr) if p4d else 0
    return pmd_alloc(mm, pud, addr) if pud else 0


@linux("mm/mremap.c")
def move_ptes(
    vma: vm_area_struct, old_pmd: int, old_addr: int, old_end: int, new_pmd: int, new_addr: int
) -> None:
    """Move the entries of one table, of any known kind, unchanged; the old addresses are flushed
    before the table is unlocked."""
    mm = vma.vm_mm
    old_pte = pte_offset_map_lock(mm, old_pmd, old_addr)
    same_table = system.phys.load(old_pmd) == system.phys.load(new_pmd)
    new_pte = (
        pte_offset_map(new_pmd, new_addr)
        if same_table
        else pte_offset_map_lock(mm, new_pmd, new_addr)
    )
    force_flush = False
    for at, address, _ in ptes_in(old_pte, old_addr, old_end):
        pte = ptep_get_and_clear(mm, address, at)
        if classify(pte) == "unknown":
            raise no_handler(pte)
        force_flush = force_flush or pte_present(pte)
        set_pte_at(mm, address - old_addr + new_addr, new_pte + at - old_pte, pte)
    if force_flush:
        flush_tlb_range(vma, old_addr, old_end)
    if not same_table:
        pte_unmap_unlock(new_pte)
    pte_unmap_unlock(old_pte)
