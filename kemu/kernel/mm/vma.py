"""VMAs: finding, splitting, merging (mm/vma.c).

    mprotect of the middle          | prev |   vma    | next |
    split_vma twice                 | prev | a | b | c | next |
    flags made equal again          | prev |   vma    | next |    vma_modify merges before it splits

Two neighbours can be one VMA if flags, file and offsets fit, and their anon_vmas do too: they are
the same, or one VMA has none and the other was not inherited by fork.

``vm_start``, ``vm_end`` and ``vm_pgoff`` of a VMA in a tree change in this file only.
"""

from __future__ import annotations

import attrs

from kemu.abi.uapi import *
from kemu.errors import KernelBug
from kemu.kernel.arch.pgtable import vm_get_page_prot
from kemu.kernel.fs.file_table import fput, get_file
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_SHIFT,
    anon_vma,
    file,
    mm_struct,
    vm_area_struct,
    vm_operations_struct,
    vma_pages,
)
from kemu.kernel.include.system import system
from kemu.kernel.mm.mmap_lock import vma_start_write
from kemu.kernel.mm.rmap import anon_vma_clone, unlink_anon_vmas
from kemu.kernel.mm.slab import slab_fails
from kemu.trace.frames import linux

# ---------------------------------------------------------------- finding


@linux("mm/mmap.c")
def find_vma(mm: mm_struct, addr: int) -> vm_area_struct | None:
    """The first VMA that ends above ``addr``; it may begin above ``addr`` too."""
    return mm.mm_mt.find(addr)


def vma_lookup(mm: mm_struct, addr: int) -> vm_area_struct | None:
    """The VMA that contains ``addr``."""
    vma = mm.mm_mt.find(addr)
    return vma if vma is not None and vma.vm_start <= addr else None


def find_vma_intersection(mm: mm_struct, start: int, end: int) -> vm_area_struct | None:
    """The first VMA that overlaps [start, end)."""
    vma = mm.mm_mt.find(start)
    return vma if vma is not None and vma.vm_start < end else None


def vmas_in(mm: mm_struct, start: int, end: int) -> list[vm_area_struct]:
    """The VMAs that overlap [start, end), in order (``for_each_vma_range``)."""
    vmas = mm.mm_mt.vmas
    found = []
    for i in range(mm.mm_mt.index(start), len(vmas)):
        if vmas[i].vm_start >= end:
            break
        found.append(vmas[i])
    return found


def neighbours(
    mm: mm_struct, start: int, end: int
) -> tuple[vm_area_struct | None, vm_area_struct | None]:
    """The VMA before ``start`` and the first one that begins at or after ``end``."""
    following = mm.mm_mt.find(end)
    if following is not None and following.vm_start < end:
        following = mm.mm_mt.find(following.vm_end)
    return mm.mm_mt.before(start), following


def vm_start_gap(vma: vm_area_struct) -> int:
    """The highest end of a new mapping below the VMA, which leaves a stack its guard gap."""
    gap = system.sysctl.stack_guard_gap << PAGE_SHIFT
    return max(vma.vm_start - gap, 0) if vma.vm_flags & VM_GROWSDOWN else vma.vm_start


# ---------------------------------------------------------------- making and freeing


@linux("kernel/fork.c")
def vm_area_alloc(mm: mm_struct, start: int, end: int) -> vm_area_struct | None:
    """A detached VMA for [start, end); None when out of memory."""
    if slab_fails("vm_area_struct"):
        return None
    return vm_area_struct(vm_mm=mm, vm_start=start, vm_end=end)


@linux("kernel/fork.c")
def vm_area_dup(orig: vm_area_struct) -> vm_area_struct | None:
    """A detached copy; its anon_vma_chain is empty.  None when out of memory."""
    if slab_fails("vm_area_struct"):
        return None
    return vm_area_struct(
        vm_mm=orig.vm_mm,
        vm_start=orig.vm_start,
        vm_end=orig.vm_end,
        vm_flags=orig.vm_flags,
        vm_page_prot=orig.vm_page_prot,
        vm_pgoff=orig.vm_pgoff,
        vm_ops=orig.vm_ops,
        vm_file=orig.vm_file,
        anon_vma=orig.anon_vma,
        vm_name=orig.vm_name,
    )


def vm_area_free(vma: vm_area_struct) -> None:
    """Free a VMA that is no longer in a tree."""
    if vma.vm_refcnt:
        raise KernelBug(f"{vma} is freed while it is attached or read")


def vma_link(mm: mm_struct, vma: vm_area_struct) -> None:
    """Put the VMA into the tree and its file's interval tree, so that it can be found."""
    vma_iter_store(mm, vma)
    vma_link_file(vma)
    mm.map_count += 1


