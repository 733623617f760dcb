"""Guard regions: pages inside a mapping that must not be touched (mm/madvise.c).

GUARD_INSTALL drops what is there and writes a marker into every entry of the range: any access then
raises SIGSEGV.  The VMA is not split; it only gets a flag that says that it may have markers, which
makes fork copy its entries.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import (
    pte_alloc,
    pte_offset_map_lock,
    pte_unmap_unlock,
    set_pte,
    set_pte_at,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import PAGE_SHIFT, PAGE_SIZE, vm_area_struct, vma_is_anonymous
from kemu.kernel.include.swapops import PTE_MARKER_GUARD, is_guard_pte_marker, make_pte_marker
from kemu.kernel.include.system import system
from kemu.kernel.mm.move_tables import alloc_new_pmd
from kemu.kernel.mm.rmap import anon_vma_prepare
from kemu.kernel.mm.zap import addr_end, pmds_in, ptes_in, zap_details, zap_page_range_single
from kemu.trace.frames import linux


def is_valid_guard_vma(vma: vm_area_struct, allow_locked: bool) -> bool:
    """True if guards can be installed or removed: never in raw and huge mappings; in locked ones
    they can only be removed."""
    disallowed = VM_SPECIAL | VM_HUGETLB | (0 if allow_locked else VM_LOCKED)
    return not vma.vm_flags & disallowed


@linux("mm/madvise.c")
def madvise_guard_install(vma: vm_area_struct, start: int, end: int) -> int:
    """Guard [start, end): 0, -EINVAL, -ENOMEM."""
    if not is_valid_guard_vma(vma, False):
        #: {vma:range} is locked or a special mapping: it takes no guard pages -> munlock it first
        return -EINVAL
    if vma_is_anonymous(vma) and anon_vma_prepare(vma):
        return -ENOMEM  #: {anon_vma_prepare}
    if not vma.vm_flags & VM_MAYBE_GUARD:
        vma.vm_flags |= VM_MAYBE_GUARD
    zap_page_range_single(vma, start, end - start, zap_details())
    marker = make_pte_marker(PTE_MARKER_GUARD)
    at = start
    while at < end:
        next = addr_end(at, end, system.pmd_shift)
        pmd = alloc_new_pmd(vma.vm_mm, at)
        if not pmd or pte_alloc(vma.vm_mm, pmd):
            return -ENOMEM  #: {alloc_new_pmd}{pte_alloc}
        ptep = pte_offset_map_lock(vma.vm_mm, pmd, at)
        for n in range((next - at) >> PAGE_SHIFT):
            set_pte_at(vma.vm_mm, at + n * PAGE_SIZE, ptep + n * 8, marker)
        pte_unmap_unlock(ptep)
        at = next
    return 0


@linux("mm/madvise.c")
def madvise_guard_remove(vma: vm_area_struct, start: int, end: int) -> int:
    """Remove the markers of [start, end), and nothing else: 0, -EINVAL."""
    if not is_valid_guard_vma(vma, True):
        return -EINVAL  #: {vma:range} is a special mapping: it has no guard pages
    for pmd, first, last in pmds_in(vma.vm_mm, start, end):
        ptep = pte_offset_map_lock(vma.vm_mm, pmd, first)
        for at, _, pte in ptes_in(ptep, first, last):
            if is_guard_pte_marker(pte):
                set_pte(at, 0)
        pte_unmap_unlock(ptep)
    return 0
