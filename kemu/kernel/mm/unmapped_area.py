"""Finding an address for a new mapping (mm/mmap.c).

    task_size ... stack | gap | mmap_base -> newest mapping ... first free gap ... | heap | program
                                             searched downwards ->

A hint is used if its range is free; if not, that is not an error.  Otherwise the highest gap below
``mmap_base`` is used, so mappings grow downwards, each right below the last.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import default_map_window, task_size_max
from kemu.kernel.fs.files import is_shmem
from kemu.kernel.include.mm_types import PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, U64, file, mm_struct
from kemu.kernel.include.system import current_mm, system
from kemu.kernel.mm.vma import find_vma, vm_start_gap
from kemu.trace.frames import linux


@linux("mm/mmap.c")
def __get_unmapped_area(
    file: file | None, addr: int, length: int, pgoff: int, flags: int, vm_flags: int
) -> int:
    """Where the mapping goes, or a negative error."""
    task_size = task_size_max()
    if length > task_size:
        return -ENOMEM  #: it is longer than all of user memory ({task_size:#x}) -> a shorter range
    huge = 1 << system.pmd_shift
    if file is None:
        aligned = not addr and not flags & (MAP_FIXED | MAP_SHARED) and length % huge == 0
    else:
        aligned = not is_shmem(file.f_inode)
    if aligned:
        addr = thp_get_unmapped_area(
            addr, length, pgoff << PAGE_SHIFT if file is not None else 0, flags, huge
        )
    else:
        addr = arch_get_unmapped_area_topdown(addr, length, flags)
    if addr < 0:
        return addr
    if addr > task_size - length:
        #: it would end above user memory ({task_size:#x})
        #: -> a lower address: all of it lies below task_size
        return -ENOMEM
    #: the address {addr:#x} is not a multiple of the page size -> an address that ends in 000
    return -EINVAL if addr & ~PAGE_MASK & U64 else addr


@linux("mm/huge_memory.c")
def thp_get_unmapped_area(addr: int, length: int, off: int, flags: int, size: int) -> int:
    """An address at which the ``size``-aligned parts of the mapping (at offset ``off`` in the file,
    in bytes) could be huge pages; any address if it has no such part, or there is no room."""
    padded = __thp_get_unmapped_area(addr, length, off, flags, size)
    return padded if padded > 0 else arch_get_unmapped_area_topdown(addr, length, flags)


@linux("mm/huge_memory.c")
def __thp_get_unmapped_area(addr: int, length: int, off: int, flags: int, size: int) -> int:
    """The address that fits the offset, in a gap with room for ``size`` more bytes; 0 or negative
    if there is no such gap."""
    if off + length - (off + size - 1 & -size) < size:
        return 0
    ret = arch_get_unmapped_area_topdown(addr, length + size, flags)
    if ret < 0 or ret == addr:
        return ret
    return ret + ((off - ret) % size or size)


@linux("mm/mmap.c")
def arch_get_unmapped_area_topdown(addr: int, length: int, flags: int) -> int:
    """Room for ``length`` bytes: the hint if free, else the highest gap below ``mmap_base``, else
    the lowest above the base."""
    mm = current_mm()
    task_size = task_size_max()
    if length > task_size:
        return -ENOMEM  #: it is longer than all of user memory ({task_size:#x}) -> a shorter range
    if flags & MAP_FIXED:
        return addr
    if addr and not flags & MAP_32BIT:
        addr &= PAGE_MASK
        if mmap_address_hint_valid(addr, length):
            vma = find_vma(mm, addr)
            if vma is None or addr + length <= vm_start_gap(vma):
                return addr
    if not flags & MAP_32BIT:
        low = 1 << 32 if flags & MAP_ABOVE4G else PAGE_SIZE
        window = default_map_window()
        high = mm.mmap_base + (task_size - window if addr > window else 0)
        found = unmapped_area_topdown(mm, low, high, length)
        if found >= 0:
            return found
        return unmapped_area(mm, mm.mmap_legacy_base, task_size, length)
    return unmapped_area(mm, 0x40000000, 0x80000000, length)


def mmap_address_hint_valid(addr: int, length: int) -> bool:
    """True if the range fits, and does not cross the 47-bit boundary of a larger address space."""
    if task_size_max() - length < addr:
        return False
    window = default_map_window()
    return (addr > window) == (addr + length > window)


def unmapped_area_topdown(mm: mm_struct, low: int, high: int, length: int) -> int:
    """The end of the highest gap of ``length`` bytes in [low, high), minus ``length``; -ENOMEM.

    Where a gap is too close to a stack above it, the search goes on below the stack's guard gap,
    even if other mappings are there."""
    low = max(low, system.sysctl.mmap_min_addr)
    vmas = mm.mm_mt.vmas
    i = mm.mm_mt.index(high)
    while True:
        end = min(high, vmas[i].vm_start) if i < len(vmas) else high
        start = max(low, vmas[i - 1].vm_end) if i else low
        if end - start >= length:
            if i == len(vmas) or vm_start_gap(vmas[i]) >= end:
                return end - length
            high = vm_start_gap(vmas[i])
            i = mm.mm_mt.index(high)
            continue
        if not i or vmas[i - 1].vm_end <= low:
            #: no gap between the mappings has {length:#x} bytes
            #: -> a shorter range, or a munmap of something else
            return -ENOMEM
        i -= 1


def unmapped_area(mm: mm_struct, low: int, high: int, length: int) -> int:
    """The start of the lowest gap of ``length`` bytes in [low, high); -ENOMEM."""
    start = low
    for vma in mm.mm_mt:
        if vma.vm_end <= start:
            continue
        if min(high, vm_start_gap(vma)) - start >= length:
            return start
        start = vma.vm_end
    #: no gap between the mappings has {length:#x} bytes
    #: -> a shorter range, or a munmap of something else
    return start if high - start >= length else -ENOMEM
