"""Whole-row events in the journal, and the loops over entries that they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kemu.kernel.fork_row import Row, row_copy
from kemu.observe.moves import fids_named
from kemu.trace.journal import SLOTS, Journal

COPY, ENTRY = "copy_pte_range", "copy_present_ptes"


def is_row(journal: Journal, number: int) -> bool:
    """Is the event the copy of a whole table?"""
    return isinstance(journal.event(number)[0], Row)


def loops(journal: Journal, first: int, last: int) -> list[tuple[int, int]]:
    """(first, last] of the loop over the entries in each call of copy_pte_range that begins in the range; in a call that
    copied a row the loop is empty."""
    copy, entry = fids_named(COPY), fids_named(ENTRY)
    found: list[tuple[int, int]] = []
    open_at = -1
    for i in range(0, len(journal.marks), 2):
        at, fid = journal.marks[i] // SLOTS, journal.marks[i + 1]
        if not first <= at <= last:
            continue
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
