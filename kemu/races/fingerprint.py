"""Recognising a state cheaply: a number for each state along a run, updated event by event.

    before the race    0
    event  cell old -> new     number ^= hash(cell, old) ^ hash(cell, new)

Two runs that have made the same changes, in whatever order, have the same number; a state needs to
be checked only the first time.  Hundreds of schedules of one race share most of their states.

An object is named by what is the same in every run: a page by its frame, an object from before the
race by its number, one that the run made by its kind, its number within the kind, and its contents
when it was linked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import attrs

from kemu.kernel.include.mm_types import page
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import STATE
from kemu.kernel.mm.rows import Row
from kemu.machine.physmem import Frame, PhysMem
from kemu.trace.identity import Numbers
from kemu.trace.journal import SLOTS

_PLAIN = (int, str, bytes, float, type(None))


def reachable() -> Numbers:
    """Every object of the active kernel's state."""
    found = Numbers()
    waiting: list[Any] = [getattr(system, name) for name in STATE]
    while waiting:
        obj = waiting.pop()
        if isinstance(obj, _PLAIN) or found.known(obj) is not None:
            continue
        found.of(obj)
        waiting += _parts(obj)
    return found


def _parts(obj: Any) -> Iterable[Any]:
    """What an object refers to."""
    if isinstance(obj, page):
        return (obj.mapping, obj.next, obj.prev)
    if isinstance(obj, dict):
        return () if isinstance(obj, Frame) else obj.values()
    if isinstance(obj, (tuple, list, frozenset)):
        return obj
    if isinstance(obj, PhysMem):
        return (obj.frames,)
    return [getattr(obj, name) for name in _fields(obj) if hasattr(obj, name)]


def _fields(obj: Any) -> Iterator[str]:
    """The names of an object's fields."""
    if attrs.has(type(obj)):
        yield from (field.name for field in attrs.fields(type(obj)))
    else:
        yield from getattr(type(obj), "__slots__", ())


class Fingerprint:
    """The number of the state along one run.  ``known``: the objects from before the race (see
    ``reachable``); ``held``: the contents of the objects that the run made, when they were
    linked."""

    def __init__(self, known: Numbers) -> None:
        self.known = known
        self.made: defaultdict[str, Numbers] = defaultdict(Numbers)
        self.held: dict[tuple[str, int], Hashable] = {}
        self.number = 0

    def follow(self, log: list[Any], event: int) -> None:
        """Add the event with this index in ``log`` (from 0); the state is still the one before
        it."""
        obj, field, old, new = log[event * SLOTS : event * SLOTS + SLOTS]
        cell = (self.name(obj), field if isinstance(field, (str, int)) else self.name(field))
        self.number ^= hash((cell, self.value(old))) ^ hash((cell, self.value(new)))

    def value(self, value: Any) -> Hashable:
        """A value in terms that are the same in every run."""
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, (tuple, list)):
            return tuple(self.value(part) for part in value)
        if isinstance(value, frozenset):
            return frozenset(self.value(part) for part in value)
        return self.name(value)

    def name(self, obj: Any) -> Hashable:
        """The name of an object, the same in every run."""
        if isinstance(obj, page):
            return obj.pfn
        known = self.known.known(obj)
        if known is not None:
            return ("known", known)
        kind = type(obj).__name__
        made = kind, self.made[kind].of(obj)
        if made not in self.held:
            self.held[made] = ()
            self.held[made] = self._contents(obj)
        return (*made, self.held[made])

    def _contents(self, obj: Any) -> Hashable:
        """The plain values in a new object and in its lists; all that a row changes, since it is
        one event for many."""
        if isinstance(obj, Row):
            return self.value(obj.log)
        if isinstance(obj, dict):
            return tuple(
                (key, value) for key, value in sorted(obj.items()) if isinstance(value, _PLAIN)
            )
        pairs = ((name, getattr(obj, name, None)) for name in _fields(obj))
        return tuple((name, self.value(value)) for name, value in pairs if _is_content(value))


def _is_content(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(part, (page, *_PLAIN)) for part in value)
    return isinstance(value, _PLAIN)
