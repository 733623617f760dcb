"""The one write barrier: the only way in which emulated state changes while it is recorded.

    kernel code            vma.vm_end = addr
    attrs on_setattr       record(vma, "vm_end", old, addr)      -> four slots in the journal
    slot                   the new value

Three things carry state: a ``@struct`` (an attrs class with slots; its fields), a ``Table`` (a dictionary; its keys) and
a word of RAM (``machine/physmem.py``, which is a Table too).  ``None`` in a Table means *absent*.

attrs does not call the hook from ``__init__``: a new struct is inert until a recorded assignment links it somewhere,
and that is exactly what undo needs.

Recording can be switched off as a whole: the hooks are taken out of the classes, the call wrappers out of the functions
(``frames.py``), and the kernel runs as it is written.  Going back is then impossible; everything else is the same.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, dataclass_transform

import attrs

from kemu.errors import KernelBug
from kemu.trace.journal import Journal

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

STRUCTS: list[type] = []
"""Every class made by ``@struct``, in order of definition."""

_hooked: dict[type, Any] = {}
_listeners: list[Callable[[bool], None]] = []


class Tape:
    """Where records go at the moment: the lists of the active journal, or nowhere."""

    __slots__ = ("extend", "log", "marks", "recording")

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.marks: list[int] = []
        self.recording = False
        self.extend: Callable[[tuple[Any, ...]], None] = _discard


def _discard(record: tuple[Any, ...]) -> None:
    """Drop a record: nothing is being recorded."""


def _refuse(record: tuple[Any, ...]) -> None:
    """Refuse a record: the state is sealed."""
    obj, field = record[0], record[1]
    raise KernelBug(f"write to {type(obj).__name__}.{field} while the state is sealed: looking must not change anything")


tape = Tape()


def _hook(obj: Any, attribute: attrs.Attribute[Any], value: Any) -> Any:
    """The barrier itself: record field, old and new value, then let attrs store."""
    name = attribute.name
    tape.extend((obj, name, getattr(obj, name), value))
    return value


@dataclass_transform(field_specifiers=(attrs.field,))
def struct(cls: type[T]) -> type[T]:
    """Make ``cls`` a kernel structure: attrs class with slots, compared by identity, every assignment recorded."""
    made = attrs.define(cls, slots=True, eq=False, weakref_slot=False, on_setattr=_hook)
    made._restore = object.__setattr__  # type: ignore[attr-defined]
    STRUCTS.append(made)
    _hooked[made] = made.__setattr__
    if not tape.recording:
        del made.__setattr__
    return made


class Table(dict[K, V]):
    """A dictionary whose changes are events.  Change it by ``put`` only; iterate it in sorted order only (going back and
    forth may change the order in which the keys lie)."""

    __slots__ = ("name",)

    def __init__(self, name: str = "", content: dict[K, V] | None = None) -> None:
        super().__init__(content or {})
        self.name = name

    def put(self, key: K, value: V | None) -> None:
        """Set ``key``; ``None`` removes it."""
        tape.extend((self, key, self.get(key), value))
        if value is None:
            self.pop(key, None)
        else:
            self[key] = value

    def _restore(self, key: K, value: V | None) -> None:
        if value is None:
            self.pop(key, None)
        else:
            self[key] = value


def on_record_change(listener: Callable[[bool], None]) -> None:
    """Call ``listener(recording)`` now and whenever recording is switched."""
    _listeners.append(listener)
    listener(tape.recording)


def record(journal: Journal | None) -> None:
    """Record into ``journal`` from now on, or into nothing (``None``)."""
    on = journal is not None
    if on != tape.recording:
        _switch(on)
    if journal is None:
        tape.log, tape.marks, tape.extend = [], [], _discard
    else:
        tape.log, tape.marks, tape.extend = journal.log, journal.marks, journal.log.extend


def _switch(on: bool) -> None:
    for cls in STRUCTS:
        if on:
            cls.__setattr__ = _hooked[cls]  # type: ignore[method-assign]
        else:
            del cls.__setattr__
    tape.recording = on
    for listener in _listeners:
        listener(on)
    if on:
        # A journal is a list of millions of long-lived objects: with the usual thresholds the collector costs more
        # than the barrier.
        gc.freeze()
        gc.set_threshold(200_000, 50, 100)


@contextmanager
def sealed() -> Iterator[None]:
    """Within the block any write raises ``KernelBug`` and no call is marked.  Without recording there is no barrier to
    close; the block then only has its effect on RAM and tables."""
    kept_extend, kept_marks, kept_log = tape.extend, tape.marks, tape.log
    tape.extend, tape.marks, tape.log = _refuse, [], []
    try:
        yield
    finally:
        tape.extend, tape.marks, tape.log = kept_extend, kept_marks, kept_log


@contextmanager
def unhooked(cls: type) -> Iterator[None]:
    """Within the block assignments to instances of ``cls`` are plain: for a bulk record (``Row``) that carries them."""
    if not tape.recording:
        yield
        return
    del cls.__setattr__
    try:
        yield
    finally:
        cls.__setattr__ = _hooked[cls]  # type: ignore[method-assign]
