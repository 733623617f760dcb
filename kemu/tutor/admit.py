"""What a student may do in a step: every command passes here, with its parsed arguments, before it runs.

    host files          denied, unless `allow` names the command and the path lies beside the lesson
    deny, locked        denied; what is `locked` only until there is an answer
    before a prediction nothing that changes the machine, and no command of the reveal
    a wrong kernel      may not be revealed, nor removed where repairing is not the task
    before the start    looking is free, changing is not: the step begins at its own event

The rule that keeps this file honest: it decides by the declaration and the parsed arguments, never by the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.commands import kinds
from kemu.commands.result import Result
from kemu.commands.spec import CHANGE, Command
from kemu.commands.table import ALIASES
from kemu.commands.tokens import Line, split
from kemu.errors import UsageError
from kemu.tutor.visit import OPEN, Visit

if TYPE_CHECKING:
    from kemu.commands.spec import Argument, Option

LESSON_WORD = "lesson"


class Watch:
    """Stands beside a session while a step is worked on; `kemu.commands.run` asks it (see `Session.guide`)."""

    def __init__(self, visit: Visit) -> None:
        self.visit: Visit | None = visit

    def line(self, text: str) -> list[Result] | None:
        """A whole line before it is cut into commands; results if it was dealt with."""
        return None

    def expand(self, line: Line) -> Line:
        """A command before its word is looked up."""
        return line

    def admit(self, made: Command, values: dict[str, Any]) -> None:
        """Raise UsageError where the command may not be used now."""
        visit = self.visit
        if visit is None or made.name == LESSON_WORD:
            return
        refuse_host(visit, made, values)
        refuse_denied(visit, made)
        refuse_spoiler(visit, made, values)
        visit.before(made.name, values)

    def saw(self, results: list[Result]) -> list[Result]:
        """What a command gave; the results to show."""
        if self.visit is not None and results and results[-1].ok and self.visit.step.kind == "run" and self.visit.after():
            self.visit.pass_()
        return results


def refuse_host(visit: Visit, made: Command, values: dict[str, Any]) -> None:
    """The host's files: only commands that the lesson allows, only beside the lesson."""
    names = [part.name for part in parts_of(made) if part.kind is not None and part.kind.name == kinds.HOST_PATH.name]
    paths = [path for name in names for path in _paths(values.get(name))]
    if not paths and (names or not made.host):
        return
    lesson = visit.world.lesson
    if made.name not in (*lesson.allow, *visit.step.allow):
        what = "files of this computer" if names else "this computer"
        raise UsageError(f"{made.name}: not in a lesson, for it touches {what}", hint="lesson leave ends the lesson")
    folder = lesson.path.parent.resolve()
    for path in paths:
        if not Path(folder, path).resolve().is_relative_to(folder):
            hint = f"a lesson may use files below {folder.name}/"
            raise UsageError(f"{made.name}: '{path}' does not lie beside the lesson", hint=hint)


def parts_of(made: Command) -> list[Argument | Option]:
    """Arguments and options of a command."""
    return [*made.arguments, *made.options]


def _paths(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, tuple) else [str(value)]


def refuse_denied(visit: Visit, made: Command) -> None:
    """Words that the lesson or the step denies, or locks until there is an answer."""
    lesson, step = visit.world.lesson, visit.step
    names = set(made.words)
    if names & {*lesson.deny, *step.deny} and not names & set(step.allow):
        where = "step" if names & set(step.deny) else "lesson"
        raise UsageError(f"{made.name}: not in this {where}", hint="task shows what is asked")
    if visit.state == OPEN and names & {ALIASES.get(word, word) for word in step.locked}:
        raise UsageError(f"{made.name}: locked until you have answered", hint="answer ...; task shows the question")


def refuse_spoiler(visit: Visit, made: Command, values: dict[str, Any]) -> None:
    """What would show the answer, or change the machine where it may not be changed."""
    step = visit.step
    if made.name == "mutant":
        _refuse_mutant(visit, values)
    changing = made.effect == CHANGE and not made.is_about_session(values)
    if visit.state == OPEN and step.reveal and not visit.revealed:
        if changing:
            what = f"{made.name}: commit first, the machine moves when you have answered"
            raise UsageError(what, hint="answer ...; looking is free")
        if made.name in revealing(step.reveal) and made.effect != "look":
            raise UsageError(f"{made.name}: commit first", hint="answer ...; task shows the question")
    if changing and visit.session.now < visit.start:
        what = f"{made.name}: this step starts at #{visit.start}; what lies before is given"
        raise UsageError(what, hint=f"goto {visit.start}, or reset")


def _refuse_mutant(visit: Visit, values: dict[str, Any]) -> None:
    what, step = values.get("what"), visit.step
    if visit.state != OPEN or step.kind == "explore" or what == "list":
        return
    if what == "remove" and "repair" in step.find:
        return
    raise UsageError(f"mutant: {what} is not part of this step", hint="task shows what is asked")


def revealing(commands: tuple[str, ...]) -> set[str]:
    """The words of the commands that reveal."""
    found: set[str] = set()
    for text in commands:
        try:
            found |= {ALIASES.get(line.tokens[0].text, line.tokens[0].text) for line in split(text)}
        except UsageError:
            continue
    return found
