"""Where the session stands, and the search for a moment at which something is true: what all moves end with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import readings
from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.commands.expr import Expression
    from kemu.session import Session


def moment(session: Session, stops: tuple[str, ...] = ()) -> readings.Moment:
    """Where the session stands; `stops` are the lines about what stopped it here."""
    from kemu.commands.stops import displays
    from kemu.observe.events import one_event

    now = session.now
    inside = session.command_at(now)
    event = None
    if now:
        with session.traveling():
            event = one_event(session.kernel, now, session.name_of, inside.last if inside else now)
    return readings.Moment(
        now=now,
        end=session.end,
        timeline=session.timeline.number,
        mark=next((name for name, marked in reversed(session.marks.items()) if marked == now), ""),
        inside=inside.text if inside else "",
        event=event,
        stops=stops,
        shown=displays(session),
    )


def search(session: Session, condition: Expression, moments: range) -> readings.Moment:
    """Go to the first of the moments at which the condition holds. Raises UsageError, and stays, if there is none."""
    from kemu.commands.expr import TaskValue
    from kemu.commands.stops import text_of, value_at

    found = None
    with session.traveling():
        for number in moments:
            value = value_at(session, condition, number)
            if value and not isinstance(value, (str, TaskValue)):
                found = number
                break
    if found is None:
        where = f"from #{moments[0]} to #{moments[-1]}" if moments else "there"
        raise UsageError(f"until: {text_of(condition)} is true at no moment {where}", hint="print EXPR shows its value here")
    session.goto(found)
    return moment(session)
