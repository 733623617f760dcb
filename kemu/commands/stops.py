"""Places to stop at, and the search for the next one, in both directions.

    break do_wp_page if app.rss > 3     the first event inside a call of the function
    break pte                           an event of that kind, or of a field: break _refcount
    watch pfn(app, 0x10000)             the event after which the expression has another value
    catch fault | signal | syscall | oom

A command always runs to its end; then its events are searched, and the moment shown is moved back to the first that
matches. So a stop never leaves a call half done, and `continue` and `reverse-continue` are the same search from wherever
the session stands.

The rule that keeps this file honest: searching changes nothing but the moment that is shown, and puts that back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import attrs

from kemu.commands.expr import Expression, Value, format_value
from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.session import Session

CATCHES: dict[str, frozenset[str]] = {
    "fault": frozenset({"exc_page_fault"}),
    "signal": frozenset({"__send_signal_locked"}),
    "oom": frozenset({"out_of_memory"}),
    "syscall": frozenset(),
}
"""What `catch` knows, by the functions that are entered then. A system call is what a task calls, whatever its name."""

EVENT_KINDS = ("pte", "ram", "vma", "mm", "task", "tlb", "cpu", "frame", "anon", "file", "row")
"""Kinds of events that `break` knows, as `trace` names them."""


@attrs.define
class Stop:
    """One breakpoint, watchpoint or catchpoint; of `functions`, `event` and `watched` one says what it waits for."""

    number: int
    kind: str
    text: str
    functions: frozenset[int] = frozenset()
    event: str = ""
    watched: Expression | None = None
    condition: Expression | None = None
    temporary: bool = False
    enabled: bool = True
    hits: int = 0

    def says(self, what: str) -> str:
        """The line about a hit."""
        return f"{self.kind} {self.number}: {what}"


class Hit(NamedTuple):
    """A stop that matched at a moment."""

    moment: int
    stop: Stop
    what: str


def find(session: Session, first: int, last: int, *, backwards: bool = False, stops: list[Stop] | None = None) -> list[Hit]:
    """The hits at the first moment of (first, last] at which an enabled stop matches, or at the last one; [] if none does."""
    chosen = [stop for stop in (session.stops if stops is None else stops) if stop.enabled]
    if not chosen:
        return []
    with session.traveling():
        for low, high in _stretches(session, first, last, backwards=backwards):
            found = [hit for stop in chosen if (hit := _first(session, stop, low, high, backwards)) is not None]
            if found:
                moment = (max if backwards else min)(hit.moment for hit in found)
                return [hit for hit in found if hit.moment == moment]
    return []


def _stretches(session: Session, first: int, last: int, *, backwards: bool) -> Iterable[tuple[int, int]]:
    """(first, last] cut at the borders of commands, in the order of the search."""
    borders = {record.last for record in session.timeline.records if first < record.last < last}
    ends = sorted({first, *borders, last})
    found = list(pairwise(ends))
    return reversed(found) if backwards else found


def _first(session: Session, stop: Stop, low: int, high: int, backwards: bool) -> Hit | None:
    """The hit of one stop that the search meets first."""
    candidates = list(_candidates(session, stop, low, high))
    for moment, what in reversed(candidates) if backwards else candidates:
        if stop.condition is None or _true_at(session, stop.condition, moment):
            return Hit(moment, stop, what)
    return None


def _candidates(session: Session, stop: Stop, low: int, high: int) -> Iterator[tuple[int, str]]:
    """Moments in (low, high] that match but for the condition, in order, with what happened there."""
    if stop.watched is not None:
        return _changes(session, stop.watched, low, high)
    if stop.event:
        return _events(session, stop.event, low, high)
    if stop.functions:
        return _calls(session, stop.functions, low, high)
    return _system_calls(session, low, high)


def _calls(session: Session, functions: frozenset[int], low: int, high: int) -> Iterator[tuple[int, str]]:
    """The first event in or behind the entry of each call."""
    from kemu.observe.moves import entries, named

    last = -1
    for before, fid in entries(session.journal, functions, low, high):
        if before + 1 > last:
            last = before + 1
            yield last, f"{named(fid).name}() in {named(fid).path}"


def _system_calls(session: Session, low: int, high: int) -> Iterator[tuple[int, str]]:
    """The first event of each command that is a system call; `low` and `high` lie in one command."""
    from kemu.observe.moves import named, system_call

    record = session.command_of(high)
    found = system_call(session.journal, record.first, record.last) if record else None
    if record is not None and found is not None and low < found[0] + 1 <= high:
        yield found[0] + 1, f"system call {record.text} ({named(found[1]).name})"


def _events(session: Session, wanted: str, low: int, high: int) -> Iterator[tuple[int, str]]:
    """Events of a kind or of a field."""
    from kemu.observe.events import events
    from kemu.observe.moves import touches_field

    kind = wanted in EVENT_KINDS
    if not kind and not touches_field(session.journal, wanted, low, high):
        return
    for event in events(session.kernel, low, high, session.name_of, low=not kind).events:
        if wanted == (event.kind if kind else event.field):
            yield event.number, f"{event.text}, in {event.function or 'user code'}"


def _changes(session: Session, watched: Expression, low: int, high: int) -> Iterator[tuple[int, str]]:
    """Events behind which the expression has another value than before."""
    from kemu.observe.events import one_event

    old = value_at(session, watched, low)
    for moment in range(low + 1, high + 1):
        new = value_at(session, watched, moment)
        if new != old or type(new) is not type(old):
            who = one_event(session.kernel, moment, session.name_of).function or "user code"
            yield moment, f"{text_of(watched)}: {format_value(old)} -> {format_value(new)}, by {who}"
        old = new


def value_at(session: Session, expression: Expression, moment: int) -> Value:
    """The value at the moment, which is then the one shown; the text "not there" where a name means nothing yet."""
    from kemu.commands.names import SessionNames

    session.goto(moment)
    try:
        with session.looking():
            return expression.evaluate(SessionNames(session))
    except UsageError:
        return "not there"


def _true_at(session: Session, condition: Expression, moment: int) -> bool:
    value = value_at(session, condition, moment)
    return bool(value) and value != "not there"


def text_of(expression: Expression) -> str:
    """The expression as it was typed."""
    source = expression.source
    return source.text[source.start : source.end].strip()


def stop_at(session: Session, found: list[Hit]) -> tuple[str, ...]:
    """Go to the hits' moment and count them; a temporary stop is gone then. The lines about them."""
    session.goto(found[0].moment)
    for hit in found:
        hit.stop.hits += 1
    session.stops = [stop for stop in session.stops if not (stop.temporary and any(hit.stop is stop for hit in found))]
    return tuple(hit.stop.says(hit.what) for hit in found)


def stop_after(session: Session, first: int) -> None:
    """After a command whose events begin behind `first`: move back to the first stop in it, and say so in a note."""
    found = find(session, first, session.end)
    if found:
        where = f"shown is #{found[0].moment} of {session.end}, inside the command; continue goes on"
        session.notes += [*stop_at(session, found), where]


def displays(session: Session) -> tuple[str, ...]:
    """What `display` shows at this moment, one line each."""
    now = session.now
    return tuple(
        f"{number}: {text_of(expression)} = {format_value(value_at(session, expression, now))}"
        for number, expression in sorted(session.displays.items())
    )
