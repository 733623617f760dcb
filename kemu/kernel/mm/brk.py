"""brk: the heap's end (mm/mmap.c).

The heap is ordinary private anonymous memory that begins at ``start_brk``; brk moves its end, in
bytes, and maps or unmaps whole pages.  The call returns the break, the old one if it could not be
moved: never an error.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import vm_get_page_prot
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.include.flags import *
from kemu.kernel.include.linkage import asmlinkage
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    mm_struct,
    vm_area_struct,
)
from kemu.kernel.include.system import current_mm, system
from kemu.kernel.mm.gup import __mm_populate
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock
from kemu.kernel.mm.munmap import do_vmi_align_munmap, do_vmi_munmap
from kemu.kernel.mm.util import __vm_enough_memory, may_expand_vm, rlimit, vm_unacct_memory
from kemu.kernel.mm.vma import (
    find_vma_intersection,
    vm_area_alloc,
    vm_start_gap,
    vma_link,
    vma_merge_new_range,
    vma_merge_struct,
)
from kemu.trace.frames import linux


@asmlinkage
@linux("mm/mmap.c")
def sys_brk(brk: int) -> int:
    """brk(2): the break in force afterwards."""
    mm = current_mm()
    mmap_write_lock(mm)
    populate = _move_break(mm, brk)
    mmap_write_unlock(mm)
    if populate:
        __mm_populate(*populate, True)
    return mm.brk


def _move_break(mm: mm_struct, brk: int) -> tuple[int, int] | None:
    """Move the break if that is allowed; (start, length) to populate if the heap is locked."""
    data = mm.end_data - mm.start_data
    limit = rlimit(RLIMIT_DATA)
    if brk < mm.start_brk or (limit != RLIM_INFINITY and brk - mm.start_brk + data > limit):
        return None
    newbrk, oldbrk = PAGE_ALIGN(brk), PAGE_ALIGN(mm.brk)
    if newbrk == oldbrk:
        mm.brk = brk
    elif brk <= mm.brk:
        _shrink(mm, brk, newbrk, oldbrk)
    elif _room_above(mm, oldbrk, newbrk):
        brkvma = mm.mm_mt.before(
            oldbrk
        )  # vma_prev_limit: the bss before the heap is not part of it
        if brkvma is not None and brkvma.vm_end <= mm.start_brk:
            brkvma = None
        if do_brk_flags(brkvma, oldbrk, newbrk - oldbrk, 0):
            return None
        mm.brk = brk
        if mm.def_flags & VM_LOCKED:
            return oldbrk, newbrk - oldbrk
    return None


def _shrink(mm: mm_struct, brk: int, newbrk: int, oldbrk: int) -> None:
    vma = find_vma_intersection(mm, newbrk, oldbrk)
    if vma is not None and not do_vmi_align_munmap(mm, newbrk, oldbrk):
        mm.brk = brk


def _room_above(mm: mm_struct, oldbrk: int, newbrk: int) -> bool:
    """True if one free page remains between the new break and the next mapping (a whole guard gap
    if that is a stack)."""
    if not oldbrk < newbrk <= task_size_max():
        return False
    next = find_vma_intersection(mm, oldbrk, U64)
    return next is None or newbrk + PAGE_SIZE <= vm_start_gap(next)


@linux("mm/mmap.c")
def do_brk_flags(prev: vm_area_struct | None, addr: int, length: int, flags: int) -> int:
    """Map [addr, addr+length) as private anonymous memory, by extending ``prev`` if that ends there
    and fits; 0 or -ENOMEM."""
    mm = current_mm()
    flags |= VM_DATA_DEFAULT_FLAGS | VM_ACCOUNT | mm.def_flags
    pages = length >> PAGE_SHIFT
    if not may_expand_vm(mm, flags, pages):
        return -ENOMEM  #: {may_expand_vm}
    if mm.map_count > system.sysctl.max_map_count:
        #: the process has {mm.map_count} mappings, one too many (max_map_count) -> munmap some
        return -ENOMEM
    if __vm_enough_memory(mm, pages):
        return -ENOMEM  #: {__vm_enough_memory}
    vmg = vma_merge_struct(
        mm, prev, None, addr, addr + length, flags, addr >> PAGE_SHIFT, just_expand=True
    )
    if prev is None or prev.vm_end != addr or vma_merge_new_range(vmg) is None:
        vma = vm_area_alloc(mm, addr, addr + length)
        if vma is None:
            vm_unacct_memory(pages)
            return -ENOMEM  #: {vm_area_alloc}
        vma.vm_flags = flags
        vma.vm_pgoff = addr >> PAGE_SHIFT
        vma.vm_page_prot = vm_get_page_prot(flags)
        vma_link(mm, vma)
    mm.total_vm += pages
    mm.data_vm += pages
    if flags & VM_LOCKED:
        mm.locked_vm += pages
    return 0


@linux("mm/mmap.c")
def vm_brk_flags(addr: int, length: int, flags: int) -> int:
    """Map ``length`` bytes of anonymous memory at a fixed address for the kernel (the bss of a
    program); 0, -ENOMEM, -EINVAL."""
    mm = current_mm()
    size = PAGE_ALIGN(length)
    if size < length:
        return -ENOMEM  #: the length {length:#x} is larger than the address space
    if not size:
        return 0
    if flags & ~VM_EXEC:
        return -EINVAL  #: only r, w and x are valid permissions
    if addr > task_size_max() - size:
        return -ENOMEM  #: it would end above user memory: {size:#x} bytes from {addr:#x}
    mmap_write_lock(mm)
    ret = do_vmi_munmap(mm, addr, size) or do_brk_flags(mm.mm_mt.before(addr), addr, size, flags)
    mmap_write_unlock(mm)
    return ret
