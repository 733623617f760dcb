"""The buddy allocator, and the reference counts by which its pages are held (mm/page_alloc.c,
include/linux/page_ref.h).

    order 10  [ 1024 frames                                   ]
    order  9  [ 512          ][ 512          ]
    order  8  [ 256  ][ 256  ]

A block is split in halves until it is small enough; each upper half goes on the list of its order.
A freed block merges with its buddy (pfn ^ size).

A page is in use while ``_refcount`` is above 0: an allocation returns it with one reference,
``folio_get`` adds one, ``folio_put`` drops one, and dropping the last frees the page.  There are no
per-CPU lists of single pages, so the order of allocations depends only on the order of calls.

``_refcount`` changes in this file only.  Upward calls: ``system.reclaim`` and
``system.out_of_memory`` when memory is short.
"""

from __future__ import annotations

from kemu.errors import KernelBug
from kemu.kernel.include.flags import *
from kemu.kernel.include.lists import list_add, list_add_tail, list_del, list_empty
from kemu.kernel.include.mm_inline import lruvec_del_folio
from kemu.kernel.include.mm_types import PGTY_buddy, folio, folio_order, page, page_folio
from kemu.kernel.include.mmzone import (
    PAGE_FLAGS_CHECK_AT_PREP,
    node_zonelist,
    numa_node_id,
    page_zone,
)
from kemu.kernel.include.sched_types import EXIT_ZOMBIE, MAX_ORDER, PF_EXITING, PF_SIGNALED, zone
from kemu.kernel.include.system import current, folio_page, pfn_to_page, system
from kemu.machine.atomic import (
    atomic_add_return,
    atomic_dec_and_test,
    atomic_inc,
    atomic_inc_not_zero,
)
from kemu.trace.frames import linux

GFP_KERNEL = 0
GFP_ZERO = 0x100
"""Zero the page before it is handed out."""
GFP_COMP = 0x40000
"""The pages are to be one folio."""

MAX_RECLAIM_RETRIES = 16
ALLOC_WMARK_MIN, ALLOC_WMARK_LOW, ALLOC_NO_WATERMARKS = 0, 1, 4
"""How deep an allocation may go into the last free frames of a zone."""

# ---------------------------------------------------------------- references


def folio_get(folio: folio) -> None:
    """Take a reference; the caller has one already, or a lock that keeps the page from being
    freed."""
    if folio._refcount <= 0:
        raise KernelBug(f"folio_get on {folio}: _refcount {folio._refcount}")
    atomic_inc(folio, "_refcount")


def folio_try_get(folio: folio) -> bool:
    """Take a reference to a page that was found without a lock or a reference; False if it is
    free already."""
    return atomic_inc_not_zero(folio, "_refcount")


def folio_ref_add(folio: folio, nr: int) -> None:
    """Take ``nr`` references at once."""
    atomic_add_return(folio, "_refcount", nr)


def folio_put_refs(folio: folio, nr: int) -> None:
    """Drop ``nr`` references at once."""
    if not atomic_add_return(folio, "_refcount", -nr):
        __folio_put(folio)


def folio_put(folio: folio) -> None:
    """Drop a reference; the last one frees the page."""
    if atomic_dec_and_test(folio, "_refcount"):
        __folio_put(folio)


def put_page(page: page) -> None:
    """Drop a reference to the folio of ``page``."""
    folio_put(page_folio(page))


@linux("mm/swap.c")
def __folio_put(folio: folio) -> None:
    """The last reference is gone: take the page off the LRU and free it."""
    if folio.flags & PG_lru:
        lruvec_del_folio(folio)
    free_frozen_pages(folio, folio_order(folio))


def set_page_refcounted(page: page) -> None:
    """Give a newly allocated page its first reference."""
    page._refcount = 1


# ---------------------------------------------------------------- allocation


