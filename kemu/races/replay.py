"""One schedule of a race, played on a kernel's own journal, to be stepped through afterwards.

    step   CPU  before it                            events
       1     0  the access                           #61 .. #62
       2     1  lock ptl in handle_pte_fault         #63 .. #63

While several CPUs are inside kernel functions at once, the marks of the journal would cross.  So at
each switch the functions of the CPU that stops are marked as left and those of the next CPU as
entered again, under a frame that names the CPU.

A schedule that ends where an invariant does not hold stops there, and the calls under way stay
under way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import FrameType

import attrs

from kemu.errors import UsageError
from kemu.invariants import examine, first_broken
from kemu.machine import atomic
from kemu.races import baton, fibres, nonatomic
from kemu.races.baton import Ending, Observer
from kemu.races.explorer import Arena, Race, Result, finished, prepared
from kemu.trace import steps
from kemu.trace.frames import FUNCTIONS, hardware
from kemu.trace.journal import Journal
from kemu.trace.tape import mark

MOST_CPUS = 8
INNER = frozenset(module.__file__ for module in (steps, atomic, nonatomic, baton, fibres)) | {
    __file__
}
"""Files whose functions do not tell what a CPU is about to do."""


def _cpu_frame(number: int) -> int:
    """The function number of a frame that names the CPU."""

    def runs() -> None:
        """This CPU runs, the others wait before a step."""

    runs.__name__ = f"CPU {number}"
    hardware(runs)
    return FUNCTIONS[-1].fid


CPU_FRAMES = tuple(_cpu_frame(number) for number in range(MOST_CPUS))
"""A frame for each CPU."""


class Given:
    """A chooser that follows a given schedule.  At its end ``halt`` decides whether to stop there;
    if not, the CPU that ran last continues, then the others."""

    def __init__(self, choices: list[int], halt: Callable[[], bool]) -> None:
        self.choices, self.halt = choices, halt
        self.taken: list[int] = []
        self.refused = ""

    def choose(self, able: list[int], last: int) -> int:
        """The CPU that runs next; -1 to stop here."""
        at = len(self.taken)
        if at == len(self.choices) and at and self.halt():
            return -1
        chosen = self.choices[at] if at < len(self.choices) else last if last in able else able[0]
        if chosen not in able:
            self.refused = (
                f"schedule: CPU {chosen} cannot take step {at + 1}: it is done or waits for a lock"
            )
            return -1
        self.taken.append(chosen)
        return chosen


class Marker(Observer):
    """Keeps the marks of a journal nested while CPUs take turns, and records what each CPU is about
    to do."""

    def __init__(self, journal: Journal, cpus: int) -> None:
        self.journal = journal
        self.open: list[list[int]] = [[] for _ in range(cpus)]
        self.texts = [""] * cpus
        self.active = -1
        self.read = len(journal.marks)

    def switched(self, number: int) -> None:
        """Leave the functions of the CPU that stops, enter those of the next one."""
        if number == self.active:
            return
        if self.active >= 0:
            self._learn(self.active)
            self._mark(
                [~fid for fid in (*reversed(self.open[self.active]), CPU_FRAMES[self.active])]
            )
        if number >= 0:
            self._mark([CPU_FRAMES[number], *self.open[number]])
        self.read = len(self.journal.marks)
        self.active = number

    def _learn(self, cpu: int) -> None:
        """The functions that the CPU has entered and left since it got the baton."""
        for fid in self.journal.marks[self.read + 1 :: 2]:
            if fid >= 0:
                self.open[cpu].append(fid)
            elif self.open[cpu]:
                self.open[cpu].pop()

    def _mark(self, fids: list[int]) -> None:
        for fid in fids:
            mark(fid)

    def forget_unwinding(self) -> None:
        """Drop the marks of functions that were left because the run was over."""
        del self.journal.marks[self.read :]

    def standing(self, number: int, lock: str) -> None:
        """Record the step that the CPU is about to take."""
        self.texts[number] = words_for_step(inspect.currentframe(), lock)


def words_for_step(frame: FrameType | None, lock: str) -> str:
    """What a CPU is about to do, from the call stack of its ``step()``: ``folio_get in
    do_wp_page``."""
    names = {function.name for function in FUNCTIONS}
    what = f"lock {lock}" if lock else ""
    half = ""
    while frame is not None:
        code = frame.f_code
        inner = code.co_filename in INNER
        if code.co_filename == nonatomic.__file__:
            half = "store: " if "value" in frame.f_locals else "load: "
        if code.co_name == "access" and not what:
            return "the access"
        if code.co_name in names:
            return (
                f"{half}{what} in {code.co_name}" if what and what != code.co_name else code.co_name
            )
        if not inner and (not what or not lock) and not code.co_name.startswith("_"):
            what = code.co_name
        frame = frame.f_back
    return what or "a step"


@attrs.frozen
class PlayedStep:
    """A step of a run that was played: the CPU, what it did, and its events (first, last]."""

    cpu: int
    text: str
    first: int
    last: int


@attrs.frozen
class Played:
    """A run that was played: its steps, how it ended, and whether calls are still under way at its
    end (``unfinished``)."""

    steps: tuple[PlayedStep, ...]
    result: Result
    unfinished: bool


def play(race: Race, choices: list[int]) -> Played:
    """Play a schedule on the kernel's journal, which keeps the events.  ``UsageError`` if the race
    does not have it."""
    with prepared(race) as arena:
        kernel = race.kernel
        kernel.journal.catch_up()
        begin = len(kernel.journal)
        marker = Marker(kernel.journal, len(race.racers))
        given = Given(choices, lambda: bool(examine(race.words.task, quiescent=False)))
        texts: list[str] = []

        def choose(able: list[int], last: int) -> int:
            chosen = given.choose(able, last)
            if chosen >= 0:
                texts.append(marker.texts[chosen])
            return chosen

        ending, results, run = arena.run(choose, marker)
        marker.forget_unwinding()
        if given.refused:
            raise UsageError(given.refused, hint="race lists the schedules", about="schedule")
        kernel.journal.catch_up()
        told = partial(arena.told, results, run)
        result = _judge(arena, begin, ending, tuple(given.taken), told)
        return Played(
            _steps(arena, given.taken, texts, len(kernel.journal)), result, ending.why != "done"
        )


def _judge(
    arena: Arena, begin: int, ending: Ending, taken: tuple[int, ...], told: Callable[[], str]
) -> Result:
    """The outcome of the run: the first invariant that did not hold, or how it ended, or what each
    CPU saw."""
    kernel = arena.race.kernel
    done = ending.why == "done"
    if done:
        arena.settle()
        kernel.journal.catch_up()
    end = len(kernel.journal)
    broken = first_broken(kernel, begin, end, {end} if done else (), arena.race.words.task)
    if broken is not None:
        return Result(broken.violations[0].invariant, True, taken, broken.event, broken.violations)
    return finished(arena, ending, taken, told)


def _steps(arena: Arena, taken: list[int], texts: list[str], end: int) -> tuple[PlayedStep, ...]:
    """The steps with their events."""
    edges = [*arena.marks[: len(taken)], end]
    return tuple(
        PlayedStep(cpu, text, first, last)
        for cpu, text, first, last in zip(taken, texts, edges[:-1], edges[1:], strict=True)
    )
