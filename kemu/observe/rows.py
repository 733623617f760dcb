"""Whole-row events in the journal, and the loops over entries that they replace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kemu.kernel.mm.fork_row import Row, row_copy
from kemu.observe.events import first_mark
from kemu.observe.moves import fids_named, may_have
from kemu.trace.journal import SLOTS, Journal

COPY, ENTRY = "copy_pte_range", "copy_present_ptes"


def is_row(journal: Journal, number: int) -> bool:
    """Is the event the copy of a whole table?"""
    return isinstance(journal.event(number)[0], Row)


def newest_row(journal: Journal, upto: int) -> int | None:
    """The newest event up to `upto` that copies a whole table."""
    for first, last in reversed(may_have(journal, "", "row", 0, upto)):
        found = next((number for number in range(last, first, -1) if is_row(journal, number)), None)
        if found is not None:
            return found
    return None


def loops(journal: Journal, first: int, last: int) -> list[tuple[int, int]]:
    """(first, last] of the loop over the entries in each call of copy_pte_range that begins in the
    range; in a call that copied a row the loop is empty."""
    copy, entry = fids_named(COPY), fids_named(ENTRY)
    found: list[tuple[int, int]] = []
    open_at = -1
    for i in range(first_mark(journal, first), first_mark(journal, last + 1), 2):
        at, fid = journal.marks[i] // SLOTS, journal.marks[i + 1]
        if fid in copy and at < last:
            found.append((at, at))
            open_at = -1
        elif found and fid in entry and open_at < 0:
            open_at = at
        elif found and ~fid in entry:
            found[-1] = (open_at, at)
    return found


@contextmanager
def without_rows() -> Iterator[None]:
    """Within the block fork copies entry by entry."""
    kept, row_copy.enabled = row_copy.enabled, False
    try:
        yield
    finally:
        row_copy.enabled = kept
