"""Where a named thing first happened in a stretch of the journal, so that two such things can be
ordered.

    marks   enter f      enter g   leave g        leave f
    events         13 14        15         16 17
    keys    (52,0) (53..)(57..) (60,4) ...  what is compared: the place in the log,
                                          then the place among the marks

A key is not an event number: two calls may begin between the same two events.
"""

from __future__ import annotations

from kemu.kernel.init.boot import Kernel
from kemu.observe.events import events, first_mark
from kemu.observe.names import Names
from kemu.trace.frames import FUNCTIONS
from kemu.trace.journal import SLOTS, Journal

Key = tuple[int, int]


def of_call(
    journal: Journal, name: str, first: int, last: int, *, leaving: bool = False
) -> Key | None:
    """Where a function of that name is first entered (or left) in (first, last]; None if it never
    is."""
    fids = {~known.fid if leaving else known.fid for known in FUNCTIONS if known.name == name}
    marks = journal.marks
    for index in range(first_mark(journal, first), len(marks), 2):
        if marks[index] > last * SLOTS:
            return None
        if marks[index + 1] in fids:
            return marks[index], index
    return None


def known_function(name: str) -> bool:
    """Whether there is a kernel function of that name that leaves frames."""
    return any(known.name == name for known in FUNCTIONS)


def of_event(event: int) -> Key:
    """The key of an event."""
    return event * SLOTS - 2, 0


def after(event: int) -> Key:
    """The key of the moment just after an event, before any mark there."""
    return event * SLOTS - 1, 0


def event_of(key: Key) -> int:
    """The newest event before the place."""
    return key[0] // SLOTS


def of_text(kernel: Kernel, word: str, first: int, last: int, names: Names) -> Key | None:
    """The first event of (first, last] whose text or function contains the word, ignoring case."""
    wanted = word.lower()
    found = events(kernel, first, last, names, low=True).events
    return next(
        (
            of_event(event.number)
            for event in found
            if wanted in f"{event.text} {event.function}".lower()
        ),
        None,
    )
