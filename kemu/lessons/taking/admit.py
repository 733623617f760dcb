"""What a student may do in a step: every command passes here, with its parsed arguments, before it
runs.

    host files          denied, unless `allow` names the command and the path lies beside the lesson
    deny, locked        denied; what is `locked` only until there is an answer
    before a prediction nothing that changes the machine, and no command of the reveal
    a wrong kernel      may not be revealed, nor removed where repairing is not the task
    before the start    looking is free, changing is not: the step begins at its own event (a
                        repair: where its history begins)

What decides is the declaration and the parsed arguments, never the text.
"""

from __future__ import annotations

from typing import Any

from kemu.commands.table import ALIASES
from kemu.errors import UsageError
from kemu.language.result import Result
from kemu.language.spec import CHANGE, Command
from kemu.language.tokens import split
from kemu.lessons.kinds.base import OPEN, Visit
from kemu.lessons.taking.hosts import Beside, refuse_host
from kemu.lessons.taking.mistakes import Mistake

LESSON_WORD = "lesson"


class Watch(Beside):
    """Watches a session while a step is worked on without words (see `work`)."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit

    def admit(self, made: Command, values: dict[str, Any]) -> None:
        """Raise UsageError where the command may not be used now."""
        admit(self.visit, made, values)

    def saw(self, results: list[Result]) -> list[Result]:
        """What a command gave; the results to show."""
        if results and results[-1].ok and self.visit.step.after(self.visit):
            self.visit.pass_()
        return results


def admit(visit: Visit, made: Command, values: dict[str, Any]) -> None:
    """Raise UsageError where the command may not be used in the visit now."""
    if made.name == LESSON_WORD:
        return
    lesson = visit.world.lesson
    refuse_host(lesson, (*lesson.allow, *visit.step.allow), made, values)
    refuse_denied(visit, made)
    refuse_spoiler(visit, made, values)
    visit.step.before(visit, made.name, values)


def refuse_denied(visit: Visit, made: Command) -> None:
    """Words that the lesson or the step denies, or locks until there is an answer."""
    lesson, step = visit.world.lesson, visit.step
    names = set(made.words)
    if names & {*lesson.deny, *step.deny} and not names & set(step.allow):
        where = "denied_step" if names & set(step.deny) else "denied_lesson"
        raise Mistake(where, name=made.name)
    if visit.state == OPEN and names & {ALIASES.get(word, word) for word in step.locked}:
        raise Mistake("locked", name=made.name)


def refuse_spoiler(visit: Visit, made: Command, values: dict[str, Any]) -> None:
    """What would show the answer, or change the machine where it may not be changed."""
    step, what = visit.step, values.get("what")
    planting = made.name == "mutant" and visit.state == OPEN and what != "list"
    if planting and not step.may_plant(str(what)):
        raise Mistake("no_mutant", what=what)
    changing = made.effect == CHANGE and not made.is_about_session(values)
    if visit.state == OPEN and step.reveal and not visit.revealed:
        if changing:
            raise Mistake("moves_later", name=made.name)
        if made.name in revealing(step.reveal) and made.effect != "look":
            raise Mistake("commit_first", name=made.name)
    given = step.given_until(visit)
    if made.name == "undo" and visit.session.now <= given:
        raise Mistake("nothing_to_undo")
    if changing and visit.session.now < given:
        raise Mistake("given", name=made.name, given=given)


def revealing(commands: tuple[str, ...]) -> set[str]:
    """The words of the commands that reveal."""
    found: set[str] = set()
    for text in commands:
        try:
            found |= {ALIASES.get(line.tokens[0].text, line.tokens[0].text) for line in split(text)}
        except UsageError:
            continue
    return found
