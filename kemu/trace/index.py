"""Where in the log to search for an object or a field: what occurs in each stretch of events.

    stretch 0   objects {3, 8, 9}   classes {page, task_struct}   fields {_refcount, min_flt}
    stretch 1   objects {3, 7}      classes {page}                fields {_refcount, flags}

Most stretches do not concern a given thing, and these three sets let a search skip them without
reading their events.  Objects are identified by their numbers (``identity.py``).

Only whole stretches are indexed; the end of the log, which still grows, is read anew each time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kemu.interrupts import uninterruptible
from kemu.trace.identity import Numbers

STRETCH = 1 << 13
"""Events in a stretch."""


class Contents(NamedTuple):
    """What occurs in a stretch."""

    objects: frozenset[int]
    classes: frozenset[type]
    fields: frozenset[Any]


@uninterruptible
def contents(log: list[Any], numbers: Numbers) -> Contents:
    """What occurs in a part of a log (four slots per event)."""
    objects = log[::4]
    once = dict(zip(map(id, objects), objects, strict=True)).values()
    return Contents(
        frozenset(map(numbers.of, once)), frozenset(map(type, once)), frozenset(log[1::4])
    )


@uninterruptible
class Index:
    """The contents of the whole stretches of one log, from its beginning on, and the numbers of the
    objects that have an event in it. Both are computed on demand."""

    def __init__(self) -> None:
        self.known: list[Contents] = []
        self.numbers = Numbers()
        self._met = [0]
        """How many objects were met before each stretch."""

    def of(self, log: list[Any], number: int) -> Contents:
        """The contents of stretch ``number``, or the part of it that exists."""
        self.catch_up(log)
        if number < len(self.known):
            return self.known[number]
        return contents(log[number * STRETCH * 4 :], self.numbers)

    def catch_up(self, log: list[Any]) -> None:
        """Index the whole stretches that are not indexed yet."""
        for number in range(len(self.known), len(log) // 4 // STRETCH):
            part = log[number * STRETCH * 4 : (number + 1) * STRETCH * 4]
            self.known.append(contents(part, self.numbers))
            self._met.append(len(self.numbers))

    def numbered(self, log: list[Any]) -> Numbers:
        """The numbers of all objects that have an event in the log."""
        self.of(log, len(log) // 4 // STRETCH)
        return self.numbers

    def forget_after(self, event: int) -> None:
        """Forget the events after ``event``, and the numbers assigned since the last whole stretch
        before it."""
        whole = min(event // STRETCH, len(self.known))
        self.numbers.forget_from(self._met[whole])
        del self.known[whole:], self._met[whole + 1 :]
