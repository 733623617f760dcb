"""mremap: resize or move a mapping (mm/mremap.c).

    no new address   smaller: unmap the tail; larger: in place if there is room, else move
    a new address    unmap what is there, then move; may span several VMAs

Moving copies no pages: the entries are removed and set again elsewhere, so sharing and exclusivity
are unchanged, and later accesses do not fault.
"""

from __future__ import annotations

import attrs

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.fs.file_table import get_file
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    mm_struct,
    vm_area_struct,
    vma_is_anonymous,
    vma_pages,
)
from kemu.kernel.include.system import current_mm, system
from kemu.kernel.mm.gup import __mm_populate
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock
from kemu.kernel.mm.move_tables import move_page_tables
from kemu.kernel.mm.munmap import do_vmi_munmap
from kemu.kernel.mm.rmap import anon_vma_clone, unlink_anon_vmas
from kemu.kernel.mm.unmapped_area import __get_unmapped_area
from kemu.kernel.mm.util import (
    __vm_enough_memory,
    may_expand_vm,
    update_hiwater,
    vm_stat_account,
    vm_unacct_memory,
)
from kemu.kernel.mm.vma import (
    find_vma_intersection,
    neighbours,
    vm_area_dup,
    vma_link,
    vma_lookup,
    vma_merge_new_range,
    vma_merge_struct,
    vmas_in,
)
from kemu.trace.frames import linux


@attrs.define
class vma_remap_struct:
    """An mremap in progress.  Lengths in bytes, whole pages; ``vma``: the mapping at ``addr``;
    ``locked``: the added part is populated at the end."""

    mm: mm_struct
    addr: int
    old_len: int
    new_len: int
    flags: int
    new_addr: int
    vma: vm_area_struct | None = None
    charged: int = 0
    locked: bool = False

    @property
    def delta(self) -> int:
        """The number of bytes by which the mapping grows or shrinks."""
        return abs(self.new_len - self.old_len)


def vrm_implies_new_addr(vrm: vma_remap_struct) -> bool:
    """True if the flags require the mapping to move."""
    return bool(vrm.flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))


def source(vrm: vma_remap_struct) -> vm_area_struct:
    """The VMA that is remapped."""
    assert vrm.vma is not None
    return vrm.vma


# ---------------------------------------------------------------- the checks


@linux("mm/mremap.c")
def check_mremap_params(vrm: vma_remap_struct) -> int:
    """The checks that do not depend on what is mapped: 0, -EINVAL, -ENOMEM (too many mappings)."""
    task_size = task_size_max()
    if vrm.flags & ~(MREMAP_FIXED | MREMAP_MAYMOVE | MREMAP_DONTUNMAP):
        return -EINVAL  #: unknown flags {vrm.flags:#x} -> maymove, fixed, dontunmap
    if vrm.addr % PAGE_SIZE:
        #: the address {vrm.addr:#x} is not a multiple of the page size
        #: -> an address that ends in 000
        return -EINVAL
    if not vrm.new_len:
        return -EINVAL  #: the new length is 0 -> a length above 0
    if vrm.new_len > task_size:
        return -EINVAL  #: it is longer than all of user memory ({task_size:#x}) -> a shorter range
    if not vrm_implies_new_addr(vrm):
        return 0
    if vrm.new_addr > task_size - vrm.new_len:
        return -EINVAL  #: it would end above user memory ({task_size:#x}) -> a lower new address
    if vrm.new_addr % PAGE_SIZE:
        #: the new address {vrm.new_addr:#x} is not a multiple of the page size
        #: -> an address that ends in 000
        return -EINVAL
    if not vrm.flags & MREMAP_MAYMOVE:
        return -EINVAL  #: fixed and dontunmap go only with maymove -> maymove too
    if vrm.flags & MREMAP_DONTUNMAP and vrm.old_len != vrm.new_len:
        return -EINVAL  #: dontunmap cannot change the size -> the old size
    if (vrm.addr + vrm.old_len) & U64 > vrm.new_addr and vrm.new_addr + vrm.new_len > vrm.addr:
        return -EINVAL  #: the old range and the new one overlap -> a new range outside the old one
    #: the process has {vrm.mm.map_count} mappings, too many to split one (max_map_count)
    #: -> munmap some
    return -ENOMEM if vrm.mm.map_count + 2 >= system.sysctl.max_map_count - 3 else 0


