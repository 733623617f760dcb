"""Commands that move by functions, stops and conditions, in both directions: next, finish,
continue, until, undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import readings
from kemu.debugger.kinds import FUNCTION
from kemu.debugger.standing import moment, move, repeated, search, stopping
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.expr import Expression
from kemu.language.spec import FREE, command, maybe, rest

if TYPE_CHECKING:
    from kemu.experiment.session import Session

_START = (
    "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; mark before; "
    "write kid 0x10000 8; "
)
_COUNT = maybe("count", kinds.COUNT, 1)
_FUNCTION = maybe("function", FUNCTION)


@command(
    "next",
    "n",
    arguments=(_COUNT,),
    effect=FREE,
    summary="go to the next event of this kernel function, stepping over calls",
    more="Between two commands, steps over the next call as a whole. An empty line repeats it.",
    examples=(_START + "goto before; next; next", _START + "goto before; step 20; next 2"),
    linux="next of gdb(1)",
)
def next_(session: Session, count: int) -> readings.Moment:
    """Forwards over calls."""
    from kemu.observe.moves import after_next

    _need_future(session, "next")
    frame = _frame(session)

    def following(here: int) -> int:
        at = after_next(session.journal, here, frame)
        while at == here + 1 and at < session.end and _is_hidden(session, at, frame):
            here = at
            at = after_next(session.journal, here, frame)
        return at

    return _in_frame(session, repeated(following, session.now, count), frame)


def _is_hidden(session: Session, moment: int, frame: int | None) -> bool:
    """Whether `trace` leaves out the event, and it happened in the function of so many open calls
    (None: the innermost one)."""
    from kemu.observe.events import is_shown, one_event
    from kemu.observe.moves import open_calls

    if len(open_calls(session.journal, moment)) < (frame or 1):
        return False
    with session.traveling():
        return not is_shown(one_event(session.kernel, moment, session.name_of))


@command(
    "reverse-next",
    "rn",
    arguments=(_COUNT,),
    effect=FREE,
    summary="go back to the previous event of this kernel function, stepping over calls",
    examples=(_START + "reverse-next", _START + "back 9; reverse-next 2"),
    linux="reverse-next of gdb(1)",
)
def reverse_next(session: Session, count: int) -> readings.Moment:
    """Backwards over calls."""
    from kemu.observe.moves import before_next

    _need_past(session, "reverse-next")
    frame = _frame(session)

    def preceding(here: int) -> int:
        at = before_next(session.journal, here, frame)
        while at == here - 1 and at > 0 and _is_hidden(session, at, frame):
            here = at
            at = before_next(session.journal, here, frame)
        return at

    return _in_frame(session, repeated(preceding, session.now, count), frame)


@command(
    "finish",
    "fin",
    arguments=(_FUNCTION,),
    effect=FREE,
    summary="go to where this kernel function returns",
    more="With the name of an open function, goes to where that function returns.",
    examples=(
        _START + "goto before; step 20; finish",
        _START + "goto before; step 20; finish do_wp_page",
    ),
    linux="finish of gdb(1)",
)
def finish(session: Session, function: str | None) -> readings.Moment:
    """Out of the function, forwards."""
    from kemu.observe.moves import after_finish

    return _leave(
        session,
        after_finish(session.journal, session.now, _fid(session, function), _frame(session)),
    )


@command(
    "reverse-finish",
    "rfin",
    arguments=(_FUNCTION,),
    effect=FREE,
    summary="go back to where this kernel function was called",
    more="With the name of an open function, goes back to where that function was called.",
    examples=(
        _START + "goto before; step 20; reverse-finish",
        _START + "back 6; reverse-finish exc_page_fault",
    ),
    linux="reverse-finish of gdb(1)",
)
def reverse_finish(session: Session, function: str | None) -> readings.Moment:
    """Out of the function, backwards."""
    from kemu.observe.moves import before_finish

    return _leave(
        session,
        before_finish(session.journal, session.now, _fid(session, function), _frame(session)),
    )


def _frame(session: Session) -> int | None:
    """The call depth of the function of the last stop, if the session is still at that moment."""
    frame = session.debugger.frame
    return frame.depth if frame is not None and frame.moment == session.now else None


def _in_frame(session: Session, target: int, frame: int | None) -> readings.Moment:
    """Go to `target`, staying in the function while it is open."""
    from kemu.observe.moves import place

    made = move(session, target)
    if frame is not None and place(session.journal, target).depth >= frame:
        session.debugger.stay_in(target, frame)
    return made


def _leave(session: Session, target: int | None) -> readings.Moment:
    if target is None:
        raise UsageError(
            f"finish: no kernel function is open at #{session.now}",
            hint="step or next goes forwards",
        )
    return move(session, target)


def _fid(session: Session, name: str | None) -> int | None:
    """The open function of that name. Raises UsageError if it is not open here."""
    from kemu.observe.moves import named, place

    if name is None:
        return None
    stack = place(session.journal, session.now, _frame(session)).stack
    for fid in reversed(stack):
        if named(fid).name == name.removesuffix("()"):
            return fid
    here = " in ".join(named(fid).name for fid in reversed(stack))
    raise UsageError(
        f"function: {name[:40]} is not open at #{session.now}",
        hint=(
            f"open functions: {here}"
            if here
            else "no function is open: step goes into one, break stops in one"
        ),
        about="function",
    )


@command(
    "continue",
    "c",
    effect=FREE,
    summary="go forwards to the next stop, or to the newest event",
    more="break, watch and catch set stops.",
    examples=(_START + "break do_wp_page; goto before; continue", _START + "goto 0; continue"),
    linux="continue of gdb(1)",
)
def continue_(session: Session) -> readings.Moment:
    """Forwards to the next stop."""
    from kemu.debugger.stops import find, stop_at

    _need_future(session, "continue")
    begin = session.now
    with stopping(session):
        found = find(session, session.now, session.end)
    if found:
        stops = stop_at(session, found)
        return moment(session, begin, stops)
    return move(session, session.end)


@command(
    "reverse-continue",
    "rc",
    effect=FREE,
    summary="go back to the previous stop, or to the start",
    examples=(
        _START + "break do_wp_page; reverse-continue",
        _START + "watch pfn(kid, 0x10000); reverse-continue",
    ),
    linux="reverse-continue of gdb(1)",
)
def reverse_continue(session: Session) -> readings.Moment:
    """Backwards to the previous stop."""
    from kemu.debugger.stops import find, stop_at

    _need_past(session, "reverse-continue")
    begin = session.now
    with stopping(session):
        found = find(session, 0, session.now - 1, backwards=True)
    if found:
        stops = stop_at(session, found)
        return moment(session, begin, stops)
    return move(session, 0)


@command(
    "until",
    arguments=(rest("condition", kinds.EXPR),),
    effect=FREE,
    summary="go forwards until an expression is true",
    more="back until EXPR does the same backwards.",
    examples=(
        _START + "goto before; until refcount(pfn(app, 0x10000)) == 1",
        _START + "goto 0; until tasks() > 3",
    ),
)
def until(session: Session, condition: Expression) -> readings.Moment:
    """Forwards to the first moment at which the condition holds."""
    _need_future(session, "until")
    return search(session, condition, session.now + 1, session.end)


@command(
    "undo",
    effect=FREE,
    summary="go back to before the last command that changed the machine",
    more="The command remains ahead of you: continue replays it; another change starts a new "
    "timeline.",
    examples=(
        "spawn app; mmap app 0x10000 1p rw; undo",
        _START + "undo; write app 0x10000 9; timelines",
    ),
)
def undo(session: Session) -> readings.Moment:
    """To the boundary before the newest command that happened before this moment."""
    for record in reversed(session.timeline.records):
        if record.first < session.now and record.last > record.first:
            return move(session, record.first)
    raise UsageError("undo: nothing was changed before this moment", hint="#0 is the boot")


def _need_future(session: Session, word: str) -> None:
    if not session.past:
        raise UsageError(
            f"{word}: #{session.now} is the newest event", hint="back and reverse-continue go back"
        )


def _need_past(session: Session, word: str) -> None:
    if session.now == 0:
        raise UsageError(f"{word}: already at boot (#0)", hint="step goes forwards")
