"""Unmapping: clear the entries, flush, free the pages, free the tables (mm/memory.c,
mm/mmu_gather.c).

    zap_pte_range   clear each entry, uncount the page, set it aside  |
    tlb_finish_mmu  flush the range on every CPU                       |  one mmu_gather
                    only now drop the references of those pages      |

A page must not be freed while a TLB still leads to it.  A table is freed only if its whole span
lies between the neighbours that stay (``floor``, ``ceiling``).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kemu.kernel.arch.pgtable import (
    entry_none,
    pgd_offset,
    pte_dirty,
    pte_free,
    pte_offset_map_lock,
    pte_pfn,
    pte_present,
    pte_special,
    pte_unmap_unlock,
    pte_young,
    ptep_get_and_clear,
    set_pte,
    table_of,
)
from kemu.kernel.arch.tlbflush import TLB_FLUSH_ALL, flush_tlb_mm_range
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    folio,
    mm_struct,
    page,
    page_folio,
    vm_area_struct,
    vma_is_anonymous,
    vma_pages,
)
from kemu.kernel.include.swapops import classify, no_handler
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.filemap import folio_mark_dirty, mm_counter_file
from kemu.kernel.mm.lru import folio_mark_accessed
from kemu.kernel.mm.page_alloc import folio_put
from kemu.kernel.mm.rmap import folio_remove_rmap_pte, folio_test_anon, unlink_anon_vmas
from kemu.kernel.mm.rows import bulk
from kemu.kernel.mm.util import update_hiwater, vm_unacct_memory
from kemu.kernel.mm.vma import remove_vma, unlink_file_vma, vma_iter_clear
from kemu.kernel.mm.zap_row import put_row, zap_row
from kemu.trace.frames import linux

# ---------------------------------------------------------------- walking ranges


def addr_end(addr: int, end: int, shift: int) -> int:
    """The end of the span of 2**shift bytes in which ``addr`` lies, or ``end`` if that comes first
    (``pmd_addr_end``)."""
    boundary = ((addr >> shift) + 1) << shift
    return min(boundary, end)


def pmds_in(mm: mm_struct, addr: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(physical address of the PMD entry, from, to) for each PTE table in [addr, end), in order;
    empty spans are skipped at the highest level at which they are empty."""
    shifts = [level.shift for level in system.geometry.levels][:-1]
    yield from _entries(mm.pgd, shifts, addr, end)


def _entries(table: int, shifts: list[int], addr: int, end: int) -> Iterator[tuple[int, int, int]]:
    shift = shifts[0]
    while addr < end:
        next = addr_end(addr, end, shift)
        entry_pa = table + ((addr >> shift) & 511) * 8
        entry = system.phys.load(entry_pa)
        if entry and len(shifts) == 1:
            yield entry_pa, addr, next
        elif entry:
            yield from _entries(table_of(entry), shifts[1:], addr, next)
        addr = next


def ptes_in(ptep: int, addr: int, end: int) -> list[tuple[int, int, int]]:
    """(pointer, address, entry) of the entries that are not empty, from ``ptep`` for [addr, end)
    within one table.

    C visits every entry and skips those that are ``pte_none``; this visits only the words of the
    table that exist."""
    frame = system.phys.frames.get(ptep >> PAGE_SHIFT)
    if not frame:
        return []
    first = (ptep >> 3) & 511
    last = first + ((end - addr + PAGE_SIZE - 1) >> PAGE_SHIFT)
    if len(frame) < last - first:
        indices = sorted(i for i in frame if first <= i < last)
    else:
        indices = [i for i in range(first, last) if i in frame]
    return [(ptep + (i - first) * 8, addr + ((i - first) << PAGE_SHIFT), frame[i]) for i in indices]


def vm_normal_folio(vma: vm_area_struct, addr: int, pte: int) -> folio | None:
    """The folio of the page that the entry maps."""
    page = vm_normal_page(vma, addr, pte)
    return None if page is None else page_folio(page)


