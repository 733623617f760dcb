"""Pages: their counts, mappings and lists (reference E and F: numbers 44 to 57, and 69, 73, 74)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

from kemu.invariants.registry import ALWAYS, QUIESCENT, Finding, invariant
from kemu.invariants.scan import GUP_PIN_COUNTING_BIAS, Mapped, Scan, listed
from kemu.kernel.include.flags import (
    VM_DROPPABLE,
    PG_active,
    PG_lru,
    PG_reserved,
    PG_swapbacked,
    PG_unevictable,
)
from kemu.kernel.include.mm_inline import folio_lru_list
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    MM_COUNTER_NAMES,
    PAGE_SHIFT,
    PGTY_buddy,
    PGTY_table,
    address_space,
    anon_vma,
    folio_nr_pages,
    page,
    page_folio,
)
from kemu.kernel.include.mmzone import nr_free_pages, totalram_pages
from kemu.kernel.include.sched_types import LRU_NAMES, MAX_ORDER
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import file_pages, mm_counter_file


@invariant(44, when=ALWAYS)
def refcount_covers_mapcount(scan: Scan) -> Iterator[Finding]:
    """Every mapping holds a reference: ``_refcount`` is at least the number of mappings.

    A mapping is counted after its reference is taken, and uncounted before the reference is
    dropped.  mm/rmap.c, mm/memory.c."""
    for pfn, p in scan.pages.items():
        if page_folio(p)._refcount <= p._mapcount:
            yield (
                f"page {pfn:#x}",
                f"_refcount {page_folio(p)._refcount}",
                f"{p._mapcount + 1} mappings are counted",
            )


@invariant(44, when=QUIESCENT)
def refcount_is_explained(scan: Scan) -> Iterator[Finding]:
    """``_refcount`` is the sum of the references that mappings and other holders have.

    One for each mapping, one for the page cache, one for each batch and each pipe that holds the
    page, 1024 for each pin, one for the kernel.  Quiescent, because a fault holds the page that it
    handles.  include/linux/mm.h: folio_expected_ref_count."""
    for pfn, p in scan.pages.items():
        if p.page_type or pfn == system.zero_pfn or p.compound_head is not None:
            continue
        parts = references(scan, pfn)
        if p._refcount != sum(parts.values()):
            yield (
                f"page {pfn:#x}",
                f"_refcount {p._refcount}",
                " + ".join(f"{n} {what}" for what, n in parts.items()),
            )


def references(scan: Scan, pfn: int) -> dict[str, int]:
    """The references to the folio that begins at ``pfn``, by kind; rare kinds are listed only
    where there are some."""
    pages = range(pfn, pfn + folio_nr_pages(scan.pages[pfn]))
    parts = {
        "mappings": sum(scan.entries_of[page] for page in pages),
        "cache": int(pfn in scan.cached),
        "pins": sum(pins(scan, page) for page in pages),
    }
    rare = {
        "in batches": scan.batched[pfn],
        "in pipes": scan.in_pipes[pfn],
        "kernel": int(pfn in scan.kernels_own),
    }
    return parts | {what: n for what, n in rare.items() if n}


def pins(scan: Scan, pfn: int) -> int:
    """References by pins."""
    return scan.pinned[pfn] * GUP_PIN_COUNTING_BIAS


@invariant(45, when=QUIESCENT)
def mapcount_counts_entries(scan: Scan) -> Iterator[Finding]:
    """``_mapcount`` + 1 is the number of present entries that map the page.

    The zero page and raw frames are not counted.  mm/rmap.c."""
    for pfn, p in scan.pages.items():
        if p._mapcount + 1 != scan.entries_of[pfn]:
            yield (
                f"page {pfn:#x}",
                f"_mapcount {p._mapcount}",
                f"{scan.entries_of[pfn]} entries map it",
            )


@invariant(46, when=ALWAYS)
def mapped_frames_are_allocated(scan: Scan) -> Iterator[Finding]:
    """No entry maps a free frame.

    An entry is cleared, and flushed, before the last reference is dropped.  mm/mmu_gather.c;
    mm/memory.c: wp_page_copy."""
    for mapped in scan.mapped:
        if mapped.page is not None and mapped.page._refcount <= 0:
            yield (
                scan.at(mapped),
                f"maps frame {mapped.pfn:#x}",
                f"its _refcount is {mapped.page._refcount}: it is free",
            )


@invariant(46, when=ALWAYS)
def cached_pages_are_allocated(scan: Scan) -> Iterator[Finding]:
    """No page cache holds a free frame.

    The page leaves the cache before the reference is dropped.  mm/filemap.c:
    __filemap_remove_folio."""
    for pfn, (node, index) in scan.cached.items():
        p = scan.pages[pfn]
        if p._refcount <= 0:
            yield (
                f"{node} page {index:#x}",
                f"frame {pfn:#x}",
                f"its _refcount is {p._refcount}: it is free",
            )


@invariant(46, when=QUIESCENT)
def free_lists_hold_free_frames(scan: Scan) -> Iterator[Finding]:
    """The free lists hold each free frame once and nothing else; the allocator's counts agree.

    A free frame is not mapped, not in a page cache and not on an LRU list.  mm/page_alloc.c:
    free_pages_prepare."""
    total = 0
    for area in (area for zone in scan.zones for area in zone.free_area):
        blocks = [node for node in listed(area.free_list) if isinstance(node, page)]
        total += len(blocks) << area.order
        if len(blocks) != area.nr_free:
            yield (
                f"order {area.order}",
                f"nr_free {area.nr_free}",
                f"{len(blocks)} blocks are on the list",
            )
        for p in blocks:
            if p.page_type != PGTY_buddy or p.private != area.order:
                yield (
                    f"page {p.pfn:#x}",
                    f"page_type {p.page_type:#x}, order {p.private}",
                    f"on the list of order {area.order}",
                )
    if total != nr_free_pages():
        yield (
            "the zone",
            f"nr_free_pages {nr_free_pages()}",
            f"{total} frames are on the lists",
        )
    for pfn, p in scan.pages.items():
        if (p._refcount or p.mapping is not None or p.flags & PG_lru) and in_free_block(pfn):
            yield (
                f"page {pfn:#x}",
                f"_refcount {p._refcount}, mapping {p.mapping}",
                "it is in a free block",
            )


def in_free_block(pfn: int) -> bool:
    """True if the frame belongs to a block that is marked free."""
    for order in range(MAX_ORDER + 1):
        head = system.mem_map.get(pfn & -(1 << order))
        if head is not None and head.page_type == PGTY_buddy and head.private == order:
            return True
    return False


@invariant(46, when=QUIESCENT)
def frames_are_free_or_used(scan: Scan) -> Iterator[Finding]:
    """Every frame of the allocator is free or has a holder: no frame is lost.

    A frame without references that is not on a free list could never be used again.
    mm/page_alloc.c."""
    in_use = sum(
        folio_nr_pages(p)
        for p in scan.pages.values()
        if p._refcount > 0 and not p.flags & PG_reserved
    )
    in_use += scan.pages[system.zero_pfn].flags & PG_reserved and 1
    if in_use + nr_free_pages() != totalram_pages():
        has = f"{nr_free_pages()} free + {in_use} in use"
        yield "the zone", has, f"the allocator has {totalram_pages()} frames"


@invariant(47, when=QUIESCENT)
def reverse_map_finds_every_entry(scan: Scan) -> Iterator[Finding]:
    """From every mapped page, ``mapping`` and ``index`` lead back to the entry.

    They lead there through the anon_vma's tree for an anonymous page, through i_mmap for a file
    page; the kernel's own pages (vdso) have no reverse mapping.  mm/rmap.c: rmap_walk."""
    visited: dict[int, set[int]] = {}
    for mapped in scan.mapped:
        if mapped.page is None or mapped.vma is None or mapped.page.mapping is None:
            continue
        mapping, vma = mapped.page.mapping, mapped.vma
        if id(mapping) not in visited:
            visited[id(mapping)] = _vmas_of(mapping)
        index = vma.vm_pgoff + (mapped.address - vma.vm_start >> PAGE_SHIFT)
        if mapped.page.index != index:
            yield (
                scan.at(mapped),
                f"page {mapped.pfn:#x} has index {mapped.page.index:#x}",
                f"the VMA maps {index:#x} there",
            )
        elif id(vma) not in visited[id(mapping)]:
            yield (
                scan.at(mapped),
                f"maps page {mapped.pfn:#x}",
                f"the reverse map of {mapping} does not visit the VMA",
            )


