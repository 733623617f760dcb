"""Places to stop at, and the search for the next one, in both directions.

    break do_wp_page if app.rss > 3     the entry of the function, before its first event
    break pte                           an event of that kind, or of a field: break _refcount
    watch pfn(app, 0x10000)             the event after which the expression has another value
    catch fault | signal | syscall | oom

A command always runs to its end; then its events are searched, and the moment shown is moved back
to the first that matches. So a stop never leaves a call half done, and `continue` and
`reverse-continue` are the same search from the moment that is shown. What the command answered is
held back until a move reaches its end.

The entry of a function lies between two events, at the moment after the first of them: an entry at
the moment that is shown is still ahead, unless a stop has been reported there.

A search changes only the moment that is shown, and restores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kemu import interrupts
from kemu.debugger.debugger import Entry, Stop
from kemu.errors import UsageError
from kemu.language.expr import Expression, TaskValue, Value, format_value
from kemu.language.formats import write

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.observe.reads import Reads

CATCHES: dict[str, frozenset[str]] = {
    "fault": frozenset({"exc_page_fault"}),
    "signal": frozenset({"__send_signal_locked"}),
    "oom": frozenset({"out_of_memory"}),
    "syscall": frozenset(),
}
"""The events of `catch`, with the functions entered then. A system call is whatever a task
calls."""

EVENT_KINDS = ("pte", "ram", "vma", "mm", "task", "tlb", "cpu", "frame", "anon", "file", "row")
"""Kinds of events that `break` takes, as `trace` names them."""


class Hit(NamedTuple):
    """A stop that matched at a moment."""

    moment: int
    stop: Stop
    what: str
    mark: int = -1
    """Of the entry of a function: the index of its mark."""


Match = tuple[int, str] | tuple[int, str, int]
"""A moment, what happens there, and of the entry of a function its mark."""

CHUNK = 8192
"""Events that are searched at a time, in the order of the search."""


def find(
    session: Session,
    first: int,
    last: int,
    *,
    backwards: bool = False,
    stops: list[Stop] | None = None,
) -> list[Hit]:
    """The hits at the first moment of (first, last] at which an enabled stop matches, or at the
    last one; [] if none does. The entry of a function counts from `first` on, and forwards only up
    to before `last`."""
    chosen = [stop for stop in (session.debugger.stops if stops is None else stops) if stop.enabled]
    found: list[Hit] = []
    begin = first if session.debugger.entry_at(first) and not backwards else first - 1
    end = last if backwards else last - 1
    with interrupts.deferred(), session.traveling():
        for stop in chosen:
            low, high = (begin, min(end, last)) if stop.is_entry else (first, last)
            hit = _first(session, stop, low, high, backwards)
            if hit is not None:
                found.append(hit)
                if backwards:
                    first, begin = hit.moment - 1, hit.moment - 1
                else:
                    last = hit.moment
    moment = (max if backwards else min)((hit.moment for hit in found), default=0)
    return [hit for hit in found if hit.moment == moment]


def _first(session: Session, stop: Stop, first: int, last: int, backwards: bool) -> Hit | None:
    """The hit of one stop in (first, last] that the search meets first."""
    matching = (
        Changes(session, stop.watched).within
        if stop.watched is not None
        else _matcher(session, stop)
    )
    for low, high in chunks(first, last, backwards=backwards):
        found: Iterable[Match] = matching(low, high)
        for moment, *about in reversed(list(found)) if backwards else found:
            if stop.condition is None or is_true(value_at(session, stop.condition, moment)):
                return Hit(moment, stop, *about)
    return None


def chunks(
    first: int, last: int, *, backwards: bool, size: int = CHUNK
) -> Iterator[tuple[int, int]]:
    """(first, last] cut into pieces, in the order of the search; between two of them Ctrl-C ends
    it."""
    for at in range(last, first, -size) if backwards else range(first, last, size):
        interrupts.check(f"looked at the events up to #{at}".__str__, at)
        yield (max(at - size, first), at) if backwards else (at, min(at + size, last))


def _matcher(session: Session, stop: Stop) -> Callable[[int, int], Iterable[Match]]:
    """A function that yields the moments in (low, high] that match, in order and with a
    description, before the condition is checked."""
    if stop.event:
        return lambda low, high: _events(session, stop.event, low, high)
    if stop.functions:
        return lambda low, high: _calls(session, stop.functions, low, high)
    return lambda low, high: _system_calls(session, low, high)


def _calls(session: Session, functions: frozenset[int], low: int, high: int) -> Iterator[Match]:
    """The entry of each call, one per moment."""
    from kemu.observe.moves import entries, named

    last = -1
    for entered, fid, mark in entries(session.journal, functions, low + 1, high + 1):
        if entered > last:
            last = entered
            yield entered, f"{named(fid).name}() in {named(fid).path}", mark


def _system_calls(session: Session, low: int, high: int) -> Iterator[Match]:
    """The entry of each command that is a system call."""
    from kemu.observe.moves import named, system_call

    for record in session.commands_between(low, high + 1):
        found = system_call(session.journal, record.first, record.last)
        if found is not None and low < found[0] <= high:
            moment, fid, mark = found
            yield moment, f"system call {record.text} ({named(fid).name})", mark


def _events(session: Session, wanted: str, low: int, high: int) -> Iterator[tuple[int, str]]:
    """Events of a kind or of a field."""
    from kemu.observe.events import events
    from kemu.observe.moves import may_be, may_have

    kind = wanted in EVENT_KINDS
    what = ("", wanted) if kind else (wanted, "")
    for begin, end in may_have(session.journal, *what, low, high):
        for event in events(
            session.kernel, begin, end, session.name_of, low=not kind, only=may_be(*what)
        ).events:
            if wanted == (event.kind if kind else event.field):
                yield event.number, f"{event.text}, in {event.function or 'user code'}"


BY_MOMENT = frozenset({"event", "called", "signal_code", "signal_addr", "errno"})
"""Functions of the expression language that depend on the moment itself: any event may change their
value."""


class Changes:
    """The moments at which an expression has another value than before, looked for only where
    something that it read is written (`observe/reads.py`), or a task gets its name."""

    def __init__(self, session: Session, watched: Expression) -> None:
        self.session, self.watched = session, watched
        self.always = any(
            step.op == "call" and step.argument in BY_MOMENT for step in watched.steps
        )
        self.moment = -1
        self.value: Value = None
        self.reads: Reads | None = None
        self.complaint: UsageError | None = None
        self.valued = False
        """The newest reason why it had no value, and whether it had one at any moment searched."""

    def within(self, low: int, high: int) -> Iterator[tuple[int, str]]:
        """Those in (low, high], in order, with old and new value and the function that wrote it."""
        from kemu.observe.moves import function_of

        for moment, old, new in self.values(low, high):
            who = function_of(self.session.journal, moment)[0] or "user code"
            yield (
                moment,
                f"{text_of(self.watched)}: {format_value(old)} -> {format_value(new)}, by {who}",
            )

    def values(self, low: int, high: int) -> Iterator[tuple[int, Value, Value]]:
        """(moment, old value, new value) of those in (low, high], in order."""
        if self.moment != low:
            self.look(low)
        named = sorted({at for at in self.session.moments_of_names() if low < at <= high})
        while True:
            moment = self._next(high, named)
            if moment is None:
                self.moment = high
                return
            old = self.value
            self.look(moment)
            if self.value != old or type(self.value) is not type(old):
                yield moment, old, self.value

    def _next(self, high: int, named: list[int]) -> int | None:
        """The next moment after the last one, up to `high`, at which the value may be another."""
        from kemu.observe.reads import next_write

        if self.moment >= high:
            return None
        if self.always or self.reads is None:
            return self.moment + 1
        written = next_write(self.session.journal, self.reads, self.moment, high)
        name = next((at for at in named if at > self.moment), None)
        return min((at for at in (written, name) if at is not None), default=None)

    def look(self, moment: int) -> None:
        """Evaluate at the moment, which is then the one shown."""
        from kemu.observe.reads import noting

        self.session.goto(moment)
        if self.always:
            self.value = self._value(moment)
        else:
            with noting() as self.reads:
                self.value = self._value(moment)
        self.moment = moment

    def _value(self, moment: int) -> Value:
        try:
            value = evaluated(self.session, self.watched, moment)
        except UsageError as error:
            self.complaint = error
            return NOT_THERE
        self.valued = True
        return value


NOT_THERE = "not there"
"""The value while a name is not defined yet."""


def evaluated(session: Session, expression: Expression, moment: int) -> Value:
    """The value at the moment, which is then the one shown. Raises UsageError while a name is not
    defined yet."""
    from kemu.names.session import SessionNames

    interrupts.check(lambda: f"looked at the events up to #{moment}", moment)
    session.goto(moment)
    with session.looking():
        return expression.evaluate(SessionNames(session))


def value_at(session: Session, expression: Expression, moment: int) -> Value:
    """As `evaluated`, but the text "not there" instead of the error."""
    try:
        return evaluated(session, expression, moment)
    except UsageError:
        return NOT_THERE


def is_true(value: Value) -> bool:
    """Whether a condition with that value holds. A text is not true, least of all "not there"."""
    return bool(value) and not isinstance(value, str | TaskValue)


def first_true(session: Session, condition: Expression, first: int, last: int) -> int | None:
    """The first moment of first..last at which the condition holds; the last one where `last` lies
    before `first`. Raises the error of a condition that has a value at none of them."""
    changes = Changes(session, condition)
    with interrupts.deferred(), session.traveling():
        changes.look(first)
        if is_true(changes.value):
            return first
        for begin, end in chunks(min(first, last), max(first, last), backwards=last < first):
            found = (
                _last_true(changes, begin, end)
                if last < first
                else next(
                    (at for at, _, value in changes.values(begin, end) if is_true(value)), None
                )
            )
            if found is not None:
                return found
    if changes.complaint is not None and not changes.valued:
        raise changes.complaint
    return None


def _last_true(changes: Changes, begin: int, end: int) -> int | None:
    """The last moment of begin..end at which the condition holds."""
    hits = [moment - 1 for moment, old, _ in changes.values(begin, end) if is_true(old)]
    return end if is_true(changes.value) else max(hits, default=None)


def text_of(expression: Expression) -> str:
    """The expression as it was typed."""
    source = expression.source
    return source.text[source.start : source.end].strip()


def stop_at(session: Session, found: list[Hit]) -> tuple[str, ...]:
    """Go to the moment of the hits, count them, and delete temporary stops. Returns the lines about
    them."""
    from kemu.observe.moves import frame_of, named
    from kemu.readings import OpenCall

    session.goto(found[0].moment)
    for hit in found:
        hit.stop.hits += 1
    session.debugger.remove([hit.stop for hit in found if hit.stop.temporary])
    session.debugger.enter(None)
    mark = next((hit.mark for hit in found if hit.mark >= 0), None)
    if mark is not None:
        stack = session.journal.open_before(mark + 2)
        calls = tuple(OpenCall(named(fid).name, named(fid).path) for fid in stack)
        depth = frame_of(session.journal, session.now + 1, frozenset(stack[-1:]))
        session.debugger.enter(Entry(session.now, calls), depth)
    return tuple(hit.stop.says(hit.what) for hit in found)


def displays(session: Session) -> tuple[str, ...]:
    """What `display` shows at this moment, one line each."""
    now = session.now
    return tuple(
        f"{number}: {text_of(expression)} = "
        f"{write(value_at(session, expression, now), expression.form)}"
        for number, expression in sorted(session.debugger.displays.items())
    )
