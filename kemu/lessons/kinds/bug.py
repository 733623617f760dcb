"""`bug` steps: what is to be found in a wrong kernel, and whether it was repaired.

    plant, setup, blocks        the history that the wrong kernel made
    event                       the first one behind which an invariant does not hold (as `verify every-event` says)
    invariant                   any of those that do not hold there, or at the end of the history
    function                    the kernel function that was at work
    frame                       what the author's expression says
    repair                      no wrong kernel, and the history repeated without anything breaking

An author may say otherwise for bugs that no invariant sees.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

from kemu.errors import UsageError
from kemu.language.expr import Value
from kemu.lessons.format.lesson import Step
from kemu.lessons.format.names import plain
from kemu.lessons.taking.answers import normal, number_in, same
from kemu.lessons.taking.judge import said_as
from kemu.lessons.taking.world import WorldError

if TYPE_CHECKING:
    from kemu.experiment.session import Session


class Hunt(Protocol):
    """What is needed of a visit (`visit.Visit`)."""

    step: Step
    session: Session
    base: int
    truths: dict[str, tuple[Value, ...]]
    found: set[str]

    def text(self, key: str, raw: str) -> str:
        """A text of the step with its values."""

    def value(self, key: str, expression: str) -> Value:
        """The value of an expression of the step."""

    def failures(self) -> list[str]:
        """What of `must` does not hold."""

    def is_of_the_right_kernel(self) -> bool:
        """Did the right kernel make all of the history?"""


NAMED = ("event", "invariant", "function", "frame")


def truths(visit: Hunt) -> dict[str, tuple[Value, ...]]:
    """By finding, the values of which any is right.  Raises WorldError where the history shows no
    bug."""
    step = visit.step
    written = {
        "event": step.event,
        "invariant": step.invariant,
        "function": step.function,
        "frame": step.frame,
    }
    found = {
        key: tuple(visit.value(key, text) for text in texts)
        for key, texts in written.items()
        if texts
    }
    wanted = [key for key in step.find if key in NAMED and key not in found]
    if not wanted:
        return found
    if "frame" in wanted:
        raise WorldError(
            "P10",
            step.at("find"),
            "frame: which one? no invariant names it",
            'write frame = "EXPR"',
        )
    broken = first_broken(visit.session, visit.base)
    if broken is None:
        hint = "let the wrong function run in setup or in a run block"
        raise WorldError("P10", step.at("plant"), "nothing breaks in this history", hint)
    event, invariants, function = broken
    rules = tuple(dict.fromkeys((*invariants, *broken_now(visit.session))))
    seen: dict[str, tuple[Value, ...]] = {
        "event": (event,),
        "invariant": rules,
        "function": (function,),
    }
    return seen | found


def broken_now(session: Session) -> tuple[str, ...]:
    """The invariants that do not hold at the end of the history, which is what `verify` shows."""
    from kemu.invariants import check

    with session.traveling():
        session.goto(session.end)
        return tuple(
            violation.invariant
            for violation in check(session.kernel, session.name_of, quiescent=True)
        )


def first_broken(session: Session, first: int) -> tuple[int, tuple[str, ...], str] | None:
    """(event, invariants, function) of the first event behind `first` that breaks something; None
    if nothing does."""
    from kemu.invariants import first_broken as search
    from kemu.observe.events import one_event

    first = max(first, wrong_since(session, first))
    with session.traveling():
        quiet = {0, session.now} | {record.last for record in session.timeline.records}
        resting = {event for event in quiet if session.boundary(event)}
        broken = search(session.kernel, first, session.now, resting, session.name_of)
        if broken is None:
            return None
        function = one_event(session.kernel, broken.event, session.name_of).function
    return (
        broken.event,
        tuple(dict.fromkeys(violation.invariant for violation in broken.violations)),
        function,
    )


def wrong_since(session: Session, first: int) -> int:
    """The event behind which the wrong function first ran: up to there the kernel did what the
    right one does, so nothing can be broken.  `first` where that cannot be told."""
    from kemu.observe import anchors

    function = places().get(session.planted, "")
    if not anchors.known_function(function):
        return first
    found = anchors.of_call(session.journal, function, first, session.end)
    return session.end if found is None else anchors.event_of(found)


@cache
def places() -> dict[str, str]:
    """The name of the function that is wrong, by the name of the wrong kernel."""
    from kemu.commands.trust import listing
    from kemu.experiment.session import Session

    return {row.name: row.place.rpartition("#")[2] for row in listing(Session()).mutants}


def name(visit: Hunt, text: str) -> list[tuple[str, str, bool]]:
    """(finding, what was said, right) of each part of the answer.  Raises UsageError for a slip of
    typing."""
    findings = [key for key in visit.step.find if key in NAMED]
    parts = [part.strip() for part in normal(text).replace(";", ",").split(",") if part.strip()]
    if not parts or not findings:
        what = " or ".join(f"answer {key} ..." for key in findings) or "check, when it is repaired"
        raise UsageError("answer: what is wrong?", hint=what)
    read = [_part(part, findings) for part in parts]
    return [
        (key, _shown(key, value), any(same(value, truth) for truth in visit.truths.get(key, ())))
        for key, value in read
    ]


def _shown(key: str, value: Value) -> str:
    """What was said, as the shell writes such a thing."""
    return f"#{value}" if key == "event" else said_as(value)


def _part(text: str, findings: list[str]) -> tuple[str, Value]:
    """`event 512`: the finding, and its value."""
    word, _, rest = text.partition(" ")
    key = word.casefold() if word.casefold() in NAMED else findings[0] if len(findings) == 1 else ""
    if key not in findings:
        raise UsageError(
            f"answer: is '{text[:40]}' an {' or '.join(findings)}?",
            hint=f"answer {findings[0]} ...",
        )
    value = rest.strip() if word.casefold() == key else text
    if not value:
        raise UsageError(f"answer: which {key}?", hint=f"answer {key} ...")
    if key in ("event", "frame"):
        return key, number_in(value.removeprefix("#"))
    return key, value.removesuffix("()")


def share(visit: Hunt) -> float:
    """Which part of the points the findings so far are worth."""
    weights = dict(visit.step.parts) or dict.fromkeys(visit.step.find, 1)
    whole = sum(weights.get(key, 0) for key in visit.step.find)
    return sum(weights.get(key, 0) for key in visit.found) / whole if whole else 1.0


def unrepaired(visit: Hunt) -> list[str]:
    """Why the kernel cannot count as repaired, a line each."""
    session = visit.session
    if session.planted:
        return ["a wrong kernel still runs: mutant remove makes it right"]
    broken = None if visit.is_of_the_right_kernel() else first_broken(session, visit.base)
    if broken is not None:
        what = f"#{broken[0]} still breaks {', '.join(broken[1])}"
        return [f"{what}: undo what the wrong kernel did, and do it again with the right one"]
    return visit.failures()


def solution(visit: Hunt) -> list[str]:
    """The answers that find everything."""
    named = [
        f"{key} {plain(visit.truths[key][0])}" for key in visit.step.find if key in visit.truths
    ]
    lines = [f"answer {', '.join(named)}"] if named else []
    if "repair" in visit.step.find:
        lines += [visit.text("solution", text) for text in visit.step.solution]
    return lines
