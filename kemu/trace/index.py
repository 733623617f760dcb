"""Where in the log to look for an object or a field: what occurs in each stretch of events.

    stretch 0   objects {3, 8, 9}   classes {page, task_struct}   fields {_refcount, min_flt}
    stretch 1   objects {3, 7}      classes {page}                fields {_refcount, flags}

Most stretches say nothing about a given thing, and with these three sets a search goes past them
without a look at their events.  The log keeps its objects alive, so their ``id`` is a name.

The rule that keeps this file honest: only whole stretches are kept; the end of the log, which still
grows, is looked at anew each time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kemu.interrupts import uninterruptible

STRETCH = 1 << 13
"""Events of a stretch."""


class Contents(NamedTuple):
    """What occurs in a stretch."""

    objects: frozenset[int]
    classes: frozenset[type]
    fields: frozenset[Any]


@uninterruptible
def contents(log: list[Any]) -> Contents:
    """What occurs in a part of a log (four slots an event)."""
    objects = log[::4]
    once = dict(zip(map(id, objects), objects, strict=True))
    return Contents(frozenset(once), frozenset(map(type, once.values())), frozenset(log[1::4]))


@uninterruptible
class Index:
    """The contents of the stretches of one log that have been asked for."""

    def __init__(self) -> None:
        self.known: dict[int, Contents] = {}

    def of(self, log: list[Any], number: int) -> Contents:
        """The contents of stretch ``number``, as far as there are events."""
        found = self.known.get(number)
        if found is None:
            last = (number + 1) * STRETCH
            found = contents(log[number * STRETCH * 4 : last * 4])
            if last * 4 <= len(log):
                self.known[number] = found
        return found

    def catch_up(self, log: list[Any]) -> None:
        """Take in the whole stretches at the end of the log that are not known yet."""
        number = len(log) // 4 // STRETCH - 1
        while number >= 0 and number not in self.known:
            self.of(log, number)
            number -= 1

    def forget_after(self, event: int) -> None:
        """Events behind ``event`` are gone."""
        for number in [number for number in self.known if (number + 1) * STRETCH > event]:
            del self.known[number]