def vm_normal_page(vma: vm_area_struct, addr: int, pte: int) -> page | None:
    """The page that a present entry maps; None for the zero page and raw frames, which are not
    counted."""
    return None if pte_special(pte) else pfn_to_page(pte_pfn(pte))


# ---------------------------------------------------------------- mmu_gather


MAX_NR_FOLIOS_PER_FREE = 512
"""How many pages are freed together."""


class mmu_gather:
    """What one unmapping has collected: the range to flush, pages and tables to free after the
    flush."""

    __slots__ = ("mm", "start", "end", "freed_tables", "pages", "tables", "fullmm")  # fmt: skip

    def __init__(self, mm: mm_struct, fullmm: bool) -> None:
        self.mm = mm
        self.fullmm = fullmm
        self.start, self.end = U64, 0
        self.freed_tables = False
        self.pages: list[folio] = []
        self.tables: list[page] = []


@linux("mm/mmu_gather.c")
def tlb_gather_mmu(mm: mm_struct, *, fullmm: bool = False) -> mmu_gather:
    """Start unmapping in ``mm``; ``fullmm``: unmap all of it, for it will not be used again."""
    mm.tlb_flush_pending += 1
    return mmu_gather(mm, fullmm)


def tlb_track(tlb: mmu_gather, addr: int, size: int = PAGE_SIZE) -> None:
    """The entry at ``addr``, which maps ``size`` bytes, was cleared: add it to the range to
    flush."""
    tlb.start = min(tlb.start, addr)
    tlb.end = max(tlb.end, addr + size)


@linux("mm/mmu_gather.c")
def tlb_flush_mmu(tlb: mmu_gather) -> None:
    """Flush what was collected, then free it."""
    if tlb.end:
        end = TLB_FLUSH_ALL if tlb.fullmm else tlb.end
        flush_tlb_mm_range(
            tlb.mm, 0 if tlb.fullmm else tlb.start, end, freed_tables=tlb.freed_tables
        )
    for at in range(0, len(tlb.pages), MAX_NR_FOLIOS_PER_FREE):
        batch = tlb.pages[at : at + MAX_NR_FOLIOS_PER_FREE]
        if len(batch) < bulk.min_entries:
            for page in batch:
                folio_put(page)
        else:
            folios_put_refs(batch)
    for table in tlb.tables:
        pte_free(table)
    tlb.pages, tlb.tables = [], []
    tlb.start, tlb.end, tlb.freed_tables = U64, 0, False


@linux("mm/swap.c")
def folios_put_refs(folios: list[folio]) -> None:
    """Drop a reference of each page, as one row (zap_row.py) if possible."""
    if not put_row(folios):
        for folio in folios:
            folio_put(folio)


@linux("mm/mmu_gather.c")
def tlb_finish_mmu(tlb: mmu_gather) -> None:
    """Finish unmapping: flush and free what is left."""
    tlb_flush_mmu(tlb)
    tlb.mm.tlb_flush_pending -= 1


# ---------------------------------------------------------------- zapping entries


@attrs.frozen
class zap_details:
    """What to clear besides pages of the file: ``even_cows``: private copies; ``drop_markers``:
    guard markers.  ``reclaim_pt``: free a table whose whole span becomes empty."""

    even_cows: bool = True
    drop_markers: bool = False
    reclaim_pt: bool = False


ZAP_ALL = zap_details(drop_markers=True)


@linux("mm/memory.c")
def unmap_vmas(tlb: mmu_gather, vmas: list[vm_area_struct], start: int, end: int) -> None:
    """Clear all entries in [start, end) of ``vmas``, which are being removed."""
    for vma in vmas:
        first, last = max(vma.vm_start, start), min(vma.vm_end, end)
        if first < last:
            unmap_page_range(tlb, vma, first, last, ZAP_ALL)


@linux("mm/memory.c")
def unmap_page_range(
    tlb: mmu_gather, vma: vm_area_struct, addr: int, end: int, details: zap_details
) -> None:
    """Clear the entries of one VMA in [addr, end), table by table."""
    for pmd, first, last in list(pmds_in(tlb.mm, addr, end)):
        zap_pte_range(tlb, vma, pmd, first, last, details)


