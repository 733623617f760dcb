"""Does the lesson do what it says?  It is taken for many seeds, each step from its own start.

    setup and blocks run                 P01      the solution passes                P03
    all texts render                     P07      what must not pass does not        P04
    the untouched start does not pass    P02      no `wrong` key is the answer       P06
    answers differ between students      P05

A problem is told once, for the first seed that shows it; what takes too long is not tried for
another seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kemu.language.expr import TaskValue
from kemu.lessons.format.lesson import Lesson, Problem, Step
from kemu.lessons.format.schema import UNGRADED
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.kinds import bug as bugs
from kemu.lessons.taking.bounds import seconds
from kemu.lessons.taking.driver import check, work
from kemu.lessons.taking.judge import said_as
from kemu.lessons.taking.visit import OPEN, Visit, open_visit
from kemu.lessons.taking.world import World, WorldError

SEEDS, STUDENTS = 20, ("ada", "bo", "chen", "dana", "emil")
PATIENCE = 60.0
"""Seconds for one step of one seed."""


class Seed(NamedTuple):
    """A seed, and for whom it stands in a message."""

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
        for code, line, text in found:
            yield problem(code, line, text)
    try:
        _epilogue(world)
    except WorldError as error:
        yield problem(error.code, error.line, error.text, error.hint)


def _epilogue(world: World) -> None:
    """The text at the end, on the machine that the last step leaves."""
    session = world.after_all()
    world.lead(session, world.lesson.epilogue, world.values)


Found = tuple[str, int, str]


def _step(world: World, index: int, answers: dict[str, set[str]]) -> Iterator[Found]:
    """What is wrong with the step in this world."""
    step = world.lesson.steps[index]
    visit = open_visit(world, index)
    _render(visit)
    if step.kind != "explore" and check(visit):
        yield "P02", step.line, f"step {step.id} is solved before anybody has done anything"
        return
    lines = visit.solution()
    _render(visit, late=True)
    if step.kind != "explain":
        yield from _wrong_keys(visit)
        yield from _solved(visit, lines)
    answers[step.id].add(_signature(visit, lines))
    for number, wrong in enumerate(step.not_solution):
        yield from _not_solved(world, index, wrong, number)


def _render(visit: Visit, *, late: bool = False) -> None:
    """Render the texts that are shown before (or behind) the answer.  Raises WorldError."""
    step = visit.step
    if late:
        for key, text in (("explain", step.explain), ("why", step.why)):
            visit.text(key, text)
        for condition in (*step.must, *step.never):
            visit.text("must", condition.say)
        for option in step.options:
            visit.text("options", option.why)
        visit.pictures()
        return
    visit.ask()
    visit.option_texts()
    for hint in step.hints:
        visit.text("hints", hint)


def _wrong_keys(visit: Visit) -> Iterator[Found]:
    fact, step = visit.fact, visit.step
    chosen = fact.value if step.kind == "choice" and fact is not None else None
    if isinstance(chosen, tuple) and (not chosen or (len(chosen) > 1 and not step.several)):
        yield "M07", step.at("options"), f"{len(chosen)} options of {step.id} are right"
    if fact is None or not fact.wrong:
        return
    keys = [key for key, _ in step.wrong]
    for (value, _), key in zip(fact.wrong, keys, strict=True):
        if fact.agrees(value):
            yield (
                "P06",
                step.at("wrong"),
                f"the wrong answer {key} is {said_as(value)}, which is right",
            )
    values = [said_as(value) for value, _ in fact.wrong]
    twice = next((index for index, value in enumerate(values) if value in values[:index]), None)
    if twice is not None:
        first = values.index(values[twice])
        yield (
            "W05",
            step.at("wrong"),
            f"two wrong answers are {values[twice]}: {keys[first]} and {keys[twice]}",
        )


def _solved(visit: Visit, lines: list[str]) -> Iterator[Found]:
    step = visit.step
    complaint = work(visit, lines)
    if complaint is not None:
        yield "P03", step.at("solution"), f"the solution of {step.id} fails: {complaint.what}"
    elif not check(visit) and step.kind != "explore":
        yield (
            "P03",
            step.at("solution"),
            f"the solution of {step.id} does not pass: {why_not(visit)}",
        )
    elif step.kind == "explore" and step.solution and len(visit.goals) < len(step.goals):
        yield (
            "P03",
            step.at("solution"),
            f"the solution of {step.id} reaches {len(visit.goals)} of {len(step.goals)} goals",
        )


def _not_solved(world: World, index: int, lines: Sequence[str], number: int) -> Iterator[Found]:
    step = world.lesson.steps[index]
    visit = open_visit(world, index)
    complaint = work(visit, [visit.text("not_solution", line) for line in lines])
    if complaint is None and check(visit):
        which = f" number {number + 1}" if len(step.not_solution) > 1 else ""
        yield "P04", step.at("not_solution"), f"not_solution{which} of {step.id} passes"


def why_not(visit: Visit) -> str:
    """Why the step is not done, in a few words."""
    if visit.state != OPEN:
        return f"said {visit.said}, was {visit.was}"
    spoiled = [f"#{event}: {text}" for event, text in visit.spoiled()]
    if visit.step.kind == "bug":
        return (
            "; ".join(bugs.unrepaired(visit))
            if "repair" in visit.step.find
            else f"found {sorted(visit.found)}"
        )
    return (
        "; ".join([*visit.failures(), *spoiled])
        or f"no command of {', '.join(visit.step.commands)} was run"
    )


def _signature(visit: Visit, lines: list[str]) -> str:
    """What differs between two students who solve the step."""
    fact = visit.fact
    if fact is not None and fact.value is not None:
        return (
            said_as(fact.value)
            if isinstance(fact.value, TaskValue) or not isinstance(fact.value, tuple)
            else str(fact.value)
        )
    return "; ".join(lines) + visit.ask()


def _all_same(lesson: Lesson, answers: dict[str, set[str]], count: int) -> Iterator[Problem]:
    """Variables that change nothing, where there are at least three seeds to judge by."""
    graded = [step for step in lesson.steps if step.kind not in UNGRADED and step.points]
    if not lesson.vars or count < 3 or not graded:
        return
    if all(len(answers[step.id]) < 2 for step in graded):
        what = "all students have the same answers, for all the variables"
        yield Problem("P05", str(lesson.path), lesson.lines.get("vars", 1), what)
        return
    for step in graded:
        if len(answers[step.id]) == 1 and step.kind in ("predict", "answer"):
            yield _same(lesson, step, next(iter(answers[step.id])))


def _same(lesson: Lesson, step: Step, answer: str) -> Problem:
    text = f"the answer of {step.id} is {answer} for every student"
    return Problem(
        "W04",
        str(lesson.path),
        step.at("expect"),
        text,
        "ask for a neighbour quantity that differs",
    )
