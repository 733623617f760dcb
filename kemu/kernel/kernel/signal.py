"""Signals: sending, forcing, delivering (kernel/signal.c).

    force_sig_fault / kill -> __send_signal_locked -> task.pending -> get_signal,
    on the way back to user mode:
         |- handle: the interrupted access fails, the task goes on
         |- ignore
         `- default: most kill -> do_group_exit

Handlers are not executed: "handle" means a handler that returns past the failing instruction.
Upward call: ``system.fatal_signal``.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.include.sched_types import (
    PF_EXITING,
    PF_SIGNALED,
    SIGNAL_GROUP_EXIT,
    SIGNAL_UNKILLABLE,
    TASK_DEAD,
    TASK_INTERRUPTIBLE,
    TASK_KILLABLE,
    siginfo,
    task_struct,
)
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.sched import wake_up_process
from kemu.trace.frames import linux

CLD_EXITED, CLD_KILLED, CLD_DUMPED = 1, 2, 3

IGNORED_BY_DEFAULT = frozenset({SIGCHLD, SIGCONT, SIGURG, SIGWINCH})
STOPPING = frozenset({SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU})
COREDUMP = frozenset(
    {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGSEGV, SIGBUS, SIGSYS, SIGXCPU, SIGXFSZ}
)
"""Signals that stop a process, and those that end it with a core dump (include/linux/signal.h)."""
BARE_SIGKILL = siginfo(SIGKILL)
"""What ends the threads of a process that is ending: in Linux a bit, without a siginfo."""
SYNCHRONOUS = frozenset({SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS})


def sig_action(task: task_struct, sig: int) -> str:
    """What the task does on ``sig``: "default", "handle" or "ignore"."""
    return task.sighand.action.get(sig, "default")


def sig_ignored(task: task_struct, sig: int) -> bool:
    """True if the signal need not even be queued."""
    action = sig_action(task, sig)
    return action == "ignore" or (action == "default" and sig in IGNORED_BY_DEFAULT)


@linux("kernel/signal.c")
def __send_signal_locked(info: siginfo, task: task_struct, group: bool) -> None:
    """Queue the signal and wake its receiver; an ignored one is dropped, and a standard signal that
    is already pending is not queued twice."""
    if sig_ignored(task, info.signo) or task.flags & PF_EXITING:
        return
    queue = task.signal.shared_pending if group else task.pending
    if any(waiting.signo == info.signo for waiting in queue):
        return
    if group:
        task.signal.shared_pending += (info,)
    else:
        task.pending += (info,)
    complete_signal(info.signo, task, group)


@linux("kernel/signal.c")
def complete_signal(sig: int, task: task_struct, group: bool) -> None:
    """Wake a thread that will take the signal.  One that ends the process without a core dump
    reaches every thread as SIGKILL, so it breaks sleeps that only SIGKILL can break, such as the
    parent's in vfork."""
    threads = task.signal.thread_head if group else ()
    taker = next((t for t in (task, *threads) if wants_signal(sig, t)), None)
    if taker is None:
        return
    signal = task.signal
    fatal = sig_fatal(task, sig) and not task.blocked >> sig & 1
    if fatal and sig not in COREDUMP and not signal.flags & SIGNAL_GROUP_EXIT:
        signal.flags |= SIGNAL_GROUP_EXIT
        signal.group_exit_code = sig
        for thread in signal.thread_head:
            thread.pending += (BARE_SIGKILL,)
            signal_wake_up(thread, True)
        return
    signal_wake_up(taker, sig == SIGKILL)


def wants_signal(sig: int, task: task_struct) -> bool:
    """True if the thread can take the signal."""
    if task.flags & PF_EXITING:
        return False
    return sig == SIGKILL or not task.blocked >> sig & 1


def sig_fatal(task: task_struct, sig: int) -> bool:
    """True if the action on ``sig`` is to end the process."""
    return sig_action(task, sig) == "default" and sig not in IGNORED_BY_DEFAULT | STOPPING


def signal_wake_up(task: task_struct, fatal: bool) -> None:
    """Wake the task if a signal, or only a fatal one, can break its sleep."""
    if task.state == TASK_INTERRUPTIBLE or (task.state == TASK_KILLABLE and fatal):
        wake_up_process(task)