@linux("mm/memory.c")
def zap_pte_range(
    tlb: mmu_gather, vma: vm_area_struct, pmd: int, addr: int, end: int, details: zap_details
) -> None:
    """Clear the entries of [addr, end) in one table.  The dirty and accessed bits of file pages are
    kept, and each page is set aside with the reference that its entry held.  Many plain entries are
    cleared as one row (zap_row.py); the loop here does the same entry by entry."""
    mm = tlb.mm
    rss: dict[int, int] = {}
    ptep = pte_offset_map_lock(mm, pmd, addr)
    ptes = ptes_in(ptep, addr, end)
    row = zap_row(vma, ptes, even_cows=details.even_cows)
    if row is not None:
        pages, rss = row
        tlb.pages += pages
        tlb_track(tlb, ptes[0][1])
        tlb_track(tlb, ptes[-1][1])
        ptes = []
    for at, address, pte in ptes:
        if not pte_present(pte):
            zap_nonpresent_ptes(vma, at, pte, details)
            continue
        page = vm_normal_page(vma, address, pte)
        if page is not None and not details.even_cows and folio_test_anon(page_folio(page)):
            continue
        ptep_get_and_clear(mm, address, at)
        tlb_track(tlb, address)
        if page is not None:
            counter = zap_present_folio_ptes(tlb, vma, page, pte)
            rss[counter] = rss.get(counter, 0) - 1
    for counter, nr in rss.items():
        mm.rss_stat.put(counter, mm.rss_stat[counter] + nr)
    pte_unmap_unlock(ptep)
    if details.reclaim_pt and end - addr == 1 << system.pmd_shift and not ptes_in(ptep, addr, end):
        _free_table(tlb, pmd, system.pmd_shift, addr)


@linux("mm/memory.c")
def zap_nonpresent_ptes(vma: vm_area_struct, ptep: int, pte: int, details: zap_details) -> None:
    """Clear one entry that is not present, unless ``details`` keep its kind."""
    kind = classify(pte)
    if kind == "none":
        return
    if kind == "guard" or (kind == "uffd-wp" and not vma_is_anonymous(vma)):
        if not details.drop_markers:
            return
    elif kind == "poison":
        if not details.even_cows:
            return
    elif kind != "uffd-wp":
        raise no_handler(pte)
    set_pte(ptep, 0)


def zap_present_folio_ptes(tlb: mmu_gather, vma: vm_area_struct, page: page, pte: int) -> int:
    """Uncount one mapping of ``page``; returns the rss counter in which it counted."""
    folio = page_folio(page)
    counter = MM_ANONPAGES
    if not folio_test_anon(folio):
        counter = mm_counter_file(folio)
        if pte_dirty(pte):
            folio_mark_dirty(folio)
        if pte_young(pte) and not vma.vm_flags & (VM_SEQ_READ | VM_RAND_READ):
            folio_mark_accessed(folio)
    folio_remove_rmap_pte(folio, page, vma)
    tlb.pages.append(folio)
    return counter


# ---------------------------------------------------------------- freeing tables


@linux("mm/memory.c")
def free_pgtables(tlb: mmu_gather, vmas: list[vm_area_struct], floor: int, ceiling: int) -> None:
    """Unlink the VMAs from rmap and free the tables that only they used; VMAs closer than one PMD
    span are handled together.  ``floor``: the end of the VMA before them; ``ceiling``: the start of
    the VMA after them (0 = none)."""
    pmd_span = 1 << system.pmd_shift
    i = 0
    while i < len(vmas):
        addr = vmas[i].vm_start
        while i + 1 < len(vmas) and vmas[i + 1].vm_start <= vmas[i].vm_end + pmd_span:
            _unlink_vma(vmas[i])
            i += 1
        _unlink_vma(vmas[i])
        next_start = vmas[i + 1].vm_start if i + 1 < len(vmas) else ceiling
        free_pgd_range(tlb, addr, vmas[i].vm_end, floor, next_start)
        i += 1


