"""Look into a whole-row event: a loop over the entries of a table, one by one.

What fork copies and what exit takes away is one event of the journal where a table has many entries
(kernel/mm/rows.py). Here the command runs once more outside the journal with rows switched off
(`rehearse.py`), so that the loop does the same entry by entry, which is shown as sub-steps N.1, N.2
... of event N. They are not events: no timeline can branch off at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import readings
from kemu.debugger.debugger import OpenRow
from kemu.debugger.paths import steps_on
from kemu.debugger.rehearse import perform
from kemu.errors import KernelBug, UsageError
from kemu.language import kinds
from kemu.language.spec import FREE, command, maybe

if TYPE_CHECKING:
    from kemu.experiment.session import Session

_START = "spawn app; mmap app 0x200000 80p rw populate; fork app as kid; "


@command(
    "expand",
    arguments=(maybe("event", kinds.MOMENT),),
    effect=FREE,
    summary="the entries of a table that fork or exit handled as one event, one by one",
    more="Without EVENT, the one at this moment or the newest before it.",
    examples=(_START + "expand", _START + "break row; rc; expand"),
)
def expand(session: Session, event: int | None) -> readings.SubSteps:
    """The sub-steps of a row."""
    number = _row_event(session, session.now if event is None else event, exact=event is not None)
    found = entries_of(session, number)
    return readings.SubSteps(number, found, len(found))


def step_into(session: Session, count: int) -> readings.SubSteps | None:
    """The next `count` entries of the row at this moment, or of the next event that `step` stops
    at if that is a row, to which it moves; None if there is no row, or all its entries have been
    shown. A move closes the row: its entries are shown from the first one on again."""
    from kemu.observe.rows import is_row

    row, now = session.debugger.row, session.now
    if row is not None and row.event != now:
        row = None
    number = now if now and is_row(session.journal, now) else steps_on(session, 1, None)
    if not number or not is_row(session.journal, number):
        return None
    found, seen = (row.entries, row.seen) if row else (entries_of(session, number), 0)
    if seen >= len(found):
        session.debugger.open_row(None)
        return None
    session.goto(number)
    session.debugger.open_row(OpenRow(number, found, seen + count))
    return readings.SubSteps(number, found[seen : seen + count], len(found))


def entries_of(session: Session, number: int) -> tuple[readings.EventReading, ...]:
    """The sub-steps of the row event, numbered from 1."""
    from kemu.observe.events import events
    from kemu.observe.rows import loop_at, place_of, without_rows

    record = session.command_of(number)
    if record is None:
        raise KernelBug(f"the row #{number} belongs to no command")
    place = place_of(session.journal, record.first, number)
    with session.beside(record.first) as scratch:
        with without_rows():
            perform(session, record)
        scratch.catch_up()
        first, last = loop_at(scratch, place)
        found = [
            event
            for event in events(session.kernel, 0, last, session.name_of).events
            if event.number > first
        ]
    return tuple(event.replace(number=i) for i, event in enumerate(found, 1))


def _row_event(session: Session, upto: int, *, exact: bool) -> int:
    """The number of the row event. Raises UsageError if there is none."""
    from kemu.observe.rows import is_row, newest_row

    if upto > session.end:
        raise UsageError(
            f"event: no #{upto}",
            hint=f"the experiment has events 0 to {session.end}",
            about="event",
        )
    known = upto and is_row(session.journal, upto)
    found = (upto if known else None) if exact else newest_row(session.journal, upto)
    if found is not None:
        return found
    hint = "trace shows such events as 'pte table of ...'"
    raise UsageError(f"expand: #{upto} is not about a whole table", hint=hint, about="event")