def _vmas_of(mapping: object) -> set[int]:
    if isinstance(mapping, anon_vma):
        return {id(link.vma) for link in mapping.rb_root}
    return {id(vma) for vma in mapping.i_mmap} if isinstance(mapping, address_space) else set()


@invariant(48, 49, when=QUIESCENT)
def anon_vmas_are_linked(scan: Scan) -> Iterator[Finding]:
    """A VMA with anonymous pages has an anon_vma, is in its tree once per link, and is counted.

    mm/rmap.c: anon_vma_clone, anon_vma_fork, unlink_anon_vmas."""
    active: Counter[int] = Counter()
    seen: dict[int, anon_vma] = {}
    for mm in scan.spaces:
        for vma in mm.mm_mt:
            links = {id(link.anon_vma) for link in vma.anon_vma_chain}
            seen |= {id(link.anon_vma): link.anon_vma for link in vma.anon_vma_chain}
            if vma.anon_vma is not None:
                active[id(vma.anon_vma)] += 1
                if id(vma.anon_vma) not in links:
                    yield (
                        f"{scan.space(mm)} {vma.vm_start:#x}",
                        f"{vma.anon_vma}",
                        "its chain does not lead there",
                    )
            for link in vma.anon_vma_chain:
                if not any(other is link for other in link.anon_vma.rb_root):
                    yield (
                        f"{scan.space(mm)} {vma.vm_start:#x}",
                        f"linked to {link.anon_vma}",
                        "it is not in that tree",
                    )
    for key, av in seen.items():
        yield from _strays(av)
        yield from _miscounted(av, seen)
        if av.num_active_vmas != active[key]:
            yield f"{av}", f"num_active_vmas {av.num_active_vmas}", f"{active[key]} VMAs have it"
    yield from _without_anon_vma(scan)