@linux("mm/page_alloc.c")
def __alloc_pages_noprof(gfp: int, order: int, preferred_nid: int) -> page | None:
    """2**order frames with one reference on the first, from node ``preferred_nid`` if it has them;
    or None.

    Normal requests leave ``watermark_min`` frames free; a task that is dying may use those too."""
    if system.sysctl.fail_alloc and should_fail_alloc_page():
        #: set fail made the allocation of a page fail -> the same call again: it fails only once
        return None
    page = get_page_from_freelist(gfp, order, ALLOC_WMARK_LOW, preferred_nid)
    if page is None:
        page = __alloc_pages_slowpath(gfp, order, preferred_nid)
    if page is not None:
        set_page_refcounted(page)
    return page


@linux("mm/fail_page_alloc.c")
def should_fail_alloc_page() -> bool:
    """Fault injection: True for the allocation that is to fail, which ends the injection."""
    left = system.sysctl.fail_alloc
    system.sysctl.fail_alloc = left - 1
    return left == 1


def alloc_page(gfp: int = GFP_KERNEL) -> page | None:
    """One frame, from the node of the executing CPU if possible."""
    return __alloc_pages_noprof(gfp, 0, numa_node_id())


@linux("mm/page_alloc.c")
def __alloc_pages_slowpath(gfp: int, order: int, preferred_nid: int) -> page | None:
    """Below the low watermark: try down to the minimum, then reclaim, then kill a task, then give
    up."""
    page = get_page_from_freelist(gfp, order, ALLOC_WMARK_MIN, preferred_nid)
    for _ in range(MAX_RECLAIM_RETRIES):
        if page is not None:
            return page
        if oom_reserves_allowed(current()):
            return get_page_from_freelist(gfp, order, ALLOC_NO_WATERMARKS, preferred_nid)
        if not system.reclaim(32) and not system.out_of_memory():
            return None  #: no page is free, and nothing can be reclaimed
        page = get_page_from_freelist(gfp, order, ALLOC_WMARK_MIN, preferred_nid)
    return page


def oom_reserves_allowed(task: object) -> bool:
    """True for an OOM victim or an exiting task, which gets the reserves (TIF_MEMDIE)."""
    flags: int = getattr(task, "flags", 0)
    return bool(flags & (PF_EXITING | PF_SIGNALED)) or getattr(task, "exit_state", 0) == EXIT_ZOMBIE


@linux("mm/page_alloc.c")
def get_page_from_freelist(
    gfp: int, order: int, alloc_flags: int, preferred_nid: int
) -> page | None:
    """A block of ``order`` from the first zone that has one and keeps as many frames free as
    ``alloc_flags`` (ALLOC_*) require."""
    for zone in node_zonelist(preferred_nid):
        mark = zone.watermark_low if alloc_flags & ALLOC_WMARK_LOW else zone.watermark_min
        if alloc_flags & ALLOC_NO_WATERMARKS:
            mark = 0
        if zone.nr_free_pages - (1 << order) < mark:
            continue
        page = __rmqueue_smallest(zone, order)
        if page is not None:
            prep_new_page(page, order, gfp)
            return page
    return None


@linux("mm/page_alloc.c")
def __rmqueue_smallest(zone: zone, order: int) -> page | None:
    """Take the first block of the smallest sufficient order and split it down."""
    areas = zone.free_area
    for high in range(order, MAX_ORDER + 1):
        head = areas[high].free_list
        if not list_empty(head):
            page: folio = head.next
            __del_page_from_free_list(page, zone, high)
            expand(zone, page, order, high)
            account_freepages(zone, -(1 << order))
            return page
    return None


@linux("mm/page_alloc.c")
def expand(zone: zone, page: page, low: int, high: int) -> None:
    """Split a block of order ``high`` down to ``low``: each upper half becomes a free block."""
    while high > low:
        high -= 1
        __add_to_free_list(pfn_to_page(page.pfn + (1 << high)), zone, high)


def prep_new_page(page: page, order: int, gfp: int) -> None:
    """Zero the frames and make them a folio, if requested.  ``struct page`` is clean already, since
    freeing cleans it."""
    system.vmstat.PGALLOC += 1 << order
    if gfp & GFP_ZERO:
        system.phys.clear_page(page.pfn)
        if order:
            for pfn in range(page.pfn + 1, page.pfn + (1 << order)):
                system.phys.clear_page(pfn)
    if order and gfp & GFP_COMP:
        prep_compound_page(page, order)