def vma_iter_store(mm: mm_struct, vma: vm_area_struct) -> None:
    """Store the VMA in the tree and mark it attached."""
    mm.mm_mt.insert(vma)
    vma.vm_refcnt = 1


def vma_iter_clear(mm: mm_struct, vma: vm_area_struct) -> None:
    """Remove the VMA from the tree and mark it detached."""
    mm.mm_mt.remove(vma)
    vma.vm_refcnt = 0


def vma_link_file(vma: vm_area_struct) -> None:
    """Add the VMA to its file's ``i_mmap``, so that truncation and rmap find it."""
    if vma.vm_file is not None:
        mapping = vma.vm_file.f_mapping
        if vma.vm_flags & (VM_SHARED | VM_MAYWRITE) == VM_SHARED | VM_MAYWRITE:
            mapping.i_mmap_writable += 1
        mapping.i_mmap += (vma,)


def unlink_file_vma(vma: vm_area_struct) -> None:
    """Remove the VMA from its file's ``i_mmap``."""
    if vma.vm_file is not None:
        mapping = vma.vm_file.f_mapping
        if vma.vm_flags & (VM_SHARED | VM_MAYWRITE) == VM_SHARED | VM_MAYWRITE:
            mapping.i_mmap_writable -= 1
        mapping.i_mmap = tuple(v for v in mapping.i_mmap if v is not vma)


@linux("mm/vma.c")
def remove_vma(vma: vm_area_struct) -> None:
    """Finish with a VMA that is out of the tree: close it, put its file, free it."""
    if vma.vm_ops is not None and vma.vm_ops.close is not None:
        vma.vm_ops.close(vma)
    if vma.vm_file is not None:
        fput(vma.vm_file)
    vm_area_free(vma)


def vma_wants_writenotify(vma: vm_area_struct) -> bool:
    """True if the first write to each page of a shared writable mapping must fault, so that the
    file system is notified."""
    if vma.vm_flags & (VM_WRITE | VM_SHARED) != VM_WRITE | VM_SHARED:
        return False
    return vma.vm_ops is not None and vma.vm_ops.page_mkwrite is not None


def vma_page_prot(vma: vm_area_struct, flags: int) -> int:
    """The entry template for ``flags``, without write if the file system must be notified."""
    if vma_wants_writenotify(vma):
        return vm_get_page_prot(flags & ~VM_SHARED)
    return vm_get_page_prot(flags)


@linux("mm/mmap.c")
def vma_set_page_prot(vma: vm_area_struct) -> None:
    """Make ``vm_page_prot`` follow ``vm_flags``."""
    vma.vm_page_prot = vma_page_prot(vma, vma.vm_flags)


# ---------------------------------------------------------------- splitting


@linux("mm/vma.c")
def __split_vma(vma: vm_area_struct, addr: int, new_below: bool) -> int:
    """Split at ``addr``; the new VMA is the lower or the upper part.  0, -ENOMEM, or the error of
    ``vm_ops->may_split``."""
    if vma.vm_ops is not None and vma.vm_ops.may_split is not None:
        error = vma.vm_ops.may_split(vma, addr)
        if error:
            return error
    mm = vma.vm_mm
    new = vm_area_dup(vma)
    if new is None:
        return -ENOMEM  #: {vm_area_dup}
    if new_below:
        new.vm_end = addr
    else:
        new.vm_start = addr
        new.vm_pgoff += (addr - vma.vm_start) >> PAGE_SHIFT
    vma_start_write(vma)
    error = anon_vma_clone(new, vma)
    if error:
        return error
    if new.vm_file is not None:
        get_file(new.vm_file)
    if new.vm_ops is not None and new.vm_ops.open is not None:
        new.vm_ops.open(new)
    if new_below:
        vma.vm_pgoff += (addr - vma.vm_start) >> PAGE_SHIFT
        vma.vm_start = addr
    else:
        vma.vm_end = addr
    vma_link(mm, new)
    return 0


@linux("mm/vma.c")
def split_vma(vma: vm_area_struct, addr: int, new_below: bool) -> int:
    """Split at ``addr``, unless the process has too many mappings.  0 or -ENOMEM."""
    if vma.vm_mm.map_count >= system.sysctl.max_map_count:
        #: the process has {vma.vm_mm.map_count} mappings, the most allowed (max_map_count)
        #: -> munmap some
        return -ENOMEM
    return __split_vma(vma, addr, new_below)


# ---------------------------------------------------------------- merging


