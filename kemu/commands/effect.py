"""What an access did to the pages that it touched, in a few words: `copied: pfn 0x120 -> 0x131`.

It compares the page tables before and after the access, and does not follow the kernel's path.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from kemu.experiment.session import Session, Task

MOST_PAGES = 64
"""Largest access described, in pages."""


class Mapped(NamedTuple):
    """A present page: its frame, and whether the entry lets it be written."""

    pfn: int
    writable: bool


def pages(session: Session, task: Task, address: int, size: int) -> dict[int, Mapped]:
    """The present pages of the access, by virtual address; empty for a large one."""
    from kemu.observe.entries import leaves

    start, end = address & ~4095, min(address + max(size, 1), 2**64)
    if task.mm is None or end - start > MOST_PAGES * 4096:
        return {}
    bits, geometry = session.kernel.globals["bits"], session.kernel.globals["geometry"]
    return {
        leaf.va: Mapped(geometry.entry_pfn(leaf.entry), bool(leaf.entry & bits.write))
        for leaf in leaves(task.mm.pgd, start, end)
        if leaf.entry & bits.present
    }


CACHED = "page cache:"
"""The change to a page that maps a frame of the page cache, which belongs to the file."""


def effect(
    before: dict[int, Mapped],
    after: dict[int, Mapped],
    zero_pfn: int,
    is_cached: Callable[[int], bool],
) -> str:
    """What changed between the two, or an empty text. One page is described, several are counted.
    `is_cached(pfn)`: whether the frame belongs to the page cache."""
    changes = (
        _change(before.get(page), now, zero_pfn, is_cached) for page, now in sorted(after.items())
    )
    found = [what for what in changes if what is not None]
    if len(found) == 1:
        return " ".join(found[0]).strip()
    return ", ".join(
        f"{count} {_counted(word)}" for word, count in Counter(word for word, _ in found).items()
    )


def _counted(word: str) -> str:
    """The word after a number of pages."""
    return "of the page cache" if word == CACHED else word.split(maxsplit=1)[0].rstrip(":")


def _change(
    before: Mapped | None, now: Mapped, zero_pfn: int, is_cached: Callable[[int], bool]
) -> tuple[str, str] | None:
    """A word for what happened to one page, and its frames."""
    if before is None:
        if now.pfn == zero_pfn:
            return "zero page", ""
        return CACHED if is_cached(now.pfn) else "new page:", f"pfn {now.pfn:#x}"
    if before.pfn != now.pfn:
        if before.pfn == zero_pfn:
            return "filled:", f"zero page -> pfn {now.pfn:#x}"
        return "copied:", f"pfn {before.pfn:#x} -> {now.pfn:#x}"
    return ("reused:", f"pfn {now.pfn:#x}") if now.writable and not before.writable else None