def _miscounted(av: anon_vma, seen: dict[int, anon_vma]) -> Iterator[Finding]:
    """``num_children`` counts the anon_vmas in use that have it as their parent; those in use
    below a root also hold the root."""
    children = sum(other.parent is av for other in seen.values())
    below = sum(other.root is av and other is not av for other in seen.values())
    if av.num_children != children:
        yield (
            f"{av}",
            f"num_children {av.num_children}",
            f"{children} anon_vmas have it as their parent",
        )
    if av.refcount != 1 + below:
        yield f"{av}", f"refcount {av.refcount}", f"1 + {below} anon_vmas below it"


def _strays(av: anon_vma) -> Iterator[Finding]:
    """Links in the tree that are missing from their VMA's chain."""
    for link in av.rb_root:
        if not any(other is link for other in link.vma.anon_vma_chain):
            yield f"{av}", f"leads to {link.vma}", "that VMA's chain does not lead back"


def _without_anon_vma(scan: Scan) -> Iterator[Finding]:
    for mapped in scan.mapped:
        if mapped.vma is not None and is_anon(mapped) and mapped.vma.anon_vma is None:
            yield (
                scan.at(mapped),
                f"maps the anonymous page {mapped.pfn:#x}",
                "its VMA has no anon_vma",
            )


