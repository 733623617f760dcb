"""Explore the race that the command `race` was given.

race gets --non-atomic          a litmus program        all schedules, counted
race cow-cow --bound 1          a built-in kernel case  on a machine of its own
race "write a 1" "write b 2"    commands                from this moment, beside the journal
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

import attrs

from kemu.abi.words import errno_name, signal_name
from kemu.errors import UsageError, blaming
from kemu.language.tokens import split
from kemu.races import litmus, nonatomic, stage
from kemu.races.cases import KERNEL_CASES, KernelCase
from kemu.races.explorer import (
    DEFAULT_BOUND,
    MOST_BOUND,
    Exploration,
    Race,
    Result,
    explore,
    text_of,
)
from kemu.races.mutants import bodies, find
from kemu.races.programs import PLAIN, REFCOUNT
from kemu.races.racers import Capture, Racer, capture
from kemu.races.reduction import MOST_RUNS, reduce
from kemu.racing.knobs import KNOBS, LITMUS, Options
from kemu.racing.wanted import KERNEL_LOCKS, Wanted, program_of, removed_locks
from kemu.readings import RaceOutcome, RaceReading, RaceReplay, RaceStep

if TYPE_CHECKING:
    from kemu.experiment.session import Session

CASE_MEMORY = 16 << 20
"""RAM of the machine on which a built-in case runs."""


# ---------------------------------------------------------------- litmus


def litmus_reading(wanted: Wanted) -> RaceReading:
    """All schedules of a litmus program."""
    program = program_of(wanted)
    found, few = litmus.explore(program), reduce(program).runs
    outcomes = tuple(
        _litmus_outcome(program, name, tally)
        for name, tally in sorted(
            found.outcomes.items(), key=lambda item: (item[0] not in litmus.GOOD, item[0])
        )
    )
    return RaceReading(
        race=wanted.text,
        engine="litmus",
        cpus=tuple("  ".join(step.text for step in steps) for steps in program.cpus),
        bound=None,
        schedules=found.schedules,
        bad=found.bad,
        steps=sum(len(steps) for steps in program.cpus),
        states=found.states,
        complete=True,
        enough=few if few < MOST_RUNS else None,
        warnings=_warnings(program, found),
        outcomes=outcomes,
    )


def _litmus_outcome(program: litmus.Program, name: str, tally: litmus.Tally) -> RaceOutcome:
    states = stage.cut(litmus.play(program, tally.first), len(tally.first))
    steps = tuple(
        RaceStep(number, step.cpu, step.text, step.memory, 0, 0, step.verdict)
        for number, step in enumerate(stage.steps_of(program, states), 1)
    )
    return RaceOutcome(name, name not in litmus.GOOD, tally.schedules, tally.first, (), steps)


def _warnings(program: litmus.Program, found: litmus.Exploration) -> tuple[str, ...]:
    """What refcount_t complained about, in the first schedule of each outcome."""
    said = [
        litmus.play(program, tally.first)[-1].shared.warnings for tally in found.outcomes.values()
    ]
    return tuple(
        f"refcount_t: {text}" for text in sorted({text for texts in said for text in texts})
    )


# ---------------------------------------------------------------- kernel


@attrs.frozen
class SessionWords:
    """What a session calls errors, signals and tasks."""

    session: Session

    def errno(self, number: int) -> str:
        """`EFAULT`."""
        return errno_name(number)

    def signal(self, number: int) -> str:
        """`SIGSEGV`."""
        return signal_name(number)

    def task(self, pid: int) -> str:
        """The name of the pid."""
        return self.session.name_of(pid)


def check_options(options: Options) -> None:
    """Refuse options that only litmus programs have."""
    given = options.only_for(LITMUS)
    if given:
        others = [knob.word for knob in KNOBS if knob.kind and knob.only != LITMUS]
        hint = f"kernel races have --non-atomic, {', '.join(others)}"
        raise UsageError(f"race: {given[0]} is for litmus programs", hint=hint)
    if options.kind == REFCOUNT:
        raise UsageError(
            "race: --refcount is for litmus programs",
            hint="the kernel's page and mm counts are atomic_t",
        )
    if options.bound is not None and options.bound > MOST_BOUND:
        raise UsageError(
            f"race: --bound {options.bound} is too large",
            hint=f"at most {MOST_BOUND}; nearly all races show with 2",
            about="bound",
        )


def racers_of(session: Session, commands: tuple[str, ...], first: int) -> tuple[Racer, ...]:
    """The operation of each command, captured instead of performed. The changes of the session are
    thrown away. `first`: which word after `race` the first command is."""
    script, racers = Capture(session.kernel), []
    with session.performed_by(script):
        for index, text in enumerate(commands, first):
            with blaming("what", index):
                racers.append(_racer(session, script, text))
    return tuple(racers)


def _racer(session: Session, script: Capture, text: str) -> Racer:
    from kemu.commands.execute import ready
    from kemu.commands.table import named
    from kemu.language import spec
    from kemu.language.bind import bind

    lines = split(text)
    if len(lines) != 1:
        raise UsageError(
            f"race: '{text[:60]}' is not a single command",
            hint="one system call or access for each CPU",
        )
    made = named(lines[0].tokens[0].text)
    if made.effect != spec.CHANGE or made.host:
        raise UsageError(
            f"race: '{text[:60]}' is not something that a program does",
            hint="such as write, read, munmap, fork, exit",
        )
    script.touch = None
    call = bind(made, lines[0], session)
    return capture(text, lambda: made.function(session, **ready(session, call)))


def race_of(session: Session, commands: tuple[str, ...], options: Options, first: int = 0) -> Race:
    """The race of these commands from the present moment; `first` as in `racers_of`."""
    check_options(options)
    wrong = dict(nonatomic.bodies()) if options.kind == PLAIN else {}
    if options.mutant:
        wrong |= bodies(find(options.mutant))
    removed = removed_locks(options.lock, KERNEL_LOCKS, len(commands))
    bound = DEFAULT_BOUND if options.bound is None else options.bound
    racers = racers_of(session, commands, first)
    return Race(session.kernel, racers, SessionWords(session), bound, removed, wrong)


@contextmanager
def case_session(case: KernelCase, geometry: str) -> Iterator[Session]:
    """A machine of its own with these page tables, set up for the case."""
    from kemu.commands.run import run
    from kemu.experiment.session import Session

    session = Session(mem=CASE_MEMORY, cpus=len(case.commands), geometry=geometry)
    for line in case.setup:
        for result in run(session, line):
            if result.error is not None:
                raise UsageError(f"race {case.name}: {result.error.what}")
    yield session


def explored(session: Session, wanted: Wanted) -> RaceReading:
    """The exploration of the race, which becomes the session's last race."""
    if wanted.is_litmus:
        reading = litmus_reading(wanted)
    elif wanted.case:
        check_options(wanted.options)
        case = KERNEL_CASES[wanted.case]
        with case_session(case, session.kernel.globals["geometry"].name) as own:
            reading = _kernel_reading(own, case.commands, wanted, session.kernel.bodies)
        session.kernel.activate()
    else:
        reading = _kernel_reading(session, wanted.commands, wanted, {})
    session.debugger.race(wanted)
    return reading


