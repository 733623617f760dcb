"""The interface of the performers of user code, and their results.

    a command   write app 0x10000 7   ->   performer.store(app, 0x10000, data)   ->   Outcome
    performers  Script    performs the access or call
                Capture   captures it for a race (races/racers.py)

A performer lets a CPU run the task, does the operation in user mode, and returns once the other
tasks have done everything that follows from it.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from kemu.kernel.include.sched_types import task_struct


@attrs.frozen
class SigInfo:
    """A signal that a task took: ``killed`` if it ended the task; ``error_code`` of the page fault
    that caused it."""

    signo: int
    code: int
    addr: int
    error_code: int
    killed: bool


@attrs.frozen
class Completed:
    """A call that was waiting and has now returned: the task, the call, its result."""

    pid: int
    call: str
    value: int


@attrs.frozen
class Outcome:
    """What an operation did.

    ``value``: the result of a call, 0 if it failed; ``errno``: 0 if it did not fail; ``data``: what
    was loaded; ``signal``: the first signal that the task took; ``blocked``: the call waits;
    ``minor``, ``major``: faults charged to the task; ``completed``: the calls of other tasks that
    returned because of this one."""

    value: int = 0
    errno: int = 0
    data: bytes = b""
    signal: SigInfo | None = None
    blocked: bool = False
    minor: int = 0
    major: int = 0
    completed: tuple[Completed, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing failed."""
        return not self.errno and self.signal is None


class Performer(Protocol):
    """A performer of user code (see above). ``cpu`` is the number of a CPU, None for the task's
    own. UsageError if the task has ended or waits in a call."""

    def spawn(self, name: str) -> task_struct:
        """Make a process called ``name``, with an address space as after exec. UsageError if the
        kernel has no memory for it."""

    def syscall(
        self, task: task_struct, name: str, *args: object, cpu: int | None = None
    ) -> Outcome:
        """Let the task make the system call ``name`` with these arguments."""

    def load(self, task: task_struct, addr: int, nbytes: int, cpu: int | None = None) -> Outcome:
        """Let the task read ``nbytes`` bytes at ``addr``: ``Outcome.data``."""

    def store(self, task: task_struct, addr: int, data: bytes, cpu: int | None = None) -> Outcome:
        """Let the task store ``data`` at ``addr``."""

    def fetch(self, task: task_struct, addr: int, cpu: int | None = None) -> Outcome:
        """Let the task fetch an instruction at ``addr``."""

    def schedule(self, task: task_struct, cpu: int | None = None) -> Outcome:
        """Let a CPU run the task; the task does nothing."""
