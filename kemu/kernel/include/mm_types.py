"""The structures of memory management, with Linux's names and fields (include/linux/mm_types.h,
fs.h, rmap.h).

    task_struct -> mm_struct -> maple_tree of vm_area_struct -> file -> inode -> address_space ->
    page
                       |                        |
                       pgd (a frame of RAM)     anon_vma <- page.mapping

A pointer is a Python reference.  A ``pte_t *`` is the physical address of the entry (int), since
tables lie in RAM.  ``struct folio`` is ``page``: a folio is the first page of a block of 2**order
pages that are allocated, counted, listed and freed as one.  All that is mapped today has order 0.

This file has data and lists only; the decisions are in the files that use them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import attrs

from kemu.abi import uapi
from kemu.errors import KernelBug
from kemu.kernel.include.flags import *
from kemu.kernel.include.lists import list_head
from kemu.trace.barrier import Table, struct
from kemu.trace.tape import emit

PAGE_SHIFT, PAGE_SIZE = uapi.PAGE_SHIFT, uapi.PAGE_SIZE
PAGE_MASK = ~(PAGE_SIZE - 1)
U64 = (1 << 64) - 1


def PAGE_ALIGN(addr: int) -> int:
    """Round up to a page (u64: the top wraps to 0, as in C)."""
    return (addr + PAGE_SIZE - 1) & PAGE_MASK & U64


# ---------------------------------------------------------------- page

PGTY_buddy = 0xF0
PGTY_table = 0xF2


@struct
class page(list_head):
    """``struct page``: one frame of RAM.  ``next``/``prev`` are its ``lru`` link.

    ``compound_head`` is the first page of the folio in a page that is not the first (a tail), else
    None; ``order`` the folio's order, in the first page (C: ``_folio_order``).  References,
    ``mapping``, ``index`` and all flags but PG_anon_exclusive are the folio's, in its first page;
    ``_mapcount`` and PG_anon_exclusive are each page's own.

    ``_refcount`` counts references, 0 = free.  ``_mapcount`` counts page-table entries minus 1, -1
    = not mapped. ``mapping`` is an ``anon_vma`` (anonymous), an ``address_space`` (file) or None; C
    keeps the two apart by the low bit of the pointer, here the class tells them apart.
    ``page_type`` is PGTY_buddy (then ``private`` is the block's order), PGTY_table, or 0. ``ptl``
    is the lock of a page table (1 = held); ``mlock_count`` the number of locked mappings that keep
    it on the unevictable list."""

    pfn: int = attrs.field(kw_only=True)
    flags: int = 0
    _refcount: int = attrs.field(default=0, init=False)
    _mapcount: int = attrs.field(default=-1, init=False)
    mapping: Any = None
    index: int = 0
    private: int = 0
    page_type: int = 0
    ptl: int = 0
    mlock_count: int = 0
    compound_head: Any = None
    order: int = 0

    def __repr__(self) -> str:
        return f"page({self.pfn:#x})"


folio = page


def page_folio(page: page) -> folio:
    """The folio to which the page belongs (``compound_head``)."""
    head: folio | None = page.compound_head
    return page if head is None else head


def folio_test_large(folio: folio) -> bool:
    """True if the folio has more than one page."""
    return bool(folio.flags & PG_head)


def folio_order(folio: folio) -> int:
    """The folio's order: it has 2**order pages."""
    return folio.order


def folio_nr_pages(folio: folio) -> int:
    """The number of pages in the folio."""
    return 1 << folio.order


# ---------------------------------------------------------------- VMAs


@struct
class vm_area_struct:
    """One mapping: addresses [vm_start, vm_end), page aligned.  ``vm_pgoff`` in pages;
    ``vm_page_prot`` the entry template (u64); ``anon_vma_chain`` the AVCs of this VMA, newest
    first; ``vm_ops`` is None exactly for private anonymous memory; ``vm_name`` is what
    ``vm_ops->name`` returns in Linux ([vdso], for example); ``vm_refcnt`` 0 = detached, 1 = in a
    tree, more while a fault reads it."""

    vm_mm: mm_struct
    vm_start: int
    vm_end: int
    vm_flags: int = 0
    vm_page_prot: int = 0
    vm_pgoff: int = 0
    vm_ops: vm_operations_struct | None = None
    vm_file: file | None = None
    anon_vma: anon_vma | None = None
    anon_vma_chain: tuple[anon_vma_chain, ...] = ()
    vm_name: str = ""
    vm_refcnt: int = 0

    def __repr__(self) -> str:
        return f"vma({self.vm_start:#x}-{self.vm_end:#x})"


def vma_pages(vma: vm_area_struct) -> int:
    """Pages in the VMA."""
    return (vma.vm_end - vma.vm_start) >> PAGE_SHIFT


def vma_is_anonymous(vma: vm_area_struct) -> bool:
    """True for private anonymous memory (also the stack and the heap)."""
    return vma.vm_ops is None


def is_cow_mapping(flags: int) -> bool:
    """True if a write to this mapping may have to copy: private, and could be made writable."""
    return (flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE


@struct
class anon_vma:
    """The root from which rmap finds every mapping of the anonymous pages of one or more VMAs.
    ``rb_root``: the AVCs of all VMAs that may map such a page; ``num_children`` counts child
    anon_vmas, the root itself included; ``num_active_vmas`` counts the VMAs whose ``anon_vma`` is
    this one."""

    id: int
    root: Any = None
    parent: Any = None
    refcount: int = 1
    num_children: int = 0
    num_active_vmas: int = 0
    rb_root: tuple[anon_vma_chain, ...] = ()

    def __repr__(self) -> str:
        return f"anon_vma#{self.id}"


@struct
class anon_vma_chain:
    """The link between one VMA and one anon_vma (many to many)."""

    vma: vm_area_struct
    anon_vma: anon_vma


@attrs.frozen
class vm_operations_struct:
    """What kind of memory a VMA maps.  ``fault(vmf)`` and ``map_pages(vmf, start, end)`` return
    VM_FAULT bits, ``page_mkwrite`` too; ``may_split(vma, addr)`` returns 0 or a negative error;
    each may be absent."""

    name: str
    fault: Callable[[vm_fault], int] | None = None
    map_pages: Callable[[vm_fault, int, int], int] | None = None
    page_mkwrite: Callable[[vm_fault], int] | None = None
    open: Callable[[vm_area_struct], None] | None = None
    close: Callable[[vm_area_struct], None] | None = None
    may_split: Callable[[vm_area_struct, int], int] | None = None


class vm_fault:
    """The state of one fault as it passes through the handlers (``struct vm_fault``).  Not
    journalled: it is on the stack.

    ``mm`` is ``vmf->vma->vm_mm``; ``pmd``/``pte`` are physical addresses of entries, 0 = none;
    ``orig_pte`` the entry that was seen (u64)."""

    __slots__ = (
        "vma", "mm", "address", "real_address", "pgoff", "flags", "pmd", "pte", "orig_pte", "page",
        "cow_page",
    )  # fmt: skip

    def __init__(self, vma: vm_area_struct, address: int, flags: int) -> None:
        self.vma = vma
        self.mm = vma.vm_mm
        self.real_address = address
        self.address = address & PAGE_MASK
        self.pgoff = vma.vm_pgoff + ((self.address - vma.vm_start) >> PAGE_SHIFT)
        self.flags = flags
        self.pmd = 0
        self.pte = 0
        self.orig_pte = 0
        self.page: page | None = None
        self.cow_page: page | None = None


# ---------------------------------------------------------------- mm

MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES = range(4)
MM_COUNTER_NAMES = ("MM_FILEPAGES", "MM_ANONPAGES", "MM_SWAPENTS", "MM_SHMEMPAGES")


_vm_end = attrgetter("vm_end")


class maple_tree:
    """The VMAs of one mm by address: pairwise disjoint, sorted.  Linux uses a B-tree of ranges; a
    sorted list gives the same results.  Changed only by ``insert`` and ``remove``, each one
    event."""

    __slots__ = ("mm", "vmas")

    def __init__(self) -> None:
        self.vmas: list[vm_area_struct] = []
        self.mm: mm_struct | None = None

    def __len__(self) -> int:
        return len(self.vmas)

    def __iter__(self) -> Iterator[vm_area_struct]:
        """The VMAs in address order, as they are now; the tree may change during the iteration."""
        return iter(tuple(self.vmas))

    def index(self, addr: int) -> int:
        """Position of the first VMA that ends above ``addr``."""
        return bisect_right(self.vmas, addr, key=_vm_end)

    def find(self, addr: int) -> vm_area_struct | None:
        """The first VMA that ends above ``addr``, or None."""
        i = bisect_right(self.vmas, addr, key=_vm_end)
        return self.vmas[i] if i < len(self.vmas) else None

    def before(self, addr: int) -> vm_area_struct | None:
        """The last VMA that ends at or below ``addr``, or None."""
        i = bisect_right(self.vmas, addr, key=_vm_end)
        return self.vmas[i - 1] if i else None

    def insert(self, vma: vm_area_struct) -> None:
        """Add ``vma`` at the place that its addresses give."""
        at = self.index(vma.vm_start)
        emit(self, at, None, vma)
        self.vmas.insert(at, vma)

    def remove(self, vma: vm_area_struct) -> None:
        """Remove ``vma``."""
        at = self.index(vma.vm_start)
        if self.vmas[at] is not vma:
            raise KernelBug(f"{vma} is not at its place in the tree")
        emit(self, at, vma, None)
        del self.vmas[at]

    def _restore(self, at: int, vma: vm_area_struct | None) -> None:
        if vma is None:
            del self.vmas[at]
        else:
            self.vmas.insert(at, vma)


@struct
class mm_struct:
    """An address space.  ``pgd``: physical address of the root table; sizes ``total_vm``,
    ``locked_vm``, ``pinned_vm``, ``data_vm``, ``exec_vm``, ``stack_vm`` in pages;
    ``pgtables_bytes`` in bytes; ``rss_stat`` pages by MM_* counter; ``mmap_lock`` is -1 when held
    for writing, n when held by n readers; ``context_id`` is never reused, ``tlb_gen`` counts flush
    requests; ``saved_auxv`` (type, value) pairs; ``membarrier_state``: MEMBARRIER_STATE_* bits,
    inherited by a child and cleared by exec."""

    id: int
    mm_mt: maple_tree
    pgd: int = 0
    mm_users: int = 1
    mm_count: int = 1
    map_count: int = 0
    pgtables_bytes: int = 0
    rss_stat: Table[int, int] = attrs.Factory(lambda: Table("rss_stat", {0: 0, 1: 0, 2: 0, 3: 0}))
    hiwater_rss: int = 0
    hiwater_vm: int = 0
    total_vm: int = 0
    locked_vm: int = 0
    pinned_vm: int = 0
    data_vm: int = 0
    exec_vm: int = 0
    stack_vm: int = 0
    def_flags: int = 0
    flags: int = MMF_INIT_MASK
    mmap_base: int = 0
    mmap_legacy_base: int = 0
    task_size: int = 0
    start_code: int = 0
    end_code: int = 0
    start_data: int = 0
    end_data: int = 0
    start_brk: int = 0
    brk: int = 0
    start_stack: int = 0
    arg_start: int = 0
    arg_end: int = 0
    env_start: int = 0
    env_end: int = 0
    saved_auxv: tuple[tuple[int, int], ...] = ()
    exe_file: file | None = None
    write_protect_seq: int = 0
    context_id: int = 0
    tlb_gen: int = 0
    tlb_flush_pending: int = 0
    vdso: int = 0
    membarrier_state: int = 0
    mm_cpumask: frozenset[int] = frozenset()
    mmap_lock: int = 0

    def __repr__(self) -> str:
        return f"mm#{self.id}"


# ---------------------------------------------------------------- files


@struct
class address_space:
    """The cached pages of one file: ``i_pages`` by page index; ``i_mmap`` the VMAs that map it;
    ``i_mmap_writable`` how many of them may write to it."""

    host: Any = None
    i_pages: Table[int, page] = attrs.Factory(lambda: Table("i_pages"))
    i_mmap: tuple[vm_area_struct, ...] = ()
    i_mmap_writable: int = 0
    nrpages: int = 0


@attrs.frozen
class file_operations:
    """``release(file)``: the last reference to an open file is gone."""

    release: Callable[[file], None]


@attrs.frozen
class super_operations:
    """``evict_inode(inode)``: the last user of a nameless file is gone; its pages are freed."""

    evict_inode: Callable[[inode], None]


@struct
class pipe_inode_info:
    """A pipe: ``bufs`` are (page, offset, bytes, whether a write may be appended) in order;
    ``readers`` and ``writers`` count open files; ``rd_wait`` the tasks that sleep until there is
    something to read (include/linux/pipe_fs_i.h)."""

    bufs: tuple[tuple[page, int, int, bool], ...] = ()
    readers: int = 0
    writers: int = 0
    rd_wait: tuple[Any, ...] = ()


@struct
class inode:
    """A file's object.  ``kind``: memfd, tmpfs, shm (these keep their pages as memory) or disk
    (pages can be read again from ``disk``, page index -> bytes), or pipe: ``i_pipe``.  ``i_size``
    in bytes."""

    i_ino: int
    kind: str
    i_mapping: address_space
    i_size: int = 0
    i_nlink: int = 1
    i_count: int = 0
    s_op: super_operations | None = None
    disk: Table[int, bytes] = attrs.Factory(lambda: Table("disk"))
    noreserve: bool = False
    i_fop: file_operations | None = None
    i_pipe: pipe_inode_info | None = None

    def __repr__(self) -> str:
        return f"inode#{self.i_ino}"


FMODE_READ = 1
FMODE_WRITE = 2


@struct
class file:
    """An open file.  ``f_path`` as /proc shows it; ``f_pos`` is where read(2) and write(2)
    continue, common to all that share the open file; ``prev_pos`` (``f_ra.prev_pos``) where the
    last read of a disk file ended."""

    f_inode: inode
    f_mapping: address_space
    f_mode: int
    f_path: str
    f_count: int = 1
    f_flags: int = 0
    f_pos: int = 0
    prev_pos: int = -1

    def __repr__(self) -> str:
        return f"file({self.f_path})"


@struct
class files_struct:
    """The descriptors of a task: ``fd`` number -> file; ``count`` tasks share the table."""

    count: int = 1
    fd: Table[int, file] = attrs.Factory(lambda: Table("fd"))
