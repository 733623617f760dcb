"""Clear a whole table of entries as one event, and free the pages that were set aside as another
(rows.py): for exit, munmap, MADV_DONTNEED and truncation of large mappings."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kemu.kernel.include.flags import *
from kemu.kernel.include.lists import list_head
from kemu.kernel.include.mm_inline import folio_lru_list
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    PAGE_SHIFT,
    PGTY_buddy,
    anon_vma,
    folio,
    vm_area_struct,
)
from kemu.kernel.include.mmzone import (
    PAGE_FLAGS_CHECK_AT_PREP,
    ZONES_PGSHIFT,
    folio_lruvec,
    page_zone,
)
from kemu.kernel.include.sched_types import MAX_ORDER, zone
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import mm_counter_file
from kemu.kernel.mm.page_alloc import page_is_buddy
from kemu.kernel.mm.rows import Row, bulk

# ---------------------------------------------------------------- entries


def zap_row(
    vma: vm_area_struct, ptes: list[tuple[int, int, int]], *, even_cows: bool
) -> tuple[list[folio], dict[int, int]] | None:
    """Clear the entries ``ptes`` ((pointer, address, entry), of one table) in one event: the pages
    that lost a mapping, in order, and how many for each MM_* counter.  None, with nothing done, if
    they are too few for a row or of a kind that a row does not support."""
    bits = system.bits
    if not bulk.enabled or len(ptes) < bulk.min_entries or vma.vm_flags & VM_LOCKED:
        return None
    entries = [pte for _, _, pte in ptes]
    mapped = bits.present | bits.protnone
    if [pte for pte in entries if not pte & mapped]:
        return None
    mapping = [pte for pte in entries if not pte & bits.special]
    pages = list(
        map(system.mem_map.__getitem__, [(e & bits.pfn_mask) >> bits.pfn_shift for e in mapping])
    )
    if [p for p in pages if p.compound_head is not None or p.order]:
        return None
    row, rss = Row(), {}
    of_file = [
        (p, pte) for p, pte in zip(pages, mapping, strict=True) if type(p.mapping) is not anon_vma
    ]
    if len(of_file) < len(pages):
        if not even_cows:
            return None
        rss[MM_ANONPAGES] = len(of_file) - len(pages)
    sequential = vma.vm_flags & (VM_SEQ_READ | VM_RAND_READ)
    for p, pte in of_file:
        flags = p.flags | (PG_dirty if pte & bits.dirty else 0)
        if pte & bits.accessed and not sequential:
            if flags & PG_referenced and not flags & (PG_unevictable | PG_active):
                return None  # folio_mark_accessed moves it to another list
            flags |= PG_referenced
        if flags != p.flags:
            row.change([p], ["flags"], [p.flags], [flags])
        counter = mm_counter_file(p)
        rss[counter] = rss.get(counter, 0) - 1
    frame = system.phys.frames[ptes[0][0] >> PAGE_SHIFT]
    keys = [(at >> 3) & 511 for at, _, _ in ptes]
    row.change([frame] * len(keys), keys, entries, [None] * len(keys))
    row.update(pages, "_mapcount", -1)
    row.do("zapped")
    return pages, rss


# ---------------------------------------------------------------- references


def put_row(folios: list[folio]) -> bool:
    """Drop one reference of each page in one event; pages that are no longer held go back to the
    allocator.  False, with nothing done, if they are too few for a row or of a kind that a row does
    not support."""
    if (
        not bulk.enabled
        or len(folios) < bulk.min_entries
        or len(set(map(id, folios))) < len(folios)
    ):
        return False
    counts = [p._refcount for p in folios]
    freed = [p for p, count in zip(folios, counts, strict=True) if count == 1]
    kinds = {p.flags for p in freed}
    if min(counts) < 1 or [p for p in freed if p._mapcount != -1 or p.private or p.page_type]:
        return False  # a bad page: the loop reports it
    if [p for p in folios if p.compound_head is not None or p.order]:
        return False
    if [flags for flags in kinds if flags & PG_locked] or len(
        {f >> ZONES_PGSHIFT for f in kinds}
    ) > 1:
        return False
    row = Row()
    row.update(folios, "_refcount", -1)
    if freed:
        _free(row, freed)
    row.do("put")
    return True


class _Cells:
    """The future values of fields, before anything is changed."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, str], list[Any]] = {}

    def get(self, obj: Any, field: str) -> Any:
        found = self.cells.get((id(obj), field))
        return getattr(obj, field) if found is None else found[3]

    def set(self, obj: Any, field: str, value: Any) -> None:
        found = self.cells.get((id(obj), field))
        if found is None:
            self.cells[id(obj), field] = [obj, field, getattr(obj, field), value]
        else:
            found[3] = value

    def link(self, first: list_head, second: list_head) -> None:
        """Link the two as neighbours in a list."""
        self.set(first, "next", second)
        self.set(second, "prev", first)