def is_anon(mapped: Mapped) -> bool:
    """True for an entry of an anonymous page."""
    return mapped.page is not None and isinstance(mapped.page.mapping, anon_vma)


@invariant(50, when=QUIESCENT)
def mappings_have_their_kind(scan: Scan) -> Iterator[Finding]:
    """A file's cache has a page at ``index`` if and only if the page's ``mapping`` is that cache.

    An anonymous page is in no cache.  Linux tells the two kinds apart by the low bits of
    ``mapping``.  include/linux/page-flags.h."""
    for pfn, (node, index) in scan.cached.items():
        p = scan.pages[pfn]
        if p.mapping is not node.i_mapping or p.index != index:
            yield (
                f"page {pfn:#x}",
                f"mapping {p.mapping}, index {p.index:#x}",
                f"it is page {index:#x} of {node}",
            )
    for node in scan.inodes:
        if node.i_mapping.nrpages != len(node.i_mapping.i_pages):
            yield (
                f"{node}",
                f"nrpages {node.i_mapping.nrpages}",
                f"{len(node.i_mapping.i_pages)} pages are cached",
            )


@invariant(51, when=QUIESCENT)
def lru_lists_are_right(scan: Scan) -> Iterator[Finding]:
    """A page with PG_lru is on the list that its flags select, and the lengths of the lists agree.

    Page tables are on no LRU list.  include/linux/mm_inline.h: folio_lru_list."""
    on_lists: Counter[int] = Counter()
    for lruvec, lru in product([node.lruvec for node in system.node_data], range(len(LRU_NAMES))):
        nodes = listed(lruvec.lists[lru])
        pages = [node for node in nodes if isinstance(node, page)]
        if len(pages) != len(nodes):
            yield (
                f"lru list {LRU_NAMES[lru]}",
                "leads to the head of a list",
                "only pages are on it",
            )
        on_lists.update(p.pfn for p in pages)
        if sum(map(folio_nr_pages, pages)) != lruvec.nr[lru]:
            yield (
                f"lru list {LRU_NAMES[lru]}",
                f"{lruvec.nr[lru]} counted",
                f"{sum(map(folio_nr_pages, pages))} pages are on it",
            )
        for p in pages:
            if p.page_type == PGTY_table or folio_lru_list(p) != lru:
                yield (
                    f"page {p.pfn:#x}",
                    f"on {LRU_NAMES[lru]}",
                    f"its flags say {LRU_NAMES[folio_lru_list(p)]}",
                )
    for pfn, p in scan.pages.items():
        if bool(p.flags & PG_lru) != (on_lists[pfn] == 1):
            yield (
                f"page {pfn:#x}",
                f"PG_lru {bool(p.flags & PG_lru)}",
                f"it is on {on_lists[pfn]} lists",
            )
        if p.flags & PG_active and p.flags & PG_unevictable:
            yield f"page {pfn:#x}", "PG_active", "it is unevictable"


@invariant(52, when=QUIESCENT)
def swapbacked_pages_are_memory(scan: Scan) -> Iterator[Finding]:
    """PG_swapbacked is set on shared memory, and clear on disk files and droppable memory.

    It means that the page holds the only copy of its contents.  Other anonymous pages have it until
    MADV_FREE clears it.  mm/rmap.c: folio_add_new_anon_rmap; mm/swap.c: lru_lazyfree."""
    for pfn, (node, _) in scan.cached.items():
        if bool(scan.pages[pfn].flags & PG_swapbacked) is (node.kind == "disk"):
            yield (
                f"page {pfn:#x}",
                f"PG_swapbacked {bool(scan.pages[pfn].flags & PG_swapbacked)}",
                f"it is a page of {node}",
            )
    for mapped in scan.mapped:
        droppable = mapped.vma is not None and mapped.vma.vm_flags & VM_DROPPABLE
        if (
            droppable
            and is_anon(mapped)
            and mapped.page is not None
            and mapped.page.flags & PG_swapbacked
        ):
            yield (
                scan.at(mapped),
                f"page {mapped.pfn:#x} is PG_swapbacked",
                "the mapping is droppable",
            )