@attrs.define
class vma_merge_struct:
    """A proposed merge: the range [start, end) with these properties, and its neighbours.
    ``middle`` is the existing VMA that contains the range, None for a new mapping;
    ``copied_from`` is the VMA whose pages are about to move there."""

    mm: mm_struct
    prev: vm_area_struct | None
    next: vm_area_struct | None
    start: int
    end: int
    flags: int
    pgoff: int
    file: file | None = None
    ops: vm_operations_struct | None = None
    anon_vma: anon_vma | None = None
    middle: vm_area_struct | None = None
    copied_from: vm_area_struct | None = None
    just_expand: bool = False


VM_IGNORE_MERGE = VM_MAYBE_GUARD
"""Flags in which two VMAs may differ and still merge; the merged one has them."""


def is_mergeable_vma(vmg: vma_merge_struct, vma: vm_area_struct) -> bool:
    """True if flags and file fit."""
    return (
        not (vma.vm_flags ^ vmg.flags) & ~VM_IGNORE_MERGE
        and vma.vm_file is vmg.file
        and vma.vm_name == ""
    )


def vma_had_uncowed_parents(vma: vm_area_struct) -> bool:
    """True if the VMA was inherited by fork from one that had anonymous pages: its chain has more
    than one link."""
    return vma.anon_vma is not None and len(vma.anon_vma_chain) != 1


def is_mergeable_anon_vma(vmg: vma_merge_struct, target: vm_area_struct) -> bool:
    """True if the anon_vma of the proposed range fits that of the VMA that would absorb it."""
    if target.anon_vma is None and vmg.anon_vma is not None:
        return not any(
            vma is not None and vma_had_uncowed_parents(vma)
            for vma in (vmg.middle, vmg.copied_from)
        )
    if target.anon_vma is not None and vmg.anon_vma is None:
        return not vma_had_uncowed_parents(target)
    return target.anon_vma is vmg.anon_vma


def can_vma_merge_left(vmg: vma_merge_struct) -> bool:
    """True if the range can be appended to ``prev``."""
    prev = vmg.prev
    return (
        prev is not None
        and prev.vm_end == vmg.start
        and is_mergeable_vma(vmg, prev)
        and is_mergeable_anon_vma(vmg, prev)
        and prev.vm_pgoff + vma_pages(prev) == vmg.pgoff
    )


def can_vma_merge_right(vmg: vma_merge_struct, can_merge_left: bool) -> bool:
    """True if the range can be prepended to ``next``; if it also merges with ``prev``, these two
    must fit each other."""
    prev, next = vmg.prev, vmg.next
    fits = (
        next is not None
        and next.vm_start == vmg.end
        and is_mergeable_vma(vmg, next)
        and is_mergeable_anon_vma(vmg, next)
        and next.vm_pgoff == vmg.pgoff + ((vmg.end - vmg.start) >> PAGE_SHIFT)
    )
    if not fits or not can_merge_left:
        return fits
    assert prev is not None
    assert next is not None
    return prev.anon_vma is None or next.anon_vma is None or prev.anon_vma is next.anon_vma


def dup_anon_vma(dst: vm_area_struct, src: vm_area_struct | None) -> int:
    """``dst`` absorbs pages of ``src``: link it to the same anon_vmas.  0 or -ENOMEM."""
    if src is None or src.anon_vma is None or dst.anon_vma is not None:
        return 0
    dst.anon_vma = src.anon_vma
    return anon_vma_clone(dst, src)


@linux("mm/vma.c")
def vma_merge_new_range(vmg: vma_merge_struct) -> vm_area_struct | None:
    """Expand a neighbour over a new range, or merge both neighbours and the range; the VMA that has
    the range, or None if neither is possible, also when out of memory."""
    if vmg.flags & VM_SPECIAL:
        return None
    left = can_vma_merge_left(vmg)
    right = not vmg.just_expand and can_vma_merge_right(vmg, left)
    prev, next = vmg.prev, vmg.next
    if left:
        assert prev is not None
        end = next.vm_end if right and next else vmg.end
        return vma_expand(vmg, prev, prev.vm_start, end, next if right else None)
    if right:
        assert next is not None
        return vma_expand(vmg, next, vmg.start, next.vm_end, None)
    return None


@linux("mm/vma.c")
def vma_expand(
    vmg: vma_merge_struct,
    target: vm_area_struct,
    start: int,
    end: int,
    removed: vm_area_struct | None,
) -> vm_area_struct | None:
    """Make ``target`` cover [start, end), absorbing ``removed``; None when out of memory, with
    nothing changed."""
    if dup_anon_vma(target, vmg.copied_from) or dup_anon_vma(target, removed):
        return None
    commit_merge(target, start, end, [removed] if removed is not None else [], vmg.flags)
    return target


