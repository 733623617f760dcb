"""The machine at the start of a step, built from zero: the same for everybody with the same seed.

    start = "carry"    lesson.setup; then of each earlier step: setup, run blocks, reveal, solution
    start = "setup"    lesson.setup
    start = "boot"     a machine that has just booted

    ... then in all three cases, for this step: plant, setup, run and show blocks, let

Nothing that a student did is part of it, so a step can be judged alone, after a restart, and by the
grader.  What is built is bounded: in commands, in events, and (by whoever asks, see `bounds`) in
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from kemu.commands.run import run
from kemu.errors import KemuError, UsageError
from kemu.experiment.session import Session
from kemu.language.expr import Value
from kemu.language.result import Result
from kemu.lessons.format.lesson import Block, Lesson, Machine, Step
from kemu.lessons.format.names import Values, drawn, evaluate
from kemu.lessons.format.texts import rendered, rendered_prose
from kemu.lessons.taking.hosts import HostGuard

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_EVENTS = 500_000
"""Events of one machine of a lesson."""


class WorldError(KemuError):
    """A lesson fails while it is performed: `code` of `codes.CODES`, `line` in its file, `text`,
    `hint`."""

    def __init__(self, code: str, line: int, text: str, hint: str = "") -> None:
        super().__init__(f"line {line}: {text}")
        self.code = code
        self.line = line
        self.text = text
        self.hint = hint


@attrs.frozen
class Shown:
    """A piece for the student: `kind` says how to draw `text`; of a command that was run, its
    `result` is with it."""

    kind: str
    text: str = ""
    result: Result | None = None


class World:
    """The lesson for one seed: its variables and its machines."""

    def __init__(self, lesson: Lesson, seed: str) -> None:
        self.lesson = lesson
        self.seed = seed
        self.guard = HostGuard(lesson)
        self.quiet = False
        """Nobody reads: prose and what only shows is left out."""
        try:
            self.values: dict[str, Value] = drawn(lesson.vars, seed)
        except UsageError as error:
            raise WorldError(
                "M01",
                lesson.lines.get("vars", 1),
                f"vars: {error.what} in {error.text}",
                error.hint,
            ) from error

    def before(self, index: int) -> Session:
        """The machine from which step `index` starts, its own plant and setup not yet done.  Raises
        WorldError."""
        return self._carried(self.lesson.steps[:index], self.lesson.steps[index])

    def after_all(self) -> Session:
        """The machine that the last step leaves.  Raises WorldError."""
        return self._carried(self.lesson.steps, None)

    def _carried(self, earlier: Sequence[Step], step: Step | None) -> Session:
        """The machine that the steps before `step` leave for it: back to the newest that starts
        from a machine of its own."""
        chain: list[Step] = []
        if step is None or step.start == "carry":
            for before in reversed(earlier):
                if before.carried:
                    chain.insert(0, before)
                    if before.start != "carry":
                        break
        session = self._booted(chain[0] if chain else step)
        for before in chain:
            values = self.enter(session, before)[1]
            self.finish(session, before, values)
        return session

    def _booted(self, step: Step | None) -> Session:
        session = boot((step.machine if step else None) or self.lesson.machine)
        if step is None or step.start != "boot":
            self.perform(
                session, self.lesson.setup, self.values, self.lesson.lines.get("setup", 1), "setup"
            )
        return session

    def enter(self, session: Session, step: Step) -> tuple[list[Shown], dict[str, Value]]:
        """Do what happens when the step is entered: what the student reads, and the variables with
        those of the step."""
        values = dict(self.values)
        if step.plant:
            self._plant(session, step, values)
        self.perform(session, step.setup, values, step.at("setup"), "setup")
        shown = self.lead(session, step.lead, values)
        for name, text in step.let:
            values[name] = self.evaluated(session, text, values, step.at("let"), f"let {name}")
        return shown, values

    def _plant(self, session: Session, step: Step, values: Values) -> None:
        name = self.rendered(session, step.plant, values, step.at("plant"), "plant")
        self.perform(session, (f"mutant plant {name}",), values, step.at("plant"), "plant")

    def lead(self, session: Session, blocks: Iterable[Block], values: Values) -> list[Shown]:
        """Prose with its numbers, and blocks with what they print."""
        shown: list[Shown] = []
        for block in blocks:
            if self.quiet and block.kind != "run":
                continue
            if block.kind == "prose":
                shown.append(Shown("prose", self.prose(session, block, values)))
                continue
            for line, text in block.commands():
                shown += self.perform(session, (text,), values, line, block.kind)
        return shown

    def prose(self, session: Session, block: Block, values: Values) -> str:
        """The prose with the values of its expressions."""
        try:
            return rendered_prose(
                block.text.strip("\n"), lambda text: evaluate(session, text, values)
            )
        except UsageError as error:
            line = block.line + (
                block.text[: block.text.find(error.text)].count("\n") if error.text else 0
            )
            raise WorldError("P07", line, f"{error.what} in {error.text}", error.hint) from error

    def finish(self, session: Session, step: Step, values: Values) -> None:
        """Do to the machine what the step leaves to the next when it is carried on."""
        self.perform(session, step.reveal, values, step.at("reveal"), "reveal")
        name, commands = step.leaves()
        self.perform(session, commands, values, step.at(name), name)

    def future(self, step: Step) -> tuple[Session, dict[str, Value]]:
        """A machine of its own on which the step has been entered and revealed, with the
        variables."""
        session = self.before(self.lesson.steps.index(step))
        values = self.enter(session, step)[1]
        self.perform(session, step.reveal, values, step.at("reveal"), "reveal")
        return session, values

    def perform(
        self, session: Session, commands: Sequence[str], values: Values, line: int, what: str
    ) -> list[Shown]:
        """Run commands of the lesson; each with its result.  Raises WorldError at the first that
        cannot be run."""
        shown: list[Shown] = []
        for text in commands:
            made = self.rendered(session, text, values, line, what)
            results = run_alone(session, made, self.guard)
            failed = next((result.error for result in results if result.error), None)
            if failed is not None:
                raise WorldError("P01", line, f"{what}: '{made}' fails: {failed.what}", failed.hint)
            check_size(session, line)
            shown += [Shown("command", result.command, result) for result in results]
        return shown

    def rendered(self, session: Session, text: str, values: Values, line: int, what: str) -> str:
        """A text of the lesson with its values.  Raises WorldError."""
        try:
            return rendered(text, lambda expression: evaluate(session, expression, values))
        except UsageError as error:
            raise WorldError(
                "P07", line, f"{what}: {error.what} in {error.text or text}", error.hint
            ) from error

    def evaluated(self, session: Session, text: str, values: Values, line: int, what: str) -> Value:
        """The value of an expression of the lesson.  Raises WorldError."""
        try:
            return evaluate(session, text, values)
        except UsageError as error:
            raise WorldError("P01", line, f"{what}: {error.what} in {text}", error.hint) from error


def boot(machine: Machine) -> Session:
    """A machine that has just booted."""
    return Session(
        mem=machine.mem, geometry=machine.geometry, cpus=machine.cpus, lru_batch=machine.lru_batch
    )


def run_alone(session: Session, text: str, guard: HostGuard) -> list[Result]:
    """Run a line of the lesson itself: no student's guide looks on, nothing stops it, and it starts
    at the newest event."""
    with unguided(session, guard):
        if session.past:
            session.goto(session.end)
        return run(session, text)


@contextmanager
def unguided(session: Session, guard: HostGuard | None = None) -> Iterator[None]:
    """A block in which commands are the lesson's, not the student's."""
    with session.desk.guided(guard), session.debugger.without_stops():
        yield


def check_size(session: Session, line: int) -> None:
    """Raise WorldError where the machine has grown beyond what a lesson may make."""
    if session.end > MOST_EVENTS:
        what = f"{session.end} events are too many for a lesson (at most {MOST_EVENTS})"
        raise WorldError("P08", line, what, "use fewer pages")