@linux("mm/mremap.c")
def check_prep_vma(vrm: vma_remap_struct) -> int:
    """The checks of the VMA at the address: 0, -EFAULT, -EPERM, -EINVAL, -ENOMEM."""
    vma = vrm.vma
    if vma is None:
        #: nothing is mapped at {vrm.addr:#x} -> an old address inside a mapping: see maps
        return -EFAULT
    if vma.vm_flags & VM_SEALED:
        #: the mapping {vma:range} is sealed -> a mapping that is not sealed: mseal cannot be undone
        return -EPERM
    if not vrm_implies_new_addr(vrm) and vrm.new_len <= vrm.old_len:
        return 0
    if not vrm.old_len and not vma.vm_flags & (VM_SHARED | VM_MAYSHARE):
        #: an old size of 0 duplicates shared memory only, and {vma:range} is private
        #: -> an old size above 0
        return -EINVAL
    if vrm.flags & MREMAP_DONTUNMAP and vma.vm_flags & (VM_DONTEXPAND | VM_PFNMAP):
        #: {vma:range} is special: its old range cannot stay mapped -> leave dontunmap out
        return -EINVAL
    if min(vrm.old_len, vrm.new_len) > vma.vm_end - vrm.addr:
        #: the mapping ends at {vma.vm_end:#x}, within the old size
        #: -> an old size that ends inside the mapping
        return -EFAULT
    if vrm.new_len <= vrm.old_len:
        return 0
    pgoff = ((vrm.addr - vma.vm_start) >> PAGE_SHIFT) + vma.vm_pgoff
    if pgoff + (vrm.new_len >> PAGE_SHIFT) > U64:
        return -EINVAL  #: the new size reaches beyond the largest file offset -> a smaller size
    if vma.vm_flags & (VM_DONTEXPAND | VM_PFNMAP):
        return -EFAULT  #: {vma:range} is special: it cannot grow -> a new size that is not larger
    vrm.locked = bool(vma.vm_flags & VM_LOCKED)
    #: {may_expand_vm}
    return 0 if may_expand_vm(vrm.mm, vma.vm_flags, vrm.delta >> PAGE_SHIFT) else -ENOMEM


# ---------------------------------------------------------------- accounting


def vrm_charge(vrm: vma_remap_struct) -> bool:
    """Charge the memory by which the mapping grows; False if the limit does not allow it."""
    if not source(vrm).vm_flags & VM_ACCOUNT:
        return True
    size = vrm.new_len if vrm.flags & MREMAP_DONTUNMAP else vrm.new_len - vrm.old_len
    vrm.charged = max(size, 0) >> PAGE_SHIFT
    return not vrm.charged or not __vm_enough_memory(vrm.mm, vrm.charged)


def vrm_stat_account(vrm: vma_remap_struct, size: int) -> None:
    """Count ``size`` more bytes, in the counters of the source's kind of memory."""
    vma = source(vrm)
    vm_stat_account(vrm.mm, vma.vm_flags, size >> PAGE_SHIFT)
    if vma.vm_flags & VM_LOCKED:
        vrm.mm.locked_vm += size >> PAGE_SHIFT


# ---------------------------------------------------------------- moving


@linux("mm/mremap.c")
def vrm_set_new_addr(vrm: vma_remap_struct) -> int:
    """Find the new place: the requested one, or a free one; 0 or an error."""
    vma = source(vrm)
    flags = MAP_FIXED if vrm.flags & MREMAP_FIXED else 0
    flags |= MAP_SHARED if vma.vm_flags & VM_MAYSHARE else 0
    hint = vrm.new_addr if vrm_implies_new_addr(vrm) else 0
    pgoff = vma.vm_pgoff + ((vrm.addr - vma.vm_start) >> PAGE_SHIFT)
    found = __get_unmapped_area(vma.vm_file, hint, vrm.new_len, pgoff, flags, vma.vm_flags)
    if found < 0:
        return found
    vrm.new_addr = found
    return 0


