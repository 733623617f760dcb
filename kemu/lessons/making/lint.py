"""What can be seen in a lesson without performing it: expressions, commands, names, and how lessons
hang together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kemu.commands.table import named
from kemu.errors import UsageError
from kemu.language.spec import CHANGE
from kemu.language.suggest import did_you_mean
from kemu.language.tokens import split
from kemu.lessons.format.lesson import Lesson, Problem, Step
from kemu.lessons.format.names import LESSON_FUNCTIONS, compiled
from kemu.lessons.format.schema import (
    COMMANDS,
    EXPRESSION,
    PROSE,
    SOLUTION,
    TEMPLATE,
    holding,
)
from kemu.lessons.format.texts import expressions_of
from kemu.lessons.kinds.base import Kind
from kemu.lessons.taking.history import places
from kemu.names.questions import FUNCTIONS

_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_TAKEN = frozenset(
    {"init", "swapper", "kthreadd", "and", "or", "not", "true", "false", "none", "as", "file", "if"}
)


def lint(lesson: Lesson) -> list[Problem]:
    """All that is wrong with one lesson, in the order of the file."""
    found = [
        *front(lesson),
        *(problem for step in lesson.steps for problem in of_step(lesson, step)),
        *_blocks(lesson),
    ]
    return sorted(dict.fromkeys(found), key=lambda problem: problem.line)


def problem(lesson: Lesson, code: str, line: int, text: str, hint: str = "") -> Problem:
    """A problem of the lesson."""
    return Problem(code, str(lesson.path), line, text, hint)


# ------------------------------------------------------------------------------------- front matter


def front(lesson: Lesson) -> Iterator[Problem]:
    """Variables and setup."""
    line = lesson.lines.get("vars", 1)
    for name, text in lesson.vars:
        place = lesson.lines.get(name, line)
        yield from _name(lesson, place, name)
        yield from _expression(lesson, place, f"vars {name}", text)
    yield from commands(lesson, None, lesson.lines.get("setup", 1), "setup", lesson.setup)


def _name(lesson: Lesson, line: int, name: str) -> Iterator[Problem]:
    if not _NAME.match(name):
        yield problem(
            lesson,
            "M05",
            line,
            f"'{name[:40]}' is not a name for a variable",
            "letters, digits and _, a letter first",
        )
    elif name in _TAKEN or name in FUNCTIONS or name in LESSON_FUNCTIONS:
        yield problem(lesson, "M05", line, f"'{name}' is reserved", "choose another name")


def _expression(lesson: Lesson, line: int, what: str, text: str) -> Iterator[Problem]:
    try:
        made = compiled(text)
    except UsageError as error:
        yield problem(lesson, "M01", line, f"{what}: {error.what} in {text}", error.hint)
        return
    for step in made.steps:
        if (
            step.op == "call"
            and step.argument not in FUNCTIONS
            and step.argument not in LESSON_FUNCTIONS
        ):
            hint = did_you_mean(str(step.argument), [*FUNCTIONS, *LESSON_FUNCTIONS])
            yield problem(
                lesson, "M01", line, f"{what}: no function '{step.argument}' in {text}", hint
            )


def _text(
    lesson: Lesson, line: int, what: str, text: str, *, prose: bool = False
) -> Iterator[Problem]:
    try:
        for expression in expressions_of(text, prose=prose):
            yield from _expression(lesson, line, what, expression)
    except UsageError as error:
        yield problem(lesson, "M01", line, f"{what}: {error.what} in {error.text}", error.hint)


# -------------------------------------------------------------------------------------------- steps


def of_step(lesson: Lesson, step: Step) -> Iterator[Problem]:
    """All that is wrong with one step."""
    for name, text in step.let:
        yield from _name(lesson, step.at("let"), name)
        yield from _expression(lesson, step.at("let"), f"let {name}", text)
    for key, text in holding(step, EXPRESSION):
        yield from _expression(lesson, step.at(key), key, text)
    for key, text in holding(step, PROSE, TEMPLATE):
        yield from _text(lesson, step.at(key), key, text)
    for key, text in holding(step, COMMANDS, SOLUTION):
        if not text.startswith("answer ") or key not in ("solution", "not_solution"):
            yield from commands(lesson, step, step.at(key), key, (text,))
    yield from _meaning(lesson, step)


def _meaning(lesson: Lesson, step: Step) -> Iterator[Problem]:
    assert isinstance(step, Kind)  # noqa: S101 - the parser makes no other steps
    if step.plant and "{" not in step.plant and step.plant not in places():
        hint = did_you_mean(step.plant, places()) or "mutant list shows the names"
        what = f"no wrong kernel named '{step.plant[:40]}'"
        yield problem(lesson, "M06", step.at("plant"), what, hint)
    for fault in step.faults(lesson):
        yield problem(lesson, *fault)
    told = lesson.mode != "exam" and not lesson.packed
    if step.points and not step.hints and step.graded and told:
        yield problem(lesson, "W03", step.line, f"step {step.id} has no hints")
    for locked, others in LEAKS.items():
        open_words = sorted(others - set(step.locked))
        if locked in step.locked and open_words:
            what = f"{locked} is locked, and {open_words[0]} prints the same"
            yield problem(lesson, "W07", step.at("locked"), what, "lock both, or neither")
    yield from _leftovers(lesson, step)


LEAKS = {"walk": {"graph"}, "pt": {"graph"}, "smaps": {"graph"}, "mem": {"graph"}}
"""Words by others that show what they show."""


def _leftovers(lesson: Lesson, step: Step) -> Iterator[Problem]:
    """An exam gives a solution away where the next step starts from it."""
    index = lesson.index(step.id)
    following = lesson.steps[index + 1 : index + 2]
    if (
        lesson.mode == "exam"
        and step.solution
        and step.carried
        and following
        and following[0].start == "carry"
    ):
        hint = f'write start = "setup" in {following[0].id}, or carry = false here'
        yield problem(
            lesson,
            "W06",
            step.line,
            f"{following[0].id} starts from the solution of {step.id}",
            hint,
        )


# ----------------------------------------------------------------------------------------- commands


def commands(
    lesson: Lesson, step: Step | None, line: int, key: str, texts: Iterable[str]
) -> Iterator[Problem]:
    """What is wrong with commands: words that do not exist, or may not be used."""
    for text in texts:
        yield from _text(lesson, line, key, text)
        try:
            found = split(text)
        except UsageError as error:
            yield problem(lesson, "M02", line, f"{key}: {error.what} in {text}", error.hint)
            continue
        for command in found:
            yield from _command(lesson, step, line, key, command.tokens[0].text)


def _command(
    lesson: Lesson, step: Step | None, line: int, key: str, word: str
) -> Iterator[Problem]:
    if "{" in word:
        return
    try:
        made = named(word)
    except UsageError as error:
        yield problem(lesson, "M02", line, f"{key}: {error.what}", error.hint)
        return
    allowed = {*lesson.allow, *(step.allow if step else ())}
    own = key in ("setup", "reveal", "show", "makes", "run")
    if made.name == "lesson" or (
        made.host and made.name not in allowed and made.name not in HARMLESS
    ):
        hint = f'allow it with allow = ["{made.name}"]' if made.host else ""
        yield problem(lesson, "M03", line, f"{key}: {made.name} is not allowed in a lesson", hint)
    elif (
        made.name in {*lesson.deny, *(step.deny if step else ())}
        and made.name not in allowed
        and not own
    ):
        yield problem(lesson, "M03", line, f"{key}: {made.name} is denied to the student here")
    if key == "show" and made.effect == CHANGE:
        yield problem(
            lesson, "M10", line, f"show: {made.name} changes the machine", "use a run block"
        )


HARMLESS = frozenset({"graph", "transcript", "report"})
"""Commands that touch the host's files only where they are given one; the runner looks at the
arguments."""


def _blocks(lesson: Lesson) -> Iterator[Problem]:
    """Prose, run and show blocks."""
    for step, blocks in [*((step, step.lead) for step in lesson.steps), (None, lesson.epilogue)]:
        for block in blocks:
            if block.kind == "prose":
                yield from _prose(lesson, block.line, block.text)
                continue
            for line, text in block.commands():
                yield from commands(lesson, step, line, block.kind, (text,))


def _prose(lesson: Lesson, first: int, text: str) -> Iterator[Problem]:
    for found in _text(lesson, first, "text", text, prose=True):
        shown = found.text.rsplit(" in ", 1)[-1]
        at = text.find(shown.strip())
        yield Problem(
            found.code, found.path, first + text[: max(at, 0)].count("\n"), found.text, found.hint
        )
