"""Is it right?  One function for each kind of step, and the words for what is not.

Facts are asked of the machine when the step is entered, or after its reveal; nothing that the
student does meanwhile moves them.  A verdict is about the task, never about the person: what was
said, what happened, the one thing to look at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kemu.errors import UsageError
from kemu.language.expr import TaskValue, Value, format_value
from kemu.language.lexer import Source
from kemu.language.lexer import words as words_of
from kemu.lessons.format.lesson import Condition
from kemu.lessons.format.names import Values, compiled, evaluate, holds
from kemu.lessons.taking.answers import same, same_set
from kemu.lessons.taking.messages import say

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.observe.anchors import Key

COMPARISONS = {
    "==": "equal",
    "!=": "different",
    "<": "less",
    "<=": "at_most",
    ">": "more",
    ">=": "at_least",
}
"""The message that says what is wanted, by operator."""


MOST_COUNTED = 100
"""Numbers below this are shown in decimal alone."""


class Fact(NamedTuple):
    """What is right: one value, a set of them or (`ordered`) a sequence; and the wrong answers that
    have a text, in order."""

    value: Value | tuple[Value, ...]
    wrong: tuple[tuple[Value, str], ...] = ()
    ordered: bool = False
    accepts: Callable[[Value], bool] | None = None
    """Where many answers are right: asks about one.  Raises UsageError for what cannot be one."""

    def agrees(self, said: Value | tuple[Value, ...]) -> bool:
        """Is that what is right?"""
        if self.ordered:
            return said == self.value
        if self.accepts is not None:
            return self.accepts(said)  # type: ignore[arg-type]  # such an answer is a text
        if isinstance(self.value, tuple) and not isinstance(self.value, TaskValue):
            return isinstance(said, tuple) and same_set(said, self.value)
        return not _is_set(said) and same(said, self.value)  # type: ignore[arg-type]  # a set has been ruled out

    def belief(self, said: Value | tuple[Value, ...]) -> str:
        """The text about the wrong answer that was given, or an empty one."""
        if _is_set(said):
            return ""
        return next((text for value, text in self.wrong if same(said, value)), "")  # type: ignore[arg-type]  # as above


def _is_set(value: object) -> bool:
    return isinstance(value, tuple) and not isinstance(value, TaskValue)


def said_as(value: Value | tuple[Value, ...]) -> str:
    """A value in a sentence: a count as it is counted, anything larger in both bases."""
    if isinstance(value, tuple) and not isinstance(value, TaskValue):
        return ", ".join(said_as(item) for item in value) or "none"
    if isinstance(value, TaskValue):
        return value.name
    counted = (
        isinstance(value, int)
        and not isinstance(value, bool)
        and -MOST_COUNTED < value < MOST_COUNTED
    )
    return str(value) if counted else format_value(value)


# --------------------------------------------------------------------------------------- conditions


def failure(session: Session, condition: Condition, values: Values, language: str = "en") -> str:
    """Why the condition does not hold, with both sides evaluated; empty if it does."""
    try:
        if holds(session, condition.that, values):
            return ""
    except UsageError as error:
        return f"{condition.that}: {error.what.removeprefix('expression: ')}"
    sides = "; ".join(
        explained(session, part, values, language)
        for part in conjuncts(condition.that)
        if not _true(session, part, values)
    )
    return sides or say(language, "is_false", text=condition.that)


def _true(session: Session, text: str, values: Values) -> bool:
    try:
        return holds(session, text, values)
    except UsageError:
        return False


def explained(session: Session, text: str, values: Values, language: str) -> str:
    """`left is 17; wanted: equal to right, which is 18`."""
    found = comparison(text)
    if found is None:
        return say(language, "is_false", text=text)
    left, operator, right = found
    try:
        has, wants = evaluate(session, left, values), evaluate(session, right, values)
    except UsageError as error:
        return f"{text}: {error.what.removeprefix('expression: ')}"
    asked = any(
        step.op == "call" or (step.op == "name" and step.argument not in values)
        for step in compiled(right).steps
    )
    shown = said_as(wants)
    wanted = say(language, "which_is", right=right, wants=shown) if asked else shown
    compared = say(language, COMPARISONS[operator])
    return say(language, "is", left=left, has=said_as(has), comparison=compared, wanted=wanted)


def conjuncts(text: str) -> list[str]:
    """The parts that are joined by `and` outside of brackets."""
    outer = [
        (value, column)
        for depth, kind, value, column in _outline(text)
        if (depth, kind) == (0, "keyword")
    ]
    if any(value == "or" for value, _ in outer):
        return [text.strip()]
    cuts = [(column, column + 3) for value, column in outer if value == "and"]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def comparison(text: str) -> tuple[str, str, str] | None:
    """Left side, operator and right side where the expression is a comparison."""
    outline = _outline(text)
    if any(depth == 0 and kind == "keyword" for depth, kind, _, _ in outline):
        return None
    outer = [
        (value, column)
        for depth, kind, value, column in outline
        if (depth, kind) == (0, "operator")
    ]
    found = [(value, column) for value, column in outer if value in COMPARISONS]
    if len(found) != 1:
        return None
    operator, column = found[0]
    return text[:column].strip(), operator, text[column + len(operator) :].strip()


def _outline(text: str) -> list[tuple[int, str, str, int]]:
    """(brackets open, kind, value, column) of each word of the expression."""
    depth, found = 0, []
    for word in words_of(Source(text, 0, len(text))):
        value = str(word.value)
        depth -= word.kind == "operator" and value == ")"
        found.append((depth, word.kind, value, word.column))
        depth += word.kind == "operator" and value == "("
    return found


def first_held(
    session: Session, condition: Condition, values: Values, first: int, last: int
) -> int | None:
    """The first event of (first, last] after which the condition held; it is asked at each, where
    its names mean something."""
    compiled(condition.that)
    with session.traveling():
        for event in range(first + 1, last + 1):
            session.goto(event)
            if _true(session, condition.that, values):
                return event
    return None


# ---------------------------------------------------------------------------- places in the journal


def place_of(session: Session, anchor: str, values: Values, first: int, last: int) -> Key | None:
    """The first place in (first, last] that the anchor means; None if it is not there.

    `enter FUNCTION`, `leave FUNCTION`, `event WORD`, `until EXPR`.  Raises UsageError for anything
    else."""
    from kemu.observe import anchors

    word, _, rest = anchor.strip().partition(" ")
    rest = rest.strip()
    if word in ("enter", "leave"):
        name = rest.removesuffix("()")
        if not anchors.known_function(name):
            raise UsageError(f"at: no kernel function named '{name[:40]}'", text=anchor)
        return anchors.of_call(session.journal, name, first, last, leaving=word == "leave")
    if word == "event" and rest:
        with session.traveling():
            return anchors.of_text(session.kernel, rest, first, last, session.name_of)
    if word == "until":
        found = first_held(session, Condition(rest), values, first, last)
        return None if found is None else anchors.after(found)
    raise UsageError(
        f"at: '{anchor[:40]}' is not a place in the journal",
        text=anchor,
        hint="enter FUNCTION, leave FUNCTION, event WORD or until EXPR",
    )