@linux("mm/vma.c")
def copy_vma(
    vma: vm_area_struct, addr: int, length: int, pgoff: int
) -> tuple[vm_area_struct | None, vm_area_struct]:
    """(the VMA that covers the new place, the source).  The former is a neighbour that it can merge
    with, or a copy of ``vma``.  An anonymous VMA that was never touched takes the offset of its new
    address, so that it merges more easily; it may even merge with the source, which is then a
    different VMA than before."""
    if vma_is_anonymous(vma) and vma.anon_vma is None:
        pgoff = addr >> PAGE_SHIFT
    start = vma.vm_start
    prev, next = neighbours(vma.vm_mm, addr, addr + length)
    vmg = vma_merge_struct(
        vma.vm_mm, prev, next, addr, addr + length, vma.vm_flags, pgoff, vma.vm_file, vma.vm_ops,
        vma.anon_vma,
        copied_from=vma,
    )  # fmt: skip
    merged = vma_merge_new_range(vmg)
    if merged is not None:
        return merged, merged if merged.vm_start <= start < merged.vm_end else vma
    new = vm_area_dup(vma)
    if new is None:
        return None, vma
    new.vm_start, new.vm_end, new.vm_pgoff = addr, addr + length, pgoff
    if anon_vma_clone(new, vma):
        return None, vma
    if new.vm_file is not None:
        get_file(new.vm_file)
    if new.vm_ops is not None and new.vm_ops.open is not None:
        new.vm_ops.open(new)
    vma_link(vma.vm_mm, new)
    return new, vma


@linux("mm/mremap.c")
def copy_vma_and_data(vrm: vma_remap_struct) -> tuple[vm_area_struct | None, int]:
    """(the VMA at the new place, 0 or -ENOMEM).  The entries have moved there; if the tables could
    not be made, the entries have moved back, and it is the *new* place that must be unmapped."""
    vma = source(vrm)
    pgoff = vma.vm_pgoff + ((vrm.addr - vma.vm_start) >> PAGE_SHIFT)
    new_vma, vrm.vma = copy_vma(vma, vrm.new_addr, vrm.new_len, pgoff)
    if new_vma is None:
        return None, -ENOMEM  #: {copy_vma}
    moved = move_page_tables(source(vrm), vrm.addr, vrm.new_addr, vrm.old_len)
    if moved >= vrm.old_len:
        return new_vma, 0
    move_page_tables(new_vma, vrm.new_addr, vrm.addr, moved)
    vrm.vma = new_vma
    vrm.old_len, vrm.addr = vrm.new_len, vrm.new_addr
    return new_vma, -ENOMEM  #: {move_page_tables}


@linux("mm/mremap.c")
def unmap_source_vma(vrm: vma_remap_struct) -> None:
    """Unmap the old place.  Its charge has moved with the mapping, so VM_ACCOUNT is hidden from
    munmap, and restored on what is left.

    If munmap has no memory for a split, the old place stays, empty, and is charged again (Linux
    charges it too, but drops VM_ACCOUNT, so that the charge is never given back)."""
    vma, mm = source(vrm), vrm.mm
    start, end = vma.vm_start, vma.vm_end
    moved = bool(vma.vm_flags & VM_ACCOUNT) and not vrm.flags & MREMAP_DONTUNMAP
    if moved:
        vma.vm_flags &= ~VM_ACCOUNT
    error = do_vmi_munmap(mm, vrm.addr, vrm.old_len)
    if not moved:
        return
    if error:
        vm_unacct_memory(-(vrm.old_len >> PAGE_SHIFT))
        for part in vmas_in(mm, start, end):
            part.vm_flags |= VM_ACCOUNT
        return
    for at, left in ((start, start < vrm.addr), (end - 1, end > vrm.addr + vrm.old_len)):
        rest = vma_lookup(mm, at)
        if left and rest is not None:
            rest.vm_flags |= VM_ACCOUNT