@linux("kernel/signal.c")
def send_sig(sig: int, task: task_struct) -> None:
    """Send a signal without a sender to one thread."""
    __send_signal_locked(siginfo(sig), task, False)


@linux("kernel/signal.c")
def force_sig_fault(sig: int, code: int, addr: int, error_code: int = 0) -> None:
    """Raise the signal of a fault of the current task: it cannot be ignored."""
    force_sig_info_to_task(siginfo(sig, code, addr, error_code), current())


@linux("kernel/signal.c")
def force_sig_info_to_task(info: siginfo, task: task_struct) -> None:
    """Send a signal that cannot be ignored: if it is ignored or blocked, the default action is
    restored."""
    if sig_action(task, info.signo) == "ignore" or task.blocked >> info.signo & 1:
        task.sighand.action.put(info.signo, None)
        task.blocked &= ~(1 << info.signo)
    __send_signal_locked(info, task, False)


def force_fatal_sig(sig: int) -> None:
    """Kill the current task by ``sig``, whatever its handlers (an exec that failed past the point
    of no return)."""
    task = current()
    task.sighand.action.put(sig, None)
    task.pending += (siginfo(sig, SI_KERNEL),)


@linux("kernel/signal.c")
def group_send_sig_info(info: siginfo, task: task_struct) -> int:
    """kill(2): send to the process.  init receives only signals that it handles."""
    if info.signo == 0:
        return 0
    unkillable = task.signal.flags & SIGNAL_UNKILLABLE and sig_action(task, info.signo) == "default"
    if not unkillable:
        __send_signal_locked(info, task, True)
    return 0


@linux("kernel/signal.c")
def do_send_specific(info: siginfo, task: task_struct) -> int:
    """tgkill(2): send to one thread, not to the process."""
    unkillable = task.signal.flags & SIGNAL_UNKILLABLE and sig_action(task, info.signo) == "default"
    if info.signo and not unkillable:
        __send_signal_locked(info, task, False)
    return 0


def signal_pending(task: task_struct) -> bool:
    """True if an unblocked signal is pending."""
    return any(
        not task.blocked >> i.signo & 1 for i in (*task.pending, *task.signal.shared_pending)
    )


def fatal_signal_pending(task: task_struct) -> bool:
    """True if SIGKILL is pending."""
    return any(i.signo == SIGKILL for i in (*task.pending, *task.signal.shared_pending))


def _dequeue(task: task_struct) -> siginfo | None:
    """The next signal: SIGKILL, then the synchronous ones, then the lowest number; the task's queue
    before the process's."""

    def rank(info: siginfo) -> tuple[bool, bool, int]:
        return info.signo != SIGKILL, info.signo not in SYNCHRONOUS, info.signo

    own = [i for i in task.pending if not task.blocked >> i.signo & 1]
    if own:
        info = min(own, key=rank)
        task.pending = tuple(i for i in task.pending if i is not info)
        return info
    shared = [i for i in task.signal.shared_pending if not task.blocked >> i.signo & 1]
    if not shared:
        return None
    info = min(shared, key=rank)
    task.signal.shared_pending = tuple(i for i in task.signal.shared_pending if i is not info)
    return info


@linux("kernel/signal.c")
def get_signal() -> list[siginfo]:
    """Take the current task's signals; a fatal one ends it.  Returns those that were handled or
    killed."""
    task = current()
    taken: list[siginfo] = []
    while not task.exit_state and task.state != TASK_DEAD:
        if task.signal.flags & SIGNAL_GROUP_EXIT:  # another signal has ended the process already
            sig = task.signal.group_exit_code & 0x7F
            taken.append(siginfo(sig))
            _fatal(task, sig)
            break
        info = _dequeue(task)
        if info is None:
            break
        action = sig_action(task, info.signo) if info.signo not in (SIGKILL, SIGSTOP) else "default"
        if action == "handle":
            taken.append(info)
        elif action == "default" and info.signo not in IGNORED_BY_DEFAULT:
            taken.append(info)
            _fatal(task, info.signo)
    return taken


def _fatal(task: task_struct, sig: int) -> None:
    """End the process, unless ``sig`` is one that stops it: stopping is not modelled."""
    if sig in STOPPING:
        return
    task.flags |= PF_SIGNALED
    task.exit_code = sig
    system.fatal_signal(task)
