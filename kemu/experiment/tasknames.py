"""Which task a name means, and which one is current, at the moment that is shown.

    #12 spawn app      app -> 3, current 3
    #57 fork as kid    kid -> 4                  at #40 there is no kid: it is created at #57
    #91 exit kid                                 at #95 kid is gone, at #80 it is not

The user's name for a task is not state of the machine: it is kept with the event from which it
holds, so that it comes and goes with the moment. The same holds for the current task and for the
CPUs that tasks were put on.

It reads the machine, and changes only the names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from kemu.errors import UsageError
from kemu.experiment.knowledge import NO_TASK, Home, Knowledge, Name, Use
from kemu.kernel.include.sched_types import task_struct as Task
from kemu.kernel.init.boot import Kernel
from kemu.trace.barrier import Table
from kemu.trace.journal import Journal


class TaskNames:
    """The part of an experiment that knows names: `known` has them, `kernel` the tasks."""

    def __init__(self, kernel: Kernel, known: Knowledge) -> None:
        self.kernel = kernel
        self.known = known

    @property
    def tasks(self) -> Table[int, Task]:
        """The tasks of the shown moment by pid."""
        tasks: Table[int, Task] = self.kernel.globals["tasks"]
        return tasks

    # ---------------------------------------------------------------- the moment

    @property
    def journal(self) -> Journal:
        """The journal of the kernel."""
        return self.kernel.journal

    @property
    def now(self) -> int:
        """The number of the event whose state is shown."""
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
        """The names of the tasks of this moment, with their pids; the kernel's own tasks first."""
        known = {task.comm: pid for pid, task in sorted(self.tasks.items()) if pid <= 2}
        return known | {
            name: pid
            for event, name, pid in self.known.names
            if event <= self.now and pid in self.tasks
        }

    def name_of(self, pid: int) -> str:
        """The newest name given to the pid at any moment of this timeline, or the task's own, or
        `@PID`."""
        given = next((name for _, name, named in reversed(self.known.names) if named == pid), "")
        if given or pid not in self.tasks:
            return given or f"@{pid}"
        return self.tasks[pid].comm

    def give_name(self, name: str, pid: int) -> None:
        """Call the pid, which the running command made, `name`: in all moments in which the pid
        exists."""
        self.journal.catch_up()
        given = Name(min(self.known.first + 1, self.end), name, pid)
        self.known = attrs.evolve(self.known, names=(*self.known.names, given))

    def check_name(self, name: str) -> None:
        """Raise UsageError if a task of this moment is called `name`."""
        taken = self.names().get(name)
        if taken is not None:
            raise UsageError(f"'{name}' is taken by pid {taken}", hint="choose another one")

    def child_name(self, parent: int) -> str:
        """A free name for an unnamed child: `PARENT.2`, `PARENT.3`."""
        base, taken, number = self.name_of(parent), {name for _, name, _ in self.known.names}, 2
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
        known = [(event, pid) for event, known, pid in self.known.names if known == name]
        if not known:
            return ""
        _, pid = known[-1]
        born = self._born(pid)
        return f" at #{self.now}: pid {pid} " + (
            f"is created at #{born}" if born > self.now else "is gone"
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

        pid = next((pid for _, known, pid in reversed(self.known.names) if known == name), None)
        if pid is not None and self._born(pid) <= self.now:
            return "undo takes the last command back; ps lists the tasks"
        near = get_close_matches(name[:40], list(self.names()), n=1)
        return (
            f"did you mean '{near[0]}'? (ps lists the tasks)"
            if near
            else "ps lists the tasks; a pid is written @3"
        )

    @property
    def current_pid(self) -> int:
        """The pid of the task that commands without TASK act on: the last one used up to this
        moment, NO_TASK if it has ended. Another one is never chosen instead."""
        pid = self._used()
        task = self.tasks.get(pid)
        return pid if pid and task is not None and not task.exit_state else NO_TASK

    @property
    def current(self) -> Task:
        """The task that commands without TASK act on. Raises UsageError if there is none."""
        pid = self.current_pid
        if pid != NO_TASK:
            return self.tasks[pid]
        used = self._used()
        if not used:
            raise UsageError(
                "no current task", hint="spawn app makes a process; use TASK chooses one"
            )
        killed = any(
            getattr(reading, "killed", False) and getattr(reading, "pid", 0) == used
            for _, reading in self.known.failures
        )
        raise UsageError(
            f"no current task: {self.name_of(used)} (pid {used}) has ended",
            hint=("why signal tells why, " if killed else "")
            + "undo takes it back; use TASK chooses another (ps lists them)",
        )

    def _used(self) -> int:
        """The pid that was used last up to this moment; NO_TASK before the first."""
        return next((pid for event, pid in reversed(self.known.used) if event <= self.now), NO_TASK)

    def use(self, pid: int) -> None:
        """Make the pid current."""
        used = (*self.known.used, Use(self.now, pid))
        self.known = attrs.evolve(self.known, used=used)

    @contextmanager
    def on_cpu(self, cpu: int) -> Iterator[None]:
        """A block whose commands run on the CPU, whatever the task's own is."""
        before = self.known.cpu
        self.known = attrs.evolve(self.known, cpu=cpu)
        try:
            yield
        finally:
            self.known = attrs.evolve(self.known, cpu=before)

    def cpu_for(self, task: Task) -> int:
        """The CPU on which the next command of the task runs: the one of `on`, else the task's
        own."""
        return self.home(task.pid) if self.known.cpu is None else self.known.cpu

    def home(self, pid: int) -> int:
        """The CPU that `setcpu` chose for the pid, else 0."""
        return next(
            (
                cpu
                for event, owner, cpu in reversed(self.known.homes)
                if owner == pid and event <= self.now
            ),
            0,
        )

    def set_home(self, pid: int, cpu: int) -> None:
        """Let the pid run on the CPU from the running command on; its children inherit the CPU."""
        self.journal.catch_up()
        home = Home(min(self.known.first + 1, self.end), pid, cpu)
        self.known = attrs.evolve(self.known, homes=(*self.known.homes, home))

    def moments_of_names(self) -> set[int]:
        """The moments at which a name or the choice of the current task takes effect."""
        known = self.known
        return (
            {name.event for name in known.names}
            | {use.event for use in known.used}
            | {home.event for home in known.homes}
        )
