"""Whole-row events in the journal, and the loops over entries that they stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kemu.errors import KernelBug
from kemu.kernel.mm.rows import Row, bulk
from kemu.observe.events import first_mark
from kemu.observe.moves import may_have
from kemu.trace.journal import SLOTS, Journal


def is_row(journal: Journal, number: int) -> bool:
    """Is the event a loop over a whole table?"""
    return isinstance(journal.event(number)[0], Row)


def newest_row(journal: Journal, upto: int) -> int | None:
    """The newest event up to `upto` that is a loop over a whole table."""
    for first, last in reversed(may_have(journal, "", "row", 0, upto)):
        found = next((number for number in range(last, first, -1) if is_row(journal, number)), None)
        if found is not None:
            return found
    return None


class Place(NamedTuple):
    """Where a row is among the calls of its command: in the call number `call` (from 0) of the
    function `fid`, with so many events of that call before and after it."""

    fid: int
    call: int
    before: int
    after: int


def place_of(journal: Journal, first: int, number: int) -> Place:
    """The place of the row event in the command that begins after event `first`."""
    marks = journal.marks
    begun: Counter[int] = Counter()
    calls: list[tuple[int, int, int]] = []
    i = first_mark(journal, first)
    while marks[i] // SLOTS < number:
        fid = marks[i + 1]
        if fid >= 0:
            calls.append((fid, begun[fid], marks[i] // SLOTS))
            begun[fid] += 1
        elif calls:
            calls.pop()
        i += 2
    fid, call, start = calls.pop()
    depth = 1
    while depth:
        depth += 1 if marks[i + 1] >= 0 else -1
        i += 2
    return Place(fid, call, number - 1 - start, marks[i - 2] // SLOTS - number)


def loop_at(journal: Journal, place: Place) -> tuple[int, int]:
    """(first, last] of the loop that takes that place in a journal of the same command without
    rows."""
    marks, seen, depth, start = journal.marks, -1, 0, -1
    for i in range(0, len(marks), 2):
        at, fid = marks[i] // SLOTS, marks[i + 1]
        if start < 0:
            seen += fid == place.fid
            start = at if seen == place.call else -1
        elif fid == ~place.fid and not depth:
            return start + place.before, at - place.after
        elif fid in (place.fid, ~place.fid):
            depth += 1 if fid >= 0 else -1
    raise KernelBug("the same command made other calls")


@contextmanager
def without_rows() -> Iterator[None]:
    """Within the block all loops go entry by entry."""
    kept, bulk.enabled = bulk.enabled, False
    try:
        yield
    finally:
        bulk.enabled = kept
