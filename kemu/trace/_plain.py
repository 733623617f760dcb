"""Storing records, the barrier, the marks, undoing and redoing a log, and reading RAM, in Python.

``_fast.c`` is the same in C, for speed, and is used if a C compiler was present at installation;
this is the reference (``tape.py`` chooses).  Everything else in kemu/trace builds on these two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VERSION = 3
"""The version of the interface that both offer; ``_fast.c`` has the same number."""

Refuse = Callable[[Any, Any], None]
"""Called with the object and the field of a change that is not allowed; raises."""


def _drop(record: tuple[Any, ...]) -> None:
    """A tape that records nothing."""


class _Tape:
    """Where records go at the moment: ``extend`` takes the four slots of an event,
    ``extend_marks`` the two of a mark."""

    __slots__ = ("extend", "extend_marks", "log")

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.extend: Callable[[tuple[Any, ...]], None] = _drop
        self.extend_marks: Callable[[tuple[int, int]], None] = _drop


_tape = _Tape()


def direct(log: list[Any] | None, marks: list[int] | None, refuse: Refuse | None) -> None:
    """From now on put events into ``log``, four slots each, and marks into ``marks``, two each;
    None drops them.  Without a log, ``refuse(obj, field)``, if given, is called for each event."""
    _tape.log = [] if log is None else log
    _tape.extend_marks = _drop if marks is None else marks.extend
    if log is not None:
        _tape.extend = log.extend
    elif refuse is not None:
        _tape.extend = lambda record: refuse(*record[:2])
    else:
        _tape.extend = _drop


def emit(obj: Any, field: Any, old: Any, new: Any) -> None:
    """Record an event: ``field`` of ``obj`` changes from ``old`` to ``new``."""
    _tape.extend((obj, field, old, new))


def mark(fid: int) -> None:
    """Record that the function ``fid`` is entered, or left (``~fid``), after the events so far."""
    _tape.extend_marks((len(_tape.log), fid))


raw = object.__setattr__


def _recorded_setattr(self: Any, name: str, value: Any) -> None:
    """``__setattr__`` of a structure while the barrier is in place: record, then store."""
    _tape.extend((self, name, getattr(self, name), value))
    raw(self, name, value)


def bar(cls: Any, up: bool) -> None:
    """Put the barrier in front of the fields of ``cls``, or remove it."""
    if up:
        cls.__setattr__ = _recorded_setattr
    elif "__setattr__" in vars(cls):
        del cls.__setattr__


def add(obj: Any, field: str, i: int) -> int:
    """Add ``i`` to a field that is a C int, and return the new value."""
    value: int = (getattr(obj, field) + i + 0x80000000 & 0xFFFFFFFF) - 0x80000000
    setattr(obj, field, value)
    return value


def put(self: dict[Any, Any], key: Any, value: Any) -> None:
    """Set ``key`` of a table; ``None`` removes it."""
    if value is None:
        self.pop(key, None)
    else:
        self[key] = value


def recorded_put(self: dict[Any, Any], key: Any, value: Any) -> None:
    """``put`` of a table while the barrier is in place: record, then store."""
    _tape.extend((self, key, self.get(key), value))
    if value is None:
        self.pop(key, None)
    else:
        self[key] = value


def changes(log: list[Any], objects: list[Any], field: str, i: int, mask: int) -> int:
    """For each of the objects, append to ``log`` the change of the number in ``field`` from
    ``old`` to ``(old + i) & mask``, unless nothing changes; return how many were appended."""
    before = len(log)
    for obj in objects:
        old = getattr(obj, field)
        new = old + i & mask
        if new != old:
            log += (obj, field, old, new)
    return (len(log) - before) // 4


def back(log: list[Any]) -> None:
    """Restore the old values of the events in ``log``, from the last one to the first."""
    for obj, field, old in zip(log[-4::-4], log[-3::-4], log[-2::-4], strict=True):
        obj._restore(field, old)


def forward(log: list[Any]) -> None:
    """Restore the new values of the events in ``log``, in order."""
    for obj, field, new in zip(log[::4], log[1::4], log[3::4], strict=True):
        obj._restore(field, new)


_NOTHING: dict[int, int] = {}
"""An absent frame, which reads as zeros."""

Pointers = tuple[tuple[tuple[int, int], ...], int, int, int]
"""What a walk needs to know above the last level (``Geometry.pointers``)."""


def load(self: Any, pa: int) -> int:
    """``load`` of a PhysMem: the 8-byte word at physical address ``pa`` (u64, aligned)."""
    word: int = self.frames.get(pa >> 12, _NOTHING).get((pa >> 3) & 511, 0)
    return word


INDEX = tuple(range(512))
"""The keys of all frames: one int object per index, shared by all frames, so that a table of 512
entries is read faster."""


def store(self: Any, pa: int, value: int) -> None:
    """``store`` of a PhysMem: the 8-byte word ``value`` (u64) at ``pa`` (aligned)."""
    frame = self.frames.get(pa >> 12)
    if frame is None:
        frame = self._first_store(pa >> 12)
    frame.put(INDEX[(pa >> 3) & 511], value or None)


def last_table(
    frames: dict[int, dict[int, int]], pointers: Pointers, root: int, va: int
) -> dict[int, int] | None:
    """Walk from the table at ``root`` down to the last level: the words of the table that holds
    the last entry for ``va``; None if an entry on the way is anything but a plain pointer."""
    upper, plain, pointer, pfn_shift = pointers
    pfn = root >> 12
    for shift, mask in upper:
        entry = frames.get(pfn, _NOTHING).get(va >> shift & mask, 0)
        if entry & plain != pointer:
            return None
        pfn = entry >> pfn_shift
    return frames.get(pfn, _NOTHING)