@linux("mm/mremap.c")
def dontunmap_complete(vrm: vma_remap_struct, new_vma: vm_area_struct) -> None:
    """The old place stays, empty: it loses VM_LOCKED, and its anon_vmas if all of it moved.
    ``locked_vm`` does not change."""
    vma = source(vrm)
    vma.vm_flags &= ~VM_LOCKED_MASK
    if new_vma is not vma and vrm.addr == vma.vm_start and vrm.addr + vrm.old_len == vma.vm_end:
        unlink_anon_vmas(vma)


@linux("mm/mremap.c")
def move_vma(vrm: vma_remap_struct) -> int:
    """Move to ``vrm.new_addr``: the new address, or -ENOMEM with everything as it was, including
    the charge for growth (which Linux leaks if it was a table that could not be made)."""
    vma = source(vrm)
    if vrm.mm.map_count >= system.sysctl.max_map_count - 3:
        #: the process has {vrm.mm.map_count} mappings, too many to add some (max_map_count)
        #: -> munmap some
        return -ENOMEM
    old_end = vrm.addr + vrm.old_len
    if vma.vm_ops is not None and vma.vm_ops.may_split is not None:
        error = vma.vm_ops.may_split(vma, vrm.addr) if vma.vm_start != vrm.addr else 0
        if not error and vma.vm_end != old_end:
            error = vma.vm_ops.may_split(vma, old_end)
        if error:
            return error
    if not vrm_charge(vrm):
        return -ENOMEM  #: {vrm_charge}
    new_addr, new_len = vrm.new_addr, vrm.new_len
    new_vma, error = copy_vma_and_data(vrm)
    if new_vma is None:
        vm_unacct_memory(vrm.charged)
        return error
    update_hiwater(vrm.mm)
    vrm_stat_account(vrm, new_len)
    if vrm.flags & MREMAP_DONTUNMAP and not error:
        dontunmap_complete(vrm, new_vma)
    else:
        unmap_source_vma(vrm)
    if error and not vrm.flags & MREMAP_DONTUNMAP:
        vm_unacct_memory(vrm.charged)
    return error or new_addr


# ---------------------------------------------------------------- the three ways


@linux("mm/mremap.c")
def mremap_to(vrm: vma_remap_struct) -> int:
    """Move to a given address (FIXED), or keep the old place, empty (DONTUNMAP)."""
    mm = vrm.mm
    if vrm.flags & MREMAP_FIXED:
        error = do_vmi_munmap(mm, vrm.new_addr, vrm.new_len)
        if error:
            return error
        vrm.vma = vma_lookup(mm, vrm.addr)
        if vrm.vma is None:
            return -EFAULT  #: the new range took {vrm.addr:#x} away -> ranges that do not overlap
    if vrm.old_len > vrm.new_len:
        error = do_vmi_munmap(mm, vrm.addr + vrm.new_len, vrm.delta)
        if error:
            return error
        vrm.old_len = vrm.new_len
        vrm.vma = vma_lookup(mm, vrm.addr)
    if vrm.flags & MREMAP_DONTUNMAP and not may_expand_vm(
        mm, source(vrm).vm_flags, vrm.old_len >> PAGE_SHIFT
    ):
        return -ENOMEM  #: {may_expand_vm}
    return vrm_set_new_addr(vrm) or move_vma(vrm)


@linux("mm/mremap.c")
def mremap_at(vrm: vma_remap_struct) -> int:
    """Resize in place; a mapping without room to grow is moved, if that is allowed."""
    if vrm.new_len <= vrm.old_len:
        shrunk = do_vmi_munmap(vrm.mm, vrm.addr + vrm.new_len, vrm.delta) if vrm.delta else 0
        return shrunk or vrm.addr
    if vrm_can_expand_in_place(vrm):
        return expand_vma_in_place(vrm) or vrm.addr
    if not vrm.flags & MREMAP_MAYMOVE:
        return -ENOMEM  #: the mapping cannot grow where it is, and may not move -> maymove
    return vrm_set_new_addr(vrm) or move_vma(vrm)


