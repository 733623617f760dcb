"""Does the lesson do what it says?  It is taken for many seeds, each step from its own start.

    setup and blocks run                 P01      the solution passes                P03
    all texts render                     P07      what must not pass does not        P04
    the untouched start does not pass    P02      no `wrong` key is the answer       P06
    answers differ between students      P05      the explanation says the answer    P11

A problem is told once, for the first seed that shows it; what takes too long is not tried for
another seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kemu.language.expr import TaskValue
from kemu.lessons.format.lesson import Lesson, Problem, Step
from kemu.lessons.format.schema import PROSE, holding, keys
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.kinds.base import Fault, Visit, open_visit
from kemu.lessons.kinds.registry import KINDS
from kemu.lessons.taking.bounds import seconds
from kemu.lessons.taking.driver import work
from kemu.lessons.taking.judge import said_as
from kemu.lessons.taking.world import World, WorldError

SEEDS, STUDENTS = 20, ("ada", "bo", "chen", "dana", "emil")
PATIENCE = 60.0
"""Seconds for one step of one seed."""


class Seed(NamedTuple):
    """A seed, and the name that messages give it."""

    seed: str
    who: str


def seeds_for(
    lesson: Lesson, count: int = SEEDS, students: Sequence[str] = STUDENTS, salt: str = ""
) -> list[Seed]:
    """`count` seeds of nobody, and those of some students."""
    drawn = [
        Seed(seed_for(f"proof {number}", lesson.id, ""), f"seed {number}")
        for number in range(1, count + 1)
    ]
    return drawn + [
        Seed(seed_for(salt, lesson.id, student), f"student {student}") for student in students
    ]


def prove(lesson: Lesson, seeds: Sequence[Seed]) -> list[Problem]:
    """What the performed lesson does not keep."""
    found: dict[tuple[str, int], Problem] = {}
    answers: dict[str, set[str]] = {step.id: set() for step in lesson.steps}
    for seed in seeds:
        for problem in _one_seed(lesson, seed, answers):
            found.setdefault((problem.code, problem.line), problem)
        if any(problem.code == "P08" for problem in found.values()):
            break
    if not any(problem.severity == "error" for problem in found.values()):
        for problem in _all_same(lesson, answers, len(seeds)):
            found.setdefault((problem.code, problem.line), problem)
    return sorted(found.values(), key=lambda problem: problem.line)


def _one_seed(lesson: Lesson, seed: Seed, answers: dict[str, set[str]]) -> Iterator[Problem]:
    def problem(code: str, line: int, text: str, hint: str = "") -> Problem:
        return Problem(code, str(lesson.path), line, f"{text} [{seed.who}]", hint)

    try:
        world = World(lesson, seed.seed)
    except WorldError as error:
        yield problem(error.code, error.line, error.text, error.hint)
        return
    for index, step in enumerate(lesson.steps):
        try:
            with seconds(PATIENCE, step.line, f"step {step.id}"):
                found = list(_step(world, index, answers))
        except WorldError as error:
            yield problem(error.code, error.line, error.text, error.hint)
            return
        for fault in found:
            yield problem(*fault)
    try:
        session = world.after_all()
        world.lead(session, lesson.epilogue, world.values)
    except WorldError as error:
        yield problem(error.code, error.line, error.text, error.hint)


def _step(world: World, index: int, answers: dict[str, set[str]]) -> Iterator[Fault]:
    """What is wrong with the step in this world."""
    visit = open_visit(world, index)
    step = visit.step
    visit.text("ask", step.ask)
    step.options_of(visit)
    for hint in step.hints:
        visit.text("hints", hint)
    if step.check(visit):
        yield Fault("P02", step.line, f"step {step.id} is solved before anything has been done")
        return
    lines = step.solve(visit)
    for key, text in holding(step, PROSE):
        if key not in ("title", "ask", "hints"):
            visit.text(key, text)
    visit.pictures()
    if step.solvable:
        yield from step.doubts(visit)
        yield from _solved(visit, lines)
        yield from _explained(visit)
    answers[step.id].add(_signature(visit, lines))
    for number, wrong in enumerate(step.not_solution):
        yield from _not_solved(world, index, wrong, number)


def _solved(visit: Visit, lines: list[str]) -> Iterator[Fault]:
    step = visit.step
    complaint = work(visit, lines)
    why = f"fails: {complaint.what}" if complaint is not None else step.unproved(visit)
    if why:
        yield Fault("P03", step.at("solution"), f"the solution of {step.id} {why}")


NUMBER_FIRST = re.compile(r"\W*(0x[0-9a-fA-F]+|[0-9]+)(?::|\.(?!\d))")
"""A text that begins with a number and what follows from it."""


def _explained(visit: Visit) -> Iterator[Fault]:
    step, value = visit.step, visit.fact.value if visit.fact is not None else None
    begins = NUMBER_FIRST.match(visit.text("explain", step.explain))
    if begins is None or not isinstance(value, int) or isinstance(value, bool):
        return
    said = int(begins[1], 0)
    if said != value:
        what = f"the explanation of {step.id} begins with {said}, and the right answer is {value}"
        yield Fault("P11", step.at("explain"), what)


def _not_solved(world: World, index: int, lines: Sequence[str], number: int) -> Iterator[Fault]:
    visit = open_visit(world, index)
    step = visit.step
    complaint = work(visit, [visit.text("not_solution", line) for line in lines])
    if complaint is None and step.check(visit):
        which = f" number {number + 1}" if len(step.not_solution) > 1 else ""
        what = f"not_solution{which} of {step.id} passes"
        yield Fault("P04", step.at("not_solution"), what)


def _signature(visit: Visit, lines: list[str]) -> str:
    """What differs between two students who solve the step."""
    fact = visit.fact
    if fact is not None and fact.value is not None:
        return (
            said_as(fact.value)
            if isinstance(fact.value, TaskValue) or not isinstance(fact.value, tuple)
            else str(fact.value)
        )
    return "; ".join(lines) + visit.text("ask", visit.step.ask)


def _all_same(lesson: Lesson, answers: dict[str, set[str]], count: int) -> Iterator[Problem]:
    """Variables that change nothing, where there are at least three seeds to judge by."""
    graded = [step for step in lesson.steps if KINDS[step.kind].graded and step.points]
    if not lesson.vars or count < 3 or not graded:
        return
    if all(len(answers[step.id]) < 2 for step in graded):
        what = "all students have the same answers, in spite of the variables"
        yield Problem("P05", str(lesson.path), lesson.lines.get("vars", 1), what)
        return
    for step in graded:
        if len(answers[step.id]) == 1 and "expect" in keys(type(step)):
            yield _same(lesson, step, next(iter(answers[step.id])))


def _same(lesson: Lesson, step: Step, answer: str) -> Problem:
    text = f"the answer of {step.id} is {answer} for every student"
    return Problem(
        "W04",
        str(lesson.path),
        step.at("expect"),
        text,
        "ask for a related quantity that differs",
    )
