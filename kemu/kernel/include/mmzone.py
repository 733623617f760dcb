"""Nodes, zones and LRU lists, and how they are found (include/linux/mmzone.h, mm.h).

    NODE_DATA(nid)  -> pglist_data   node_zones -> zone -> free_area[order]     the buddy allocator
                                     lruvec     -> lists[LRU_*]                 the LRU lists
    page_zone(page), folio_lruvec(folio)    those of the node whose number the page's flags hold

There is one node with one zone (Linux has three: DMA, DMA32 and Normal); only boot relies on that.
"""

from __future__ import annotations

from collections.abc import Iterator

from kemu.kernel.include.mm_types import folio, page
from kemu.kernel.include.sched_types import lruvec, pglist_data, zone
from kemu.kernel.include.system import system

NODES_PGSHIFT = 54
ZONES_PGSHIFT, ZONES_MASK = 51, 7
"""Where ``page->flags`` holds the numbers of the page's node and zone."""
PAGE_FLAGS_CHECK_AT_PREP = (1 << ZONES_PGSHIFT) - 1
"""All flags except these numbers: those that freeing a page clears."""


def NODE_DATA(nid: int) -> pglist_data:
    """The node with number ``nid``."""
    return system.node_data[nid]


def numa_node_id() -> int:
    """The node of the CPU that executes."""
    return system.cpu.numa_node


def page_to_nid(page: page) -> int:
    """The number of the node in which the frame lies."""
    return page.flags >> NODES_PGSHIFT


def page_zone(page: page) -> zone:
    """The zone in which the frame lies."""
    zones = system.node_data[page.flags >> NODES_PGSHIFT].node_zones
    return zones[page.flags >> ZONES_PGSHIFT & ZONES_MASK]


def folio_lruvec(folio: folio) -> lruvec:
    """The LRU lists of the folio's node."""
    return system.node_data[folio.flags >> NODES_PGSHIFT].lruvec


def node_zonelist(nid: int) -> Iterator[zone]:
    """The zones that an allocation for node ``nid`` tries: those of the node, then those of the
    others, from the highest zone down."""
    yield from reversed(system.node_data[nid].node_zones)
    for node in system.node_data:
        if node.node_id != nid:
            yield from reversed(node.node_zones)


def for_each_zone() -> Iterator[zone]:
    """All zones of all nodes."""
    for node in system.node_data:
        yield from node.node_zones


def nr_free_pages() -> int:
    """Free frames of the machine."""
    return sum(zone.nr_free_pages for zone in for_each_zone())


def totalram_pages() -> int:
    """Frames that the allocator manages."""
    return sum(zone.managed_pages for zone in for_each_zone())


def nr_spare_pages() -> int:
    """Free frames above the high watermarks: what can be allocated without reclaim."""
    return sum(max(0, zone.nr_free_pages - zone.watermark_high) for zone in for_each_zone())