@linux("mm/page_alloc.c")
def prep_compound_page(page: page, order: int) -> None:
    """Make 2**order pages one folio: the first is its head, the others point to it."""
    page.flags |= PG_head
    page.order = order
    for n in range(1, 1 << order):
        folio_page(page, n).compound_head = page


def __del_page_from_free_list(page: page, zone: zone, order: int) -> None:
    """Take a free block off its list."""
    list_del(page)
    page.page_type = 0
    page.private = 0
    zone.free_area[order].nr_free -= 1


def __add_to_free_list(page: page, zone: zone, order: int, tail: bool = False) -> None:
    """Put a free block on the list of its order, at the head or at the ``tail``."""
    page.page_type = PGTY_buddy
    page.private = order
    area = zone.free_area[order]
    (list_add_tail if tail else list_add)(page, area.free_list)
    area.nr_free += 1


def account_freepages(zone: zone, nr: int) -> None:
    """Count ``nr`` more free frames (fewer, if negative)."""
    zone.nr_free_pages += nr


# ---------------------------------------------------------------- freeing


@linux("mm/page_alloc.c")
def free_frozen_pages(page: page, order: int) -> None:
    """Free a block whose last reference is gone.  A page that is still mapped would be a use after
    free, and whoever has locked a page will unlock it later."""
    if page._mapcount != -1 or page._refcount or page.flags & PG_locked:
        locked = ", locked" if page.flags & PG_locked else ""
        raise KernelBug(
            f"Bad page state: {page} freed with _mapcount {page._mapcount}, _refcount "
            f"{page._refcount}{locked}"
        )
    if page.flags & PG_head:
        free_tail_pages(page, order)
    page.mapping = None
    page.flags &= ~PAGE_FLAGS_CHECK_AT_PREP
    system.vmstat.PGFREE += 1 << order
    __free_one_page(page, page_zone(page), order)


def free_tail_pages(folio: folio, order: int) -> None:
    """Turn the folio into single pages again (``free_tail_page_prepare``)."""
    if folio.order != order:
        raise KernelBug(f"Bad page state: {folio} of order {folio.order} freed with order {order}")
    for n in range(1, 1 << order):
        tail = folio_page(folio, n)
        if tail.compound_head is not folio or tail._mapcount != -1 or tail._refcount:
            raise KernelBug(
                f"Bad page state: {tail} of {folio} freed with _mapcount {tail._mapcount}, "
                f"_refcount {tail._refcount}"
            )
        tail.compound_head = None
        tail.flags &= ~PAGE_FLAGS_CHECK_AT_PREP
    folio.order = 0


@linux("mm/page_alloc.c")
def __free_one_page(page: page, zone: zone, order: int) -> None:
    """Merge with the buddy while that is free and whole, then put the block on its list."""
    account_freepages(zone, 1 << order)
    pfn = page.pfn
    while order < MAX_ORDER:
        buddy = system.mem_map.get(pfn ^ (1 << order))
        if buddy is None or not page_is_buddy(buddy, zone, order):
            break
        __del_page_from_free_list(buddy, zone, order)
        pfn &= ~(1 << order)
        order += 1
    __add_to_free_list(pfn_to_page(pfn), zone, order)


def page_is_buddy(buddy: page, zone: zone, order: int) -> bool:
    """True if ``buddy`` is a free block of ``order`` in the same zone."""
    return buddy.page_type == PGTY_buddy and buddy.private == order and page_zone(buddy) is zone


def __free_page(page: page) -> None:
    """Free a page that the kernel itself holds (a page table)."""
    folio_put(page)


def memblock_free_pages(zone: zone, first: int, last: int) -> None:
    """Boot: hand the frames [first, last) to the allocator of ``zone``, in the largest aligned
    blocks, the lowest first on its list."""
    pfn = first
    while pfn < last:
        order = MAX_ORDER
        while pfn & ((1 << order) - 1) or pfn + (1 << order) > last:
            order -= 1
        __add_to_free_list(pfn_to_page(pfn), zone, order, tail=True)
        pfn += 1 << order
    zone.nr_free_pages += last - first
    zone.managed_pages += last - first
