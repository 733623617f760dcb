"""Commands about time: what happened, and moving to another moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import readings
from kemu.commands import kinds
from kemu.commands.spec import FREE, Argument, command, flags, maybe, one
from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.session import Session

RANGE: tuple[Argument, ...] = (maybe("first", kinds.MOMENT), maybe("last", kinds.MOMENT))
MOST_EVENTS = 20_000
"""Events that one `trace` or `calls` shows at most."""

_START = "spawn app; mmap app 0x10000 1p rw; "
_RANGE_TEXT = (
    "Without a range it is about the last command up to here; with one moment about everything from there to here; "
    "with two about what lies between them."
)


@command(
    "trace",
    arguments=RANGE,
    options=(flags("detail", ("all",)),),
    group="time",
    effect=FREE,
    summary="the events of a command or a range",
    more=_RANGE_TEXT + " With all also the links of lists and their like.",
    examples=(_START + "write app 0x10000 7; trace", _START + "trace 0 end"),
    linux="trace-cmd(1)",
)
def trace(session: Session, first: int | None, last: int | None, detail: tuple[str, ...]) -> readings.EventList:
    """The events of the range."""
    from kemu.observe.events import events

    first, last = _range(session, first, last)
    with session.traveling():
        return events(session.kernel, first, last, session.name_of, low=bool(detail))


@command(
    "calls",
    arguments=RANGE,
    options=(flags("detail", ("events",)),),
    group="time",
    effect=FREE,
    summary="the kernel functions of a command or a range, as a tree",
    more=_RANGE_TEXT + " With events also each event under the function that caused it.",
    examples=(_START + "write app 0x10000 7; calls", _START + "write app 0x10000 7; calls events"),
    linux="function_graph of ftrace",
)
def calls(session: Session, first: int | None, last: int | None, detail: tuple[str, ...]) -> readings.CallTree:
    """The calls of the range."""
    from kemu.observe import calls as tree

    first, last = _range(session, first, last)
    with session.traveling():
        return tree.calls(session.kernel, first, last, session.name_of, with_events=bool(detail))


@command(
    "diff",
    arguments=RANGE,
    options=(flags("detail", ("all",)),),
    group="time",
    effect=FREE,
    summary="what differs between two moments",
    more=_RANGE_TEXT + " A value that changed and changed back is not shown.",
    examples=(_START + "write app 0x10000 7; diff", "mark before; spawn app; diff before"),
)
def diff(session: Session, first: int | None, last: int | None, detail: tuple[str, ...]) -> readings.Difference:
    """The net changes of the range."""
    from kemu.observe.difference import diff as difference

    first, last = _range(session, first, last, longest=None)
    with session.traveling():
        return difference(session.kernel, first, last, session.name_of, low=bool(detail))


def _range(session: Session, first: int | None, last: int | None, longest: int | None = MOST_EVENTS) -> tuple[int, int]:
    """The two moments, in order. Raises UsageError for one that does not exist, or too many events."""
    if first is None:
        first, last = session.last_command()
    last = session.now if last is None else last
    first, last = min(first, last), max(first, last)
    if last > session.end:
        raise UsageError(f"event: there is no #{last}", hint=f"the experiment has the events 0 to {session.end}")
    if longest is not None and last - first > longest:
        raise UsageError(f"range: {last - first} events are too many to show", hint=f"at most {longest}; choose a part")
    return first, last


@command(
    "step",
    "s",
    arguments=(maybe("count", kinds.COUNT, 1),),
    group="time",
    effect=FREE,
    summary="go to the next event",
    more="With a number, that many events further. An empty line repeats it.",
    examples=(_START + "goto 0; step", _START + "goto 0; step 3"),
    linux="stepi of gdb(1)",
)
def step(session: Session, count: int) -> readings.Moment:
    """Move towards the newest event."""
    if not session.past:
        raise UsageError(f"step: #{session.now} is the newest event", hint="back goes to the one before")
    session.goto(min(session.now + count, session.end))
    return moment(session)


@command(
    "back",
    "reverse-step",
    "rs",
    arguments=(maybe("count", kinds.COUNT, 1),),
    group="time",
    effect=FREE,
    summary="go to the event before",
    more="With a number, that many events back. An empty line repeats it.",
    examples=(_START + "back", _START + "back 3"),
    linux="reverse-stepi of gdb(1)",
)
def back(session: Session, count: int) -> readings.Moment:
    """Move towards the boot."""
    if session.now == 0:
        raise UsageError("back: #0 is the boot; nothing lies before it", hint="step goes on")
    session.goto(max(session.now - count, 0))
    return moment(session)


@command(
    "goto",
    arguments=(one("event", kinds.MOMENT),),
    group="time",
    effect=FREE,
    summary="go to any moment",
    more="A moment is an event number, a mark, start or end.",
    examples=(_START + "goto 0", "mark before; spawn app; goto before"),
)
def goto(session: Session, event: int) -> readings.Moment:
    """Move to the moment."""
    session.goto(event)
    return moment(session)


@command(
    "mark",
    arguments=(one("name", kinds.NAME),),
    group="time",
    effect=FREE,
    summary="give this moment a name",
    examples=("mark before; spawn app; diff before", "spawn app; mark start_of_app"),
)
def mark(session: Session, name: str) -> readings.Moment:
    """Remember the moment."""
    if name in ("start", "end", "here"):
        raise UsageError(f"name: '{name}' has a meaning of its own", hint="choose another name")
    session.mark(name)
    return moment(session)


def moment(session: Session) -> readings.Moment:
    """Where the session stands."""
    from kemu.observe.events import one_event

    now = session.now
    inside = session.command_at(now)
    event = None
    if now:
        with session.traveling():
            event = one_event(session.kernel, now, session.name_of)
    name = next((name for name, marked in reversed(session.marks.items()) if marked == now), "")
    return readings.Moment(
        now=now, end=session.end, timeline=session.timeline.number, mark=name, inside=inside.text if inside else "", event=event
    )

