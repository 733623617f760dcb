"""Copying a whole table of entries as one event, for fork of large address spaces (rows.py).

This is done only for an mm that never pinned a page; a pinned page needs the loop's early copy.
"""

from __future__ import annotations

from kemu.kernel.include.flags import VM_SHARED, PG_anon_exclusive
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    PAGE_SHIFT,
    anon_vma,
    is_cow_mapping,
    page,
    vm_area_struct,
)
from kemu.kernel.include.swapops import PTE_MARKER_GUARD, make_pte_marker
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import mm_counter_file
from kemu.kernel.mm.rows import Row, bulk
from kemu.machine.physmem import WORDS, Frame


def copy_row(src_vma: vm_area_struct, dst_pte: int, src_pte: int, nr: int) -> list[int] | None:
    """Copy the entries among the ``nr`` words from ``src_pte`` in the parent's table to the
    child's, in one event; the rss by MM_* counter.  None, with nothing done, if they are too few
    for a row or of a kind that a row cannot hold.

    The rules are those of ``copy_present_ptes`` and ``__copy_present_ptes``."""
    frames, bits, vm_flags = system.phys.frames, system.bits, src_vma.vm_flags
    src, first = frames.get(src_pte >> PAGE_SHIFT), (src_pte >> 3) & 511
    if src is None or not bulk.enabled or nr < bulk.min_entries:
        return None
    keys = sorted(src if nr == WORDS else [i for i in src if first <= i < first + nr])
    entries = list(src.values()) if keys == list(src) else list(map(src.__getitem__, keys))
    guards: list[int] = []
    present, special, write = bits.present, bits.special, bits.write
    plain, pfn_mask, pfn_shift = present | special, bits.pfn_mask, bits.pfn_shift
    mapping = entries
    if [pte for pte in entries if pte & plain != present]:
        present, guard = present | bits.protnone, make_pte_marker(PTE_MARKER_GUARD)
        guards = [i for i in keys if src[i] == guard]
        keys = [i for i in keys if src[i] & present]
        if len(keys) + len(guards) < len(entries):
            return None
        entries = list(map(src.__getitem__, keys))
        mapping = [pte for pte in entries if not pte & special]
    if len(keys) < bulk.min_entries:
        return None
    pages = list(map(system.mem_map.__getitem__, [(e & pfn_mask) >> pfn_shift for e in mapping]))
    if [p for p in pages if p.compound_head is not None or p.order]:
        return None
    row = Row()
    row.update(pages, "_refcount", 1)
    row.update(pages, "_mapcount", 1)
    exclusive = row.update(pages, "flags", mask=~PG_anon_exclusive)
    protect = ~write if is_cow_mapping(vm_flags) else ~0
    old = [pte for pte in entries if pte & ~protect]
    loose = keys if len(old) == len(keys) else [i for i in keys if src[i] & ~protect]
    row.change([src] * len(old), loose, old, [pte & protect for pte in old])
    dst = frames.get(dst_pte >> PAGE_SHIFT)
    if dst is None:
        dst = Frame(dst_pte >> PAGE_SHIFT)
        row.change([frames], [dst.pfn], [None], [dst])
    copy = protect & ~(bits.accessed | (bits.dirty if vm_flags & VM_SHARED else 0))
    copied = [pte & copy for pte in entries] + [src[i] for i in guards]
    keys += guards
    row.change([dst] * len(keys), keys, [None] * len(keys), copied)
    row.do("copied")
    return _rss(pages, all_exclusive=exclusive == len(pages))


def _rss(pages: list[page], *, all_exclusive: bool) -> list[int]:
    """The number of pages for each MM_* counter.  An exclusive page is anonymous and needs no
    check."""
    rss = [0, 0, 0, 0]
    others = [] if all_exclusive else [p for p in pages if type(p.mapping) is not anon_vma]
    rss[MM_ANONPAGES] = len(pages) - len(others)
    for p in others:
        rss[mm_counter_file(p)] += 1
    return rss
