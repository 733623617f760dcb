"""Events in words.

To say to whose page table a word belongs, the machine is taken back to the moment before the range
and moved through it event by event; at the end it is back where it was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kemu.errors import UsageError
from kemu.observe.describe import LOW, Raw, Words, describe
from kemu.observe.look import looking, travelling
from kemu.observe.names import Names
from kemu.observe.who import Directory
from kemu.readings import EventList, EventReading
from kemu.trace.frames import FUNCTIONS
from kemu.trace.journal import SLOTS, Journal

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel


Only = Callable[[Any, Any], bool]
"""Whether an event with that object and field is wanted."""


def events(
    kernel: Kernel,
    first: int,
    last: int,
    names: Names = None,
    *,
    low: bool = False,
    only: Only | None = None,
) -> EventList:
    """The events ``first`` + 1 to ``last``; ``low``: include those of the lowest level and those
    that stored the value already there; ``only``: these events alone.  ``UsageError`` outside the
    journal."""
    with travelling(kernel) as journal:
        check_range(journal, first, last)
        named = _named_events(journal, first, last, names, only=only)
        shown = tuple(event for event in named if low or is_shown(event))
        return EventList(first, last, shown, len(named) - len(shown))


def is_shown(event: EventReading) -> bool:
    """Whether `trace` shows the event without ``all``, and `step` stops at it."""
    return event.kind not in LOW and event.old != event.new


def one_event(kernel: Kernel, number: int, names: Names = None, until: int = 0) -> EventReading:
    """Event ``number``.  ``UsageError`` if it does not exist.  Names come also from what the events
    up to ``until`` (the end of its command) link together: the tables of a child that does not
    exist yet."""
    with travelling(kernel) as journal:
        check_range(journal, number - 1, number)
        return _named_events(journal, number - 1, number, names, until=min(until, number + AHEAD))[
            0
        ]


def event_from_here(kernel: Kernel, number: int, names: Names = None) -> EventReading:
    """Event ``number`` in the words of the present moment: quick, and right for things whose name
    never changes (tasks, address spaces)."""
    with looking(kernel):
        journal = kernel.journal
        check_range(journal, number - 1, number)
        who = Directory(names)
        who.learn_present()
        who.learn_events(journal.log, number - 1, number)
        return _reading(
            number,
            describe(who, Raw(*journal.event(number))),
            OpenFrames(journal, number - 1).at(number),
        )


def check_range(journal: Journal, first: int, last: int) -> None:
    """Raise ``UsageError`` unless 0 <= first <= last <= len(journal)."""
    if not 0 <= first <= last <= len(journal):
        raise UsageError(
            f"there are no events #{first + 1} to #{last}",
            hint=f"the experiment has #1 to #{len(journal)}",
        )


AHEAD = 50_000
"""How many events after an event are searched for objects created in them."""


def directory_at(
    journal: Journal, first: int, last: int, names: Names, until: int = 0
) -> Directory:
    """Go to ``first``. Return the names of everything that exists there or appears up to ``last``,
    and of tasks created up to ``until``."""
    journal.seek(first)
    who = Directory(names)
    who.learn_present()
    if until > last:
        who.learn_births(journal, last, until)
    who.learn_events(journal.log, first, last)
    return who


def _named_events(
    journal: Journal,
    first: int,
    last: int,
    names: Names,
    *,
    until: int = 0,
    only: Only | None = None,
) -> list[EventReading]:
    who = directory_at(journal, first, last, names, until)
    stack = OpenFrames(journal, first)
    named = []
    for number in range(first + 1, last + 1):
        event = Raw(*journal.event(number))
        who.follow(event.obj, event.field, event.new)
        if only is None or only(event.obj, event.field):
            journal.seek(number - 1)
            named.append(_reading(number, describe(who, event), stack.at(number)))
    return named


def _reading(number: int, words: Words, fid: int | None) -> EventReading:
    function = FUNCTIONS[fid] if fid is not None else None
    return EventReading(
        number, *words, function.name if function else "", function.path if function else ""
    )


# ---------------------------------------------------------------- the function that is open


def first_mark(journal: Journal, event: int) -> int:
    """Index of the first mark at or after the end of ``event``."""
    marks = journal.marks
    return 2 * bisect_left(range(len(marks) // 2), event * SLOTS, key=lambda i: marks[2 * i])


class OpenFrames:
    """The innermost open function while going forward from ``first``."""

    def __init__(self, journal: Journal, first: int) -> None:
        self.marks = journal.marks
        self.next = first_mark(journal, first)
        self.stack = journal.open_before(self.next)

    def at(self, number: int) -> int | None:
        """The fid of the function in which event ``number`` happens; call it with ascending
        numbers."""
        limit = (number - 1) * SLOTS
        while self.next < len(self.marks) and self.marks[self.next] <= limit:
            fid = self.marks[self.next + 1]
            if fid >= 0:
                self.stack.append(fid)
            elif self.stack:
                self.stack.pop()
            self.next += 2
        return self.stack[-1] if self.stack else None
