"""The report of a lesson: it is played with its solutions, step by step, into one page.

A step that starts from a new machine begins a new part, as does the step after one whose machine is
not carried on. Each part is a film with the text of each step at the moment where the step begins.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kemu.front.terminal.reporting import film_of, script_of, write_page
from kemu.language.result import BAD_LESSON, OK
from kemu.lessons.format.course import find_lesson
from kemu.lessons.format.lesson import LessonError
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.taking.world import World, WorldError
from kemu.readings.report import Film

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.lessons.format.lesson import Lesson, Step

Note = tuple[int, str, str]


def lesson_report(path: str, target: str) -> int:
    """Play the lesson of the file and write its page. Return 0, or 4 if the lesson has errors.
    Raises UsageError."""
    try:
        lesson = find_lesson(path)
        films = play(lesson)
    except LessonError as error:
        sys.stderr.write("".join(f"{problem}\n" for problem in error.problems))
        return BAD_LESSON
    except WorldError as error:
        sys.stderr.write(
            f"{path}:{error.line}: {error.text}\n" + (f"  {error.hint}\n" if error.hint else "")
        )
        return BAD_LESSON
    sys.stdout.write(write_page(films, target) + "\n")
    return OK


def play(lesson: Lesson) -> list[Film]:
    """The films of the lesson's machines. Raises WorldError."""
    world = World(lesson, seed_for("", lesson.id, ""))
    films: list[Film] = []
    session, notes = world.before(0), list[Note]()
    for number, step in enumerate(lesson.steps, 1):
        before = lesson.steps[number - 2] if number > 1 else None
        if before is not None and (step.start != "carry" or not before.carried):
            films.append(_film(lesson, session, notes))
            session, notes = world.before(number - 1), []
        notes.append(_do(world, session, step, number))
    return [*films, _film(lesson, session, notes)]


def _do(world: World, session: Session, step: Step, number: int) -> Note:
    """Run the step and return its note."""
    first = session.end
    shown, values = world.enter(session, step)
    prose = [piece.text for piece in shown if piece.kind == "prose"]
    ask = world.rendered(session, step.ask, values, step.at("ask"), "ask") if step.ask else ""
    world.finish(session, step, values)
    return (
        first,
        f"Step {number} of {len(world.lesson.steps)}: {step.title or step.id}",
        "\n\n".join(filter(None, [*prose, ask])),
    )


def _film(lesson: Lesson, session: Session, notes: list[Note]) -> Film:
    script = script_of(session, lesson.title)._replace(
        notes=tuple(notes), part=notes[0][1].split(": ", 1)[1]
    )
    return film_of(session, script, 0, session.end)
