"""Operations on the LRU lists (include/linux/mm_inline.h): which list a page belongs on, adding it,
removing it.

A list holds no reference to its pages.  ``lru.py`` decides when a page goes on a list.
"""

from __future__ import annotations

from kemu.kernel.include.flags import *
from kemu.kernel.include.lists import list_add, list_del
from kemu.kernel.include.mm_types import folio, folio_nr_pages
from kemu.kernel.include.mmzone import folio_lruvec
from kemu.kernel.include.sched_types import (
    LRU_ACTIVE_ANON,
    LRU_ACTIVE_FILE,
    LRU_INACTIVE_ANON,
    LRU_INACTIVE_FILE,
    LRU_UNEVICTABLE,
)


def folio_lru_list(folio: folio) -> int:
    """The list on which the page belongs (LRU_*)."""
    if folio.flags & PG_unevictable:
        return LRU_UNEVICTABLE
    if folio.flags & PG_swapbacked:
        return LRU_ACTIVE_ANON if folio.flags & PG_active else LRU_INACTIVE_ANON
    return LRU_ACTIVE_FILE if folio.flags & PG_active else LRU_INACTIVE_FILE


_shared: dict[int, int] = {}
"""One int object for all pages with the same flags: reading the flags of page after page, as fork
does, then hits the host's cache."""


def lruvec_add_folio(folio: folio) -> None:
    """Add the page at the head of its list."""
    lruvec = folio_lruvec(folio)
    lru = folio_lru_list(folio)
    flags = folio.flags | PG_lru
    folio.flags = _shared.setdefault(flags, flags)
    lruvec.nr.put(lru, lruvec.nr[lru] + folio_nr_pages(folio))
    list_add(folio, lruvec.lists[lru])


def lruvec_del_folio(folio: folio) -> None:
    """Remove the page from its list."""
    lruvec = folio_lruvec(folio)
    lru = folio_lru_list(folio)
    list_del(folio)
    lruvec.nr.put(lru, lruvec.nr[lru] - folio_nr_pages(folio))
    folio.flags &= ~PG_lru
