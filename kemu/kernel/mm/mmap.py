"""mmap (mm/mmap.c, mm/vma.c).

    do_mmap        check the arguments, find an address (unmapped_area.py), compute the flags
    mmap_region    unmap what is there (munmap.py), charge, merge or make a VMA

No pages are allocated: a mapping is a promise.  The order of the checks decides which error is
returned.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import vm_get_page_prot
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.fs.file_table import get_file
from kemu.kernel.fs.files import fget, is_shmem
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    FMODE_READ,
    FMODE_WRITE,
    PAGE_ALIGN,
    PAGE_MASK,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    file,
    mm_struct,
    vm_area_struct,
)
from kemu.kernel.include.system import current_mm, system
from kemu.kernel.mm.filemap import generic_file_vm_ops
from kemu.kernel.mm.gup import __mm_populate
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock
from kemu.kernel.mm.munmap import (
    do_vmi_munmap,
    vma_munmap_struct,
    vms_clean_up_area,
    vms_complete_munmap_vmas,
    vms_gather_munmap_vmas,
)
from kemu.kernel.mm.shmem import shmem_vm_ops, shmem_zero_setup
from kemu.kernel.mm.unmapped_area import __get_unmapped_area
from kemu.kernel.mm.util import (
    OVERCOMMIT_NEVER,
    __vm_enough_memory,
    may_expand_vm,
    vm_stat_account,
    vm_unacct_memory,
)
from kemu.kernel.mm.vma import (
    find_vma_intersection,
    neighbours,
    vm_area_alloc,
    vma_link,
    vma_lookup,
    vma_merge_new_range,
    vma_merge_struct,
    vma_set_page_prot,
)
from kemu.trace.frames import linux

# ---------------------------------------------------------------- mmap


@linux("mm/mmap.c")
def ksys_mmap_pgoff(addr: int, length: int, prot: int, flags: int, fd: int, pgoff: int) -> int:
    """mmap(2): the address, or a negative error.  ``pgoff`` in pages."""
    file = None
    if not flags & MAP_ANONYMOUS:
        file = fget(fd)
        if file is None:
            return -EBADF  #: descriptor {fd} is not open
        if flags & MAP_HUGETLB:
            return -EINVAL  #: {fd} is not a file of huge pages -> leave hugetlb out
    elif flags & MAP_HUGETLB:
        return _mmap_huge_pages(addr, length, flags)
    return vm_mmap_pgoff(file, addr, length, prot, flags, pgoff)


def _mmap_huge_pages(addr: int, length: int, flags: int) -> int:
    """mmap(2) of huge pages on a machine that has not reserved any: -EINVAL, -EEXIST, -ENOMEM.  A
    fixed mapping has already unmapped what was there."""
    mm, huge = current_mm(), 1 << system.pmd_shift
    size = (length + huge - 1) & -huge
    if not length:
        return -EINVAL  #: the length is 0 -> a length above 0
    if not flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) or addr + size > task_size_max():
        return -ENOMEM  #: no huge pages are reserved -> leave hugetlb out
    if addr % huge:
        #: {addr:#x} is not a multiple of the size of a huge page -> an address that is
        return -EINVAL
    if flags & MAP_FIXED_NOREPLACE and find_vma_intersection(mm, addr, addr + size) is not None:
        return -EEXIST  #: something is mapped there already -> another address, or fixed
    mmap_write_lock(mm)
    error = do_vmi_munmap(mm, addr, size)
    mmap_write_unlock(mm)
    return error or -ENOMEM  #: no huge pages are reserved -> leave hugetlb out


@linux("mm/util.c")
def vm_mmap_pgoff(
    file: file | None, addr: int, length: int, prot: int, flags: int, pgoff: int
) -> int:
    """do_mmap of ``length`` bytes from page ``pgoff`` of the file, under the lock; then populate if
    requested."""
    mm = current_mm()
    mmap_write_lock(mm)
    ret, populate = do_mmap(file, addr, length, prot, flags, 0, pgoff)
    mmap_write_unlock(mm)
    if populate:
        __mm_populate(ret, populate, True)
    return ret


def vm_mmap(file: file | None, addr: int, length: int, prot: int, flags: int, offset: int) -> int:
    """Map on behalf of the kernel (exec); ``offset`` in bytes."""
    if offset % PAGE_SIZE or offset + PAGE_ALIGN(length) > U64:
        return -EINVAL  #: the offset {offset:#x} is not a multiple of the page size, or too large
    return vm_mmap_pgoff(file, addr, length, prot, flags, offset >> PAGE_SHIFT)


def calc_vm_prot_bits(prot: int) -> int:
    """VM_READ/WRITE/EXEC from PROT_*."""
    return prot & (PROT_READ | PROT_WRITE | PROT_EXEC)


def calc_vm_flag_bits(flags: int) -> int:
    """VM_ flags from MAP_*."""
    vm_flags = VM_GROWSDOWN if flags & MAP_GROWSDOWN else 0
    if flags & MAP_LOCKED:
        vm_flags |= VM_LOCKED
    if flags & MAP_SYNC:
        vm_flags |= VM_SYNC
    return vm_flags | (VM_NOHUGEPAGE if flags & MAP_STACK else 0)


@linux("mm/mmap.c")
def do_mmap(
    file: file | None, addr: int, length: int, prot: int, flags: int, vm_flags: int, pgoff: int
) -> tuple[int, int]:
    """(address or negative error, bytes to populate).  The lock is held for writing."""
    mm = current_mm()
    if not length:
        return -EINVAL, 0  #: the length is 0 -> a length above 0
    if flags & MAP_FIXED_NOREPLACE:
        flags |= MAP_FIXED
    if not flags & MAP_FIXED:
        addr = round_hint_to_min(addr)
    length = PAGE_ALIGN(length)
    if not length:
        return -ENOMEM, 0  #: the length is larger than the address space -> a shorter range
    if pgoff + (length >> PAGE_SHIFT) > U64:
        return -EOVERFLOW, 0  #: offset and length reach beyond the largest file -> a smaller offset
    if mm.map_count > system.sysctl.max_map_count:
        #: the process has {mm.map_count} mappings, one too many (max_map_count) -> munmap some
        return -ENOMEM, 0
    vm_flags |= calc_vm_prot_bits(prot) | calc_vm_flag_bits(flags) | mm.def_flags
    vm_flags |= VM_MAYREAD | VM_MAYWRITE | VM_MAYEXEC
    addr = __get_unmapped_area(file, addr, length, pgoff, flags, vm_flags)
    if addr < 0:
        return addr, 0
    old = find_vma_intersection(mm, addr, addr + length) if flags & MAP_FIXED_NOREPLACE else None
    if old is not None:
        #: {old:range} is mapped there already
        #: -> another address, or fixed, which takes the place of what is there
        return -EEXIST, 0
    if file is not None:
        vm_flags = _file_flags(file, length, prot, flags, vm_flags, pgoff)
    else:
        vm_flags, pgoff = _anonymous_flags(addr, flags, vm_flags, pgoff)
    if vm_flags < 0:
        return vm_flags, 0
    if flags & MAP_NORESERVE and system.sysctl.overcommit_memory != OVERCOMMIT_NEVER:
        vm_flags |= VM_NORESERVE
    ret = mmap_region(file, addr, length, vm_flags, pgoff)
    wanted = vm_flags & VM_LOCKED or flags & (MAP_POPULATE | MAP_NONBLOCK) == MAP_POPULATE
    return ret, length if ret >= 0 and wanted else 0


def round_hint_to_min(hint: int) -> int:
    """A hint is rounded down to a page, and up to the lowest address that may be mapped."""
    hint &= PAGE_MASK
    return max(hint, PAGE_ALIGN(system.sysctl.mmap_min_addr)) if hint else 0


MAX_LFS_FILESIZE = (1 << 63) - 1


def _file_flags(file: file, length: int, prot: int, flags: int, vm_flags: int, pgoff: int) -> int:
    """The VM_ flags of a file mapping, or a negative error."""
    if length > MAX_LFS_FILESIZE or pgoff << PAGE_SHIFT > MAX_LFS_FILESIZE - length:
        return -EOVERFLOW  #: offset and length reach beyond the largest file -> a smaller offset
    kind = flags & MAP_TYPE
    if kind in (MAP_SHARED, MAP_SHARED_VALIDATE):
        if kind == MAP_SHARED_VALIDATE and flags & ~(LEGACY_MAP_MASK | MAP_SHARED_VALIDATE):
            #: shared_validate refuses flags that this file does not support
            #: -> leave them out, or use shared
            return -EOPNOTSUPP
        if prot & PROT_WRITE and not file.f_mode & FMODE_WRITE:
            return -EACCES  #: the file is not open for writing -> open it rdwr, or map it private
        vm_flags |= VM_SHARED | VM_MAYSHARE
        if not file.f_mode & FMODE_WRITE:
            vm_flags &= ~(VM_MAYWRITE | VM_SHARED)
    elif kind != MAP_PRIVATE:
        return -EINVAL  #: the mapping is neither private nor shared -> private or shared
    if not file.f_mode & FMODE_READ:
        return -EACCES  #: the file is not open for reading -> open it rdonly or rdwr
    if file.f_inode.i_pipe is not None:
        if prot & PROT_EXEC:
            return -EPERM  #: a pipe holds nothing that may be executed -> a file
        return -ENODEV  #: a pipe cannot be mapped -> a file
    if vm_flags & VM_GROWSDOWN:
        return -EINVAL  #: a mapping of a file cannot grow downwards -> leave growsdown out
    return vm_flags


def _anonymous_flags(addr: int, flags: int, vm_flags: int, pgoff: int) -> tuple[int, int]:
    """(VM_ flags or a negative error, page offset) of an anonymous mapping."""
    kind = flags & MAP_TYPE
    if kind == MAP_SHARED:
        if vm_flags & VM_GROWSDOWN:
            return -EINVAL, 0  #: a shared mapping cannot grow downwards -> leave growsdown out
        return vm_flags | VM_SHARED | VM_MAYSHARE, 0
    if kind == MAP_DROPPABLE:
        if vm_flags & (VM_LOCKED | VM_GROWSDOWN) and (flags & (MAP_LOCKED | MAP_GROWSDOWN)):
            #: droppable memory cannot be locked or grow downwards -> leave locked and growsdown out
            return -EINVAL, 0
        return (
            vm_flags | VM_DROPPABLE | VM_NORESERVE | VM_WIPEONFORK | VM_DONTDUMP,
            addr >> PAGE_SHIFT,
        )
    if kind == MAP_PRIVATE:
        return vm_flags, addr >> PAGE_SHIFT
    return -EINVAL, 0  #: the mapping is neither private nor shared -> private or shared


def accountable_mapping(vm_flags: int) -> bool:
    """True if the mapping counts as committed memory: private, writable, and without
    VM_NORESERVE."""
    return vm_flags & (VM_NORESERVE | VM_SHARED | VM_WRITE) == VM_WRITE


@linux("mm/vma.c")
def mmap_region(file: file | None, addr: int, length: int, vm_flags: int, pgoff: int) -> int:
    """Make [addr, addr+length) this mapping, replacing what is there; the address, or a negative
    error."""
    mm = current_mm()
    vms = vma_munmap_struct(mm, addr, addr + length)
    error = vms_gather_munmap_vmas(vms)
    if error:
        return error
    pages = length >> PAGE_SHIFT
    if not may_expand_vm(mm, vm_flags, pages - vms.nr_pages):
        return -ENOMEM  #: {may_expand_vm}
    charged = 0
    if accountable_mapping(vm_flags):
        charged = pages - vms.nr_accounted
        if charged and __vm_enough_memory(mm, charged):
            return -ENOMEM  #: {__vm_enough_memory}
        charged = pages
        vms.nr_accounted = 0
        vm_flags |= VM_ACCOUNT
    vms_clean_up_area(vms)
    vma = call_mmap_prepare(file, vm_flags) or __mmap_new_vma(
        mm, file, addr, addr + length, vm_flags, pgoff
    )
    vms_complete_munmap_vmas(vms)
    if isinstance(vma, int):
        vm_unacct_memory(charged)
        return vma
    vm_stat_account(mm, vm_flags, pages)
    if vm_flags & VM_LOCKED:
        _count_locked(mm, vma, pages)
    vma_set_page_prot(vma)
    return addr


@linux("mm/vma.c")
def call_mmap_prepare(file: file | None, vm_flags: int) -> int:
    """The answer of the file's ``mmap_prepare``, after the old mappings are gone: 0, or -EOPNOTSUPP
    for MAP_SYNC on a disk that is not persistent memory (ext4_file_mmap_prepare)."""
    disk = file is not None and file.f_inode.kind == "disk"
    #: a file on disk has no synchronous mappings -> leave sync out
    return -EOPNOTSUPP if disk and vm_flags & VM_SYNC else 0


def _count_locked(mm: mm_struct, vma: vm_area_struct, pages: int) -> None:
    """Count the locked pages; a VMA that cannot be locked loses the flag."""
    if vma.vm_flags & (VM_SPECIAL | VM_DROPPABLE):
        vma.vm_flags &= ~VM_LOCKED_MASK
    else:
        mm.locked_vm += pages


def __mmap_new_vma(
    mm: mm_struct, file: file | None, start: int, end: int, vm_flags: int, pgoff: int
) -> vm_area_struct | int:
    """Expand a neighbour over the range, or make a VMA for it; the VMA, or a negative error."""
    prev, next = neighbours(mm, start, end)
    if not (file is None and vm_flags & VM_SHARED):
        merged = vma_merge_new_range(
            vma_merge_struct(mm, prev, next, start, end, vm_flags, pgoff, file)
        )
        if merged is not None:
            return merged
    vma = vm_area_alloc(mm, start, end)
    if vma is None:
        return -ENOMEM  #: {vm_area_alloc}
    vma.vm_flags = vm_flags
    vma.vm_pgoff = pgoff
    vma.vm_page_prot = vm_get_page_prot(vm_flags)
    if file is not None:
        get_file(file)
        vma.vm_file = file
        vma.vm_ops = shmem_vm_ops if is_shmem(file.f_inode) else generic_file_vm_ops
    elif vm_flags & VM_SHARED:
        error = shmem_zero_setup(vma)
        if error:
            return error
    vma_link(mm, vma)
    return vma


def do_remap_file_pages(start: int, size: int, prot: int, pgoff: int, flags: int) -> int:
    """remap_file_pages(2), emulated by an ordinary mapping of other pages of the same file; 0 or a
    negative error."""
    mm = current_mm()
    start &= PAGE_MASK
    size &= PAGE_MASK
    if prot or start + size <= start or start + size > U64 or pgoff + (size >> PAGE_SHIFT) > U64:
        return -EINVAL  #: prot is not 0, or the range is empty or too large -> prot 0
    mmap_write_lock(mm)
    vma = vma_lookup(mm, start)
    #: the range is not one shared mapping of a file -> a shared mapping of a file
    populate, ret = 0, -EINVAL
    if (
        vma is not None
        and vma.vm_flags & VM_SHARED
        and vma.vm_file is not None
        and _one_file(mm, vma, start + size)
    ):
        rights = vma.vm_flags & (VM_READ | VM_WRITE | VM_EXEC)
        kind = flags & MAP_NONBLOCK | MAP_SHARED | MAP_FIXED | MAP_POPULATE
        kind |= MAP_LOCKED if vma.vm_flags & VM_LOCKED else 0
        ret, populate = do_mmap(vma.vm_file, start, size, rights, kind, 0, pgoff)
    mmap_write_unlock(mm)
    if populate:
        __mm_populate(ret, populate, True)
    return min(ret, 0)


def _one_file(mm: mm_struct, vma: vm_area_struct, end: int) -> bool:
    """True if everything up to ``end`` is mapped from the file of ``vma`` with the same flags."""
    at = vma.vm_end
    while at < end:
        next = vma_lookup(mm, at)
        if next is None or next.vm_file is not vma.vm_file or next.vm_flags != vma.vm_flags:
            return False
        at = next.vm_end
    return True
