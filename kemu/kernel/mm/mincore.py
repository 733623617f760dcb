"""Small calls on ranges: mincore, msync, mseal (mm/mincore.c, mm/msync.c, mm/mseal.c)."""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import pte_present
from kemu.kernel.arch.uaccess import access_ok
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    mm_struct,
    vm_area_struct,
)
from kemu.kernel.include.swapops import only_marker
from kemu.kernel.include.system import current_mm
from kemu.kernel.mm.filemap import filemap_get_folio
from kemu.kernel.mm.gup import mapped_entry
from kemu.kernel.mm.mmap_lock import (
    mmap_read_lock,
    mmap_read_unlock,
    mmap_write_lock,
    mmap_write_unlock,
)
from kemu.kernel.mm.vma import find_vma, vma_lookup, vma_modify_flags, vmas_in
from kemu.kernel.mm.writeback import filemap_write_and_wait_range
from kemu.trace.frames import linux


@linux("mm/mincore.c")
def do_mincore(start: int, length: int) -> tuple[int, bytes]:
    """(0 or an error, one byte per page): bit 0 is set if the page is resident, by an entry or in
    its file's cache."""
    mm = current_mm()
    if start % PAGE_SIZE:
        #: the address {start:#x} is not a multiple of the page size -> an address that ends in 000
        #:
        return -EINVAL, b""
    if not access_ok(start, length):
        return -ENOMEM, b""  #: the range ends above user memory -> a range below task_size
    end = start + PAGE_ALIGN(length)
    vec = bytearray()
    mmap_read_lock(mm)
    error = 0
    while start < end:
        vma = vma_lookup(mm, start)
        if vma is None:
            #: nothing is mapped at {start:#x} -> a range that is mapped without a gap: see maps
            error = -ENOMEM
            break
        last = min(end, vma.vm_end)
        vec += bytes(_resident(vma, at) for at in range(start, last, PAGE_SIZE))
        start = last
    mmap_read_unlock(mm)
    return error, bytes(vec)


def _resident(vma: vm_area_struct, address: int) -> bool:
    """True if the page at ``address`` is in memory (``mincore_pte_range``)."""
    pte = mapped_entry(vma.vm_mm, address)
    if pte_present(pte):
        return True
    only_marker(pte)
    if vma.vm_file is None:
        return False
    page = filemap_get_folio(
        vma.vm_file.f_mapping, vma.vm_pgoff + ((address - vma.vm_start) >> PAGE_SHIFT)
    )
    return page is not None and bool(page.flags & PG_uptodate)


def do_msync(start: int, length: int, flags: int) -> int:
    """msync(2) of ``length`` bytes: 0, -EINVAL, -ENOMEM (hole), -EBUSY."""
    mm = current_mm()
    if flags & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC):
        return -EINVAL  #: unknown flags {flags:#x} -> sync, async, invalidate
    if start % PAGE_SIZE:
        #: the address {start:#x} is not a multiple of the page size -> an address that ends in 000
        return -EINVAL
    if flags & MS_ASYNC and flags & MS_SYNC:
        return -EINVAL  #: sync and async exclude each other -> only one of the two
    length = PAGE_ALIGN(length)
    end = (start + length) & U64
    if end < start:
        return -ENOMEM  #: the range ends beyond the address space
    unmapped = 0
    at = start
    while at < end:
        vma = find_vma(mm, at)
        if vma is None:
            #: nothing is mapped at {at:#x} -> a range that is mapped without a gap: see maps
            return -ENOMEM
        if at < vma.vm_start:
            if flags == MS_ASYNC:
                #: nothing is mapped at {at:#x} -> a range that is mapped without a gap: see maps
                return -ENOMEM
            #: nothing is mapped at {at:#x} -> a range that is mapped without a gap: see maps
            at, unmapped = vma.vm_start, -ENOMEM
            if at >= end:
                break
        if flags & MS_INVALIDATE and vma.vm_flags & VM_LOCKED:
            #: the mapping {vma:range} is locked in memory
            #: -> munlock it first, or leave invalidate out
            return -EBUSY
        last = min(end, vma.vm_end)
        if flags & MS_SYNC and vma.vm_file is not None and vma.vm_flags & VM_SHARED:
            first = vma.vm_pgoff + ((at - vma.vm_start) >> PAGE_SHIFT)
            filemap_write_and_wait_range(
                vma.vm_file.f_inode, first, first + ((last - at) >> PAGE_SHIFT) - 1
            )
        at = last
    return unmapped


@linux("mm/mseal.c")
def do_mseal(start: int, length: int, flags: int) -> int:
    """mseal(2) of ``length`` bytes: 0, -EINVAL, -ENOMEM (hole: then nothing is sealed)."""
    mm = current_mm()
    if flags:
        return -EINVAL  #: mseal does not take flags -> flags 0
    if start % PAGE_SIZE:
        #: the address {start:#x} is not a multiple of the page size -> an address that ends in 000
        return -EINVAL
    size = PAGE_ALIGN(length)
    end = start + size
    if (length and not size) or end > U64:
        return -EINVAL  #: the range ends beyond the address space
    if end == start:
        return 0
    mmap_write_lock(mm)
    error = 0
    if _has_hole(mm, start, end):
        error = -ENOMEM  #: {_has_hole}
    for vma in [] if error else vmas_in(mm, start, end):
        if vma.vm_flags & VM_SEALED:
            continue
        changed = vma_modify_flags(
            vma, max(vma.vm_start, start), min(vma.vm_end, end), vma.vm_flags | VM_SEALED
        )
        if isinstance(changed, int):
            error = changed
            break
        changed.vm_flags |= VM_SEALED
    mmap_write_unlock(mm)
    return error


def _has_hole(mm: mm_struct, start: int, end: int) -> bool:
    """True if part of the range is not mapped."""
    at = start
    for vma in vmas_in(mm, start, end):
        if vma.vm_start > at:
            break
        at = vma.vm_end
    #: nothing is mapped at {at:#x} -> a range that is mapped without a gap: see maps
    return at < end
