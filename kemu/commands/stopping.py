"""Commands that set stops: break, tbreak, watch, catch, display, info, enable, disable,
delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.debugger import stops
from kemu.debugger.debugger import Stop
from kemu.debugger.kinds import WHERE
from kemu.debugger.stops import text_of
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.expr import Expression
from kemu.language.formats import FORMATTED
from kemu.language.spec import FREE, command, flags, keyword, many, maybe, one, rest
from kemu.language.suggest import did_you_mean, one_of
from kemu.readings import Reading, Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

_START = "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; "
_WHERE = one("where", WHERE)
_CONDITION = (
    maybe("if_", kinds.WordKind("IF", ("if",), "if")),
    rest("condition", kinds.EXPR, needed=False),
)
_WHERE_TEXT = (
    "WHERE is a kernel function, a kind of event ("
    + " ".join(stops.EVENT_KINDS)
    + ") or a field such as _refcount. A command always runs to its end; the session then "
    "goes to the first matching event, and continue goes to the next."
)


@command(
    "break",
    "b",
    arguments=(_WHERE, *_CONDITION),
    effect=FREE,
    summary="stop where a kernel function or an event is reached",
    more=_WHERE_TEXT,
    examples=(
        _START + "break do_wp_page; write kid 0x10000 8",
        _START + "break pte if kid.minor > 0; reverse-continue",
    ),
    linux="break of gdb(1)",
)
def break_(session: Session, where: str, if_: str | None, condition: Expression | None) -> Text:
    """A new breakpoint."""
    return _break(session, where, if_, condition)


@command(
    "tbreak",
    "tb",
    arguments=(_WHERE, *_CONDITION),
    effect=FREE,
    summary="like break, but stop only once",
    more=_WHERE_TEXT,
    examples=(
        _START + "tbreak wp_page_copy; write kid 0x10000 8",
        _START + "tbreak vma; reverse-continue",
    ),
    linux="tbreak of gdb(1)",
)
def tbreak(session: Session, where: str, if_: str | None, condition: Expression | None) -> Text:
    """A new breakpoint, removed at its first hit."""
    return _break(session, where, if_, condition, temporary=True)


def _break(
    session: Session,
    where: str,
    if_: str | None,
    condition: Expression | None,
    *,
    temporary: bool = False,
) -> Text:
    if where == "if":
        hint = "for example: break do_wp_page if kid.minor > 0"
        raise UsageError(
            "break: expected a function, a kind of event or a field before 'if'",
            hint=hint,
            about="where",
        )
    if condition is not None and if_ is None:
        hint = f"break {where} if {text_of(condition)}"
        raise UsageError("break: expected 'if' before the condition", hint=hint, about="condition")
    if if_ is not None and condition is None:
        raise UsageError(
            "break: expected a condition after 'if'",
            hint="for example: if app.rss > 3",
            about="if_",
        )
    fids, event = _where(where)
    text = where + (f" if {text_of(condition)}" if condition else "")
    return _add(
        session, Stop(0, "break", text, fids, event, condition=condition, temporary=temporary)
    )


def _where(where: str) -> tuple[frozenset[int], str]:
    """The functions, or the kind of event or field, that the word names."""
    from kemu.observe.moves import event_fields, fids_named, functions

    if where in stops.EVENT_KINDS:
        return frozenset(), where
    fids = fids_named(where)
    if fids or where in event_fields():
        return fids, "" if fids else where
    known = [*(function.name for function in functions()), *stops.EVENT_KINDS, *event_fields()]
    hint = (
        did_you_mean(where, known)
        or f"a function (do_wp_page), a field (_refcount), or {one_of(stops.EVENT_KINDS)}"
    )
    raise UsageError(
        f"where: no function, kind of event or field named '{where[:40]}'",
        hint=hint,
        about="where",
    )


def _add(session: Session, stop: Stop) -> Text:
    from kemu.names.session import check

    notes = [
        line
        for waits in (stop.watched, stop.condition)
        if waits is not None
        for line in check(waits, session)
    ]
    session.debugger.add(stop)
    once = " (once)" if stop.temporary else ""
    return Text((f"{stop.kind} {stop.number}: {stop.text}{once}", *notes))


@command(
    "watch",
    arguments=(rest("expression", kinds.EXPR),),
    effect=FREE,
    summary="stop when the value of an expression changes",
    more=(
        "Shows the old and the new value and the kernel function that changed it. To show a "
        "value without stopping, use display."
    ),
    examples=(
        _START + "watch pfn(kid, 0x10000); write kid 0x10000 8",
        _START + "watch app.rss; reverse-continue",
    ),
    linux="watch of gdb(1)",
)
def watch(session: Session, expression: Expression) -> Text:
    """A new watchpoint."""
    return _add(session, Stop(0, "watch", text_of(expression), watched=expression))


@command(
    "catch",
    arguments=(one("what", kinds.WordKind("WHAT", tuple(stops.CATCHES))),),
    effect=FREE,
    summary="stop at a fault, a signal, a system call or an out-of-memory condition",
    examples=(_START + "catch fault; write kid 0x10000 8", _START + "catch signal; read app 0"),
    linux="catch of gdb(1)",
)
def catch(session: Session, what: str) -> Text:
    """A new catchpoint."""
    from kemu.observe.moves import fids_named

    functions = frozenset[int]().union(*(fids_named(name) for name in stops.CATCHES[what]))
    return _add(session, Stop(0, "catch", what, functions))


@command(
    "display",
    arguments=(rest("expression", FORMATTED, needed=False),),
    effect=FREE,
    summary="show an expression after each move",
    more="Without an expression, shows all displays now; delete display removes them.",
    examples=(_START + "display app.rss; back; back", _START + "display/x app.stack; display"),
    linux="display of gdb(1)",
)
def display(session: Session, expression: Expression | None) -> Text:
    """A new expression to show, or all of them."""
    if expression is not None:
        from kemu.names.session import check

        notes = check(expression, session)
        session.debugger.show_after_moves(expression)
        return Text((*stops.displays(session), *notes))
    return Text(stops.displays(session) or ("no displays; display EXPR adds one",))


INFO = {
    "breakpoints": "the stops, with their hit counts",
    "watchpoints": "the same list",
    "display": "the displays",
    "registers": "regs of the current task",
    "frame": "bt",
    "stack": "bt",
    "threads": "ps",
    "inferiors": "ps",
}
OTHERS = {"registers": "regs", "frame": "bt", "stack": "bt", "threads": "ps", "inferiors": "ps"}
"""Words of gdb's info, and the commands for those that have one."""


