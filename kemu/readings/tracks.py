"""A range of events by task and CPU, for the tools that show traces: which task and which CPU ran
each call, values over time, signals."""

from __future__ import annotations

from typing import NamedTuple


class RanCall(NamedTuple):
    """A call with its calls and (number, text) of its own events, in order. Its events are
    ``first`` + 1 to ``last``; ``cpu`` and ``pid`` (with ``task``, its name) ran it."""

    function: str
    path: str
    first: int
    last: int
    cpu: int
    pid: int
    task: str
    inner: tuple[RanCall | tuple[int, str], ...]


class Counted(NamedTuple):
    """A value after event ``number``."""

    number: int
    name: str
    value: int


class Sent(NamedTuple):
    """A signal that event ``number`` put in the queue of the task ``pid``."""

    number: int
    name: str
    pid: int


class Tracks(NamedTuple):
    """The events ``first`` + 1 to ``last``. ``commands``: (text, first, last); ``tasks``: (pid,
    name); ``cpus``: how many."""

    first: int
    last: int
    roots: tuple[RanCall | tuple[int, str], ...]
    counters: tuple[Counted, ...]
    signals: tuple[Sent, ...]
    commands: tuple[tuple[str, int, int], ...]
    tasks: tuple[tuple[int, str], ...]
    cpus: int
