"""A recorded program as an experiment: its operations on a machine with a journal, one command of
the timeline each.

So a difference from Linux can be examined: `back` goes into the kernel functions of the operation
that caused it.  The text of such a command is a `#` and the operation, because no command of the
shell does exactly what the recorder's worker does.
"""

from __future__ import annotations

import attrs

from kemu.conform.cast import CPUS, RAM, Cast
from kemu.conform.compare import Difference, first_difference
from kemu.conform.program import Op, Program
from kemu.conform.replay import Replay
from kemu.conform.steps import Step
from kemu.experiment.session import Session


@attrs.frozen
class Opened:
    """``session`` is at the end of operation ``step``: that of the first ``difference``, or the
    last one."""

    session: Session
    difference: Difference | None
    step: int


def open_program(program: Program, most: int | None = None) -> Opened:
    """Run ``program`` with a journal, up to its first difference or to the end (at most ``most``
    operations)."""
    session = Session(mem=RAM, cpus=CPUS, lru_batch=True)
    with session.changing("# the recorder's process A"):
        cast = Cast(program, session.kernel)
        session.give_name("A", cast.processes["A"].task.pid)
        session.use(cast.processes["A"].task.pid)
    replay = Replay(program, cast)
    ops = program.ops if most is None else program.ops[:most]
    steps: list[Step] = []
    for number, op in enumerate(ops):
        steps.append(_perform(session, replay, op, number))
        found = first_difference(program, tuple(steps)) if program.steps else None
        if found is not None:
            return Opened(session, found, number)
    return Opened(session, None, len(steps) - 1)


def _perform(session: Session, replay: Replay, op: Op, number: int) -> Step:
    """An operation as a command; the process that acts becomes the current one."""
    with session.changing(f"# {number}: {op}"):
        step = replay.step(op)
        for name, process in replay.cast.processes.items():
            if name not in session.names():
                session.give_name(name, process.task.pid)
        if op.kind == "setcpu":
            session.set_home(replay.cast.processes[op.p].task.pid, op.fields["cpu"])
        if op.p in replay.cast.processes:
            session.use(replay.cast.processes[op.p].task.pid)
    return step
