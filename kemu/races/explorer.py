"""Every schedule of a race between real kernel paths, up to a bound on preemptions.

    0000000000001111111111        no preemption: CPU 1 begins when CPU 0 is done
    0000|11111111110000000        one: CPU 0 is stopped before its fifth step
    0000|111|00000000|1111        more: nearly all known races need at most two
                                  (Musuvathi, Qadeer 2007)

Each schedule is one run from the same state; afterwards its journal is undone.  Choices are
explored depth first: a run follows the choices of the last one up to the place where it takes
another.  A switch away from a CPU that waits or is done is free; taking the baton from one that
could continue is a preemption.

The invariants are checked along every event of every run (``checking.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import CodeType, FunctionType

import attrs

from kemu.errors import UsageError
from kemu.interrupts import check, deferred
from kemu.invariants import Violation, examine
from kemu.kernel.init.boot import Kernel
from kemu.races import outcomes, schedule
from kemu.races.baton import Choose, Ending, Observer, Run
from kemu.races.checking import Checker
from kemu.races.fibres import fibres
from kemu.races.racers import Racer, take_places
from kemu.trace.journal import SLOTS, Journal
from kemu.userland.script import Script

MOST_SCHEDULES = 50_000
"""The most runs of one exploration; the report says if schedules remain unexplored."""

DEFAULT_BOUND, MOST_BOUND = 2, 4


@attrs.frozen
class Race:
    """A race: the kernel, the racers, the bound on preemptions, and the locks that a CPU does not
    take. ``bodies``: kernel functions that run other code for the race."""

    kernel: Kernel
    racers: tuple[Racer, ...]
    words: outcomes.Words
    bound: int = DEFAULT_BOUND
    removed: frozenset[tuple[str, int]] = frozenset()
    bodies: Mapping[FunctionType, CodeType] = attrs.field(factory=dict)


@attrs.frozen
class Result:
    """How one run ended: its ``name`` (what each CPU saw, or what went wrong), whether that is bad,
    its schedule, the number of the first event after which an invariant did not hold (0: none), and
    the violations or the kernel's message."""

    name: str
    bad: bool
    choices: tuple[int, ...]
    event: int = 0
    violations: tuple[Violation, ...] = ()
    text: str = ""


@attrs.define
class Tally:
    """The number of schedules with an outcome, and the first of them."""

    schedules: int
    first: Result


@attrs.frozen
class Exploration:
    """All runs: outcome -> tally; the steps of the longest run, the states examined, and whether
    all schedules within the bound were run."""

    outcomes: dict[str, Tally]
    steps: int
    states: int
    complete: bool

    @property
    def schedules(self) -> int:
        """The number of schedules that were run."""
        return sum(tally.schedules for tally in self.outcomes.values())

    @property
    def bad(self) -> int:
        """The number of schedules that end badly."""
        return sum(tally.schedules for tally in self.outcomes.values() if tally.first.bad)


# ---------------------------------------------------------------- choices


@attrs.define
class Decision:
    """One choice of a run: the CPU chosen, the CPUs still to be tried here, and the preemptions
    before it."""

    chosen: int
    untried: list[int]
    spent: int
    preempted: int
    """The CPU that ran last if it could have continued, else -1."""


