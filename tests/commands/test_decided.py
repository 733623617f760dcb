"""The calls that failed on the real kernel, made again: for each one kemu knows the line that decided,
and the sentence on it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from kemu.conform.cast import CPUS, RAM, Cast
from kemu.conform.replay import Replay
from kemu.explain.checks import decision
from kemu.kernel.init.boot import Kernel
from kemu.trace.journal import Journal
from tests.conform.recorded import random_programs, scenarios

CHUNKS = 8


class Machine:
    """As much of a session as a decision asks for."""

    def __init__(self, kernel):
        self.kernel = kernel

    @contextmanager
    def beside(self, event):
        """A block in which the state is that after the event, and changes are undone at the end."""
        journal, end = self.kernel.journal, len(self.kernel.journal)
        journal.seek(event)
        self.kernel.journal = scratch = Journal()
        self.kernel.activate()
        yield
        scratch.catch_up()
        scratch.seek(0)
        self.kernel.journal = journal
        self.kernel.activate()
        journal.seek(end)


def failures(program):
    """(call, errno, decision) of the calls that fail in the program."""
    cast = Cast(program, Kernel(mem=RAM, nr_cpus=CPUS, lru_batch=True))
    machine, perform, found = Machine(cast.kernel), cast.script.syscall, []

    def syscall(task, name, *args, cpu=None):
        cast.kernel.journal.catch_up()
        before = len(cast.kernel.journal)
        outcome = perform(task, name, *args, cpu=cpu)
        if outcome.errno:
            again = decision(
                machine, before, name, outcome.errno, lambda: perform(task, name, *args, cpu=cpu)
            )
            found.append((name, outcome.errno, again))
        return outcome

    cast.script.syscall = syscall
    Replay(program, cast).run()
    return found


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_each_recorded_failure_has_a_line_and_a_sentence(chunk):
    programs = [*scenarios().values(), *random_programs()[:80]][chunk::CHUNKS]
    found = [(program.name, *one) for program in programs for one in failures(program)]
    assert len(found) > 20
    assert [one for one in found if one[-1] is None or not one[-1].why] == []
    for _, _, _, decided in found:
        assert decided.calls[0].startswith("sys_")
        assert decided.calls[-1] == decided.function
        assert decided.instead
        assert decided.place.startswith("kemu/kernel/")
