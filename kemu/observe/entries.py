"""Reading page tables: every entry that is not empty, and what an entry is.

    leaves(root, start, end)  (va, entry, level) of the leaves in a range, in order of address
    tables(root)              (level, pfn, va, address of the entry that leads there) of the
                              tables below a root

Both look only at entries that are not zero, so an empty table of 512 entries costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kemu.kernel.arch.pgtable import pte_protnone, pte_special
from kemu.kernel.include.swapops import classify
from kemu.kernel.include.system import system
from kemu.machine.mmu import is_leaf
from kemu.observe.names import entry_bits, entry_letters
from kemu.readings import EntryReading


class Leaf(NamedTuple):
    """An entry that ends a walk, or would if present: its virtual address, value, level and place
    in RAM."""

    va: int
    entry: int
    level: int
    entry_pa: int


class TableAt(NamedTuple):
    """A page table: its level in the geometry, frame and first virtual address."""

    level: int
    pfn: int
    va: int


def words(pfn: int) -> list[tuple[int, int]]:
    """(index, entry) of the entries of a table that are not zero, in order."""
    frame = system.phys.frames.get(pfn)
    return sorted(frame.items()) if frame else []


def is_table(level: int, entry: int) -> bool:
    """True if the present ``entry`` of a table of ``level`` leads to another table."""
    bits = system.bits
    last = len(system.geometry.levels) - 1
    return level < last and bool(entry & bits.present) and not is_leaf(bits, entry)


def sign_extend(va: int) -> int:
    """The canonical form of an address put together from indices (u64)."""
    geometry = system.geometry
    if geometry.sign_extended and va >> (geometry.va_bits - 1) & 1:
        return va | ((1 << 64) - (1 << geometry.va_bits))
    return va


def leaves(root: int, start: int = 0, end: int = 1 << 64) -> Iterator[Leaf]:
    """The leaves (and other entries that are neither empty nor a table) of the tables at physical
    address ``root`` that cover an address of [start, end), lowest first."""
    yield from _leaves(root >> 12, 0, 0, start, end)


def _leaves(pfn: int, level: int, base: int, start: int, end: int) -> Iterator[Leaf]:
    shift = system.geometry.levels[level].shift
    for index, entry in words(pfn):
        va = sign_extend(base | index << shift)
        if va >= end or va + (1 << shift) <= start:
            continue
        if is_table(level, entry):
            yield from _leaves(system.geometry.entry_pfn(entry), level + 1, va, start, end)
        else:
            yield Leaf(va, entry, level, (pfn << 12) + index * 8)


def tables(root: int, end: int = 1 << 64) -> Iterator[TableAt]:
    """The tables from the root at physical address ``root`` on, parents first, those that begin
    below ``end``."""
    yield TableAt(0, root >> 12, 0)
    yield from _tables(root >> 12, 0, 0, end)


def _tables(pfn: int, level: int, base: int, end: int) -> Iterator[TableAt]:
    if level == len(system.geometry.levels) - 1:
        return
    shift = system.geometry.levels[level].shift
    for index, entry in words(pfn):
        va = sign_extend(base | index << shift)
        if va < end and is_table(level, entry):
            below = system.geometry.entry_pfn(entry)
            yield TableAt(level + 1, below, va)
            yield from _tables(below, level + 1, va, end)


def user_end() -> int:
    """The first address after the user half."""
    geometry = system.geometry
    return 1 << (geometry.va_bits - 1) if geometry.sign_extended else 1 << geometry.va_bits


# ---------------------------------------------------------------- one entry

LEADING = frozenset({"page", "huge", "protnone"})
"""Kinds of entries that hold the number of a frame, and not of a table."""


def entry_kind(level: int, entry: int) -> str:
    """none, table, page, huge, protnone, marker (a guard page), or what else ``classify`` calls an
    entry that is not present."""
    kind = classify(entry)
    if kind != "present":
        return "marker" if kind == "guard" else kind
    if pte_protnone(entry):
        return "protnone"
    if is_table(level, entry):
        return "table"
    return "page" if level == len(system.geometry.levels) - 1 else "huge"


def read_entry(level: int, entry_pa: int, entry: int) -> EntryReading:
    """The entry ``entry`` at ``entry_pa`` in a table of ``level``."""
    kind = entry_kind(level, entry)
    pfn = system.geometry.entry_pfn(entry) if kind in LEADING or kind == "table" else None
    return EntryReading(
        level=system.geometry.levels[level].name,
        index=entry_pa % 4096 // 8,
        entry_address=entry_pa,
        value=entry,
        kind=kind,
        letters=entry_letters(system.bits, entry),
        bits=entry_bits(system.bits, entry),
        pfn=pfn,
        note=_note(kind, entry, pfn),
    )


def _note(kind: str, entry: int, pfn: int | None) -> str:
    if kind == "marker":
        return "guard page"
    if kind in ("page", "protnone") and pfn == system.zero_pfn:
        return "zero page"
    return "special" if kind == "page" and pte_special(entry) else ""
