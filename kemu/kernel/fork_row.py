"""Copying a whole table of entries as one event (a row), for fork of large address spaces.

A fork of a process of 1 GiB copies 262,144 entries.  Entry by entry that is five events each; as rows it is one event for each
table of 512, which carries the entries before and after and the pages that were counted.  The state after a row is the
state after the loop of ``copy_pte_range``: a property test holds them together.

Only tables of an mm that never pinned a page go this way; a pinned page needs the loop's early copy.
"""

from __future__ import annotations

from kemu.kernel.filemap import mm_counter_file
from kemu.kernel.flags import VM_SHARED, PG_anon_exclusive
from kemu.kernel.mm_types import MM_ANONPAGES, PAGE_SHIFT, U64, anon_vma, is_cow_mapping, page, vm_area_struct
from kemu.kernel.system import system
from kemu.machine.physmem import Frame
from kemu.trace.barrier import plain_setter, tape


class RowCopy:
    """When rows are used: ``enabled`` at all, and for tables with at least ``min_entries`` entries to copy."""

    def __init__(self) -> None:
        self.enabled = True
        self.min_entries = 64


row_copy = RowCopy()

set_refcount = plain_setter(page, "_refcount")
set_mapcount = plain_setter(page, "_mapcount")
set_flags = plain_setter(page, "flags")


class Row:
    """One copied table: undone and redone as a whole.

    ``src_before``/``src_after`` the parent's entries that lost W, ``copied`` the child's entries, all by word index; ``pages``
    those that got a mapping and a reference; ``exclusive`` those among them that were PageAnonExclusive."""

    __slots__ = ("src", "dst", "src_before", "src_after", "copied", "pages", "exclusive")

    def __init__(self, src: Frame, dst: Frame) -> None:
        self.src, self.dst = src, dst
        self.src_before: dict[int, int] = {}
        self.src_after: dict[int, int] = {}
        self.copied: dict[int, int] = {}
        self.pages: list[page] = []
        self.exclusive: list[page] = []

    def _restore(self, field: str, done: bool) -> None:
        if done:
            self.apply()
        else:
            self.undo()

    def apply(self) -> None:
        """Make the copy."""
        for p in self.pages:
            set_refcount(p, p._refcount + 1)
            set_mapcount(p, p._mapcount + 1)
        for p in self.exclusive:
            set_flags(p, p.flags & ~PG_anon_exclusive)
        self.src.update(self.src_after)
        self.dst.update(self.copied)

    def undo(self) -> None:
        """Take the copy back."""
        for p in self.pages:
            set_refcount(p, p._refcount - 1)
            set_mapcount(p, p._mapcount - 1)
        for p in self.exclusive:
            set_flags(p, p.flags | PG_anon_exclusive)
        self.src.update(self.src_before)
        for index in self.copied:
            del self.dst[index]


def copy_row(src_vma: vm_area_struct, dst_pte: int, src_pte: int, nr: int) -> list[int] | None:
    """Copy the entries among the ``nr`` words from ``src_pte`` in the parent's table to the child's, in one event; the rss by
    MM_* counter.  None: they are too few for a row, and nothing was done."""
    frames = system.phys.frames
    src, first = frames.get(src_pte >> PAGE_SHIFT), (src_pte >> 3) & 511
    if src is None or not row_copy.enabled or nr < row_copy.min_entries:
        return None
    dst = frames.get(dst_pte >> PAGE_SHIFT)
    row = Row(src, Frame(dst_pte >> PAGE_SHIFT) if dst is None else dst)
    _fill(row, src_vma.vm_flags, range(first, first + nr))
    if len(row.copied) < row_copy.min_entries:
        return None
    if dst is None:
        frames.put(dst_pte >> PAGE_SHIFT, row.dst)
    tape.extend((row, "copied", False, True))
    row.apply()
    return _rss(row.pages)


def _fill(row: Row, vm_flags: int, indices: range) -> None:
    """Compute the row: the rules of ``copy_present_ptes`` and ``__copy_present_ptes`` for each word in ``indices``."""
    bits, mem_map, src = system.bits, system.mem_map, row.src
    present, special, pfn_mask, pfn_shift = bits.present | bits.protnone, bits.special, bits.pfn_mask, bits.pfn_shift
    write = bits.write if is_cow_mapping(vm_flags) else 0
    protect = U64 & ~write
    copy = protect & ~(bits.accessed | (bits.dirty if vm_flags & VM_SHARED else 0))
    row.copied = {i: pte & copy for i in sorted(src) if i in indices and (pte := src[i]) & present}
    row.src_before = {i: src[i] for i in row.copied if src[i] & write}
    row.src_after = {i: pte & protect for i, pte in row.src_before.items()}
    row.pages = [mem_map[(pte & pfn_mask) >> pfn_shift] for pte in row.copied.values() if not pte & special]
    row.exclusive = [p for p in row.pages if p.flags & PG_anon_exclusive]


def _rss(pages: list[page]) -> list[int]:
    """How many of ``pages`` count in each MM_* counter."""
    rss = [0, 0, 0, 0]
    others = [p for p in pages if not isinstance(p.mapping, anon_vma)]
    rss[MM_ANONPAGES] = len(pages) - len(others)
    for p in others:
        rss[mm_counter_file(p)] += 1
    return rss
