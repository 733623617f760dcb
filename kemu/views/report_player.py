"""A film stopped at a moment: the state, and what follows from it. The page's script (report.js)
does the same.

    tables   frame -> index -> (look of the entry, frame that it leads to)
    frames   frame -> look

Only the state is known here, not the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kemu.readings import TaskRow, VmaReading
from kemu.readings.memory import OWNERS
from kemu.readings.report import (
    ENTRY,
    FRAMES,
    NO_ENTRY,
    NO_TABLE,
    SPACES,
    Film,
    FrameLook,
    Op,
    SpaceRow,
    WordLook,
)

FIXED = {"free": ".", "kernel": "K", "table": "T", "zero": "Z", "released": "R"}
"""Letters of frames by their state, as in `mem`."""

FRAMED = frozenset({"table", "page", "huge", "protnone"})
"""Kinds of entries that hold the number of a frame."""
FREE = FrameLook("free", 0, 0, exclusive=False, preview=b"")


class Entry(NamedTuple):
    """An entry of a page table, in place. ``kind``: table, page, huge, protnone, swap,
    marker."""

    level: int
    table: int
    slot: int
    va: int
    look: WordLook
    pfn: int
    kind: str

    @property
    def leads(self) -> bool:
        """Whether it leads to a frame of data."""
        return self.kind in ("page", "huge", "protnone")


class Player:
    """The film at its first moment; ``goto`` goes forward."""

    def __init__(self, film: Film) -> None:
        self.film = film
        self.tables: dict[int, dict[int, tuple[WordLook, int]]] = {}
        self.frames: dict[int, FrameLook] = {}
        self.spaces: list[SpaceRow] = []
        self.tasks: list[TaskRow] = []
        self.at = film.first
        self._mapped: tuple[int, dict[int, list[int]]] = (-1, {})
        self._apply(film.start)

    def goto(self, moment: int) -> Player:
        """Do the events up to ``moment``."""
        for changes in self.film.changes[self.at - self.film.first : moment - self.film.first]:
            self._apply(changes)
        self.at = moment
        return self

    def _apply(self, ops: Iterable[Op]) -> None:
        pools = self.film.pools
        for op, *n in ops:
            if op == ENTRY:
                table, index, count, word, pfn = n
                self.tables.setdefault(table, {}).update(
                    {index + i: (pools.words[word], pfn + i) for i in range(count)}
                )
            elif op == NO_ENTRY:
                for i in range(n[2]):
                    del self.tables[n[0]][n[1] + i]
            elif op == NO_TABLE:
                self.tables.pop(n[0], None)  # one that never had an entry is not there
            elif op == FRAMES:
                self.frames.update({n[0] + i: pools.looks[n[2]] for i in range(n[1])})
            elif op == SPACES:
                self.spaces = [pools.spaces[place] for place in n]
            else:
                self.tasks = [pools.tasks[place] for place in n]

    # ---------------------------------------------------------------- what follows from the state

    def space(self, number: int) -> SpaceRow:
        """The address space with the id."""
        return next(space for space in self.spaces if space.id == number)

    def vmas(self, number: int) -> tuple[VmaReading, ...]:
        """Its mappings, lowest first."""
        return tuple(self.film.pools.vmas[place] for place in self.space(number).vmas)

    def look(self, pfn: int) -> FrameLook:
        """The look of the frame; a frame without one is free."""
        return self.frames.get(pfn, FREE)

    def entries_of(self, table: int, level: int, base: int) -> list[Entry]:
        """The entries of one table, those of the user half."""
        levels, end = self.film.machine.levels, self.film.machine.user_end
        shift, last = levels[level][1], level == len(levels) - 1
        found = []
        for index, (look, pfn) in sorted(self.tables.get(table, {}).items()):
            va = base | index << shift
            if va < end:
                kind = (
                    look.kind
                    if look.kind != "present"
                    else "page"
                    if last
                    else "huge"
                    if look.leaf
                    else "table"
                )
                found.append(Entry(level, table, index, va, look, pfn, kind))
        return found

    def walk(self, table: int, level: int = 0, base: int = 0) -> Iterator[Entry]:
        """All entries of a tree of tables, each table's own before those below it."""
        for entry in self.entries_of(table, level, base):
            yield entry
            if entry.kind == "table":
                yield from self.walk(entry.pfn, level + 1, entry.va)

    def value(self, entry: Entry) -> int:
        """The 64 bits of the entry."""
        framed = entry.kind in FRAMED
        return entry.look.base | (entry.pfn << self.film.machine.pfn_shift if framed else 0)

    def note(self, entry: Entry) -> str:
        """A note on the entry, or ""."""
        if entry.kind == "marker":
            return "guard page"
        if entry.kind in ("page", "protnone") and entry.pfn == self.film.machine.zero:
            return "zero page"
        return "special" if entry.kind == "page" and entry.look.special else ""

    def mapped_by(self) -> dict[int, list[int]]:
        """The ids of the address spaces that map each frame; the newest answer is kept."""
        if self._mapped[0] == self.at:
            return self._mapped[1]
        found: dict[int, list[int]] = {}
        for space in self.spaces:
            for entry in self.walk(space.root):
                if entry.leads and space.id not in found.setdefault(entry.pfn, []):
                    found[entry.pfn].append(space.id)
        self._mapped = (self.at, found)
        return found

    def owners(self) -> dict[str, SpaceRow]:
        """The letter of each address space, as in `mem`."""
        used = [space for space in self.spaces if not space.making]
        return dict(zip(OWNERS, used, strict=False))

    def letters(self) -> dict[int, str]:
        """The letter of each frame that is not free, as `mem` shows them."""
        letters = {space.id: letter for letter, space in self.owners().items()}
        owner = {
            pfn: letters[number]
            for pfn, who in self.mapped_by().items()
            for number in who
            if number in letters
        }
        found = {
            pfn: _letter(look, owner.get(pfn, "")) for pfn, look in sorted(self.frames.items())
        }
        return {pfn: letter for pfn, letter in found.items() if letter != "."}


def _letter(look: FrameLook, owner: str) -> str:
    if look.state in FIXED:
        return FIXED[look.state]
    if look.mapcount > 1:
        return "S"
    return owner or ("F" if look.state in ("file", "shmem") else "+")
