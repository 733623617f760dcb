"""munmap, and making room for a mapping that replaces others (mm/vma.c).

vms_gather_munmap_vmas     split at the borders, collect the VMAs; on failure splits remain
vms_clear_ptes             clear the entries, flush, free pages and tables
vms_complete_munmap_vmas   uncharge the VMAs and free them
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_MASK,
    U64,
    mm_struct,
    vm_area_struct,
    vma_pages,
)
from kemu.kernel.include.system import current_mm, system
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock, vma_start_write
from kemu.kernel.mm.util import update_hiwater, vm_stat_account, vm_unacct_memory
from kemu.kernel.mm.vma import (
    __split_vma,
    find_vma_intersection,
    neighbours,
    remove_vma,
    vma_iter_clear,
    vmas_in,
)
from kemu.kernel.mm.zap import free_pgtables, tlb_finish_mmu, tlb_gather_mmu, unmap_vmas
from kemu.trace.frames import linux


class vma_munmap_struct:
    """A munmap in progress: the range, the VMAs to remove, and their counts (pages)."""

    def __init__(self, mm: mm_struct, start: int, end: int) -> None:
        self.mm, self.start, self.end = mm, start, end
        self.vmas: list[vm_area_struct] = []
        self.nr_pages = 0
        self.nr_accounted = 0
        self.locked_vm = 0
        self.cleared = False


@linux("mm/vma.c")
def vms_gather_munmap_vmas(vms: vma_munmap_struct) -> int:
    """Split at the borders and collect the VMAs between them; 0, -ENOMEM, -EPERM.  Nothing is
    unmapped yet; after an error, splits remain."""
    mm, start, end = vms.mm, vms.start, vms.end
    first = find_vma_intersection(mm, start, end)
    if first is None:
        return 0
    if start > first.vm_start:
        if end < first.vm_end and mm.map_count >= system.sysctl.max_map_count:
            #: the hole would make one mapping more than max_map_count
            #: -> unmap a whole mapping, or an end of it
            return -ENOMEM
        if first.vm_flags & VM_SEALED:
            #: the mapping {first:range} is sealed
            #: -> a range without a sealed mapping: mseal cannot be undone
            return -EPERM
        error = __split_vma(first, start, True)
        if error:
            return error
    for vma in vmas_in(mm, start, end):
        if vma.vm_flags & VM_SEALED:
            #: the mapping {vma:range} is sealed
            #: -> a range without a sealed mapping: mseal cannot be undone
            return -EPERM
        if vma.vm_end > end:
            error = __split_vma(vma, end, False)
            if error:
                return error
        vma_start_write(vma)
        vms.vmas.append(vma)
        _count_unmapped(vms, vma)
    return 0


def _count_unmapped(vms: vma_munmap_struct, vma: vm_area_struct) -> None:
    pages = vma_pages(vma)
    vms.nr_pages += pages
    if vma.vm_flags & VM_LOCKED:
        vms.locked_vm += pages
    if vma.vm_flags & VM_ACCOUNT:
        vms.nr_accounted += pages


@linux("mm/vma.c")
def vms_clear_ptes(vms: vma_munmap_struct) -> None:
    """Clear the entries of the collected VMAs, flush, free pages and tables."""
    vms.cleared = True
    mm = vms.mm
    prev, next = neighbours(mm, vms.vmas[0].vm_start, vms.vmas[-1].vm_end)
    floor = prev.vm_end if prev is not None else 0
    ceiling = next.vm_start if next is not None else 0
    tlb = tlb_gather_mmu(mm)
    update_hiwater(mm)
    unmap_vmas(tlb, vms.vmas, vms.vmas[0].vm_start, vms.vmas[-1].vm_end)
    free_pgtables(tlb, vms.vmas, floor, ceiling)
    tlb_finish_mmu(tlb)


def vms_clean_up_area(vms: vma_munmap_struct) -> None:
    """Make room for a new mapping: the old ones are out of the tree and their entries gone."""
    if vms.vmas:
        _detach(vms)
        vms_clear_ptes(vms)


def _detach(vms: vma_munmap_struct) -> None:
    """Remove the VMAs from the tree, so that they can no longer be found."""
    for vma in vms.vmas:
        vma_iter_clear(vms.mm, vma)


@linux("mm/vma.c")
def vms_complete_munmap_vmas(vms: vma_munmap_struct) -> None:
    """Uncharge the VMAs, clear their entries if that is not done yet, and free them."""
    if not vms.vmas:
        return
    mm = vms.mm
    mm.map_count -= len(vms.vmas)
    if vms.locked_vm:
        mm.locked_vm -= vms.locked_vm
    if not vms.cleared:
        vms_clear_ptes(vms)
    for vma in vms.vmas:
        vm_stat_account(mm, vma.vm_flags, -vma_pages(vma))
        remove_vma(vma)
    vm_unacct_memory(vms.nr_accounted)


@linux("mm/mmap.c")
def __vm_munmap(start: int, length: int) -> int:
    """munmap(2): 0 or a negative error."""
    mm = current_mm()
    mmap_write_lock(mm)
    ret = do_vmi_munmap(mm, start, length)
    mmap_write_unlock(mm)
    return ret


@linux("mm/vma.c")
def do_vmi_munmap(mm: mm_struct, start: int, length: int) -> int:
    """Unmap [start, start+length), which may have holes.  0, -EINVAL, -ENOMEM, -EPERM."""
    task_size = task_size_max()
    if start & ~PAGE_MASK & U64:
        #: the address {start:#x} is not a multiple of the page size -> an address that ends in 000
        return -EINVAL
    if start > task_size or length > task_size - start:
        return -EINVAL  #: it would end above user memory ({task_size:#x}) -> a shorter range
    end = start + PAGE_ALIGN(length)
    if end == start:
        return -EINVAL  #: the length is 0 -> a length above 0
    if find_vma_intersection(mm, start, end) is None:
        return 0
    return do_vmi_align_munmap(mm, start, end)


@linux("mm/vma.c")
def do_vmi_align_munmap(mm: mm_struct, start: int, end: int) -> int:
    """Unmap the addresses from ``start`` to ``end``, both page aligned; 0, -ENOMEM, -EPERM."""
    vms = vma_munmap_struct(mm, start, end)
    error = vms_gather_munmap_vmas(vms)
    if error:
        return error
    _detach(vms)
    vms_complete_munmap_vmas(vms)
    return 0