def vrm_can_expand_in_place(vrm: vma_remap_struct) -> bool:
    """True if the range ends where its VMA ends and nothing is mapped after it
    (``vma_expandable``)."""
    vma = source(vrm)
    end = vma.vm_end + vrm.delta
    if vrm.addr + vrm.old_len != vma.vm_end or end > task_size_max():
        return False
    return find_vma_intersection(vrm.mm, vma.vm_end, end) is None


@linux("mm/mremap.c")
def expand_vma_in_place(vrm: vma_remap_struct) -> int:
    """Expand the VMA, which may merge with the next one; 0 or -ENOMEM."""
    if not vrm_charge(vrm):
        return -ENOMEM  #: {vrm_charge}
    if vma_merge_extend(source(vrm), vrm.delta) is None:
        vm_unacct_memory(vrm.charged)
        return -ENOMEM  #: {vma_merge_extend}
    vrm_stat_account(vrm, vrm.delta)
    vrm.new_addr = vrm.addr
    return 0


@linux("mm/vma.c")
def vma_merge_extend(vma: vm_area_struct, delta: int) -> vm_area_struct | None:
    """Expand ``vma`` at its end by ``delta`` bytes."""
    end = vma.vm_end
    _, next = neighbours(vma.vm_mm, end, end + delta)
    pgoff = vma.vm_pgoff + vma_pages(vma)
    return vma_merge_new_range(
        vma_merge_struct(
            vma.vm_mm,
            vma,
            next,
            end,
            end + delta,
            vma.vm_flags,
            pgoff,
            vma.vm_file,
            vma.vm_ops,
            vma.anon_vma,
        )
    )


@linux("mm/mremap.c")
def remap_move(vrm: vma_remap_struct) -> int:
    """Move a range without resizing it, VMA by VMA, keeping the holes between them; the new
    address, or the first error (the VMAs before it have moved).  A move may split and merge the
    VMAs that follow, so the next one is looked up afterwards."""
    start, end = vrm.addr, vrm.addr + vrm.old_len
    target, first, last_end, at = vrm.new_addr, 0, 0, start
    while at < end and (vma := find_vma_intersection(vrm.mm, at, end)) is not None:
        if not last_end and start < vma.vm_start:
            #: nothing is mapped at {start:#x} -> an old address inside a mapping: see maps
            return -EFAULT
        target += vma.vm_start - last_end if last_end else 0
        at, stop = max(vma.vm_start, at), min(end, vma.vm_end)
        last_end = vma.vm_end
        piece = attrs.evolve(
            vrm, addr=at, old_len=stop - at, new_len=stop - at, new_addr=target, vma=vma
        )
        moved = check_prep_vma(piece) or mremap_to(piece)
        if moved < 0:
            return moved
        first = first or moved
        target, at = moved + stop - at, stop
    #: nothing is mapped from {start:#x} to {end:#x} -> an old address inside a mapping: see maps
    return first if last_end else -EFAULT


@linux("mm/mremap.c")
def do_mremap(addr: int, old_len: int, new_len: int, flags: int, new_addr: int) -> int:
    """mremap(2): the address of the mapping, or a negative error."""
    mm = current_mm()
    vrm = vma_remap_struct(mm, addr, PAGE_ALIGN(old_len), PAGE_ALIGN(new_len), flags, new_addr)
    error = check_mremap_params(vrm)
    if error:
        return error
    mmap_write_lock(mm)
    if flags & MREMAP_FIXED and vrm.old_len == vrm.new_len:
        ret = remap_move(vrm)
    else:
        vrm.vma = vma_lookup(mm, addr)
        ret = check_prep_vma(vrm) or (
            mremap_to(vrm) if vrm_implies_new_addr(vrm) else mremap_at(vrm)
        )
    mmap_write_unlock(mm)
    if ret >= 0 and vrm.locked:
        __mm_populate(ret + vrm.old_len, vrm.delta, True)
    return ret
