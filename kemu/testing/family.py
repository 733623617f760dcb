"""Tasks: fork, vfork, clone, threads, exec, exit, signals, kernel threads."""

from __future__ import annotations

from itertools import product

from kemu.abi.calls import CALLS
from kemu.abi.uapi import (
    CLONE_SIGHAND,
    CLONE_THREAD,
    CLONE_VM,
    ECHILD,
    SIGCHLD,
    SIGKILL,
    SIGSEGV,
    SIGTERM,
    WNOHANG,
)
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.testing.stage import MOST_PROCESSES, Arena, Stage

PLAIN_CALLS = tuple(
    row
    for row in CALLS
    if {"choice"} <= {arg.kind for arg in row.args} <= {"choice", "flags", "number"}
)
"""System calls that take only words and numbers, and touch neither memory nor files."""


class Family(Stage):
    """Operations that make and end tasks."""

    def fork(self, who: int) -> None:
        """A child with a copy of the arena, if there is room for one."""
        task, arena = self.pick(who)
        if self._room():
            self._join(self._ok(task, "fork"), arena.fork())
        self._checked()

    def clone(self, who: int) -> None:
        """A task that shares the arena (CLONE_VM), if there is room for one."""
        task, arena = self.pick(who)
        if self._room():
            self._join(self._ok(task, "clone", CLONE_VM | SIGCHLD), arena)
        self._checked()

    def thread(self, who: int) -> None:
        """A thread of the same process, if there is room for one."""
        task, arena = self.pick(who)
        if self._room():
            self._join(self._ok(task, "clone", CLONE_VM | CLONE_SIGHAND | CLONE_THREAD), arena)
        self._checked()

    def vfork(self, who: int) -> None:
        """A child in the same memory, for which the parent waits until it execs or ends."""
        task, arena = self.pick(who)
        if self._room():
            before = set(system.tasks)
            outcome = self.script.syscall(task, "vfork")
            self._expect(outcome.blocked, True, "vfork: the parent waits")
            self._join(max(set(system.tasks) - before), arena)
        self._checked()

    def _room(self) -> bool:
        return len(self.processes) < MOST_PROCESSES

    def _join(self, pid: int, arena: Arena) -> None:
        self.processes.append((system.tasks[pid], arena))

    def exec(self, who: int) -> None:
        """A new program: the arena is empty, the other threads are gone, a vfork parent
        continues."""
        task, _ = self.pick(who)
        others = [actor for actor in self.processes if actor[0].tgid != task.tgid]
        outcome = self.script.syscall(task, "execve", "/program", [b"program"], [])
        self._expect((outcome.errno, outcome.signal), (0, None), "execve:")
        self._harden(task)
        self.processes = [*others, (task, self._new_arena(task))]
        self._checked()

    def exit(self, who: int) -> None:
        """The process ends with all its threads, unless no task would be left."""
        task, _ = self.pick(who)
        if self._others(task):
            self._end(task)
        self._checked()

    def leave(self, who: int) -> None:
        """One thread ends, unless no task would be left."""
        task, _ = self.pick(who)
        if len(self.runnable()) > 1:
            self.script.syscall(task, "exit", 0)
            self._bury()
        self._checked()

    def kill(self, who: int, other: int, *, thread: bool, deadly: bool) -> None:
        """Send a signal: a fatal one ends the process, unless no task would be left; others are
        handled or ignored."""
        task, _ = self.pick(who)
        target, _ = self.pick(other)
        if not deadly or self._others(target):
            number = (
                (SIGKILL if thread else SIGTERM) if deadly else (SIGSEGV if thread else SIGCHLD)
            )
            self._ok(
                task,
                *(
                    ("tgkill", target.tgid, target.pid, number)
                    if thread
                    else ("kill", target.pid, number)
                ),
            )
            self._bury()
        self._checked()

    def wait(self, who: int) -> None:
        """wait4(2) without waiting: children are reaped automatically, so it finds none."""
        task, _ = self.pick(who)
        outcome = self.script.syscall(task, "wait4", -1, 0, WNOHANG)
        self._expect((outcome.errno in (0, ECHILD), outcome.value), (True, 0), "wait4:")
        self._checked()

    def whoami(self, who: int) -> None:
        """The results of getpid and getppid: the pid of the process, and of a living one; and the
        other calls that do not change memory, with each of their words."""
        task, _ = self.pick(who)
        self._expect(self._ok(task, "getpid"), task.tgid, "getpid:")
        self._expect(
            self._ok(task, "getppid") in system.tasks, True, "getppid returns a living process:"
        )
        for row in PLAIN_CALLS:
            for values in product(*(arg.samples for arg in row.args)):
                self.script.syscall(task, row.name, *values)
        self._checked()

    def _others(self, task: task_struct) -> bool:
        """True if a runnable task is left when the process of ``task`` has ended."""
        waiting = {
            id(child.vfork_done)
            for child, _ in self.processes
            if child.tgid == task.tgid and child.vfork_done
        }
        left = [
            other for other, _ in self.processes if other.tgid != task.tgid and not other.exit_state
        ]
        able = {id(other) for other, _ in self.runnable()}
        return any(id(other) in able or id(other) in waiting for other in left)

    def _end(self, task: task_struct) -> None:
        self.script.syscall(task, "exit_group", 0)
        self._bury()

    def _bury(self) -> None:
        """Drop the tasks that have ended."""
        here = system.tasks
        self.processes = [
            actor
            for actor in self.processes
            if not actor[0].exit_state and here.get(actor[0].pid) is actor[0]
        ]

    def kthread(self, cpu: int) -> None:
        """A kernel thread runs on the CPU and borrows the tables that are loaded."""
        self.script.schedule(system.tasks[2], cpu=cpu)
        self._checked()