@command(
    "info",
    arguments=(maybe("what", kinds.PrefixKind("WHAT", INFO)),),
    effect=FREE,
    summary="list the stops with their hit counts, the displays, and what gdb's info has",
    more="The first letters are enough: info b, info reg. Alone, shows stops and displays. "
    + "; ".join(f"{word}: {what}" for word, what in INFO.items())
    + ".",
    examples=(
        "break do_wp_page; watch init.rss; info breakpoints",
        "display init.rss; info display",
        "spawn app; info reg; break do_wp_page; info b",
    ),
    linux="info of gdb(1)",
)
def info(session: Session, what: str | None) -> Reading:
    """All stops, all displays, or the reading of the command for the rest."""
    if what in OTHERS:
        from kemu.commands.table import named

        task = {"task": session.current} if what == "registers" else {}
        reading: Reading = named(OTHERS[what]).function(session, **task)
        return reading
    shown = stops.displays(session) or ("no displays; display EXPR adds one",)
    listed = [_line(stop) for stop in session.debugger.stops]
    return Text(
        (
            *(() if what == "display" else listed or ["no breakpoints; see break, watch, catch"]),
            *(shown if what in (None, "display") else ()),
        )
    )


def _line(stop: Stop) -> str:
    words = [
        f"{stop.hits} hit{'s' * (stop.hits != 1)}",
        "" if stop.enabled else "disabled",
        "once" if stop.temporary else "",
    ]
    marks = ", ".join(word for word in words if word)
    return f"{stop.number:<3} {stop.kind:<6} {stop.text}  ({marks})"


_NUMBERS = many("numbers", kinds.COUNT)


@command(
    "enable",
    arguments=(_NUMBERS,),
    effect=FREE,
    summary="enable breakpoints",
    more="Without numbers, all of them.",
    examples=(
        "break do_wp_page; disable 1; enable 1",
        "catch fault; disable; enable; info breakpoints",
    ),
)
def enable(session: Session, numbers: tuple[int, ...]) -> Text:
    """Switch on."""
    return _switch(session, numbers, enabled=True)


@command(
    "disable",
    arguments=(_NUMBERS,),
    effect=FREE,
    summary="disable breakpoints without removing them",
    more="Without numbers, all of them.",
    examples=("break do_wp_page; disable 1", "catch fault; disable; info breakpoints"),
)
def disable(session: Session, numbers: tuple[int, ...]) -> Text:
    """Switch off."""
    return _switch(session, numbers, enabled=False)


def _switch(session: Session, numbers: tuple[int, ...], *, enabled: bool) -> Text:
    chosen = _chosen(session, numbers)
    for stop in chosen:
        stop.enabled = enabled
    return Text(tuple(_line(stop) for stop in chosen) or ("no breakpoints",))


@command(
    "delete",
    arguments=(_NUMBERS,),
    options=(flags("every", {"all": True}), keyword("display", kinds.COUNT)),
    effect=FREE,
    summary="remove breakpoints or displays",
    more="Without numbers, removes the only breakpoint; all removes all of them, display N one "
    "display.",
    examples=(
        "break do_wp_page; delete 1; info breakpoints",
        "display init.rss; delete display 1; info display",
    ),
)
def delete(
    session: Session, numbers: tuple[int, ...], every: tuple[bool, ...], display: int | None
) -> Text:
    """Remove."""
    if display is not None:
        if session.debugger.displays.pop(display, None) is None:
            raise UsageError(
                f"display: no display {display}", hint="info display lists them", about="display"
            )
        return Text((f"display {display} is gone",))
    count = len(session.debugger.stops)
    if count > 1 and not numbers and not every:
        raise UsageError(
            f"delete: which of the {count} breakpoints?",
            hint="delete all, or delete NUMBER (info breakpoints lists them)",
        )
    gone = _chosen(session, numbers)
    session.debugger.remove(gone)
    return Text(tuple(f"{stop.kind} {stop.number} is gone" for stop in gone) or ("no breakpoints",))


def _chosen(session: Session, numbers: tuple[int, ...]) -> list[Stop]:
    known = {stop.number: stop for stop in session.debugger.stops}
    for index, number in enumerate(numbers):
        if number not in known:
            what = f"numbers: no breakpoint {number}"
            raise UsageError(what, hint="info breakpoints lists them", about="numbers", index=index)
    return [known[number] for number in numbers] if numbers else list(known.values())
