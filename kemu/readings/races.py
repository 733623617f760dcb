"""Races: the built-in ones, what an exploration found, a schedule that is replayed."""

from __future__ import annotations

from kemu.readings.base import Reading


class RaceCase(Reading):
    """A built-in race. ``engine``: "litmus" (a small program, all schedules) or "kernel" (kernel
    functions, up to a bound)."""

    name: str
    engine: str
    summary: str


class RaceCases(Reading):
    """All built-in races."""

    cases: tuple[RaceCase, ...]


class RaceStep(Reading):
    """One step of a schedule. ``what``: what the CPU does in it; ``value``: memory after it, where
    the engine knows it in a few words; ``first``, ``last``: the events (first, last] that it
    causes, if it was played; ``note``: what goes wrong because of it, or ""."""

    number: int
    cpu: int
    what: str
    value: str
    first: int
    last: int
    note: str


class RaceOutcome(Reading):
    """An outcome: how many ``schedules`` lead to it, the first of them as text, and for a bad one
    what is wrong. ``steps``: the first schedule step by step, where the engine knows them without
    playing it."""

    name: str
    bad: bool
    schedules: int
    first: str
    detail: tuple[str, ...]
    steps: tuple[RaceStep, ...]


class RaceReading(Reading):
    """What an exploration found. ``race``: the words after `race`; ``cpus``: what each
    CPU does; ``bound``: the most preemptions of a schedule, none if all schedules were counted;
    ``steps``: of the longest schedule; ``states``: distinct states visited;
    ``complete``: false if it was given up before all schedules within the bound had run;
    ``enough``: how many runs show every outcome of a litmus program, none if unknown;
    ``warnings``: what refcount_t says in some schedule."""

    race: str
    engine: str
    cpus: tuple[str, ...]
    bound: int | None
    schedules: int
    bad: int
    steps: int
    states: int
    complete: bool
    enough: int | None
    warnings: tuple[str, ...]
    outcomes: tuple[RaceOutcome, ...]


class RaceReplay(Reading):
    """A schedule that was played on the machine. ``done``: how many of its steps have happened at
    the moment that is shown; ``unfinished``: calls are still under way at its end; ``first``,
    ``last``: its events (first, last]."""

    race: str
    engine: str
    schedule: str
    cpus: tuple[str, ...]
    outcome: str
    bad: bool
    unfinished: bool
    detail: tuple[str, ...]
    steps: tuple[RaceStep, ...]
    done: int
    first: int
    last: int