class Search:
    """Depth-first search over the choices.  As a chooser it follows ``path`` and extends it."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.path: list[Decision] = []
        self.at = 0

    def choose(self, able: list[int], last: int) -> int:
        """The CPU that runs next in this run."""
        if self.at == len(self.path):
            self.path.append(self._decision(able, last))
        self.at += 1
        return self.path[self.at - 1].chosen

    def _decision(self, able: list[int], last: int) -> Decision:
        spent = self._spent()
        chosen = last if last in able else able[0]
        others = [cpu for cpu in able if cpu != chosen]
        if last in able and spent >= self.bound:
            others = []
        return Decision(chosen, others, spent, last if last in able else -1)

    def _spent(self) -> int:
        """Preemptions so far."""
        if not self.path:
            return 0
        before = self.path[-1]
        return before.spent + (before.preempted not in (-1, before.chosen))

    def next_run(self) -> bool:
        """Prepare the next run; False if there is none."""
        while self.path and not self.path[-1].untried:
            self.path.pop()
        if self.path:
            self.path[-1].chosen = self.path[-1].untried.pop(0)
        self.at = 0
        return bool(self.path)

    @property
    def choices(self) -> tuple[int, ...]:
        """The choices of the run that has just ended."""
        return tuple(decision.chosen for decision in self.path[: self.at])


# ---------------------------------------------------------------- runs


class Arena:
    """The runs of one race, one after the other, from the same state."""

    def __init__(self, race: Race) -> None:
        self.race = race
        self.crew = fibres(len(race.racers))
        self.before = outcomes.Before(race.racers)
        self.marks: list[int] = []
        self.woken: dict[int, int] = {}

    def run(
        self, choose: Choose, observer: Observer | None = None
    ) -> tuple[Ending, list[int], Run]:
        """One run on the kernel's present journal."""
        results = [0] * len(self.race.racers)
        self.marks, self.woken = [], {}

        def noting(able: list[int], last: int) -> int:
            self.marks.append(len(self.race.kernel.journal.log) // SLOTS)
            return choose(able, last)

        bodies = [
            partial(_perform, racer, results, number)
            for number, racer in enumerate(self.race.racers)
        ]
        run = Run(self.crew, bodies, noting, self.race.removed, observer)
        return run.perform(), results, run

    def steps_until(self, event: int) -> int:
        """The number of choices of the last run that had been made at the event."""
        return sum(mark < event for mark in self.marks)

    def settle(self) -> None:
        """After a complete run: continue the tasks that were woken in a call, and keep their
        results."""
        self.woken = {done.pid: done.value for done in Script(self.race.kernel).settle()}

    def told(self, results: list[int], run: Run) -> str:
        """The outcome of a complete run; a call that slept has the result that it returned when it
        was woken."""
        delivered = [place.delivered for place in run.places]
        pairs = zip(self.race.racers, results, strict=True)
        given = [self.woken.get(racer.task.pid, result) for racer, result in pairs]
        return outcomes.tell(self.race.racers, self.before, given, delivered, self.race.words)


def _perform(racer: Racer, results: list[int], number: int) -> None:
    results[number] = racer.perform()


@contextmanager
def prepared(race: Race) -> Iterator[Arena]:
    """Within the block each racer is on its CPU, the race's functions are in force, and runs may be
    made.  ``UsageError`` if the kernel is broken before the race begins."""
    kernel = race.kernel
    bodies = kernel.bodies
    kernel.bodies = {**bodies, **race.bodies}
    try:
        kernel.activate()
        take_places(race.racers)
        found = examine(race.words.task, quiescent=True)
        if found:
            raise UsageError(
                f"race: the kernel is broken before the race begins: {found[0]}",
                hint="verify every-event names the event",
            )
        arena = Arena(race)
        try:
            yield arena
        finally:
            arena.crew.end()
    finally:
        kernel.bodies = bodies
        kernel.activate()


def explore(race: Race) -> Exploration:
    """Run every schedule within the bound.  All runs are undone, but the tasks stay on their
    CPUs."""
    with prepared(race) as arena:
        checker = Checker(race.words.task)
        search = Search(race.bound)
        found: dict[str, Tally] = {}
        steps = runs = 0
        more = True
        with deferred():
            while more and runs < MOST_SCHEDULES:
                result = one_run(arena, checker, search)
                found.setdefault(result.name, Tally(0, result)).schedules += 1
                steps, runs = max(steps, search.at), runs + 1
                more = search.next_run()
                check(f"race: stopped after {runs} schedules; all of them are undone".__str__)
        return Exploration(found, steps, checker.states, not more)


def one_run(arena: Arena, checker: Checker, search: Search) -> Result:
    """Run one schedule on its own journal, judge it and undo it."""
    kernel = arena.race.kernel
    kept, journal = kernel.journal, Journal()
    kernel.journal = journal
    kernel.activate()
    try:
        ending, results, run = arena.run(search.choose)
        return judge(arena, checker, ending, search.choices, partial(arena.told, results, run))
    finally:
        journal.catch_up()
        journal.seek(0)
        kernel.journal = kept
        kernel.activate()


def judge(
    arena: Arena,
    checker: Checker,
    ending: Ending,
    choices: tuple[int, ...],
    told: Callable[[], str],
) -> Result:
    """The result of a run.  It is named after the first thing that went wrong: an invariant along
    the run, or how it ended."""
    journal = arena.race.kernel.journal
    done = ending.why == "done"
    if done:
        arena.settle()
    broken = checker.along(journal, quiet=done)
    if broken is not None:
        step = arena.steps_until(broken.event)
        return Result(
            broken.violations[0].invariant, True, choices[:step], broken.event, broken.violations
        )
    return finished(arena, ending, choices, told)


def finished(
    arena: Arena, ending: Ending, choices: tuple[int, ...], told: Callable[[], str]
) -> Result:
    """The result of a run in which every condition held: a kernel that stopped, a lost store, or
    what each CPU saw."""
    if ending.why != "done":
        return Result(NAMES[ending.why], True, choices, text=ending.text)
    lost = outcomes.lost_write(arena.race.racers, arena.before)
    if lost:
        return Result("lost write", True, choices, text=lost)
    return Result(told(), False, choices)


NAMES = {
    "deadlock": "deadlock",
    "bug": "the kernel stops",
    "oops": "the kernel crashes",
    "stopped": "stopped",
}
"""The result of an incomplete run."""


def text_of(choices: tuple[int, ...]) -> str:
    """A schedule as text."""
    return schedule.write(list(choices))
