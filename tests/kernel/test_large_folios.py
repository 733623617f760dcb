"""A folio has an order: its references, its place on a list and its freeing are of all its pages.

Nothing asks for a large folio yet; here one is allocated and mapped by hand, page by page.
"""

import pytest

from kemu.errors import KernelBug
from kemu.invariants import check
from kemu.kernel.include.flags import PG_anon_exclusive, PG_dirty, PG_head, PG_lru, PG_swapbacked
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    PAGE_SIZE,
    folio_nr_pages,
    folio_order,
    folio_test_large,
    page_folio,
)
from kemu.kernel.include.mmzone import folio_lruvec, nr_free_pages
from kemu.kernel.include.sched_types import LRU_INACTIVE_ANON
from kemu.kernel.include.system import folio_page, pfn_to_page, system
from kemu.kernel.mm.lru import folio_add_lru
from kemu.kernel.mm.page_alloc import (
    GFP_COMP,
    GFP_ZERO,
    __alloc_pages_noprof,
    alloc_page,
    folio_get,
    folio_put,
    free_frozen_pages,
    put_page,
)
from kemu.kernel.mm.rmap import rmap_walk
from kemu.observe.frames import frame_state
from tests.kernel.scenes import Scene

MADV_COLD = 20


@pytest.fixture
def s():
    return Scene()


def folio_alloc(order):
    return __alloc_pages_noprof(GFP_COMP | GFP_ZERO, order, 0)


@pytest.mark.usefixtures("s")
@pytest.mark.parametrize("order", [1, 9])
def test_a_folio_is_its_first_page_and_knows_all_its_pages(order):
    folio = folio_alloc(order)
    pages = [folio_page(folio, n) for n in range(1 << order)]
    assert (folio_order(folio), folio_nr_pages(folio)) == (order, 1 << order)
    assert [page.pfn - folio.pfn for page in pages] == list(range(1 << order))
    assert all(page_folio(page) is folio for page in pages)
    assert folio_test_large(folio)
    assert not folio_test_large(pages[1])


@pytest.mark.usefixtures("s")
def test_a_page_by_itself_is_a_folio_of_order_0():
    page = alloc_page()
    assert page_folio(page) is page
    assert (folio_order(page), folio_nr_pages(page), folio_test_large(page)) == (0, 1, False)


@pytest.mark.usefixtures("s")
@pytest.mark.parametrize("order", [1, 9])
def test_references_are_counted_on_the_first_page_and_the_last_frees_the_block(order):
    before = nr_free_pages()
    folio = folio_alloc(order)
    pages = [folio_page(folio, n) for n in range(1 << order)]
    assert nr_free_pages() == before - (1 << order)
    folio_get(folio)
    put_page(pages[-1])
    assert [page._refcount for page in pages] == [1] + [0] * (len(pages) - 1)
    assert nr_free_pages() == before - (1 << order)
    put_page(pages[1])
    assert nr_free_pages() == before
    assert all(page_folio(page) is page for page in pages)
    assert (folio_order(folio), folio.flags & PG_head) == (0, 0)


@pytest.mark.usefixtures("s")
def test_a_reference_to_a_page_that_is_not_the_first_is_a_bug():
    with pytest.raises(KernelBug, match="folio_get"):
        folio_get(folio_page(folio_alloc(1), 1))


@pytest.mark.parametrize("order", [1, 9])
def test_the_lists_count_pages(s, order):
    folio = folio_alloc(order)
    folio.flags |= PG_swapbacked
    size = folio_lruvec(folio).nr
    before = size[LRU_INACTIVE_ANON]
    folio_add_lru(folio)
    assert folio.flags & PG_lru
    assert size[LRU_INACTIVE_ANON] == before + (1 << order)
    assert [found.invariant for found in check(s.kernel)] == ["refcount_is_explained"]
    folio_put(folio)
    assert size[LRU_INACTIVE_ANON] == before
    assert check(s.kernel) == []


@pytest.mark.usefixtures("s")
def test_a_block_that_is_freed_with_another_order_or_a_mapped_page_is_a_bug():
    folio = folio_alloc(2)
    folio._refcount = 0
    with pytest.raises(KernelBug, match="of order 2 freed with order 1"):
        free_frozen_pages(folio, 1)
    folio_page(folio, 3)._mapcount = 0
    with pytest.raises(KernelBug, match="freed with _mapcount 0"):
        free_frozen_pages(folio, 2)


