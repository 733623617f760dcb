"""mlock and its family: memory that stays resident (mm/mlock.c).

apply_vma_lock_flags   VMA by VMA, up to the first hole; the VMAs before it stay locked
mlock_fixup            merge or split, set the flag, count the pages of the VMA (resident or not)
__mm_populate          fault everything in, by write where that saves a copy later
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import pte_offset_map_lock, pte_present, pte_unmap_unlock
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_MASK,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    vm_area_struct,
)
from kemu.kernel.include.system import current_mm
from kemu.kernel.mm.gup import __mm_populate
from kemu.kernel.mm.lru import lru_add_drain
from kemu.kernel.mm.mlock_folio import mlock_folio, munlock_folio
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock, vma_start_write
from kemu.kernel.mm.vma import VM_IGNORE_MERGE, find_vma, vma_modify_flags
from kemu.kernel.mm.zap import pmds_in, ptes_in, vm_normal_folio
from kemu.trace.frames import linux


def vma_supports_mlock(vma: vm_area_struct) -> bool:
    """False for memory that cannot be locked; the flag is then silently ignored."""
    return not vma.vm_flags & (VM_SPECIAL | VM_DROPPABLE | VM_HUGETLB)


@linux("mm/mlock.c")
def mlock_pte_range(vma: vm_area_struct, pmd: int, addr: int, end: int) -> None:
    """Lock or unlock the pages that one table maps."""
    ptep = pte_offset_map_lock(vma.vm_mm, pmd, addr)
    for _, address, pte in ptes_in(ptep, addr, end):
        folio = vm_normal_folio(vma, address, pte) if pte_present(pte) else None
        if folio is None:
            continue
        if vma.vm_flags & VM_LOCKED:
            mlock_folio(folio)
        else:
            munlock_folio(folio)
    pte_unmap_unlock(ptep)


@linux("mm/mlock.c")
def mlock_vma_pages_range(vma: vm_area_struct, start: int, end: int, newflags: int) -> None:
    """Set the flags, and lock or unlock the pages that are present; the batches are drained before
    and after."""
    vma.vm_flags = newflags
    lru_add_drain()
    for pmd, first, last in pmds_in(vma.vm_mm, start, end):
        mlock_pte_range(vma, pmd, first, last)
    lru_add_drain()


@linux("mm/mlock.c")
def mlock_fixup(vma: vm_area_struct, start: int, end: int, newflags: int) -> int:
    """Give [start, end) of ``vma`` other lock flags; 0 or -ENOMEM."""
    oldflags = vma.vm_flags
    if newflags == oldflags or not vma_supports_mlock(vma):
        return 0
    changed = vma_modify_flags(vma, start, end, newflags)
    if isinstance(changed, int):
        return changed
    nr_pages = (end - start) >> PAGE_SHIFT
    if not newflags & VM_LOCKED:
        nr_pages = -nr_pages
    elif oldflags & VM_LOCKED:
        nr_pages = 0
    changed.vm_mm.locked_vm += nr_pages
    newflags |= changed.vm_flags & VM_IGNORE_MERGE
    vma_start_write(changed)
    if newflags & oldflags & VM_LOCKED:
        changed.vm_flags = newflags
    else:
        mlock_vma_pages_range(changed, start, end, newflags)
    return 0


@linux("mm/mlock.c")
def apply_vma_lock_flags(start: int, length: int, flags: int) -> int:
    """Set the lock flags of the VMAs of ``length`` bytes; 0, -EINVAL, -ENOMEM (hole)."""
    mm = current_mm()
    end = start + length
    if end > U64:
        return -EINVAL  #: the range ends beyond the address space
    at = start
    while at < end:
        vma = find_vma(mm, at)
        if vma is None or vma.vm_start > at:
            #: nothing is mapped at {at:#x} -> a range that is mapped without a gap: see maps
            return -ENOMEM
        last = min(vma.vm_end, end)
        error = mlock_fixup(vma, at, last, vma.vm_flags & ~VM_LOCKED_MASK | flags)
        if error:
            return error
        at = last
    return 0


@linux("mm/mlock.c")
def do_mlock(start: int, length: int, flags: int) -> int:
    """mlock(2), mlock2(2): 0, -ENOMEM (hole, or a page that could not be made resident), -EAGAIN,
    -EINVAL."""
    mm = current_mm()
    length = PAGE_ALIGN(length + start % PAGE_SIZE)
    start &= PAGE_MASK
    mmap_write_lock(mm)
    error = apply_vma_lock_flags(start, length, flags)
    mmap_write_unlock(mm)
    if error:
        return error
    error = __mm_populate(start, length, False)
    #: {__mm_populate} -> map what can be touched, and leave memory for it
    return {-EFAULT: -ENOMEM, -ENOMEM: -EAGAIN}.get(error, error)


def do_munlock(start: int, length: int) -> int:
    """munlock(2) of ``length`` bytes: 0, -ENOMEM (hole), -EINVAL."""
    mm = current_mm()
    length = PAGE_ALIGN(length + start % PAGE_SIZE)
    mmap_write_lock(mm)
    error = apply_vma_lock_flags(start & PAGE_MASK, length, 0)
    mmap_write_unlock(mm)
    return error


@linux("mm/mlock.c")
def apply_mlockall_flags(flags: int) -> None:
    """Set the lock flags of new mappings (FUTURE) and of existing ones (CURRENT); 0 clears both."""
    mm = current_mm()
    onfault = VM_LOCKONFAULT if flags & MCL_ONFAULT else 0
    mm.def_flags &= ~VM_LOCKED_MASK
    if flags & MCL_FUTURE:
        mm.def_flags |= VM_LOCKED | onfault
        if not flags & MCL_CURRENT:
            return
    to_add = VM_LOCKED | onfault if flags & MCL_CURRENT else 0
    for vma in mm.mm_mt:
        if vma.vm_refcnt:
            mlock_fixup(vma, vma.vm_start, vma.vm_end, vma.vm_flags & ~VM_LOCKED_MASK | to_add)


def do_mlockall(flags: int) -> int:
    """mlockall(2): 0, -EINVAL."""
    if not flags or flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) or flags == MCL_ONFAULT:
        #: the flags include neither current nor future
        #: -> current or future; onfault in addition
        return -EINVAL
    mm = current_mm()
    mmap_write_lock(mm)
    apply_mlockall_flags(flags)
    mmap_write_unlock(mm)
    if flags & MCL_CURRENT:
        __mm_populate(0, task_size_max(), True)
    return 0


def do_munlockall() -> int:
    """munlockall(2): 0."""
    mm = current_mm()
    mmap_write_lock(mm)
    apply_mlockall_flags(0)
    mmap_write_unlock(mm)
    return 0