@linux("mm/vma.c")
def commit_merge(
    target: vm_area_struct, start: int, end: int, removed: list[vm_area_struct], flags: int
) -> None:
    """Set the new borders and drop the VMAs that were absorbed."""
    mm = target.vm_mm
    vma_start_write(target)
    for vma in removed:
        vma_start_write(vma)
        vma_iter_clear(mm, vma)
        unlink_file_vma(vma)
    sticky = flags
    for vma in removed:
        sticky |= vma.vm_flags
    if sticky & VM_IGNORE_MERGE & ~target.vm_flags:
        target.vm_flags |= sticky & VM_IGNORE_MERGE
    set_range(target, start, end)
    for vma in removed:
        mm.map_count -= 1
        unlink_anon_vmas(vma)
        if vma.vm_file is not None:
            fput(vma.vm_file)
        vm_area_free(vma)


def set_range(vma: vm_area_struct, start: int, end: int) -> None:
    """Move the borders; the offset follows the start."""
    if start != vma.vm_start:
        vma.vm_pgoff += (start - vma.vm_start) >> PAGE_SHIFT
        vma.vm_start = start
    if end != vma.vm_end:
        vma.vm_end = end


@linux("mm/internal.h")
def vma_set_range(vma: vm_area_struct, start: int, end: int, pgoff: int) -> None:
    """Set the borders and the offset of the start, which may be unrelated (exec moves a stack with
    all its pages)."""
    vma.vm_start = start
    vma.vm_end = end
    vma.vm_pgoff = pgoff


@linux("mm/vma.c")
def vma_merge_existing_range(vmg: vma_merge_struct) -> vm_area_struct | int | None:
    """The part [start, end) of ``middle`` is about to become like its neighbours: move the borders.
    The VMA that has the range, None if nothing fits, -ENOMEM with nothing changed."""
    middle = vmg.middle
    assert middle is not None
    if vmg.flags & VM_SPECIAL:
        return None
    left_side, right_side = vmg.start == middle.vm_start, vmg.end == middle.vm_end
    left = left_side and can_vma_merge_left(vmg)
    right = right_side and can_vma_merge_right(vmg, left)
    prev, next = vmg.prev, vmg.next
    if left and right and prev and next:
        return _merge_both(vmg, prev, middle, next)
    if left and prev:
        return _merge_with_prev(vmg, prev, middle, whole=right_side)
    if right and next:
        return _merge_with_next(vmg, middle, next, whole=left_side)
    return None


def _merge_both(
    vmg: vma_merge_struct, prev: vm_area_struct, middle: vm_area_struct, next: vm_area_struct
) -> vm_area_struct | int:
    error = dup_anon_vma(prev, next if next.anon_vma is not None else middle)
    if error:
        return error
    commit_merge(prev, prev.vm_start, next.vm_end, [middle, next], vmg.flags)
    return prev


def _merge_with_prev(
    vmg: vma_merge_struct, prev: vm_area_struct, middle: vm_area_struct, *, whole: bool
) -> vm_area_struct | int:
    error = dup_anon_vma(prev, middle)
    if error:
        return error
    if whole:
        commit_merge(prev, prev.vm_start, vmg.end, [middle], vmg.flags)
    else:
        set_range(middle, vmg.end, middle.vm_end)
        commit_merge(prev, prev.vm_start, vmg.end, [], vmg.flags)
    return prev


def _merge_with_next(
    vmg: vma_merge_struct, middle: vm_area_struct, next: vm_area_struct, *, whole: bool
) -> vm_area_struct | int:
    error = dup_anon_vma(next, middle)
    if error:
        return error
    if whole:
        commit_merge(next, vmg.start, next.vm_end, [middle], vmg.flags)
    else:
        set_range(middle, middle.vm_start, vmg.start)
        commit_merge(next, vmg.start, next.vm_end, [], vmg.flags)
    return next


@linux("mm/vma.c")
def vma_modify_flags(vma: vm_area_struct, start: int, end: int, flags: int) -> vm_area_struct | int:
    """The VMA for [start, end) of ``vma``, which is about to get ``flags``: merged with a neighbour
    if possible, else split off to cover exactly the range.  -ENOMEM if it can be neither merged nor
    split (one of two splits may have been made)."""
    mm = vma.vm_mm
    prev, next = neighbours(mm, vma.vm_start, vma.vm_end)
    pgoff = vma.vm_pgoff + ((start - vma.vm_start) >> PAGE_SHIFT)
    vmg = vma_merge_struct(
        mm, prev, next, start, end, flags, pgoff, vma.vm_file, vma.vm_ops, vma.anon_vma, middle=vma
    )
    merged = vma_merge_existing_range(vmg)
    if merged is not None:
        return merged
    if vma.vm_start < start:
        error = split_vma(vma, start, True)
        if error:
            return error
    if vma.vm_end > end:
        error = split_vma(vma, end, False)
        if error:
            return error
    return vma