# ---------------------------------------------------------------- mapped


@pytest.fixture
def mapped(s):
    """Two pages of a process, replaced by the two of one folio."""
    s.at = s.mmap(s.p, 2)
    s.write_pages(s.p, s.at, 2)
    s.folio = folio_alloc(1)
    s.pages = [folio_page(s.folio, n) for n in range(2)]
    for n, page in enumerate(s.pages):
        entry_pa = s.steps(s.p, s.at + n * PAGE_SIZE).steps[-1].entry_pa
        entry = system.phys.load(entry_pa)
        old = pfn_to_page(system.geometry.entry_pfn(entry))
        s.folio.mapping, s.folio.index = old.mapping, old.index - n
        old._mapcount, page._mapcount = -1, 0
        page.flags |= PG_anon_exclusive
        folio_put(old)
        shift = system.bits.pfn_shift
        system.phys.store(entry_pa, entry ^ (old.pfn ^ page.pfn) << shift)
    for cpu in system.cpus:
        cpu.hw.tlb.flush_all()
    s.folio._refcount = 2
    s.folio.flags |= PG_swapbacked
    folio_add_lru(s.folio)
    return s


def test_rmap_finds_the_entries_of_all_its_pages(mapped):
    s = mapped
    assert [at for _, at, _ in rmap_walk(s.folio)] == [s.at, s.at + PAGE_SIZE]
    assert [frame_state(page) for page in s.pages] == ["anon", "anon"]


def test_fork_counts_each_page_and_takes_references_on_the_first(mapped):
    s = mapped
    child = s.fork(s.p)
    assert [page._mapcount for page in s.pages] == [1, 1]
    assert [page._refcount for page in s.pages] == [4, 0]
    assert not any(page.flags & PG_anon_exclusive for page in s.pages)
    assert s.anon(child) == 2


def test_fork_by_rows_leaves_such_a_table_to_the_loop(mapped):
    s = mapped
    more = s.ok(s.p, "mremap", s.at, 2 * PAGE_SIZE, 100 * PAGE_SIZE, 1)
    s.write_pages(s.p, more + 2 * PAGE_SIZE, 98)
    s.fork(s.p)
    assert [page._refcount for page in s.pages] == [4, 0]
    assert [page._mapcount for page in s.pages] == [1, 1]


def test_a_write_after_fork_copies_one_page_of_it(mapped):
    s = mapped
    child = s.fork(s.p)
    s.write(child, s.at + PAGE_SIZE, 5)
    assert s.pfn(child, s.at + PAGE_SIZE) not in {page.pfn for page in s.pages}
    assert [page._mapcount for page in s.pages] == [1, 0]
    assert [page._refcount for page in s.pages] == [3, 0]


def test_munmap_of_both_pages_frees_it(mapped):
    s = mapped
    before = nr_free_pages()
    s.ok(s.p, "munmap", s.at, PAGE_SIZE)
    assert (nr_free_pages(), s.folio._refcount) == (before, 1)
    s.ok(s.p, "munmap", s.at + PAGE_SIZE, PAGE_SIZE)
    assert s.p.mm.rss_stat[MM_ANONPAGES] == 0
    assert nr_free_pages() >= before + 2
    assert page_folio(s.pages[1]) is s.pages[1]


def test_a_pin_holds_the_first_page(mapped):
    s = mapped
    s.ok(s.p, "pin", s.at + PAGE_SIZE, PAGE_SIZE)
    assert [page._refcount for page in s.pages] == [2 + 1024, 0]
    s.exit(s.p)
    assert [page._refcount for page in s.pages] == [0, 0]


def test_advice_and_locks_are_the_folios(mapped):
    s = mapped
    s.ok(s.p, "madvise", s.at, 2 * PAGE_SIZE, MADV_COLD)
    s.ok(s.p, "mlock", s.at, 2 * PAGE_SIZE)
    assert s.folio.mlock_count
    assert not s.pages[1].flags & ~PG_anon_exclusive & ~PG_dirty