def _kernel_reading(
    session: Session,
    commands: tuple[str, ...],
    wanted: Wanted,
    wrong: Mapping[FunctionType, CodeType],
) -> RaceReading:
    """The race of the commands in the session, on a kernel that is also `wrong`."""
    if not session.kernel.recording:
        raise UsageError(
            "race: this machine keeps no journal", hint="it was made without recording"
        )
    if not session.boundary(session.now):
        raise UsageError(
            f"race: #{session.now} is inside a command", hint="goto a moment between two commands"
        )
    with session.beside(session.now):
        race = race_of(session, commands, wanted.options)
        found = explore(attrs.evolve(race, bodies={**wrong, **race.bodies}))
    return RaceReading(
        race=wanted.text,
        engine="kernel",
        cpus=commands,
        bound=race.bound,
        schedules=found.schedules,
        bad=found.bad,
        steps=found.steps,
        states=found.states,
        complete=found.complete,
        enough=None,
        warnings=(),
        outcomes=_kernel_outcomes(found),
    )


def _kernel_outcomes(found: Exploration) -> tuple[RaceOutcome, ...]:
    ordered = sorted(found.outcomes.values(), key=lambda tally: (tally.first.bad, tally.first.name))
    return tuple(
        RaceOutcome(
            t.first.name, t.first.bad, t.schedules, text_of(t.first.choices), detail(t.first), ()
        )
        for t in ordered
    )


def detail(result: Result) -> tuple[str, ...]:
    """The problems found, one line each."""
    return (
        *(str(violation) for violation in result.violations),
        *([result.text] if result.text else []),
    )


# ---------------------------------------------------------------- where a replay is


def where(session: Session) -> RaceReplay | None:
    """The replay that contains the present moment, and how many of its steps have happened."""
    shown = session.debugger.replayed
    if (
        shown is None
        or not shown.first <= session.now <= shown.last
        or not _still_there(session, shown)
    ):
        return None
    return shown.replace(done=sum(step.last <= session.now for step in shown.steps))


def _still_there(session: Session, shown: RaceReplay) -> bool:
    return any(
        (record.first, record.last) == (shown.first, shown.last)
        for record in session.timeline.records
    )