def _unlink_vma(vma: vm_area_struct) -> None:
    unlink_anon_vmas(vma)
    unlink_file_vma(vma)


@linux("mm/memory.c")
def free_pgd_range(tlb: mmu_gather, addr: int, end: int, floor: int, ceiling: int) -> None:
    """Free the user tables of [addr, end) whose span reaches neither below ``floor`` nor above
    ``ceiling``."""
    size = 1 << system.pmd_shift
    addr &= -size
    if addr < floor:
        addr += size
    if ceiling:
        ceiling &= -size
        if not ceiling:
            return
    if end - 1 > (ceiling - 1) & U64:
        end -= size
    if addr > end - 1:
        return
    shifts = [level.shift for level in system.geometry.levels][:-1]
    while addr < end:
        next = addr_end(addr, end, shifts[0])
        pgd = pgd_offset(tlb.mm, addr)
        if not entry_none(pgd):
            _free_range(tlb, pgd, shifts, addr, next, floor, ceiling)
        addr = next


def _free_range(
    tlb: mmu_gather, entry_pa: int, shifts: list[int], addr: int, end: int, floor: int, ceiling: int
) -> None:
    """Free the tables below the entry at ``entry_pa`` and, if nothing else uses its span, the table
    that it points to (``free_pud_range``, ``free_pmd_range``, ``free_pte_range``: the same at each
    level).  ``shifts[0]`` is the span of the entry."""
    span = shifts[0]
    if len(shifts) > 1:
        table = table_of(system.phys.load(entry_pa))
        at = addr
        while at < end:
            next = addr_end(at, end, shifts[1])
            below = table + ((at >> shifts[1]) & 511) * 8
            if not entry_none(below):
                _free_range(tlb, below, shifts[1:], at, next, floor, ceiling)
            at = next
        start = addr & -(1 << span)
        if start < floor or (ceiling and not ceiling & -(1 << span)):
            return
        if end - 1 > ((ceiling & -(1 << span)) - 1) & U64:
            return
    _free_table(tlb, entry_pa, span, addr)


def _free_table(tlb: mmu_gather, entry_pa: int, span: int, addr: int) -> None:
    """Clear the entry and set its table aside until after the flush (``pte_free_tlb`` and the
    like)."""
    table = pfn_to_page(table_of(system.phys.load(entry_pa)) >> PAGE_SHIFT)
    set_pte(entry_pa, 0)
    if not (system.p4d_shift and span == system.pgd_shift):
        tlb.mm.pgtables_bytes -= PAGE_SIZE
    tlb.tables.append(table)
    tlb.freed_tables = True
    tlb_track(tlb, addr)


# ---------------------------------------------------------------- the end of an address space


@linux("mm/mmap.c")
def exit_mmap(mm: mm_struct) -> None:
    """The last user of the address space is gone: unmap everything, free the tables and the
    VMAs."""
    vmas = list(mm.mm_mt)
    if not vmas:
        return
    tlb = tlb_gather_mmu(mm, fullmm=True)
    unmap_vmas(tlb, vmas, 0, U64)
    mm.flags |= MMF_OOM_SKIP
    free_pgtables(tlb, vmas, 0, 0)
    tlb_finish_mmu(tlb)
    nr_accounted = 0
    for vma in vmas:
        if vma.vm_flags & VM_ACCOUNT:
            nr_accounted += vma_pages(vma)
        vma_iter_clear(mm, vma)
        mm.map_count -= 1
        remove_vma(vma)
    vm_unacct_memory(nr_accounted)


@linux("mm/memory.c")
def zap_page_range_single(
    vma: vm_area_struct, address: int, size: int, details: zap_details
) -> None:
    """Clear the entries of ``size`` bytes of one VMA, which stays."""
    tlb = tlb_gather_mmu(vma.vm_mm)
    update_hiwater(vma.vm_mm)
    unmap_page_range(tlb, vma, address, address + size, details)
    tlb_finish_mmu(tlb)
