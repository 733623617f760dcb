"""A litmus program played on a kernel's journal: each step is one event, so the run can be stepped
through as usual.

#1  race  step 1: CPU 1 dec_and_test    none -> count 0
#2  race  step 2: CPU 0 get             none -> count 1
"""

from __future__ import annotations

import attrs

from kemu.machine.atomic import REFCOUNT_SATURATED
from kemu.races.litmus import Program, State, order, outcome, play
from kemu.trace.barrier import Table


@attrs.frozen
class StagedStep:
    """A step that was played: the CPU, what it did, memory afterwards, and what it broke."""

    cpu: int
    text: str
    memory: str
    verdict: str


def memory(state: State) -> str:
    """The shared memory in a few words."""
    shared = state.shared
    count = (
        f"count {shared.refcount}"
        if 0 <= shared.refcount < 1 << 31
        else f"count {shared.refcount & 0xFFFFFFFF:#x}"
    )
    if shared.refcount == REFCOUNT_SATURATED:
        count += " (saturated)"
    freed = {0: "", 1: ", freed"}.get(shared.freed, f", freed {shared.freed} times")
    return count + (", locked" if shared.lock else "") + freed


def steps_of(program: Program, states: list[State]) -> tuple[StagedStep, ...]:
    """The steps of the run that has these states."""
    steps = []
    for cpu, before, after in zip(order(states), states, states[1:], strict=False):
        step = program.cpus[cpu][before.places[cpu]]
        verdict = after.verdict if not before.verdict else ""
        registers = after.locals[cpu]
        held = f", CPU {cpu} has {registers.value}" if step.text in ("load", "add", "sub") else ""
        steps.append(StagedStep(cpu, step.text, memory(after) + held, verdict))
    return tuple(steps)


def perform(program: Program, schedule: str) -> tuple[tuple[StagedStep, ...], str]:
    """Play a schedule, one event per step: its steps and its outcome.  It stops where something
    goes wrong."""
    states = cut(play(program, schedule), len(schedule))
    steps = steps_of(program, states)
    board: Table[str, str] = Table("race")
    for number, step in enumerate(steps, 1):
        board.put(f"step {number}: CPU {step.cpu} {step.text}", step.memory)
    return steps, outcome(program, states[-1])


def cut(states: list[State], least: int) -> list[State]:
    """The states up to the one in which something went wrong, and at least those of the first
    ``least`` steps."""
    wrong = next((at for at, state in enumerate(states) if state.verdict), len(states) - 1)
    return states[: max(wrong, least) + 1]
