"""Copying a whole table of entries as one event (a row), for fork of large address spaces.

A fork of a process of 1 GiB copies 262,144 entries.  Entry by entry that is five events each; as rows it is one event for each
table of 512, which carries the entries before and after and the pages that were counted.  The state after a row is the
state after the loop of ``copy_pte_range``: a property test holds them together.

Only tables of an mm that never pinned a page go this way; a pinned page needs the loop's early copy.
"""

from __future__ import annotations

from kemu.kernel.filemap import mm_counter_file
from kemu.kernel.flags import VM_SHARED, PG_anon_exclusive
from kemu.kernel.mm_types import MM_ANONPAGES, PAGE_SHIFT, anon_vma, is_cow_mapping, page, vm_area_struct
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


def copy_row(src_vma: vm_area_struct, dst_pte: int, src_pte: int, entries: list[tuple[int, int, int]]) -> list[int]:
    """Copy ``entries`` (pointer, address, entry) of the parent's table to the child's in one event; the rss by MM_* counter."""
    phys = system.phys
    if dst_pte >> PAGE_SHIFT not in phys.frames:
        phys.frames.put(dst_pte >> PAGE_SHIFT, Frame(dst_pte >> PAGE_SHIFT))
    row = Row(phys.frames[src_pte >> PAGE_SHIFT], phys.frames[dst_pte >> PAGE_SHIFT])
    rss = _fill(row, src_vma.vm_flags, entries)
    tape.extend((row, "copied", False, True))
    row.apply()
    return rss


def _fill(row: Row, vm_flags: int, entries: list[tuple[int, int, int]]) -> list[int]:
    """Compute the row: the rules of ``copy_present_ptes`` and ``__copy_present_ptes`` for each entry."""
    bits, mem_map = system.bits, system.mem_map
    present, special, pfn_mask, pfn_shift = bits.present | bits.protnone, bits.special, bits.pfn_mask, bits.pfn_shift
    write = bits.write if is_cow_mapping(vm_flags) else 0
    keep = ~(bits.accessed | write | (bits.dirty if vm_flags & VM_SHARED else 0))
    ptes = {(at >> 3) & 511: pte for at, _, pte in entries if pte & present}
    row.copied = {i: pte & keep for i, pte in ptes.items()}
    row.src_before = {i: pte for i, pte in ptes.items() if pte & write}
    row.src_after = {i: pte & ~write for i, pte in row.src_before.items()}
    row.pages = [mem_map[(pte & pfn_mask) >> pfn_shift] for pte in ptes.values() if not pte & special]
    row.exclusive = [p for p in row.pages if p.flags & PG_anon_exclusive]
    return _rss(row.pages)


def _rss(pages: list[page]) -> list[int]:
    """How many of ``pages`` count in each MM_* counter."""
    rss = [0, 0, 0, 0]
    others = [p for p in pages if not isinstance(p.mapping, anon_vma)]
    rss[MM_ANONPAGES] = len(pages) - len(others)
    for p in others:
        rss[mm_counter_file(p)] += 1
    return rss
