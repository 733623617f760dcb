"""The few runs that are enough to see every outcome: dynamic partial-order reduction (Flanagan,
Godefroid 2005), with sleep sets.

    CPU 0   load  add  store  use        add and use touch nothing that the other CPU writes: when
    CPU 1   load  add  store  use        they run makes no difference, only the order of loads and
                                         stores does

Two steps of different CPUs are independent if neither writes what the other touches.  Orders that
differ only in independent steps count as one run: a few runs show all outcomes of the 70 schedules
of two plain gets.  Another order is tried only where two dependent steps met that could have met in
the other order.

A sleep set holds the CPUs whose next step has been tried here and commutes with all that has
happened since.
"""

from __future__ import annotations

import attrs

from kemu.races.litmus import Program, State, Step, able, advance, outcome

Clock = tuple[int, ...]
"""For each CPU, the number of its steps that happened before a place."""


def dependent(one: Step, other: Step) -> bool:
    """True if the order of the two steps can matter."""
    return bool(one.writes & (other.reads | other.writes) or other.writes & one.reads)


@attrs.define
class Point:
    """A place in the current run: its state, the CPUs to be tried there, those tried, those asleep,
    and the step that was taken."""

    state: State
    wanted: set[int]
    tried: set[int]
    asleep: set[int]
    cpu: int = -1
    clock: Clock = ()


class Reduction:
    """The search; counts ``runs`` and collects ``outcomes``."""

    def __init__(self, program: Program, most: int) -> None:
        self.program, self.most = program, most
        self.path: list[Point] = []
        self.runs = 0
        self.outcomes: set[str] = set()

    def go(self, state: State, asleep: set[int]) -> None:
        """Explore what must be explored from ``state``; stop after ``most`` runs."""
        if self.runs >= self.most:
            return
        self._note_meetings(state)
        cpus = able(self.program, state)
        if not cpus:
            self.runs += 1
            self.outcomes.add(outcome(self.program, state))
            return
        awake = [cpu for cpu in cpus if cpu not in asleep]
        if not awake:
            return
        point = Point(state, {awake[0]}, set(), asleep)
        self.path.append(point)
        while left := sorted(point.wanted - point.tried - point.asleep):
            self._take(point, left[0])
        self.path.pop()

    def _take(self, point: Point, cpu: int) -> None:
        step = self._next(point.state, cpu)
        point.tried.add(cpu)
        point.cpu, point.clock = cpu, self._clock(cpu, step)
        asleep = {
            other for other in point.asleep if not dependent(self._next(point.state, other), step)
        }
        self.go(advance(self.program, point.state, cpu), asleep)
        point.asleep = point.asleep | {cpu}

    def _next(self, state: State, cpu: int) -> Step:
        return self.program.cpus[cpu][state.places[cpu]]

    def _note_meetings(self, state: State) -> None:
        """Where the next step of a CPU met a dependent one that did not have to come first, try it
        in place of that one too."""
        for cpu, steps in enumerate(self.program.cpus):
            if state.places[cpu] == len(steps):
                continue
            met = self._last_meeting(cpu, steps[state.places[cpu]])
            if met is not None:
                cpus = able(self.program, met.state)
                met.wanted |= {cpu} if cpu in cpus else set(cpus)

    def _last_meeting(self, cpu: int, step: Step) -> Point | None:
        seen = self._seen(cpu)
        for point in reversed(self.path):
            if point.cpu != cpu and dependent(self._next(point.state, point.cpu), step):
                return None if seen[point.cpu] > point.state.places[point.cpu] else point
        return None

    def _seen(self, cpu: int) -> Clock:
        """What happens before the CPU's next step."""
        for point in reversed(self.path):
            if point.cpu == cpu:
                return point.clock
        return (0,) * len(self.program.cpus)

    def _clock(self, cpu: int, step: Step) -> Clock:
        """What happens before the end of this step: the CPU's own past, and that of every step on
        which it depends."""
        clock = list(self._seen_before(cpu))
        for point in self.path[:-1]:
            if dependent(self._next(point.state, point.cpu), step):
                clock = [max(pair) for pair in zip(clock, point.clock, strict=True)]
        clock[cpu] = self.path[-1].state.places[cpu] + 1
        return tuple(clock)

    def _seen_before(self, cpu: int) -> Clock:
        for point in reversed(self.path[:-1]):
            if point.cpu == cpu:
                return point.clock
        return (0,) * len(self.program.cpus)


MOST_RUNS = 1000
"""The number of runs after which the search is given up."""


def reduce(program: Program, most: int = MOST_RUNS) -> Reduction:
    """The few runs that show every outcome; given up after ``most``."""
    search = Reduction(program, most)
    search.go(program.first, set())
    return search
