"""Commands about time: what happened, and moving to another moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import readings
from kemu.debugger.paths import STEPS, steps_back, steps_on
from kemu.debugger.standing import moment, move, repeated, search
from kemu.debugger.stops import EVENT_KINDS
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import FREE, Argument, command, flags, keyword, maybe, one, rest

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.expr import Expression

RANGE: tuple[Argument, ...] = (maybe("first", kinds.MOMENT), maybe("last", kinds.MOMENT))
MOST_EVENTS = 20_000
"""Largest number of events that one `trace` or `calls` shows."""

_START = "spawn app; mmap app 0x10000 1p rw; "
_RANGE_TEXT = (
    "Without a range, covers the last command up to this moment; with one moment, everything "
    "from there to here; with two, everything between them."
)


@command(
    "trace",
    arguments=RANGE,
    options=(
        flags("detail", ("all",), "low-level events too"),
        keyword("form", kinds.WordKind("FORMAT", ("ftrace", "chrome")), "--format"),
        keyword("file", kinds.HOST_PATH, "-o"),
    ),
    effect=FREE,
    writes=True,
    summary="the events of a command or a range",
    more=_RANGE_TEXT
    + " With all, shows also low-level events such as links of lists. --format ftrace writes "
    "the calls in the format of the function_graph tracer; --format chrome writes a file for "
    "ui.perfetto.dev, with a track per task and per CPU.",
    examples=(
        _START + "write app 0x10000 7; trace",
        _START + "trace 0 end",
        _START + "write app 0x10000 7; trace --format ftrace",
    ),
    linux="trace-cmd(1)",
)
def trace(
    session: Session,
    first: int | None,
    last: int | None,
    detail: tuple[str, ...],
    *,
    form: str | None,
    file: str | None,
) -> readings.EventList | readings.Text:
    """The events of the range, or its calls in the format of another tool."""
    from kemu.observe.events import events

    first, last = range_of(session, first, last)
    if form is not None:
        from kemu.commands.exporting import exported

        return exported(session, first, last, form, file)
    if file is not None:
        raise UsageError(
            "trace: -o needs a format",
            hint="trace --format ftrace -o FILE, or --format chrome",
            about="file",
        )
    with session.traveling():
        return events(session.kernel, first, last, session.name_of, low=bool(detail))


@command(
    "calls",
    arguments=RANGE,
    options=(flags("detail", ("events",), "each event too"),),
    effect=FREE,
    summary="the kernel functions of a command or a range, as a tree",
    more=_RANGE_TEXT + " With events, shows also each event under the function that caused it.",
    examples=(_START + "write app 0x10000 7; calls", _START + "write app 0x10000 7; calls events"),
    linux="function_graph of ftrace",
)
def calls(
    session: Session, first: int | None, last: int | None, detail: tuple[str, ...]
) -> readings.CallTree:
    """The calls of the range."""
    from kemu.observe import calls as tree

    first, last = range_of(session, first, last)
    with session.traveling():
        return tree.calls(session.kernel, first, last, session.name_of, with_events=bool(detail))


@command(
    "diff",
    arguments=RANGE,
    options=(flags("detail", ("all",), "low-level events too"), keyword("timeline", kinds.COUNT)),
    effect=FREE,
    summary="what differs between two moments",
    more=_RANGE_TEXT
    + " A value that changed and changed back is not shown. timeline N compares the end of "
    "timeline N with the end of this one, by mappings, entries and counts of frames.",
    examples=(
        _START + "write app 0x10000 7; diff",
        "mark before; spawn app; diff before",
        "spawn app; goto 0; spawn other; diff timeline 1",
    ),
)
def diff(
    session: Session,
    first: int | None,
    last: int | None,
    detail: tuple[str, ...],
    timeline: int | None,
) -> readings.Difference | readings.TimelineDifference:
    """The net changes of the range, or of another timeline to this one."""
    if timeline is not None:
        from kemu.commands.branches import compare

        return compare(session, timeline)
    from kemu.observe.difference import diff as difference

    first, last = range_of(session, first, last, longest=None)
    with session.traveling():
        return difference(session.kernel, first, last, session.name_of, low=bool(detail))


def range_of(
    session: Session, first: int | None, last: int | None, longest: int | None = MOST_EVENTS
) -> tuple[int, int]:
    """The two moments, in order. Raises UsageError for one that does not exist, or too many
    events."""
    if first is None:
        first, last = session.last_command()
    last = session.now if last is None else last
    for about, moment_ in (("first", first), ("last", last)):
        if moment_ > session.end:
            hint = f"the experiment has events 0 to {session.end}"
            raise UsageError(f"event: no #{moment_}", hint=hint, about=about)
    first, last = min(first, last), max(first, last)
    if longest is not None and last - first > longest:
        raise UsageError(
            f"range: {last - first} events are too many to show",
            hint=f"at most {longest}; choose a part",
        )
    return first, last


@command(
    "step",
    "s",
    arguments=(
        maybe(
            "how",
            kinds.ChoiceKind(
                "HOW",
                {"into": "the entries of a table that is copied in one event"} | STEPS,
                "into, all, or a kind of event such as pte",
            ),
        ),
        maybe("count", kinds.COUNT, 1),
    ),
    effect=FREE,
    summary="go to the next event that trace shows",
    more="With a number, goes that many such events forwards. all stops also at the events that "
    "trace leaves out (lists, locks, statistics); a kind of event ("
    + " ".join(EVENT_KINDS)
    + ") goes to the next of that kind, refcount and mapcount to the next of that "
    "count. The line below an event says why it happened; why tells "
    "more. After set granularity function, goes "
    "to the next call or return; after set granularity command, to the end of the command. "
    "step into shows, one by one, the entries of an event that copies a whole table; "
    "elsewhere it is the same as step. An empty line repeats it.",
    examples=(
        _START + "goto 0; step",
        _START + "goto 0; step 3",
        _START + "write app 0x10000 7; undo; step pte; step all",
        (
            "spawn app; mmap app 0x200000 80p rw populate; fork app as kid; break row; rc; back; "
            "step into 2"
        ),
    ),
    linux="stepi of gdb(1)",
)
def step(session: Session, how: str | None, count: int) -> readings.Moment | readings.SubSteps:
    """Move towards the newest event."""
    from kemu.debugger.rows import step_into

    entries = step_into(session, count) if how == "into" else None
    if entries is not None:
        return entries
    if not session.past:
        raise UsageError(
            f"step: #{session.now} is the newest event", hint="back goes to the previous one"
        )
    return move(session, _after(session, count, None if how == "into" else how))


def _after(session: Session, count: int, kind: str | None) -> int:
    """The moment `count` steps after this one."""
    from kemu.observe.moves import next_border

    if kind is not None or session.desk.granularity == "event":
        return steps_on(session, count, kind)
    if session.desk.granularity == "function":
        return repeated(lambda here: next_border(session.journal, here), session.now, count)
    ends = [record.last for record in session.timeline.records]
    return repeated(
        lambda here: next((end for end in ends if end > here), session.end), session.now, count
    )


_BACK_UNTIL = maybe("until", kinds.WordKind("UNTIL", ("until",), "until"))


@command(
    "back",
    "reverse-step",
    "rs",
    arguments=(
        maybe("how", kinds.ChoiceKind("HOW", STEPS, "all, or a kind of event such as pte")),
        maybe("count", kinds.COUNT, 1),
        _BACK_UNTIL,
        rest("condition", kinds.EXPR, needed=False),
    ),
    effect=FREE,
    summary="go to the previous event that trace shows",
    more="With a number, goes that many such events back; all and the kinds of events are those "
    "of step; with until EXPR, to the last moment at "
    "which the expression is true. set granularity chooses the unit. An empty line repeats it.",
    examples=(
        _START + "back",
        _START + "back 3",
        _START + "write app 0x10000 7; back until app.rss == 0",
    ),
    linux="reverse-stepi of gdb(1)",
)
def back(
    session: Session,
    how: str | None,
    count: int,
    until: str | None,
    condition: Expression | None,
) -> readings.Moment:
    """Move towards the boot."""
    if session.now == 0:
        raise UsageError("back: already at boot (#0)", hint="step goes forwards")
    if (until is None) is not (condition is None):
        raise UsageError(
            "back: expected a number, or until and a condition",
            hint="for example: back until app.rss == 0",
        )
    if condition is not None:
        return search(session, condition, session.now - 1, 0)
    return move(session, _before(session, count, how))


def _before(session: Session, count: int, kind: str | None) -> int:
    """The moment `count` steps before this one."""
    from kemu.observe.moves import border_before

    if kind is not None or session.desk.granularity == "event":
        return steps_back(session, count, kind)
    if session.desk.granularity == "function":
        return repeated(lambda here: border_before(session.journal, here), session.now, count)
    begins = [record.first for record in session.timeline.records]
    return repeated(
        lambda here: max((begin for begin in begins if begin < here), default=0), session.now, count
    )


@command(
    "goto",
    arguments=(one("event", kinds.MOMENT),),
    effect=FREE,
    summary="go to any moment",
    more="A moment is an event number, a mark, start or end.",
    examples=(_START + "goto 0", "mark before; spawn app; goto before"),
)
def goto(session: Session, event: int) -> readings.Moment:
    """Move to the moment."""
    return move(session, event)


@command(
    "mark",
    arguments=(one("name", kinds.NAME),),
    effect=FREE,
    summary="name this moment",
    examples=("mark before; spawn app; diff before", "spawn app; mark start_of_app"),
)
def mark(session: Session, name: str) -> readings.Moment:
    """Remember the moment."""
    if name in ("start", "end", "here"):
        raise UsageError(f"name: '{name}' is reserved", hint="choose another name")
    session.mark(name)
    return moment(session, session.now)
