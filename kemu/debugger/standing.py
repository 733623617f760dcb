"""Shows the moment at which a move ends, and searches for a moment at which a condition holds.

A move shows the moment at which it ends. `context` sets how much of the way there is shown: the
calls that were not open before, what changed in between, the page in question before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kemu import interrupts, readings
from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.expr import Expression

MOST_EVENTS = 2000
"""A move over more events shows no net change: `diff` compares any two moments."""

MOST_CHANGES = 8
"""Maximum lines of the net change of a move."""


def move(session: Session, target: int) -> readings.Moment:
    """Go to the moment, and show it."""
    begin = session.now
    session.goto(target)
    session.debugger.enter(None)
    return moment(session, begin)


def answered(session: Session, reading: Any) -> None:
    """Remember the result of a call or of `print` as `$last`."""
    if isinstance(reading, (readings.Outcome, readings.Value)):
        session.debugger.answer(reading.value)


def open_here(session: Session) -> tuple[readings.OpenCall, ...]:
    """The kernel functions that are open, outermost first: those in which the event of this moment
    happened, or those at whose entry a stop was reported."""
    from kemu.observe.moves import open_calls

    entry = session.debugger.entry_at(session.now)
    if entry is not None:
        return entry.calls
    found = open_calls(session.journal, session.now)
    return tuple(readings.OpenCall(call.name, call.path) for call in found)


def repeated(step: Callable[[int], int], begin: int, count: int) -> int:
    """The moment `count` steps from the moment `begin`, or the last one that can be reached."""
    here = begin
    for _ in range(count):
        following = step(here)
        if following == here:
            return here
        here = following
    return here


def moment(session: Session, begin: int, stops: tuple[str, ...] = ()) -> readings.Moment:
    """The moment that is shown, after a move from the moment `begin`; `stops` are the lines about
    what stopped it here."""
    from kemu.debugger.stops import displays
    from kemu.observe.moves import first_words
    from kemu.observe.rows import is_row

    now = session.now
    inside = session.command_at(now) or (session.command_of(now + 1) if stops else None)
    event, rule, entered = None, "", ""
    entry = session.debugger.entry_at(now)
    if entry is not None:
        entered = entry.calls[-1].function
        rule = f"{entered}: {first_words(entered)}"
    elif now:
        event, rule = event_here(session)
    outcome = session.debugger.reached(now)
    answered(session, outcome)
    made = readings.Moment(
        now=now,
        end=session.end,
        timeline=session.timeline.number,
        mark=next((name for name, marked in reversed(session.marks.items()) if marked == now), ""),
        inside=inside.text if inside else "",
        event=event,
        rule=rule,
        entered=entered,
        outcome=outcome,
        stops=stops,
        shown=displays(session),
        hint="a whole table in one event: step into shows its entries one by one"
        if now and is_row(session.journal, now)
        else "",
    )
    return _with_context(session, made, begin)


def event_here(session: Session) -> tuple[readings.EventReading, str]:
    """The event of this moment, and why it happened."""
    from kemu.explain.reason import rule_of
    from kemu.observe.events import one_event

    now = session.now
    inside = session.command_at(now)
    with session.traveling():
        event = one_event(session.kernel, now, session.name_of, inside.last if inside else now)
    return event, rule_of(event, *session.journal.event(now)[2:])


def _with_context(session: Session, made: readings.Moment, begin: int) -> readings.Moment:
    """The moment with the sections that `context` asks for."""
    from kemu.debugger.sections import sections
    from kemu.observe.moves import kept_calls

    wanted = sections(session)
    now = session.now
    if not wanted or begin == now or session.desk.context == "line":
        return made
    calls = (
        open_here(session)
        if "calls" in wanted and (made.entered or not session.boundary(now))
        else ()
    )
    changes = _changes(session, begin, now) if "changes" in wanted else ()
    alone = (
        begin < now
        and made.event is not None
        and all(_says(made.event, change) for change in changes)
    )
    return made.replace(
        marked="changes" in wanted and (now == begin + 1 or (alone and bool(changes))),
        calls=calls,
        kept=kept_calls(session.journal, begin, now)
        if calls and not session.boundary(begin)
        else 0,
        changes=() if alone else changes,
        picture=_picture(session, begin, now) if "picture" in wanted else None,
    )


def _matters(change: readings.FieldChange) -> bool:
    """Whether the short form shows it: of page tables only entries of the last level."""
    from kemu.debugger.sections import SHORT

    return change.field in SHORT.get(change.kind, ()) and (
        change.kind != "pte" or change.what.startswith("pte ")
    )


def _says(event: readings.EventReading, change: readings.FieldChange) -> bool:
    """Whether the event itself tells what changed."""
    return (event.what, event.field, event.old, event.new) == (
        change.what,
        change.field,
        change.old,
        change.new,
    )


def _changes(session: Session, begin: int, now: int) -> tuple[readings.FieldChange, ...]:
    """What is different from the moment before the move, old and new in its direction; empty for a
    single event, which tells that itself."""
    from kemu.observe.difference import diff

    if now == begin + 1 or abs(now - begin) > MOST_EVENTS:
        return ()
    with session.traveling():
        differing = diff(session.kernel, min(begin, now), max(begin, now), session.name_of).changes
    found = tuple(
        change for change in differing if session.desk.context == "full" or _matters(change)
    )[:MOST_CHANGES]
    return (
        found
        if begin < now
        else tuple(change.replace(old=change.new, new=change.old, note="") for change in found)
    )


def _picture(session: Session, begin: int, now: int) -> readings.ThreeLines | None:
    from kemu.observe.onepage import of_move

    command = session.command_of(now)
    if command is None:
        return None
    with session.traveling():
        found = of_move(session.kernel, begin, now, (command.first, command.last), session.name_of)
    return found if found.pages else None


def stop_after(session: Session, first: int, reading: Any) -> readings.Moment | None:
    """After a command whose events begin after `first`: move back to the first stop in it, hold the
    command's `reading` back, and return the moment. None without a stop; at a stop at the end of
    the command nothing is held back, and a note says what stopped."""
    from kemu.debugger.debugger import Held
    from kemu.debugger.stops import find, stop_at

    found = find(session, first, session.end)
    if not found:
        return None
    stops = stop_at(session, found)
    if not session.past:
        session.note(*stops)
        return None
    session.debugger.hold(Held(first, session.end, reading))
    return moment(session, first, stops).replace(hint="continue goes on to the end of the command")


@contextmanager
def stopping(session: Session) -> Iterator[None]:
    """If Ctrl-C ends a search in the block, show the event that was reached."""
    try:
        yield
    except interrupts.Interrupted as stop:
        session.goto(session.now if stop.at is None else stop.at)
        raise


def search(session: Session, condition: Expression, first: int, last: int) -> readings.Moment:
    """Go to the first of the moments first..last (or back, where `last` is before `first`) at
    which the condition holds. Raises UsageError, and stays, if there is none."""
    from kemu.debugger.stops import first_true, text_of
    from kemu.names.session import check

    check(condition, session)
    with stopping(session):
        found = first_true(session, condition, first, last)
    if found is None:
        what = f"until: {text_of(condition)} is never true from #{first} to #{last}"
        raise UsageError(what, hint="print EXPR shows its value here", about="condition")
    return move(session, found)
