"""What each CPU does in a race: the one call or access that a command would make, captured to be
made later, many times.

write child 0x10000 2      the command is run with a Capture in place of the
                               script: nothing is stored, the call or access is handed over
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kemu.errors import UsageError
from kemu.kernel.arch.entry import exit_to_user_mode
from kemu.kernel.include.sched_types import TASK_RUNNING, task_struct
from kemu.kernel.include.system import system
from kemu.kernel.kernel.sched import schedule_to
from kemu.userland.performer import Outcome
from kemu.userland.script import Script


@attrs.frozen
class Touch:
    """The user access that a racer makes: "read", "write" or "fetch" of ``size`` bytes at
    ``address``; ``data`` is what it writes."""

    kind: str
    address: int
    size: int
    data: bytes = b""


@attrs.frozen
class Racer:
    """One CPU's part: the command as text, the task that runs it, the action (returns the system
    call's result as in C), the bytes that it reads, and the access if it is one."""

    text: str
    task: task_struct
    action: Callable[[], int]
    got: bytearray
    touch: Touch | None = None

    @property
    def address(self) -> int:
        """The address that it accesses, 0 for a system call."""
        return self.touch.address if self.touch is not None else 0

    def perform(self) -> int:
        """Run it as the task would, from user mode and back."""
        self.got.clear()
        ret = self.action()
        if not self.task.exit_state and self.task.state == TASK_RUNNING:
            exit_to_user_mode()
        return ret


class Captured(Exception):
    """Raised in place of the first call or access of a command."""

    def __init__(
        self, task: task_struct, action: Callable[[], int], got: bytearray, touch: Touch | None
    ) -> None:
        super().__init__("captured")
        self.task, self.action, self.got, self.touch = task, action, got, touch


class Capture(Script):
    """A script that performs nothing: it raises ``Captured``."""

    touch: Touch | None = None

    def spawn(self, name: str) -> task_struct:
        """Refused: spawn is not a system call of a program."""
        raise UsageError(
            f"race: a program cannot do 'spawn {name}'", hint="spawn it before the race"
        )

    def load(self, task: task_struct, addr: int, nbytes: int, cpu: int | None = None) -> Outcome:
        """Capture a load."""
        self.touch = Touch("read", addr, nbytes)
        return super().load(task, addr, nbytes, cpu)

    def store(self, task: task_struct, addr: int, data: bytes, cpu: int | None = None) -> Outcome:
        """Capture a store."""
        self.touch = Touch("write", addr, len(data), data)
        return super().store(task, addr, data, cpu)

    def fetch(self, task: task_struct, addr: int, cpu: int | None = None) -> Outcome:
        """Capture a fetch."""
        self.touch = Touch("fetch", addr, 1)
        return super().fetch(task, addr, cpu)

    def _perform(
        self,
        task: task_struct,
        cpu: int | None,
        action: Callable[[], int],
        got: bytearray | None = None,
    ) -> Outcome:
        self._refuse_if_unable(task)
        raise Captured(task, action, bytearray() if got is None else got, self.touch)


def capture(text: str, command: Callable[[], object]) -> Racer:
    """The racer for the command ``text``; ``command`` runs it on a ``Capture``. ``UsageError`` if
    it makes no system call and no access."""
    try:
        command()
    except Captured as held:
        return Racer(text, held.task, held.action, held.got, held.touch)
    raise UsageError(
        f"race: '{text[:60]}' makes no system call and no access",
        hint='such as: race "write a 0x10000 1" "exit b"',
    )


def take_places(racers: tuple[Racer, ...]) -> None:
    """Let each CPU run its racer's task.  ``UsageError`` if there are too few CPUs, or one task is
    named for two of them."""
    if len(racers) > len(system.cpus):
        raise UsageError(
            f"race: {len(racers)} commands, but {len(system.cpus)} CPUs",
            hint="kemu --cpus 3 starts with three",
        )
    tasks = [racer.task for racer in racers]
    twice = next((task for at, task in enumerate(tasks) if task in tasks[:at]), None)
    if twice is not None:
        what = f"race: {twice.comm} (pid {twice.pid}) cannot run on two CPUs at once"
        raise UsageError(what, hint="clone app vm as thread makes a second one")
    for cpu, task in zip(system.cpus, tasks, strict=False):
        system.cpu = cpu
        schedule_to(task)
    system.cpu = system.cpus[0]
