"""User code as a script: single loads, stores, fetches and system calls of a task.

Each operation lets a CPU run the task (a context switch if another one was running), does one thing
in user mode, takes pending signals, and then lets the tasks run that this made runnable: a parent
that was waiting for a child, a process that was sent a signal.  The result is an ``Outcome``.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.abi.uapi import EINTR, ERESTARTSYS, SIGCHLD
from kemu.errors import UsageError
from kemu.kernel.arch.entry import exit_to_user_mode, syscall_return
from kemu.kernel.include.linkage import SYSCALLS
from kemu.kernel.include.mm_types import PAGE_SIZE
from kemu.kernel.include.sched_types import (
    EXIT_ZOMBIE,
    PF_KTHREAD,
    TASK_DEAD,
    TASK_RUNNING,
    siginfo,
    task_struct,
)
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.kernel.init.syscalls import sys_fork
from kemu.kernel.kernel.sched import schedule_to
from kemu.kernel.kernel.signal import signal_pending
from kemu.machine.mmu import FETCH, READ, WRITE, GeneralProtection, PageFault, access
from kemu.userland.performer import Completed, Outcome, SigInfo

RESTARTED = ("wait4", "read")
"""The calls that check again when their task is woken."""


class Script:
    """The performer for tasks that have no code: each operation is requested individually."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def spawn(self, name: str) -> task_struct:
        """Make a child of init called ``name``, with an address space as after exec: an untouched
        stack, no heap yet."""
        self.kernel.activate()
        self._run_on(system.tasks[1], None)
        asked = system.sysctl.fail_alloc or system.sysctl.fail_slab
        pid = _returned(sys_fork())
        if pid < 0 and asked and not (system.sysctl.fail_alloc or system.sysctl.fail_slab):
            raise UsageError(
                f"spawn {name}: an allocation failed because set fail asked for it",
                hint="set fail off, then spawn",
            )
        if pid < 0:
            raise UsageError(
                f"spawn {name}: out of memory (errno {-pid})",
                hint="end a process first, or start with more --mem",
            )
        task = system.tasks[pid]
        task.comm = name[:15]
        task.sighand.action.put(SIGCHLD, None)
        self._run_on(task, None)
        self.kernel.journal.catch_up()
        return task

    def syscall(
        self, task: task_struct, name: str, *args: object, cpu: int | None = None
    ) -> Outcome:
        """Let ``task`` make the system call ``name``."""
        function = SYSCALLS[name]
        return self._perform(task, cpu, lambda: _returned(function(*args)))

    def load(self, task: task_struct, addr: int, nbytes: int, cpu: int | None = None) -> Outcome:
        """Let ``task`` read ``nbytes`` bytes at ``addr``."""
        got = bytearray()
        return self._perform(task, cpu, lambda: _load(addr, nbytes, got), got)

    def store(self, task: task_struct, addr: int, data: bytes, cpu: int | None = None) -> Outcome:
        """Let ``task`` store ``data`` at ``addr``."""
        return self._perform(task, cpu, lambda: _store(addr, data))

    def fetch(self, task: task_struct, addr: int, cpu: int | None = None) -> Outcome:
        """Let ``task`` fetch an instruction at ``addr``; it is not executed."""
        return self._perform(task, cpu, lambda: _touch(addr, FETCH))

    def schedule(self, task: task_struct, cpu: int | None = None) -> Outcome:
        """Let a CPU run ``task``, which does nothing; a kernel thread borrows the address space
        that it finds."""
        return self._perform(task, cpu, lambda: 0)

    def _run_on(self, task: task_struct, cpu: int | None) -> None:
        """Let CPU number ``cpu`` (default: the task's own) run ``task``."""
        self.kernel.activate()
        system.cpu = system.cpus[task.cpu if cpu is None else cpu]
        schedule_to(task)

    def _perform(
        self,
        task: task_struct,
        cpu: int | None,
        action: Callable[[], int],
        got: bytearray | None = None,
    ) -> Outcome:
        self._refuse_if_unable(task)
        self._run_on(task, cpu)
        system.delivered = []
        minor, major = task.min_flt, task.maj_flt
        ret = action()
        if not task.exit_state and task.state == TASK_RUNNING:
            exit_to_user_mode()
        taken = _sig_info(task, system.delivered)
        blocked = task.state not in (TASK_RUNNING, TASK_DEAD) and not task.exit_state
        completed = self.settle()
        self.kernel.journal.catch_up()
        return Outcome(
            value=max(ret, 0),
            errno=0 if blocked else -min(ret, 0),
            data=bytes(got or b""),
            signal=taken,
            blocked=blocked,
            minor=task.min_flt - minor,
            major=task.maj_flt - major,
            completed=completed,
        )

    def _refuse_if_unable(self, task: task_struct) -> None:
        if task.exit_state or task.state == TASK_DEAD:
            raise UsageError(f"{task.comm} (pid {task.pid}) has ended", hint="see: ps")
        if task.state != TASK_RUNNING:
            raise UsageError(
                f"{task.comm} (pid {task.pid}) waits in {task.blocked_in}", hint="see: ps"
            )

    def settle(self) -> tuple[Completed, ...]:
        """Let every task run that became runnable: by the end of its wait, or by a signal."""
        done: list[Completed] = []
        for _ in range(1000):
            other = self._next_to_run()
            if other is None:
                break
            if other.blocked_in:
                completed = self._resume(other)
                if completed is not None:
                    done.append(completed)
            else:
                schedule_to(other)
                exit_to_user_mode()
        return tuple(done)

    def _next_to_run(self) -> task_struct | None:
        for pid in sorted(system.tasks):
            other = system.tasks[pid]
            if (
                other.exit_state == EXIT_ZOMBIE
                or other.flags & PF_KTHREAD
                or other.state != TASK_RUNNING
            ):
                continue
            if other.blocked_in or signal_pending(other):
                return other
        return None

    def _resume(self, task: task_struct) -> Completed | None:
        """Continue the call in which the task slept."""
        call, *args = task.restart_block
        task.blocked_in = ""
        schedule_to(task)
        if call in RESTARTED:
            interrupted = signal_pending(task)
            exit_to_user_mode()
            if task.exit_state:
                return None
            ret = _returned(SYSCALLS[call](*args))
            if ret == -ERESTARTSYS and not interrupted:
                return None
            if ret == -ERESTARTSYS:
                task.state, task.blocked_in = TASK_RUNNING, ""
                ret = _returned(-EINTR)
        else:
            ret = _returned(args[0])
            exit_to_user_mode()
            if task.exit_state or task.state == TASK_DEAD:
                return None
        task.restart_block = ()
        return Completed(task.pid, call, ret)


