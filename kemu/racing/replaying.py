"""Play a schedule on the session's own machine, and stop before its first step.

    race replay 1010                         the last race
    race replay get-last-put 1010 [OPTIONS]  a litmus program: each step is one event
    race replay "CMD" "CMD" 0*12,1*30        commands, from this moment
    race replay cow-cow 0*12,1*30            a kernel case: on a new timeline from boot, after its
                                             own commands

The first form is turned into one of the others, so that the command on the timeline does the same
when it is run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kemu.debugger.rehearse import perform_line
from kemu.errors import UsageError
from kemu.language.result import OK, UNSATISFIED, Result
from kemu.language.tokens import split
from kemu.races import litmus, schedule, stage
from kemu.races.cases import KERNEL_CASES, KernelCase
from kemu.races.replay import Played, PlayedStep, play
from kemu.racing.exploring import detail, race_of, where
from kemu.racing.wanted import Wanted, program_of
from kemu.readings import RaceReplay, RaceStep

if TYPE_CHECKING:
    from kemu.experiment.session import Session


def replay(session: Session, wanted: Wanted) -> list[Result]:
    """Play the schedule, and return the results of the commands that this ran."""
    if not wanted.case and not wanted.commands:
        wanted = _last_race(session, wanted)
    before = where(session)
    if before is not None:
        session.goto(before.first)
    if wanted.is_litmus:
        return [_litmus(session, wanted)]
    if wanted.case:
        return _case(session, wanted)
    return [_commands(session, wanted)]


def _last_race(session: Session, wanted: Wanted) -> Wanted:
    last = session.debugger.raced
    if last is None:
        raise UsageError(
            "race: no race has been run yet",
            hint=f"race first, or race replay CASE {wanted.schedule[:40]}",
        )
    options = attrs.evolve(last.options, end=wanted.options.end)
    return attrs.evolve(last, replay=True, schedule=wanted.schedule, options=options)


def _litmus(session: Session, wanted: Wanted) -> Result:
    program = program_of(wanted)
    litmus.play(program, wanted.schedule)
    with session.changing(wanted.replay_text):
        first = session.end
        steps, outcome = stage.perform(program, wanted.schedule)
    shown = tuple(
        RaceStep(n, step.cpu, step.text, step.memory, first + n - 1, first + n, step.verdict)
        for n, step in enumerate(steps, 1)
    )
    reading = RaceReplay(
        race=wanted.text,
        engine="litmus",
        schedule="".join(str(step.cpu) for step in steps),
        cpus=tuple("  ".join(step.text for step in cpu) for cpu in program.cpus),
        outcome=outcome,
        bad=outcome not in litmus.GOOD,
        unfinished=False,
        detail=(),
        steps=shown,
        done=0,
        first=first,
        last=session.end,
    )
    return _stand_before(session, wanted, reading)


def _commands(session: Session, wanted: Wanted) -> Result:
    choices = schedule.read(wanted.schedule, len(wanted.commands))
    with session.beside(session.now):
        race = race_of(session, wanted.commands, wanted.options, first=1)
    with session.changing(wanted.replay_text):
        first = session.end
        played = play(race, choices)
        session.end_unfinished(played.unfinished)
    reading = RaceReplay(
        race=wanted.text,
        engine="kernel",
        schedule=schedule.write([step.cpu for step in played.steps]),
        cpus=wanted.commands,
        outcome=played.result.name,
        bad=played.result.bad,
        unfinished=played.unfinished,
        detail=detail(played.result),
        steps=_steps(played),
        done=0,
        first=first,
        last=session.end,
    )
    return _stand_before(session, wanted, reading)


def _steps(played: Played) -> tuple[RaceStep, ...]:
    return tuple(
        RaceStep(number, step.cpu, step.text, "", step.first, step.last, _note(played, step))
        for number, step in enumerate(played.steps, 1)
    )


def _note(played: Played, step: PlayedStep) -> str:
    """What went wrong in the step."""
    result = played.result
    if result.bad and (
        step.first < result.event <= step.last or (not result.event and step is played.steps[-1])
    ):
        return result.name
    return ""


def _stand_before(session: Session, wanted: Wanted, reading: RaceReplay) -> Result:
    """Go to where the first step begins, or to the end if `--end` was given; the result."""
    again = attrs.evolve(wanted.options, end=False)
    session.debugger.race(attrs.evolve(wanted, replay=False, schedule="", options=again), reading)
    start = reading.steps[0].first if reading.steps and not wanted.options.end else reading.last
    reading = reading.replace(done=len(reading.steps) if wanted.options.end else 0)
    session.goto(start)
    notes = session.take_notes()
    status = UNSATISFIED if reading.bad else OK
    return Result(wanted.typed_text, reading, "", status, reading.first, reading.last, start, notes)


def _case(session: Session, wanted: Wanted) -> list[Result]:
    """From the boot: the commands that set the machine up, then the race as commands."""
    from kemu.commands.run import run

    case = KERNEL_CASES[wanted.case]
    if session.cpus < len(case.commands):
        raise UsageError(
            f"race: {case.name} needs {len(case.commands)} CPUs",
            hint="kemu --cpus 2 starts with two",
        )
    with session.beside(0):
        _rehearsed(session, case, attrs.evolve(wanted, case="", commands=case.commands))
    with session.anew():
        for line in case.setup:
            for result in run(session, line):
                if result.error is not None:
                    raise UsageError(
                        f"race {case.name}: {result.error.what}", hint=result.error.hint
                    )
        return [_commands(session, attrs.evolve(wanted, case="", commands=case.commands))]


def _rehearsed(session: Session, case: KernelCase, wanted: Wanted) -> None:
    """Play the schedule without the journal first, so that one that the case does not have is
    refused before anything changes."""
    for line in case.setup:
        for one in split(line):
            perform_line(session, one)
    play(
        race_of(session, wanted.commands, wanted.options),
        schedule.read(wanted.schedule, len(wanted.commands)),
    )