@invariant(53, 54, when=QUIESCENT)
def rss_counts_entries(scan: Scan) -> Iterator[Finding]:
    """``rss_stat`` counts the present entries by kind of page: anonymous, file, shared memory.

    The zero page, raw frames and markers are not counted.  include/linux/mm.h: mm_counter."""
    counted: dict[int, Counter[int]] = {id(mm): Counter() for mm in scan.spaces}
    for mapped in scan.mapped:
        if mapped.page is not None:
            member = MM_ANONPAGES if is_anon(mapped) else mm_counter_file(mapped.page)
            counted[id(mapped.mm)][member] += 1
    for mm in scan.spaces:
        for member, name in enumerate(MM_COUNTER_NAMES):
            if mm.rss_stat[member] != counted[id(mm)][member]:
                yield (
                    f"mm of {scan.space(mm)}",
                    f"{name} {mm.rss_stat[member]}",
                    f"{counted[id(mm)][member]} entries",
                )


@invariant(69, when=ALWAYS)
def counts_are_not_negative(scan: Scan) -> Iterator[Finding]:
    """No ``_refcount`` is below 0, and no ``_mapcount`` below -1.

    A lower value means one put too many.  include/linux/page_ref.h; lib/refcount.c says "underflow;
    use-after-free"."""
    for pfn, p in scan.pages.items():
        if p._refcount < 0 or p._mapcount < -1:
            yield (
                f"page {pfn:#x}",
                f"_refcount {p._refcount}, _mapcount {p._mapcount}",
                "they start at 0 and -1",
            )


@invariant(73, when=ALWAYS)
def watermarks_are_ordered(scan: Scan) -> Iterator[Finding]:
    """The watermarks rise in equal steps: min, low, high.

    mm/page_alloc.c: __setup_per_zone_wmarks."""
    for z in scan.zones:
        if not z.watermark_min <= z.watermark_low <= z.watermark_high:
            yield (
                "the zone",
                f"min {z.watermark_min}, low {z.watermark_low}, high {z.watermark_high}",
                "they must rise",
            )
        elif z.watermark_low - z.watermark_min != z.watermark_high - z.watermark_low:
            yield (
                "the zone",
                f"low - min {z.watermark_low - z.watermark_min}",
                f"high - low {z.watermark_high - z.watermark_low}",
            )


@invariant(74, when=QUIESCENT)
def nothing_lies_behind_the_end(scan: Scan) -> Iterator[Finding]:
    """Beyond the end of a file no page and no private copy is mapped, and no disk page is cached.

    Files in memory may have cached pages there: fallocate with keep_size makes them, and so does a
    write that fails in its first bytes.  Guard markers stay.  mm/truncate.c: truncate_setsize comes
    before truncate_pagecache."""
    for mapped in scan.mapped:
        if mapped.vma is not None and mapped.vma.vm_file is not None:
            index = mapped.vma.vm_pgoff + (mapped.address - mapped.vma.vm_start >> PAGE_SHIFT)
            pages = file_pages(mapped.vma.vm_file.f_inode)
            if index >= pages:
                yield (
                    scan.at(mapped),
                    f"maps page {index:#x} of {mapped.vma.vm_file}",
                    f"the file has {pages} pages",
                )
    for node in scan.inodes:
        for index, p in node.i_mapping.i_pages.items():
            if index >= file_pages(node) and node.kind == "disk":
                yield (
                    f"{node} page {index:#x}",
                    f"frame {p.pfn:#x} is cached",
                    f"the file has {file_pages(node)} pages",
                )
