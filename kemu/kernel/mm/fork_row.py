"""Copying a whole table of entries as one event (a row), for fork of large address spaces.

A fork of a process of 1 GiB copies 262,144 entries.  Entry by entry that is five events each; as
rows it is one event for each table of 512, which carries the entries before and after and the pages
that were counted.  The state after a row is the state after the loop of ``copy_pte_range``: a
property test holds them together.

Only tables of an mm that never pinned a page go this way; a pinned page needs the loop's early
copy.
"""

from __future__ import annotations

from collections import deque

from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    PAGE_SHIFT,
    U64,
    anon_vma,
    is_cow_mapping,
    page,
    vm_area_struct,
)
from kemu.kernel.include.swapops import PTE_MARKER_GUARD, make_pte_marker
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import mm_counter_file
from kemu.machine.physmem import WORDS, Frame
from kemu.trace.barrier import plain_setter
from kemu.trace.tape import emit


class RowCopy:
    """When rows are used: ``enabled`` at all, and for tables with at least ``min_entries`` entries
    to copy."""

    def __init__(self) -> None:
        self.enabled = True
        self.min_entries = 64


row_copy = RowCopy()

set_refcount = plain_setter(page, "_refcount")
set_mapcount = plain_setter(page, "_mapcount")
set_flags = plain_setter(page, "flags")


class Row:
    """One copied table: undone and redone as a whole.

    ``keys`` are the word indices of the present entries; ``before`` and ``after`` the parent's
    entries, which lose W in a private mapping; ``child`` the child's entries; ``markers`` what
    guards in the child too, by word index; ``pages`` those that got a mapping and a reference;
    ``exclusive`` those among them that were PageAnonExclusive."""

    __slots__ = ("src", "dst", "keys", "before", "after", "child", "markers", "pages", "exclusive")

    def __init__(self, src: Frame, dst: Frame) -> None:
        self.src, self.dst = src, dst
        self.keys: list[int] = []
        self.before: list[int] = []
        self.after: list[int] = []
        self.child: list[int] = []
        self.markers: dict[int, int] = {}
        self.pages: list[page] = []
        self.exclusive: list[page] = []

    @property
    def copied(self) -> dict[int, int]:
        """The child's entries by word index."""
        return dict(zip(self.keys, self.child, strict=True)) | self.markers

    @property
    def src_before(self) -> dict[int, int]:
        """The parent's entries that change, as they were, by word index."""
        return {
            i: old
            for i, old, new in zip(self.keys, self.before, self.after, strict=True)
            if old != new
        }

    def _restore(self, field: str, done: bool) -> None:
        if done:
            self.apply()
        else:
            self.undo()

    def apply(self) -> None:
        """Make the copy."""
        pages = self.pages
        _do(map(set_refcount, pages, [p._refcount + 1 for p in pages]))
        _do(map(set_mapcount, pages, [p._mapcount + 1 for p in pages]))
        _do(map(set_flags, self.exclusive, [p.flags & ~PG_anon_exclusive for p in self.exclusive]))
        if self.after is not self.before:
            self.src.update(zip(self.keys, self.after, strict=True))
        self.dst.update(zip(self.keys, self.child, strict=True))
        self.dst.update(self.markers)

    def undo(self) -> None:
        """Take the copy back."""
        pages = self.pages
        _do(map(set_refcount, pages, [p._refcount - 1 for p in pages]))
        _do(map(set_mapcount, pages, [p._mapcount - 1 for p in pages]))
        _do(map(set_flags, self.exclusive, [p.flags | PG_anon_exclusive for p in self.exclusive]))
        if self.after is not self.before:
            self.src.update(zip(self.keys, self.before, strict=True))
        _do(map(self.dst.__delitem__, self.keys))
        _do(map(self.dst.__delitem__, self.markers))


_do = deque[None](maxlen=0).extend
"""Do what an iterator does, for its effects."""


def copy_row(src_vma: vm_area_struct, dst_pte: int, src_pte: int, nr: int) -> list[int] | None:
    """Copy the entries among the ``nr`` words from ``src_pte`` in the parent's table to the
    child's, in one event; the rss by MM_* counter.  None: they are too few for a row, or of a kind
    that a row cannot carry, and nothing was done."""
    frames = system.phys.frames
    src, first = frames.get(src_pte >> PAGE_SHIFT), (src_pte >> 3) & 511
    if src is None or not row_copy.enabled or nr < row_copy.min_entries:
        return None
    dst = frames.get(dst_pte >> PAGE_SHIFT)
    row = Row(src, Frame(dst_pte >> PAGE_SHIFT) if dst is None else dst)
    if not _fill(row, src_vma.vm_flags, range(first, first + nr)):
        return None
    if dst is None:
        frames.put(dst_pte >> PAGE_SHIFT, row.dst)
    emit(row, "copied", False, True)
    row.apply()
    return _rss(row)


def _fill(row: Row, vm_flags: int, indices: range) -> bool:
    """Compute the row: the rules of ``copy_present_ptes`` and ``__copy_present_ptes`` for each word
    in ``indices``.  False if a row cannot carry them: too few entries are present, there are others
    than these and guard markers, or a page is part of a large folio."""
    bits, src = system.bits, row.src
    protect = U64 & ~bits.write if is_cow_mapping(vm_flags) else U64
    copy = protect & ~(bits.accessed | (bits.dirty if vm_flags & VM_SHARED else 0))
    keys = sorted(src if len(indices) == WORDS else [i for i in src if i in indices])
    entries = list(src.values()) if keys == list(src) else list(map(src.__getitem__, keys))
    plain, usual, pfn_mask, pfn_shift = (
        bits.present | bits.special,
        bits.present,
        bits.pfn_mask,
        bits.pfn_shift,
    )
    mapping = entries
    if [pte for pte in entries if pte & plain != usual]:
        present, guard = bits.present | bits.protnone, make_pte_marker(PTE_MARKER_GUARD)
        row.markers = {i: src[i] for i in keys if src[i] == guard}
        keys = [i for i in keys if src[i] & present]
        if len(keys) + len(row.markers) < len(entries):
            return False
        entries = list(map(src.__getitem__, keys))
        mapping = [pte for pte in entries if not pte & bits.special]
    if len(keys) < row_copy.min_entries:
        return False
    row.keys, row.before = keys, entries
    row.child = [pte & copy for pte in entries]
    row.after = entries if protect == U64 else [pte & protect for pte in entries]
    row.pages = list(
        map(system.mem_map.__getitem__, [(pte & pfn_mask) >> pfn_shift for pte in mapping])
    )
    if [p for p in row.pages if p.compound_head is not None or p.order]:
        return False
    exclusive = [p for p in row.pages if p.flags & PG_anon_exclusive]
    row.exclusive = row.pages if len(exclusive) == len(row.pages) else exclusive
    return True


def _rss(row: Row) -> list[int]:
    """How many of the row's pages count in each MM_* counter.  What is exclusive is anonymous:
    nobody looks at it again."""
    rss = [0, 0, 0, 0]
    others = (
        []
        if row.exclusive is row.pages
        else [p for p in row.pages if type(p.mapping) is not anon_vma]
    )
    rss[MM_ANONPAGES] = len(row.pages) - len(others)
    for p in others:
        rss[mm_counter_file(p)] += 1
    return rss
