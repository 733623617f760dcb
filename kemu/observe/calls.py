"""The call tree of a range of events, from the marks in the journal."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from kemu.observe.events import check_range, events, first_mark
from kemu.observe.look import travelling
from kemu.observe.names import Names
from kemu.readings import CallReading, CallTree, EventReading
from kemu.trace.frames import Call, call_tree
from kemu.trace.journal import SLOTS, Journal

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel


def calls(
    kernel: Kernel,
    first: int,
    last: int,
    names: Names = None,
    marks: tuple[int, int] | None = None,
    *,
    with_events: bool = False,
    low: bool = False,
) -> CallTree:
    """The calls of the events ``first`` + 1 to ``last`` as trees; ``with_events`` puts the events
    in their places.

    ``marks`` is the part of ``journal.marks`` that belongs to the range, if the caller knows it:
    nothing else assigns a call without events at the border of two commands to one of them."""
    named = events(kernel, first, last, names, low=low).events if with_events else ()
    with travelling(kernel) as journal:
        check_range(journal, first, last)
        begin, end = marks if marks is not None else (_begin(journal, first), _end(journal, last))
        cut = [word for fid in journal.open_before(begin) for word in (first * SLOTS, fid)]
        cut += journal.marks[begin:end]
        return CallTree(first, last, tuple(_merge(call_tree(cut), named, first, last)))


def _begin(journal: Journal, first: int) -> int:
    """The first mark that belongs to the events after ``first``: calls that end before it belong
    to what came earlier."""
    marks = journal.marks
    index = start = first_mark(journal, first)
    depth = 0
    while index < len(marks) and marks[index] == first * SLOTS:
        depth += 1 if marks[index + 1] >= 0 else -1
        index += 2
        if depth <= 0:
            start, depth = index, 0
    return start


def _end(journal: Journal, last: int) -> int:
    """Index after the last mark that belongs to the events up to ``last``: it includes marks that
    close calls, but none that opens a new one."""
    marks = journal.marks
    index = first_mark(journal, last)
    depth = len(journal.open_before(index))
    while index < len(marks) and marks[index] == last * SLOTS and depth > 0:
        depth += 1 if marks[index + 1] >= 0 else -1
        index += 2
    return index


def _merge(
    found: list[Call], named: tuple[EventReading, ...], first: int, last: int
) -> list[CallReading | EventReading]:
    """The calls, and the events of (first, last] outside of them, in order."""
    merged: list[CallReading | EventReading] = []
    at = first
    for call in found:
        merged += _between(named, at, call.first)
        children = tuple(_merge(call.children, named, call.first, call.last))
        merged.append(
            CallReading(call.function.name, call.function.path, call.first, call.last, children)
        )
        at = max(at, call.last)
    return [*merged, *_between(named, at, last)]


def _between(named: tuple[EventReading, ...], first: int, last: int) -> tuple[EventReading, ...]:
    """The events of (first, last]; ``named`` is in order."""
    begin, end = (
        bisect_right(named, number, key=lambda event: event.number) for number in (first, last)
    )
    return named[begin:end]
