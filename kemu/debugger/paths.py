"""Which event a step ends at: the next one that `trace` shows, any event, or one of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kemu import interrupts
from kemu.debugger.stops import EVENT_KINDS

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.readings import EventReading

Wanted = Callable[["EventReading"], bool]

STEPS = {
    "all": "every event, also of lists, locks and statistics",
    **{kind: f"the next change of kind {kind}" for kind in EVENT_KINDS},
    "refcount": "the next change of a frame's _refcount",
    "mapcount": "the next change of a frame's _mapcount",
}
"""What `step` and `back` can be told to stop at."""

LARGEST = 4096
"""Events that are put into words at a time; the first search looks at 16."""


def wanted(kind: str | None) -> Wanted:
    """Whether a step of that kind (None: as `trace` shows) stops at an event."""
    from kemu.observe.events import is_shown

    if kind is None:
        return is_shown
    if kind in ("refcount", "mapcount"):
        return lambda event: event.field == f"_{kind}" and event.old != event.new
    return lambda event: event.kind == kind and event.old != event.new


def steps_on(session: Session, count: int, kind: str | None) -> int:
    """The moment `count` steps after this one, the newest one if there are fewer."""
    if kind == "all":
        return min(session.now + count, session.end)
    found = (at for low, high in _ahead(session) for at in _stops(session, low, high, kind))
    return next((at for passed, at in enumerate(found, 1) if passed == count), session.end)


def steps_back(session: Session, count: int, kind: str | None) -> int:
    """The moment `count` steps before this one, the boot if there are fewer."""
    if kind == "all":
        return max(session.now - count, 0)
    found = (
        at for low, high in _before(session) for at in reversed(_stops(session, low, high, kind))
    )
    return next((at for passed, at in enumerate(found, 1) if passed == count), 0)


def _stops(session: Session, low: int, high: int, kind: str | None) -> list[int]:
    """The events of (low, high] at which a step stops."""
    from kemu.observe.events import events

    with session.traveling():
        found = events(session.kernel, low, high, session.name_of, low=True).events
    fits = wanted(kind)
    return [event.number for event in found if fits(event)]


def _ahead(session: Session) -> Iterator[tuple[int, int]]:
    """(now, end] in growing pieces."""
    low, size = session.now, 16
    while low < session.end:
        interrupts.check(f"looked at the events up to #{low}".__str__, low)
        high = min(low + size, session.end)
        yield low, high
        low, size = high, min(size * 4, LARGEST)


def _before(session: Session) -> Iterator[tuple[int, int]]:
    """The events before this one in growing pieces, the newest piece first."""
    high, size = session.now - 1, 16
    while high > 0:
        interrupts.check(f"looked at the events down to #{high}".__str__, high)
        low = max(high - size, 0)
        yield low, high
        high, size = low, min(size * 4, LARGEST)
