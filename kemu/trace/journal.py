"""The journal: every change of emulated state, in order, with the old and the new value.

    log    obj  field  old  new | obj  field  old  new | ...  four slots per event, one flat list
    marks  4*event  fid | 4*event  ~fid | ...     entering and leaving a function, between events

Going back writes the old values, last event first; going forward writes the new values again.  This
is one loop in two directions, so nothing in the kernel needs undo code of its own.  An object takes
part by having ``_restore(field, value)``, which stores without recording.  Far jumps use net
effects (``blocks.py``).

Nothing here depends on what an object *is*.
"""

from __future__ import annotations

from array import array
from typing import Any, Protocol

from kemu.interrupts import uninterruptible
from kemu.trace import tape
from kemu.trace.blocks import Blocks
from kemu.trace.index import Index


class Restorable(Protocol):
    """What the object of an event must provide."""

    def _restore(self, field: Any, value: Any) -> None: ...


SLOTS = 4
"""Slots of ``log`` per event."""

STACKS = 1 << 12
"""Marks between two places where the open functions are saved."""


@uninterruptible
class Journal:
    """The events of one experiment, and the place among them where the state is now.

    ``cursor`` is the number of events that are applied, 0..len(journal).
    """

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.fresh_marks: list[int] = []
        self._marks = array("q")
        self.cursor = 0
        self.blocks = Blocks()
        self.index = Index()
        self._stacks: list[tuple[int, ...]] = [()]

    @property
    def marks(self) -> array[int]:
        """The marks, two words each.  New marks are appended to a list, which is faster, and moved
        to the array when they are read: a list takes three times the memory."""
        if self.fresh_marks:
            self._marks.fromlist(self.fresh_marks)
            self.fresh_marks.clear()
        return self._marks

    def __len__(self) -> int:
        """The number of events."""
        return len(self.log) // SLOTS

    @property
    def at_end(self) -> bool:
        """True if a change would be the newest event, False in the past."""
        return self.cursor * SLOTS == len(self.log)

    def catch_up(self) -> None:
        """Count what has been recorded since the last call: while the machine runs, the cursor
        follows the end."""
        self.cursor = len(self.log) // SLOTS

    def prepare(self) -> None:
        """Index what has been recorded, for questions about the past: cheap after each command,
        slow after a million events."""
        self.index.catch_up(self.log)
        self.open_before(len(self.marks))

    def event(self, number: int) -> tuple[Restorable, Any, Any, Any]:
        """(object, field, old, new) of event ``number``, counted from 1; the state *at* N is the
        one after event N."""
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
        for part in reversed(self.blocks.parts(self.log, number, self.cursor)):
            tape.back(self.blocks.of(self.log, part))

    def _forward(self, number: int) -> None:
        for part in self.blocks.parts(self.log, self.cursor, number):
            tape.forward(self.blocks.of(self.log, part))

    def open_before(self, index: int) -> list[int]:
        """The functions (by number) that are open just before the mark at ``index`` in ``marks``,
        outermost first."""
        while len(self._stacks) * STACKS <= index:
            first = (len(self._stacks) - 1) * STACKS
            self._stacks.append(tuple(self._open(self._stacks[-1], first, first + STACKS)))
        near = index // STACKS
        return self._open(self._stacks[near], near * STACKS, index)

    def _open(self, stack: tuple[int, ...], first: int, last: int) -> list[int]:
        """The functions open after the marks [first, last), if ``stack`` were open before them."""
        found = list(stack)
        for fid in self.marks[first + 1 : last : 2]:
            if fid >= 0:
                found.append(fid)
            elif found:
                found.pop()
        return found

    def future(self) -> tuple[list[Any], array[int]]:
        """What `truncate` would forget, for `restore`: the events after the cursor, and all
        marks."""
        return self.log[self.cursor * SLOTS :], self.marks[:]

    def rejoin(self, future: tuple[list[Any], array[int]]) -> None:
        """Restore a truncated future, and put the cursor at its end."""
        events, marks = future
        self.log += events
        self.fresh_marks.clear()
        self._marks = marks[:]

    def truncate(self) -> None:
        """Forget the events after the cursor and the marks of the calls that made them, to make
        room for another future.

        The cursor is between two commands, so no call is open there."""
        end = self.cursor * SLOTS
        del self.log[end:]
        self.blocks.forget_after(self.cursor)
        self.index.forget_after(self.cursor)
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
        del self._stacks[len(marks) // STACKS + 1 :]