def _returned(ret: int) -> int:
    """The result of the current task's call, which is now in its register too."""
    syscall_return(ret)
    return ret


def _sig_info(task: task_struct, delivered: list[siginfo]) -> SigInfo | None:
    if not delivered:
        return None
    info = delivered[0]
    killed = bool(task.exit_state) or task.state == TASK_DEAD
    return SigInfo(info.signo, info.code, info.addr, info.error_code, killed)


def _pieces(addr: int, size: int) -> list[tuple[int, int]]:
    """Split an access at page borders: the (address, bytes) of each part."""
    pieces = []
    while size > 0:
        part = min(size, PAGE_SIZE - addr % PAGE_SIZE)
        pieces.append((addr, part))
        addr, size = addr + part, size - part
    return pieces


def _access(addr: int, kind: int) -> int | PageFault | GeneralProtection:
    return access(system.cpu.hw, addr, kind, True, system.trap)


def _load(addr: int, size: int, got: bytearray) -> int:
    for at, part in _pieces(addr, size):
        pa = _access(at, READ)
        if not isinstance(pa, int):
            return 0
        got += system.phys.read(pa, part)
    return 0


def _store(addr: int, data: bytes) -> int:
    done = 0
    for at, part in _pieces(addr, len(data)):
        pa = _access(at, WRITE)
        if not isinstance(pa, int):
            return 0
        system.phys.write(pa, data[done : done + part])
        done += part
    return 0


def _touch(addr: int, kind: int) -> int:
    _access(addr, kind)
    return 0
