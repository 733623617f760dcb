"""Which task a name means, and which one is current, at the moment that is shown.

    #12 spawn app      app -> 3, current 3
    #57 fork as kid    kid -> 4                  at #40 there is no kid: it is born at #57
    #91 exit kid                                 at #95 kid is gone, at #80 it is not

What the user calls a task is no state of the machine: it is kept with the event from which it
holds, so that it comes and goes with the moment. The same holds for the current task and for the
CPUs that tasks were put on.

The rule that keeps this file honest: it reads the machine and writes only what it keeps itself.
"""

from __future__ import annotations

from kemu.errors import UsageError
from kemu.kernel.include.sched_types import task_struct as Task
from kemu.kernel.init.boot import Kernel
from kemu.trace.journal import Journal

INIT = 1
"""The pid that is current until something else is."""


class TaskNames:
    """The part of a session that knows names. `tasks` are those of the shown moment by pid; `cpu`
    is the CPU for the next command, None for the task's own."""

    def __init__(self, kernel: Kernel, tasks: dict[int, Task]) -> None:
        self.kernel = kernel
        self.tasks = tasks
        self.cpu: int | None = None
        self._names: list[tuple[int, str, int]] = []
        self._used: list[tuple[int, int]] = [(0, INIT)]
        self._homes: list[tuple[int, int, int]] = []
        self._first = 0

    # ---------------------------------------------------------------- the moment

    @property
    def journal(self) -> Journal:
        """The journal of the kernel."""
        return self.kernel.journal

    @property
    def now(self) -> int:
        """The number of the event after which the state stands."""
        return self.journal.cursor

    @property
    def end(self) -> int:
        """The number of the newest event."""
        return len(self.journal)

    @property
    def past(self) -> bool:
        """True where newer events exist."""
        return not self.journal.at_end

    # ---------------------------------------------------------------- names

    def names(self) -> dict[str, int]:
        """The names that mean a task of this moment, with its pid; the kernel's own tasks first."""
        known = {task.comm: pid for pid, task in sorted(self.tasks.items()) if pid <= 2}
        return known | {
            name: pid for event, name, pid in self._names if event <= self.now and pid in self.tasks
        }

    def name_of(self, pid: int) -> str:
        """The newest name that was given to the pid, at whatever moment of this timeline; else its
        own, else `@PID`."""
        given = next((name for _, name, named in reversed(self._names) if named == pid), "")
        if given or pid not in self.tasks:
            return given or f"@{pid}"
        return self.tasks[pid].comm

    def give_name(self, name: str, pid: int) -> None:
        """Call the pid, which the running command made, `name`: in all moments in which the pid
        exists."""
        self.journal.catch_up()
        self._names.append((min(self._first + 1, self.end), name, pid))

    def check_name(self, name: str) -> None:
        """Raise UsageError if a task of this moment is called `name`."""
        taken = self.names().get(name)
        if taken is not None:
            raise UsageError(f"name: '{name}' is taken by pid {taken}", hint="choose another one")

    def child_name(self, parent: int) -> str:
        """A free name for an unnamed child: `PARENT.2`, `PARENT.3`."""
        base, taken, number = self.name_of(parent), {name for _, name, _ in self._names}, 2
        while f"{base}.{number}" in taken:
            number += 1
        return f"{base}.{number}"

    def find(self, name: str) -> Task:
        """The task of this moment that `name` or `@PID` means. Raises UsageError without a
        place."""
        if name.startswith("@"):
            digits = name[1:]
            pid = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else -1
        else:
            pid = self.names().get(name, -1)
        if pid in self.tasks:
            return self.tasks[pid]
        raise UsageError(f"no task '{name}'{self._why_not(name)}", hint=self._task_hint(name))

    def _why_not(self, name: str) -> str:
        """A few words where the name is known at another moment."""
        known = [(event, pid) for event, known, pid in self._names if known == name]
        if not known:
            return ""
        _, pid = known[-1]
        born = self._born(pid)
        return f" at #{self.now}: pid {pid} " + (
            f"is born at #{born}" if born > self.now else "is gone"
        )

    def _born(self, pid: int) -> int:
        """The event that put the task into the table; 0 for one that the boot made."""
        tasks: object = self.tasks
        for number in range(1, self.end + 1):
            obj, field, _, new = self.journal.event(number)
            if field == pid and obj is tasks and new is not None:
                return number
        return 0

    def _task_hint(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name[:40], list(self.names()), n=1)
        return (
            f"did you mean '{near[0]}'? (ps lists the tasks)"
            if near
            else "ps lists the tasks; a pid is written @3"
        )

    @property
    def current_pid(self) -> int:
        """The pid of the task that commands without TASK mean: the last one used that lives at this
        moment."""
        for event, pid in reversed(self._used):
            task = self.tasks.get(pid)
            if event <= self.now and task is not None and not task.exit_state:
                return pid
        return INIT

    @property
    def current(self) -> Task:
        """The task that commands without TASK mean."""
        return self.tasks[self.current_pid]

    def use(self, pid: int) -> None:
        """Make the pid current."""
        self._used.append((self.now, pid))

    def cpu_for(self, task: Task) -> int:
        """The CPU on which the next command of the task runs: the one of `on`, else the task's
        own."""
        if self.cpu is not None:
            return self.cpu
        return self.home(task.pid)

    def home(self, pid: int) -> int:
        """The CPU that `setcpu` chose for the pid, else 0."""
        return next(
            (
                cpu
                for event, owner, cpu in reversed(self._homes)
                if owner == pid and event <= self.now
            ),
            0,
        )

    def set_home(self, pid: int, cpu: int) -> None:
        """Let the pid run on the CPU from the running command on; children inherit it at birth."""
        self.journal.catch_up()
        self._homes.append((min(self._first + 1, self.end), pid, cpu))

    def moments_of_names(self) -> set[int]:
        """The moments at which a name or another current task begins to be meant, beside what the
        machine says."""
        return (
            {at for at, _, _ in self._names}
            | {at for at, _ in self._used}
            | {at for at, _, _ in self._homes}
        )
