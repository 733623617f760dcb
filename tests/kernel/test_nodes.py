"""Nodes, zones and LRU lists are found from a page, a CPU or a number: a machine of two nodes, the
second one set up by hand, works."""

import pytest

from kemu.invariants import check
from kemu.kernel.include.lists import INIT_LIST_HEAD, list_for_each
from kemu.kernel.include.mm_types import PAGE_SIZE
from kemu.kernel.include.mmzone import (
    NODE_DATA,
    NODES_PGSHIFT,
    folio_lruvec,
    nr_free_pages,
    nr_spare_pages,
    page_to_nid,
    page_zone,
    totalram_pages,
)
from kemu.kernel.include.sched_types import (
    LRU_INACTIVE_ANON,
    MAX_ORDER,
    free_area,
    lruvec,
    pglist_data,
    zone,
)
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.page_alloc import (
    __alloc_pages_noprof,
    folio_put,
    free_frozen_pages,
    memblock_free_pages,
)
from kemu.observe.frames import free
from tests.kernel.scenes import Scene

FRAMES = 512


@pytest.fixture
def s():
    """512 frames of node 0 become node 1, near the second CPU."""
    s = Scene(nr_cpus=2)
    near = NODE_DATA(0).node_zones[0]
    block = __alloc_pages_noprof(0, 9, 0)
    block._refcount = 0
    near.managed_pages -= FRAMES
    for pfn in range(block.pfn, block.pfn + FRAMES):
        pfn_to_page(pfn).flags |= 1 << NODES_PGSHIFT
    far = zone(free_area=tuple(free_area(order=i) for i in range(MAX_ORDER + 1)))
    lists = lruvec()
    for head in (*lists.lists, *(area.free_list for area in far.free_area)):
        INIT_LIST_HEAD(head)
    system.node_data += (pglist_data(node_id=1, node_zones=(far,), lruvec=lists),)
    s.kernel.globals["node_data"] = system.node_data
    memblock_free_pages(far, block.pfn, block.pfn + FRAMES)
    system.cpus[1].numa_node = 1
    s.near, s.far, s.frames = near, far, range(block.pfn, block.pfn + FRAMES)
    return s


def test_the_machine_has_the_frames_of_both(s):
    assert s.far.nr_free_pages == s.far.managed_pages == FRAMES
    assert nr_free_pages() == s.near.nr_free_pages + FRAMES
    assert totalram_pages() == s.near.managed_pages + FRAMES
    assert nr_spare_pages() == s.near.nr_free_pages - s.near.watermark_high + FRAMES
    assert (free(s.kernel).free, free(s.kernel).managed) == (nr_free_pages(), totalram_pages())
    assert sum(n << order for order, n in enumerate(free(s.kernel).orders)) == nr_free_pages()


def test_a_cpu_gets_frames_of_its_own_node(s):
    at = s.mmap(s.p, 2)
    s.write(s.p, at, 1)
    system.cpus[0].numa_node = 1
    s.write(s.p, at + PAGE_SIZE, 1)
    here, there = (pfn_to_page(pfn) for pfn in s.pfns(s.p, at, 2))
    assert (here.pfn in s.frames, there.pfn in s.frames) == (False, True)
    assert (page_to_nid(here), page_to_nid(there)) == (0, 1)
    assert page_zone(here) is s.near
    assert page_zone(there) is s.far
    assert s.far.nr_free_pages == FRAMES - 1
    assert folio_lruvec(there) is NODE_DATA(1).lruvec
    assert there in list(list_for_each(NODE_DATA(1).lruvec.lists[LRU_INACTIVE_ANON]))
    assert NODE_DATA(1).lruvec.nr[LRU_INACTIVE_ANON] == 1
    assert check(s.kernel) == []


def test_a_freed_page_goes_back_to_its_zone_and_knows_its_node_still(s):
    at = s.mmap(s.p, 2)
    s.write(s.p, at, 1)
    system.cpus[0].numa_node = 1
    s.write(s.p, at + PAGE_SIZE, 1)
    page = pfn_to_page(s.pfn(s.p, at + PAGE_SIZE))
    system.cpus[0].numa_node = 0
    s.ok(s.p, "munmap", at + PAGE_SIZE, PAGE_SIZE)
    assert s.far.nr_free_pages == FRAMES
    assert page_to_nid(page) == 1
    assert check(s.kernel) == []


def test_a_node_that_is_full_is_helped_out_by_the_other(s):
    held = [__alloc_pages_noprof(0, 0, 1) for _ in range(FRAMES + 1)]
    assert [page_to_nid(page) for page in held] == [1] * FRAMES + [0]
    for page in held:
        folio_put(page)
    assert s.far.nr_free_pages == FRAMES


def test_blocks_of_two_nodes_never_join(s):
    buddy = pfn_to_page(s.frames[0] ^ FRAMES)
    assert page_to_nid(buddy) == 0
    block = __alloc_pages_noprof(0, 9, 1)
    block._refcount = 0
    free_frozen_pages(block, 9)
    assert [area.nr_free for area in s.far.free_area][9:] == [1, 0]
