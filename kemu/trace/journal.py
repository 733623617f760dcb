"""The journal: every change of emulated state, in order, with the old and the new value.

    log    obj  field  old  new | obj  field  old  new | ...        four slots an event, one flat list
    marks  4*event  fid | 4*event  ~fid | ...                       entering and leaving a function, between events

Going back is writing the old values from the end to the front, going forward is writing the new ones again: the same
loop in two directions, so nothing in the kernel needs undo code of its own.  An object takes part by having
``_restore(field, value)``, which stores without recording.

The rule that keeps this file honest: nothing here looks at what an object *is*.
"""

from __future__ import annotations

from array import array
from typing import Any, Protocol


class Restorable(Protocol):
    """What an event's object must be able to do."""

    def _restore(self, field: Any, value: Any) -> None: ...


SLOTS = 4
"""Slots of ``log`` that one event takes."""

STRETCH = 1 << 14
"""Events that ``seek`` takes out of the log at a time: walking three small lists in step is twice as fast as indexing a
large one."""


class Journal:
    """The events of one experiment and the place in them where the state stands now.

    ``cursor`` is the number of events that are applied, 0..len(journal).
    """

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.marks = array("q")  # a list would need three times the memory
        self.cursor = 0

    def __len__(self) -> int:
        """The number of events."""
        return len(self.log) // SLOTS

    @property
    def at_end(self) -> bool:
        """True where a change would be the newest event; False in the past."""
        return self.cursor * SLOTS == len(self.log)

    def catch_up(self) -> None:
        """Count what has been recorded since the last look: the cursor follows the end while the machine runs."""
        self.cursor = len(self.log) // SLOTS

    def event(self, number: int) -> tuple[Restorable, Any, Any, Any]:
        """(object, field, old, new) of event ``number``, counted from 1; the state *at* N is the one after event N."""
        if not 1 <= number <= len(self):
            raise IndexError(f"event {number}: the journal has events 1 to {len(self)}")
        at = (number - 1) * SLOTS
        obj, field, old, new = self.log[at : at + SLOTS]
        return obj, field, old, new

    def seek(self, number: int) -> None:
        """Bring all state to where it was after event ``number`` (0: before the first)."""
        if not 0 <= number <= len(self):
            raise IndexError(f"event {number}: the journal has events 0 to {len(self)}")
        if number < self.cursor:
            self._back(number)
        else:
            self._forward(number)
        self.cursor = number

    def _back(self, number: int) -> None:
        for end in range(self.cursor, number, -STRETCH):
            part = self.log[max(end - STRETCH, number) * SLOTS : end * SLOTS]
            for obj, field, old in zip(part[-4::-SLOTS], part[-3::-SLOTS], part[-2::-SLOTS], strict=True):
                obj._restore(field, old)

    def _forward(self, number: int) -> None:
        for start in range(self.cursor, number, STRETCH):
            part = self.log[start * SLOTS : min(start + STRETCH, number) * SLOTS]
            for obj, field, new in zip(part[::SLOTS], part[1::SLOTS], part[3::SLOTS], strict=True):
                obj._restore(field, new)

    def truncate(self) -> None:
        """Forget the events after the cursor, and the marks of the calls that made them: another future will follow.

        The cursor stands between two commands, so no call is open there."""
        end = self.cursor * SLOTS
        del self.log[end:]
        marks = self.marks
        keep = len(marks)
        while keep and marks[keep - 2] > end:
            keep -= 2
        first = keep
        while first and marks[first - 2] == end:
            first -= 2
        entered: list[int] = []
        for i in range(first, keep, 2):
            if marks[i + 1] >= 0:
                entered.append(i)
            elif entered:
                entered.pop()
        del marks[entered[0] if entered else keep :]
