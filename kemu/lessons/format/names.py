"""What names and functions mean in a lesson: those of the shell, the lesson's variables, and a few
functions more.

    n v f0                  variables (`vars`) and what a step has noted at its start (`let`)
    randint(a, b)           only where variables are drawn
    choice(x, y, ...)       the same
    if(COND, A, B)          A or B          pick(i, a, b, ...)     the i-th, from 0
    min max text            of numbers      first_bad() verified() about the invariants

The language is the shell's own, compiled, never given to `eval`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.language.expr import Expression, TaskValue, Value, compile_text, describe
from kemu.language.suggest import did_you_mean
from kemu.lessons.format.seeds import Draw
from kemu.names.questions import FUNCTIONS
from kemu.names.session import SessionNames

if TYPE_CHECKING:
    from kemu.experiment.session import Session

Values = Mapping[str, Value]
PURE = frozenset({"hex"})
"""Functions of the shell that need no machine."""


@cache
def compiled(text: str) -> Expression:
    """The expression, read once.  Raises UsageError."""
    return compile_text(text)


class LessonNames(SessionNames):
    """Names at the present moment of the session of a step."""

    def __init__(self, session: Session, values: Values) -> None:
        super().__init__(session)
        self.values = values

    def name(self, dotted: str) -> Value:
        """A variable, else what the shell knows."""
        if dotted in self.values:
            return self.values[dotted]
        try:
            return super().name(dotted)
        except UsageError as error:
            raise UsageError(
                error.what, hint=did_you_mean(dotted, self.values) or error.hint
            ) from error

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        """A function of lessons, else one of the shell."""
        if function in ABOUT_RULES:
            return ABOUT_RULES[function](self.session)
        if function in PLAIN:
            return PLAIN[function](arguments)
        return super().call(function, arguments)


class DrawnNames:
    """Names while variables are drawn: no machine, but `randint` and `choice`."""

    def __init__(self, draw: Draw, values: Values) -> None:
        self.draw = draw
        self.values = values

    def name(self, dotted: str) -> Value:
        """A variable defined before."""
        if dotted in self.values:
            return self.values[dotted]
        hint = did_you_mean(dotted, self.values) or "a variable may use those defined before it"
        raise UsageError(f"expression: nothing is called '{dotted[:40]}' here", hint=hint)

    def variable(self, text: str) -> Value:
        """There is no session."""
        raise UsageError(f"expression: {text[:40]} has no meaning in vars")

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        """A number drawn, or a function that needs no machine."""
        if function == "randint":
            low, high = _numbers(function, arguments, 2)
            if low > high:
                raise UsageError(f"expression: randint({low}, {high}) has nothing to draw from")
            return low + self.draw.below(high - low + 1)
        if function == "choice":
            if not arguments:
                raise UsageError("expression: choice() has nothing to draw from")
            return arguments[self.draw.below(len(arguments))]
        if function in PLAIN:
            return PLAIN[function](arguments)
        if function in PURE:
            return FUNCTIONS[function].body(None, *arguments)
        known = [*DRAWING, *PLAIN, *PURE]
        raise UsageError(
            f"expression: no function '{function[:40]}' in vars",
            hint=f"the functions are {', '.join(known)}",
        )


DRAWING = ("randint", "choice")


def _numbers(name: str, arguments: Sequence[Value], count: int = 0) -> list[int]:
    found = [int(value) for value in arguments if isinstance(value, int)]
    if len(found) != len(arguments) or (len(found) != count if count else not found):
        raise UsageError(f"expression: {name} takes {count or 'some'} numbers")
    return found


def _if(arguments: Sequence[Value]) -> Value:
    if len(arguments) != 3 or not isinstance(arguments[0], int):
        raise UsageError(
            "expression: if takes a condition and two values", hint="if(n > 3, 'many', 'few')"
        )
    return arguments[1] if arguments[0] else arguments[2]


def _pick(arguments: Sequence[Value]) -> Value:
    index = arguments[0] if arguments else None
    if not isinstance(index, int) or not 0 <= index < len(arguments) - 1:
        raise UsageError(
            f"expression: pick has no value with index {describe(index)}", hint="pick(0, a, b) is a"
        )
    return arguments[index + 1]


def _text(arguments: Sequence[Value]) -> Value:
    if len(arguments) != 1:
        raise UsageError("expression: text takes one value")
    return plain(arguments[0])


def plain(value: Value) -> str:
    """The value as it is written in a text: a number in decimal, a task by its name."""
    if isinstance(value, TaskValue):
        return value.name
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value)


PLAIN: dict[str, Callable[[Sequence[Value]], Value]] = {
    "if": _if,
    "pick": _pick,
    "text": _text,
    "min": lambda arguments: min(_numbers("min", arguments)),
    "max": lambda arguments: max(_numbers("max", arguments)),
}
"""Functions of lessons that need no machine."""


def _first_bad(session: Session) -> Value:
    from kemu.commands.trust import verify_along

    found = verify_along(session)
    return found.event if found.violations else None


def _verified(session: Session) -> Value:
    from kemu.commands.trust import verify_now

    return not verify_now(session).violations


ABOUT_RULES: dict[str, Callable[[Session], Value]] = {
    "first_bad": _first_bad,
    "verified": _verified,
}
LESSON_FUNCTIONS = frozenset({*PLAIN, *ABOUT_RULES, *DRAWING})


def evaluate(session: Session, text: str, values: Values) -> Value:
    """The value of the expression at this moment.  Raises UsageError."""
    with session.looking():
        return compiled(text).evaluate(LessonNames(session, values))


def holds(session: Session, text: str, values: Values) -> bool:
    """Is the expression true at this moment?  Raises UsageError where it is neither true nor
    false."""
    value = evaluate(session, text, values)
    if isinstance(value, (str, TaskValue)):
        raise UsageError(
            f"expression: {describe(value)} is neither true nor false", text=text, length=len(text)
        )
    return bool(value)


def drawn(variables: tuple[tuple[str, str], ...], seed: str) -> dict[str, Value]:
    """The variables of a student.  Raises UsageError whose `text` is the expression that fails."""
    values: dict[str, Value] = {}
    for name, text in variables:
        values[name] = compiled(text).evaluate(DrawnNames(Draw(seed, name), values))
    return values
