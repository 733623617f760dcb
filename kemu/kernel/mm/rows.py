"""A loop over a table of entries as one event of the journal: a row.

A fork of a 1 GiB process copies 262,144 entries, and its exit clears them again.  Entry by entry,
that is five events for each, and twenty more for each page that is freed; with rows, it is one
event for each table of 512.  A row contains the net effect of its loop, in the form of a log:

    copied     copy_pte_range      entries of two tables, counts of the pages (fork_row.py)
    zapped     zap_pte_range       entries, counts of the pages (zap_row.py)
    put        folios_put_refs     references; pages that go back to the free lists (zap_row.py)

The state after a row is the state after the loop; a property test checks this.  What only the loop
can do (another kind of entry, a bad page, an error half-way) is left to the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kemu.trace.tape import back, changes, emit, forward


class Bulk:
    """When rows are used: only if ``enabled``, for loops over at least ``min_entries`` entries."""

    def __init__(self) -> None:
        self.enabled = True
        self.min_entries = 64


bulk = Bulk()


class Row:
    """A loop that is done, undone and redone as a whole.  ``log`` has each cell once, with its
    first old and last new value, in four slots."""

    __slots__ = ("log",)

    def __init__(self) -> None:
        self.log: list[Any] = []

    def change(
        self, objects: Sequence[Any], fields: Sequence[Any], old: Sequence[Any], new: Sequence[Any]
    ) -> None:
        """Add a change for each of the objects."""
        at = len(self.log)
        self.log += [None] * (4 * len(objects))
        self.log[at::4], self.log[at + 1 :: 4] = objects, fields
        self.log[at + 2 :: 4], self.log[at + 3 :: 4] = old, new

    def update(self, objects: list[Any], field: str, i: int = 0, mask: int = -1) -> int:
        """For each of the objects, add the change of the number in ``field`` to its value plus
        ``i``, under ``mask``.  Returns how many change."""
        return changes(self.log, objects, field, i, mask)

    def do(self, what: str) -> None:
        """Record the event (``what``: copied, zapped, put) and make the changes."""
        emit(self, what, False, True)
        forward(self.log)

    def changes(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """(object, field, old, new) of each change, as for events."""
        return zip(self.log[::4], self.log[1::4], self.log[2::4], self.log[3::4], strict=True)

    def _restore(self, _field: str, done: bool) -> None:
        (forward if done else back)(self.log)
