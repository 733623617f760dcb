"""The VMAs of an address space and their counters (reference B: numbers 13 to 24)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from kemu.invariants.registry import QUIESCENT, Finding, invariant
from kemu.invariants.scan import Scan
from kemu.kernel.include.flags import (
    VM_ACCESS_FLAGS,
    VM_ACCOUNT,
    VM_LOCKED,
    VM_MAYSHARE,
    VM_MAYWRITE,
    VM_SHARED,
)
from kemu.kernel.include.mm_types import (
    FMODE_WRITE,
    PAGE_SIZE,
    mm_struct,
    vm_area_struct,
    vma_pages,
)
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import file_pages
from kemu.kernel.mm.util import is_data_mapping, is_exec_mapping, is_stack_mapping


def where(scan: Scan, vma: vm_area_struct) -> str:
    """``app 0x10000-0x14000``."""
    return f"{scan.space(vma.vm_mm)} {vma.vm_start:#x}-{vma.vm_end:#x}"


@invariant(13, when=QUIESCENT)
def vmas_are_ordered(scan: Scan) -> Iterator[Finding]:
    """VMAs are sorted, disjoint, page aligned, not empty, in user space, counted and attached.

    Each refers to its mm.  Quiescent, because two VMAs overlap for a moment during a split.
    mm/vma.c: validate_mm."""
    for mm in scan.spaces:
        vmas = list(mm.mm_mt)
        for before, after in pairwise(vmas):
            if before.vm_end > after.vm_start:
                yield (
                    where(scan, after),
                    f"starts at {after.vm_start:#x}",
                    f"the one before ends at {before.vm_end:#x}",
                )
        for vma in vmas:
            if (
                vma.vm_start % PAGE_SIZE
                or vma.vm_end % PAGE_SIZE
                or not vma.vm_start < vma.vm_end <= mm.task_size
            ):
                yield (
                    where(scan, vma),
                    f"[{vma.vm_start:#x}, {vma.vm_end:#x})",
                    f"user space ends at {mm.task_size:#x}",
                )
            if vma.vm_mm is not mm or vma.vm_refcnt != 1:
                yield (
                    where(scan, vma),
                    f"vm_mm {vma.vm_mm}, vm_refcnt {vma.vm_refcnt}",
                    f"it is in the tree of {mm}",
                )
        if mm.map_count != len(vmas):
            yield f"mm of {scan.space(mm)}", f"map_count {mm.map_count}", f"{len(vmas)} VMAs"


@invariant(14, when=QUIESCENT)
def map_count_is_limited(scan: Scan) -> Iterator[Finding]:
    """A process has at most ``max_map_count`` + 1 mappings.

    One more than the limit, because MAP_FIXED over the border of a VMA splits it after the check.
    mm/mmap.c: do_mmap."""
    limit = system.sysctl.max_map_count + 1
    for mm in scan.spaces:
        if mm.map_count > limit:
            yield (
                f"mm of {scan.space(mm)}",
                f"map_count {mm.map_count}",
                f"at most {limit} are allowed",
            )


@invariant(15, when=QUIESCENT)
def vm_sizes_add_up(scan: Scan) -> Iterator[Finding]:
    """``total_vm`` and its classes count the pages of the VMAs, by the VMAs' current flags.

    mm/mmap.c: vm_stat_account."""
    for mm in scan.spaces:
        for name, counted in vm_sizes(mm).items():
            if getattr(mm, name) != counted:
                yield (
                    f"mm of {scan.space(mm)}",
                    f"{name} {getattr(mm, name)}",
                    f"its VMAs have {counted} pages",
                )


def vm_sizes(mm: mm_struct) -> dict[str, int]:
    """Pages of the VMAs by the field that counts them."""
    sizes = Counter[str](total_vm=0, exec_vm=0, stack_vm=0, data_vm=0)
    for vma in mm.mm_mt:
        sizes["total_vm"] += vma_pages(vma)
        if is_exec_mapping(vma.vm_flags):
            sizes["exec_vm"] += vma_pages(vma)
        elif is_stack_mapping(vma.vm_flags):
            sizes["stack_vm"] += vma_pages(vma)
        elif is_data_mapping(vma.vm_flags):
            sizes["data_vm"] += vma_pages(vma)
    return sizes


@invariant(16, when=QUIESCENT)
def locked_vm_covers_locked_vmas(scan: Scan) -> Iterator[Finding]:
    """``locked_vm`` is at least the number of pages in locked VMAs.

    It may be more: a VMA that loses VM_LOCKED by MREMAP_DONTUNMAP stays counted.  mm/mlock.c:
    mlock_fixup, mm/mremap.c."""
    for mm in scan.spaces:
        locked = sum(vma_pages(vma) for vma in mm.mm_mt if vma.vm_flags & VM_LOCKED)
        if mm.locked_vm < locked:
            yield (
                f"mm of {scan.space(mm)}",
                f"locked_vm {mm.locked_vm}",
                f"{locked} pages are locked",
            )


@invariant(18, when=QUIESCENT)
def rights_are_permitted(scan: Scan) -> Iterator[Finding]:
    """A VMA has no permission that its VM_MAY flags exclude.

    The file of a VM_SHARED mapping is open for writing.  mm/mmap.c: do_mmap; mm/mprotect.c."""
    for mm in scan.spaces:
        for vma in mm.mm_mt:
            has, may = vma.vm_flags & VM_ACCESS_FLAGS, vma.vm_flags >> 4 & VM_ACCESS_FLAGS
            if has & ~may:
                yield where(scan, vma), f"rights {has:#x}", f"only {may:#x} are permitted"
            if vma.vm_flags & VM_SHARED and not vma.vm_flags & VM_MAYSHARE:
                yield where(scan, vma), "VM_SHARED", "VM_MAYSHARE is not set"
            if (
                vma.vm_flags & VM_SHARED
                and vma.vm_file is not None
                and not vma.vm_file.f_mode & FMODE_WRITE
            ):
                yield where(scan, vma), "VM_SHARED", "its file is not open for writing"


@invariant(19, when=QUIESCENT)
def anonymous_vmas_are_private(scan: Scan) -> Iterator[Finding]:
    """Memory without ``vm_ops`` is private: shared anonymous memory has shmem's.

    The offset is not checked: a VMA that MREMAP_DONTUNMAP has emptied loses its anon_vma but keeps
    its offset.  mm/vma.c: __mmap_new_vma; mm/shmem.c: shmem_zero_setup."""
    for mm in scan.spaces:
        for vma in mm.mm_mt:
            if vma.vm_ops is None and vma.vm_flags & VM_SHARED:
                yield where(scan, vma), "VM_SHARED", "it is anonymous"


@invariant(21, when=QUIESCENT)
def files_know_their_vmas(scan: Scan) -> Iterator[Finding]:
    """A file's ``i_mmap`` holds every VMA that maps the file, once, and no other.

    ``i_mmap_writable`` counts those that may write.  mm/vma.c: vma_link_file, unlink_file_vma."""
    mapping_of = {id(node.i_mapping): node.i_mapping for node in scan.inodes}
    vmas = [vma for mm in scan.spaces for vma in mm.mm_mt if vma.vm_file is not None]
    for key, mapping in mapping_of.items():
        mine = Counter(id(vma) for vma in vmas if vma.vm_file and id(vma.vm_file.f_mapping) == key)
        listed = Counter(id(vma) for vma in mapping.i_mmap)
        if mine != listed:
            yield (
                f"{mapping.host}",
                f"{listed.total()} VMAs in i_mmap",
                f"{mine.total()} VMAs map it",
            )
        writable = sum(
            vma.vm_flags & VM_SHARED and vma.vm_flags & VM_MAYWRITE and 1 for vma in mapping.i_mmap
        )
        if mapping.i_mmap_writable != writable:
            yield (
                f"{mapping.host}",
                f"i_mmap_writable {mapping.i_mmap_writable}",
                f"{writable} of its VMAs may write",
            )


@invariant(21, when=QUIESCENT)
def open_files_are_counted(scan: Scan) -> Iterator[Finding]:
    """The counts of open files and of inodes are the numbers of their holders.

    An open file is held by descriptors, by VMAs and by the address spaces that run it as their
    program; an inode is held by open files.  mm/vma.c: __mmap_new_vma takes a reference, remove_vma
    drops it; fs/file_table.c: fput."""
    tables = {id(task.files): task.files for task in scan.tasks if task.files is not None}.values()
    held = [file for table in tables for file in table.fd.values()]
    held += [vma.vm_file for mm in scan.spaces for vma in mm.mm_mt if vma.vm_file is not None]
    held += [mm.exe_file for mm in scan.spaces if mm.exe_file is not None]
    files = {id(file): file for file in held}
    holders, opened = Counter(map(id, held)), Counter(id(file.f_inode) for file in files.values())
    for key, file in files.items():
        if file.f_count != holders[key]:
            yield (
                f"{file}",
                f"f_count {file.f_count}",
                f"{holders[key]} descriptors, VMAs and programs hold it",
            )
    for node in scan.inodes:
        if node.i_count != opened[id(node)]:
            yield f"{node}", f"i_count {node.i_count}", f"{opened[id(node)]} open files lead to it"


@invariant(22, when=QUIESCENT)
def commit_charge_adds_up(scan: Scan) -> Iterator[Finding]:
    """Committed memory is the pages of accounted VMAs plus what files in memory are charged.

    Shared anonymous memory is charged by its size, other files in memory by their pages; no shared
    VMA is accounted.  A stack that cannot be written is not accounted, but its growth is charged
    all the same and never given back.  mm/util.c: __vm_enough_memory; mm/shmem.c:
    shmem_acct_size."""
    vmas = [vma for mm in scan.spaces for vma in mm.mm_mt]
    for vma in vmas:
        if vma.vm_flags & VM_ACCOUNT and vma.vm_flags & VM_SHARED:
            yield where(scan, vma), "VM_ACCOUNT", "shared memory is charged to its file"
    files = sum(
        node.i_mapping.nrpages if node.noreserve else file_pages(node) * (node.kind == "shm")
        for node in scan.inodes
        if node.noreserve or node.i_count > 0
    )
    private = sum(vma_pages(vma) for vma in vmas if vma.vm_flags & VM_ACCOUNT)
    leaked = system.counters.vm_leaked
    if system.counters.vm_committed_as != files + private + leaked:
        yield (
            "the machine",
            f"vm_committed_as {system.counters.vm_committed_as}",
            f"{private} private + {files} shared pages"
            + (f" + {leaked} of stacks" if leaked else ""),
        )


@invariant(24, when=QUIESCENT)
def brk_is_above_its_start(scan: Scan) -> Iterator[Finding]:
    """The heap does not end below its start.

    [start_brk, brk) need not be mapped: the program may unmap parts of it.  mm/mmap.c: brk."""
    for mm in scan.spaces:
        if mm.brk < mm.start_brk:
            yield f"mm of {scan.space(mm)}", f"brk {mm.brk:#x}", f"start_brk is {mm.start_brk:#x}"
