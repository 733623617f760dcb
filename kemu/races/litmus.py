"""Small programs on two or three CPUs, every schedule of them counted exactly.

    CPU 0   load  add  store  use          a schedule is the order of the CPUs' steps: 01100110
    CPU 1   load  add  store  use          8! / (4! 4!) = 70 schedules, in 41 different states

A program is a list of steps for each CPU; a step is a pure function from state to state.  Schedules
that have done the same steps in another order are often in the same state, and the rest of a run
depends on the state alone.  So the states form a graph without cycles, each is visited once, and
the number of schedules through it is the sum over its successors: three CPUs with six steps each
have 17,153,136 schedules and some hundred states.

A step may read nothing but the state.  Memory is sequentially consistent: all CPUs see each step at
once (x86 delays stores, and others are weaker still).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import attrs

from kemu.errors import UsageError


class Shared(NamedTuple):
    """The memory that all CPUs see: the ``refcount`` (C int) in an object, the number of its real
    ``holders``, how often it was ``freed``, its ``lock``, and the warning of refcount_t."""

    refcount: int
    holders: int
    freed: int = 0
    lock: int = 0
    warnings: tuple[str, ...] = ()


class Local(NamedTuple):
    """The registers of one CPU: the ``value`` that it loaded, whether it found ``zero``, and
    whether it must not continue (``stopped``)."""

    value: int = 0
    zero: bool = False
    stopped: bool = False


class Effect(NamedTuple):
    """What a step did; ``verdict`` is what it broke, or empty."""

    shared: Shared
    local: Local
    verdict: str = ""


Act = Callable[[Shared, Local], Effect]


def _always(_shared: Shared) -> bool:
    return True


@attrs.frozen
class Step:
    """One micro-step: its name, what it does, when the CPU can take it (a lock must be free), and
    the shared cells that it reads and writes (for ``reduction``)."""

    text: str
    act: Act
    ready: Callable[[Shared], bool] = _always
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


class State(NamedTuple):
    """The state of a program: memory, the place (number of steps done) and registers of each CPU,
    what went wrong first."""

    shared: Shared
    places: tuple[int, ...]
    locals: tuple[Local, ...]
    verdict: str = ""


@attrs.frozen
class Program:
    """``cpus``: the steps of each CPU; ``judge`` names the outcome of a finished run in which no
    step went wrong."""

    name: str
    cpus: tuple[tuple[Step, ...], ...]
    start: Shared
    judge: Callable[[Shared], str]

    @property
    def first(self) -> State:
        """The state before the first step."""
        return State(self.start, (0,) * len(self.cpus), (Local(),) * len(self.cpus))


GOOD = frozenset({"ok", "saturated"})
"""Outcomes that are not bad: everything is right, or refcount_t has saturated, which only leaks the
object."""


def able(program: Program, state: State) -> list[int]:
    """The CPUs that can take a step."""
    return [
        cpu
        for cpu, (steps, place) in enumerate(zip(program.cpus, state.places, strict=True))
        if place < len(steps) and steps[place].ready(state.shared)
    ]


def advance(program: Program, state: State, cpu: int) -> State:
    """The state after the next step of ``cpu``, which must be able to take it."""
    place = state.places[cpu]
    effect = program.cpus[cpu][place].act(state.shared, state.locals[cpu])
    places = (*state.places[:cpu], place + 1, *state.places[cpu + 1 :])
    registers = effect.local if place + 1 < len(program.cpus[cpu]) else Local()
    local = (*state.locals[:cpu], registers, *state.locals[cpu + 1 :])
    return State(effect.shared, places, local, state.verdict or effect.verdict)


def outcome(program: Program, state: State) -> str:
    """The outcome of a run that ended in ``state``."""
    if state.verdict:
        return state.verdict
    if any(place < len(steps) for place, steps in zip(state.places, program.cpus, strict=True)):
        return "deadlock"
    return program.judge(state.shared)


class Tally(NamedTuple):
    """The number of schedules with an outcome, and the first of them (CPUs tried in order), cut
    where it goes wrong."""

    schedules: int
    first: str


@attrs.frozen
class Exploration:
    """All schedules of a program: outcome -> tally, and the number of different states."""

    outcomes: dict[str, Tally]
    states: int

    @property
    def schedules(self) -> int:
        """The number of schedules."""
        return sum(tally.schedules for tally in self.outcomes.values())

    @property
    def bad(self) -> int:
        """The number of schedules that end badly."""
        return sum(tally.schedules for name, tally in self.outcomes.items() if name not in GOOD)


def explore(program: Program) -> Exploration:
    """Count the schedules of every outcome."""
    known: dict[State, dict[str, Tally]] = {}
    found = _count(program, program.first, known)
    return Exploration(found, len(known))


def _count(
    program: Program, state: State, known: dict[State, dict[str, Tally]]
) -> dict[str, Tally]:
    """The outcomes of all schedules from ``state``."""
    seen = known.get(state)
    if seen is not None:
        return seen
    found: dict[str, Tally] = {}
    cpus = able(program, state)
    if not cpus:
        found[outcome(program, state)] = Tally(1, "")
    for cpu in cpus:
        for name, tally in _count(program, advance(program, state, cpu), known).items():
            first = "" if state.verdict else f"{cpu}{tally.first}"
            had = found.get(name, Tally(0, first))
            found[name] = Tally(had.schedules + tally.schedules, had.first)
    known[state] = found
    return found


def play(program: Program, schedule: str) -> list[State]:
    """The states of a schedule, from the start to its end; after its last digit the CPU that ran
    last continues, then the others.  ``UsageError`` for a digit that no CPU can follow."""
    states = [program.first]
    for at, digit in enumerate(schedule):
        if digit not in "01234567"[: len(program.cpus)]:
            raise UsageError(
                f"schedule: '{digit}' is not a CPU (step {at + 1})",
                hint=f"one digit per step, 0 to {len(program.cpus) - 1}",
                about="schedule",
            )
        cpu = int(digit)
        if cpu not in able(program, states[-1]):
            done = states[-1].places[cpu] == len(program.cpus[cpu])
            why = f"has done its {len(program.cpus[cpu])} steps" if done else "waits for the lock"
            before = schedule[:at] or "none"
            raise UsageError(
                f"schedule: CPU {cpu} {why} at step {at + 1}",
                hint=f"the steps before are {before}",
                about="schedule",
            )
        states.append(advance(program, states[-1], cpu))
    last = int(schedule[-1]) if schedule else 0
    while cpus := able(program, states[-1]):
        last = last if last in cpus else cpus[0]
        states.append(advance(program, states[-1], last))
    return states


def order(states: list[State]) -> list[int]:
    """Which CPU took each step of a run."""
    return [
        next(cpu for cpu, place in enumerate(after.places) if place != before.places[cpu])
        for before, after in pairwise(states)
    ]
