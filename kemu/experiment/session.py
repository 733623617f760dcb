"""A session: an experiment, its debugger, and the desk of the user who works on it.

Commands get one as their first argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from kemu.debugger.debugger import Debugger
from kemu.experiment.desk import Desk
from kemu.experiment.experiment import Experiment
from kemu.experiment.knowledge import INIT, Knowledge, Record, Timeline
from kemu.interrupts import uninterruptible
from kemu.kernel.include.sched_types import task_struct as Task
from kemu.kernel.init.boot import Kernel
from kemu.trace.journal import Journal
from kemu.userland.performer import Outcome, Performer

__all__ = ["INIT", "Journal", "Outcome", "Record", "Session", "Task", "Timeline"]


@attrs.frozen
class Snapshot:
    """An experiment with its debugger, to come back to while its machine is not changed."""

    kernel: Kernel
    performer: Performer
    known: Knowledge
    debugger: Debugger


@uninterruptible
class Session(Experiment):
    """See the module. `mem` in bytes, `geometry` a name of `machine.geometry.GEOMETRIES`."""

    def __init__(
        self,
        *,
        mem: int = 64 << 20,
        geometry: str = "x86-64",
        cpus: int = 2,
        record: bool = True,
        lru_batch: bool = False,
    ) -> None:
        super().__init__(mem=mem, geometry=geometry, cpus=cpus, record=record, lru_batch=lru_batch)
        self.debugger = Debugger()
        self.desk = Desk()

    def snapshot(self) -> Snapshot:
        """The experiment as it is now."""
        return Snapshot(self.kernel, self.performer, self.known, self.debugger.copy())

    def become(self, other: Snapshot) -> None:
        """Continue with another experiment; the desk stays."""
        self.kernel, self.performer, self.known = other.kernel, other.performer, other.known
        self.debugger = other.debugger.copy()
        self.kernel.activate()

    @contextmanager
    def beside(self, event: int) -> Iterator[Journal]:
        """As `Experiment.beside`; nothing stops in the block, and the debugger forgets it."""
        before = self.debugger
        self.debugger = before.copy()
        try:
            with self.debugger.without_stops(), super().beside(event) as scratch:
                yield scratch
        finally:
            self.debugger = before

    @contextmanager
    def anew(self) -> Iterator[None]:
        """As `Experiment.anew`; if the block raises, debugger and desk are as before, too."""
        debugger, desk = self.debugger.copy(), self.desk.copy()
        try:
            with super().anew():
                yield
        except BaseException:
            self.debugger, self.desk = debugger, desk
            raise