def _free(row: Row, freed: list[folio]) -> None:
    """Apply ``__folio_put`` and ``free_frozen_pages`` to each page, in order: take it off its LRU
    list, clean it, and merge it with the free blocks around it."""
    cells = _Cells()
    lru = [p for p in freed if p.flags & PG_lru]
    inside = set(map(id, lru))
    for p in lru:
        if id(p.prev) not in inside:  # the first of neighbours in the list
            last = p
            while id(last.next) in inside:
                last = last.next
            cells.link(p.prev, last.next)
    kinds = Counter([p.flags for p in lru])
    nr: Counter[int] = Counter()
    for p in {p.flags: p for p in lru}.values():
        nr[folio_lru_list(p)] += kinds[p.flags]
    sizes = folio_lruvec(freed[0]).nr
    row.change([sizes] * len(nr), list(nr), [sizes[i] for i in nr], [sizes[i] - nr[i] for i in nr])
    zone = page_zone(freed[0])
    _join(cells, zone, [p.pfn for p in freed])
    cells.set(zone, "nr_free_pages", zone.nr_free_pages + len(freed))
    cells.set(system.vmstat, "PGFREE", system.vmstat.PGFREE + len(freed))
    joined = {id(obj) for obj, *_ in cells.cells.values()}
    others = [p for p in freed if id(p) not in joined]
    mappings = [p.mapping for p in freed]
    row.update(freed, "flags", mask=~PAGE_FLAGS_CHECK_AT_PREP)
    row.change(freed, ["mapping"] * len(freed), mappings, [None] * len(freed))
    nothing = [None] * len(others)
    row.change(others, ["next"] * len(others), [p.next for p in others], nothing)
    row.change(others, ["prev"] * len(others), [p.prev for p in others], nothing)
    row.log += [slot for cell in cells.cells.values() for slot in cell]


def _join(cells: _Cells, zone: zone, pfns: list[int]) -> None:
    """The free lists of the zone after each of these frames was freed, in order:
    ``__free_one_page``."""
    mem_map, areas = system.mem_map, zone.free_area
    made: dict[int, int] = {}
    taken: dict[int, int] = {}
    for pfn in pfns:
        order = 0
        while order < MAX_ORDER:
            buddy = pfn ^ (1 << order)
            if made.get(buddy) == order:
                del made[buddy]
            else:
                found = mem_map.get(buddy)
                if (
                    found is None
                    or found.page_type != PGTY_buddy
                    or buddy in taken
                    or not page_is_buddy(found, zone, order)
                ):
                    break
                taken[buddy] = order
            pfn &= ~(1 << order)
            order += 1
        made[pfn] = order
    for blocks, sign in ((taken, -1), (made, 1)):
        for pfn, order in blocks.items():
            p, area = mem_map[pfn], areas[order]
            cells.set(area, "nr_free", cells.get(area, "nr_free") + sign)
            if blocks is taken:
                cells.link(cells.get(p, "prev"), cells.get(p, "next"))
                cells.set(p, "next", None)
                cells.set(p, "prev", None)
            else:
                cells.link(p, cells.get(area.free_list, "next"))
                cells.link(area.free_list, p)
            cells.set(p, "page_type", 0 if blocks is taken else PGTY_buddy)
            cells.set(p, "private", 0 if blocks is taken else order)
