"""Functions about races, for expressions: how many schedules there are, how many end badly, how one
of them ends.

    print bad("gets --non-atomic")                        60
    print bad("get-last-put", "double free")              3
    print race_outcome("get-last-put", "1010")            'use after free'
    print hex(refcount_of(0, "get"))                      '0xc0000000'

The text is what would follow the word race. A race between commands starts from the present moment,
a built-in one runs on a machine of its own; neither leaves a trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kemu.errors import UsageError
from kemu.language.expr import Value, describe
from kemu.names.questions import function

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.spec import Command
    from kemu.racing.wanted import Wanted
    from kemu.readings import RaceReading

OPERATIONS = ("get", "put", "get_unless_zero")


@function(
    "schedules(RACE)", "how many schedules a race has; RACE as after the word race, in quotes"
)
def _schedules(session: Session, text: Value) -> Value:
    return _explored(session, text).schedules


@function(
    "bad(RACE, ...)",
    "how many of them end badly, or with the outcome that follows it",
    most=2,
)
def _bad(session: Session, text: Value, outcome: Value = None) -> Value:
    found = _explored(session, text)
    if outcome is None:
        return found.bad
    return sum(each.schedules for each in found.outcomes if each.name == outcome)


@function(
    "race_outcome(RACE, SCHEDULE)",
    "what a schedule of a litmus race comes to, such as 'lost update'",
)
def _race_outcome(session: Session, text: Value, schedule: Value) -> Value:
    from kemu.races import litmus
    from kemu.racing.wanted import program_of

    wanted = _wanted(session, text)
    if not wanted.is_litmus:
        raise UsageError(
            "race_outcome: only of a litmus race",
            hint="race alone lists them; race replay plays any other",
        )
    digits = (
        str(schedule)
        if isinstance(schedule, int) and not isinstance(schedule, bool)
        else _text(schedule, "schedule")
    )
    program = program_of(wanted)
    return litmus.outcome(program, litmus.play(program, digits)[-1])


@function(
    "refcount_of(X, OPERATION)", "a refcount_t of X after 'get', 'put' or 'get_unless_zero', as u32"
)
def _refcount_of(_session: Session, value: Value, operation: Value) -> Value:
    from kemu.races.programs import REFCOUNT

    return _counted(REFCOUNT, value, operation)


@function("atomic_of(X, OPERATION)", "an atomic_t of X after the same operation, as u32")
def _atomic_of(_session: Session, value: Value, operation: Value) -> Value:
    from kemu.races.programs import ATOMIC

    return _counted(ATOMIC, value, operation)


def _counted(kind: str, value: Value, operation: Value) -> int:
    from kemu.races.programs import as_int, counted

    if operation not in OPERATIONS:
        raise UsageError(
            f"expression: {describe(operation)} is not an operation",
            hint=f"known are {', '.join(OPERATIONS)}",
        )
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 31) <= value < 1 << 32:
        raise UsageError(
            f"expression: {describe(value)} is not a count", hint="a number of 32 bits"
        )
    return counted(kind, as_int(value), str(operation))[0] & 0xFFFFFFFF


def _text(value: Value, what: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"expression: {describe(value)} is not a {what}", hint="put it in quotes")
    return value


def _explored(session: Session, text: Value) -> RaceReading:
    """Explore the race with the command race itself; the session's last race is unchanged."""
    made, values = _parsed(session, text)
    with session.debugger.keeping_the_race():
        reading: RaceReading = made.function(session, **values).reading
    return reading


def _wanted(session: Session, text: Value) -> Wanted:
    """The race that the text describes."""
    from kemu.racing.knobs import Options
    from kemu.racing.wanted import read

    _, values = _parsed(session, text)
    return read(values["what"] + values["schedule"], Options.of(values))


def _parsed(session: Session, text: Value) -> tuple[Command, dict[str, Any]]:
    """The command `race`, and its arguments as the text gives them."""
    from kemu.commands.table import named
    from kemu.language.bind import bind
    from kemu.language.tokens import split

    lines, made = split(f"race {_text(text, 'race')}"), named("race")
    if len(lines) != 1:
        raise UsageError("expression: that is more than one race", hint='bad("gets --non-atomic")')
    values = bind(made, lines[0], session).values
    if not values["what"] or values["what"][0] == "replay":
        raise UsageError("expression: which race?", hint='bad("gets --non-atomic")')
    return made, values
