"""What a wrong kernel broke: the first event, the invariants, and since when it ran."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kemu.experiment.session import Session


class Broken(NamedTuple):
    """The first event that breaks something: the invariants, and the kernel function at work."""

    event: int
    rules: tuple[str, ...]
    function: str


def broken_now(session: Session) -> tuple[str, ...]:
    """The invariants that do not hold at the end of the history, which is what `verify` shows."""
    from kemu.invariants import check

    with session.traveling():
        session.goto(session.end)
        return tuple(
            violation.invariant
            for violation in check(session.kernel, session.name_of, quiescent=True)
        )


def first_broken(session: Session, first: int) -> Broken | None:
    """The first event after `first` that breaks something; None if nothing does."""
    from kemu.invariants import first_broken as search
    from kemu.observe.events import one_event

    first = max(first, wrong_since(session, first))
    with session.traveling():
        quiet = {0, session.now} | {record.last for record in session.timeline.records}
        resting = {event for event in quiet if session.boundary(event)}
        broken = search(session.kernel, first, session.now, resting, session.name_of)
        if broken is None:
            return None
        function = one_event(session.kernel, broken.event, session.name_of).function
    rules = dict.fromkeys(violation.invariant for violation in broken.violations)
    return Broken(broken.event, tuple(rules), function)


def wrong_since(session: Session, first: int) -> int:
    """The event after which the wrong function first ran: up to there the kernel did what the
    right one does, so nothing can be broken.  `first` where that cannot be told."""
    from kemu.observe import anchors

    function = places().get(session.planted, "")
    if not anchors.known_function(function):
        return first
    found = anchors.of_call(session.journal, function, first, session.end)
    return session.end if found is None else anchors.event_of(found)


@cache
def places() -> dict[str, str]:
    """The name of the function that is wrong, by the name of the wrong kernel."""
    from kemu.commands.trust import listing
    from kemu.experiment.session import Session

    return {row.name: row.place.rpartition("#")[2] for row in listing(Session()).mutants}
