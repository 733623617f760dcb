"""What an access did to the pages that it touched, in a few words: `copied: pfn 0x120 -> 0x131`.

Read off the page tables before and after the access, not off the kernel's path: it says what is different now.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kemu.session import Session, Task

MOST_PAGES = 64
"""Pages of one access that are looked at; a larger one is not described."""


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


def effect(before: dict[int, Mapped], after: dict[int, Mapped], zero_pfn: int) -> str:
    """What changed between the two, or an empty text. One page is described, several are counted."""
    found = [
        what for page, now in sorted(after.items()) if (what := _change(before.get(page), now, zero_pfn)) is not None
    ]
    if len(found) == 1:
        return " ".join(found[0]).strip()
    return ", ".join(f"{count} {word.split()[0].rstrip(':')}" for word, count in Counter(word for word, _ in found).items())


def _change(before: Mapped | None, now: Mapped, zero_pfn: int) -> tuple[str, str] | None:
    """A word for what happened to one page, and its frames."""
    if before is None:
        return ("zero page", "") if now.pfn == zero_pfn else ("new page:", f"pfn {now.pfn:#x}")
    if before.pfn != now.pfn:
        if before.pfn == zero_pfn:
            return "filled:", f"zero page -> pfn {now.pfn:#x}"
        return "copied:", f"pfn {before.pfn:#x} -> {now.pfn:#x}"
    return ("reused:", f"pfn {now.pfn:#x}") if now.writable and not before.writable else None
