"""What a look at the machine reads, and the events that could make it see something else.

    pfn(kid, 0x10000)     reads   tasks[4], task.mm, mm.pgd, four words of four tables
    events                        only those that write one of these can change the answer

During one look the structures and tables note what is read from them: a structure field by field, a
table key by key, or as a whole where it is iterated over. What is not a cell (a tree that is
changed by position, a copied row) is not noted: each event of such a thing may matter.

An answer may be computed too often, but never too seldom.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kemu.machine.physmem import PhysMem
from kemu.trace import _plain, tape
from kemu.trace.barrier import STRUCTS, Table
from kemu.trace.index import STRETCH
from kemu.trace.journal import SLOTS

if TYPE_CHECKING:
    from kemu.trace.journal import Journal


class Reads:
    """What was read: cells by the ``id`` of their object, and tables that were read as a whole."""

    def __init__(self) -> None:
        self.cells: set[tuple[int, Any]] = set()
        self.whole: set[int] = set()

    def objects(self) -> set[int]:
        """The objects of which something was read."""
        return {obj for obj, _ in self.cells} | self.whole


KEYED = ("__getitem__", "get", "__contains__")
WHOLE = ("__iter__", "items", "values", "keys", "__len__")
"""Methods of a table that read one key, and those that read all of it."""


@contextmanager
def noting() -> Iterator[Reads]:
    """Within the block all reads of structures and tables are noted."""
    found = Reads()
    cells, whole = found.cells, found.whole

    def attribute(obj: Any, name: str) -> Any:
        cells.add((id(obj), name))
        return object.__getattribute__(obj, name)

    try:
        for cls in STRUCTS:
            cls.__getattribute__ = attribute  # type: ignore[method-assign,assignment]  # as barrier.py does
        PhysMem.load, tape.last_table = _plain.load, _plain.last_table  # by the methods below
        for name in KEYED:
            setattr(Table, name, _keyed(name, cells))
        for name in WHOLE:
            setattr(Table, name, _whole(name, whole))
        yield found
    finally:
        PhysMem.load, tape.last_table = tape.load, tape.implementation.last_table
        for cls in STRUCTS:
            _take_away(cls, "__getattribute__")
        for name in (*KEYED, *WHOLE):
            _take_away(Table, name)


def _take_away(cls: type, name: str) -> None:
    """Remove the class's own method, also if an interrupt came before it was set."""
    if name in vars(cls):
        delattr(cls, name)


def _keyed(name: str, cells: set[tuple[int, Any]]) -> Any:
    plain = getattr(dict, name)

    def read(table: Any, key: Any, *default: Any) -> Any:
        cells.add((id(table), key))
        return plain(table, key, *default)

    return read


def _whole(name: str, whole: set[int]) -> Any:
    plain = getattr(dict, name)

    def read(table: Any) -> Any:
        whole.add(id(table))
        return plain(table)

    return read


def next_write(journal: Journal, reads: Reads, first: int, last: int) -> int | None:
    """The number of the first event in (first, last] that may have written something of what was
    read."""
    objects = reads.objects()
    for stretch in range(first // STRETCH, -(-last // STRETCH)):
        held = journal.index.of(journal.log, stretch)
        odd = {cls for cls in held.classes if not getattr(cls, "_cell", False)}
        if held.objects.isdisjoint(journal.index.numbers.at(objects)) and not odd:
            continue
        low, high = max(first, stretch * STRETCH), min(last, (stretch + 1) * STRETCH)
        found = _first(journal.log[low * SLOTS : high * SLOTS], reads, odd)
        if found is not None:
            return low + found + 1
    return None


def _first(log: list[Any], reads: Reads, odd: set[type]) -> int | None:
    cells, whole = reads.cells, reads.whole
    for i, (obj, field) in enumerate(zip(log[::SLOTS], log[1::SLOTS], strict=True)):
        if (id(obj), field) in cells or id(obj) in whole or obj.__class__ in odd:
            return i
    return None
