"""fork, vfork and clone: a new task (kernel/fork.c).

    kernel_clone -> copy_process -> dup_task_struct, copy_files, copy_sighand, copy_signal, copy_mm
    (fork_mm.py)
                 -> wake_up_new_task; after vfork the parent sleeps

The flags say what parent and child share.  CLONE_VM shares the address space itself, which gets one
more user; without it the child gets a duplicate that shares each page until one side writes.
"""

from __future__ import annotations

from typing import Any

import attrs

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import put_user, task_size_max
from kemu.kernel.fs.file_table import fput, get_file
from kemu.kernel.include.flags import *
from kemu.kernel.include.lists import INIT_LIST_HEAD, list_add_tail
from kemu.kernel.include.mm_types import files_struct, mm_struct
from kemu.kernel.include.sched_types import (
    PF_FORKNOEXEC,
    PF_SIGNALED,
    SIGNAL_UNKILLABLE,
    TASK_KILLABLE,
    TASK_RUNNING,
    sighand_struct,
    signal_struct,
    task_struct,
)
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.mm_life import mmget, mmput
from kemu.kernel.kernel.sched import wake_up_process
from kemu.kernel.mm.fork_mm import dup_mm
from kemu.kernel.mm.slab import slab_fails
from kemu.machine.atomic import atomic_dec_and_test, atomic_inc, refcount_dec_and_test, refcount_inc
from kemu.trace.frames import linux


@linux("kernel/fork.c")
def kernel_clone(
    flags: int,
    exit_signal: int,
    *,
    stack: int = 0,
    parent_tid: int = 0,
    child_tid: int = 0,
    tls: int = 0,
    name: str = "",
) -> int:
    """fork, vfork and clone: the child's pid, or an error.  After vfork the caller sleeps until the
    child execs or exits."""
    task = copy_process(flags, exit_signal, stack, child_tid, tls, name)
    if isinstance(task, int):
        return task
    if flags & CLONE_PARENT_SETTID:
        put_user(task.pid, parent_tid)
    if flags & CLONE_VFORK:
        task.vfork_done = current()
    wake_up_new_task(task)
    if flags & CLONE_VFORK:
        wait_for_vfork_done(current(), task)
    return task.pid


def _invalid_flags(flags: int) -> bool:
    """The combinations that copy_process refuses."""
    if flags & CLONE_FS and flags & (CLONE_NEWNS | CLONE_NEWUSER):
        return True  #: fs cannot be shared with another namespace -> leave fs out
    if flags & CLONE_THREAD and not flags & CLONE_SIGHAND:
        return True  #: thread needs sighand -> thread sighand vm
    if flags & CLONE_SIGHAND and not flags & CLONE_VM:
        return True  #: sighand needs vm -> sighand vm
    if flags & CLONE_PARENT and current().signal.flags & SIGNAL_UNKILLABLE:
        return True  #: init cannot have siblings -> leave parent out
    if flags & CLONE_THREAD and flags & (CLONE_NEWUSER | CLONE_NEWPID):
        return True  #: a thread must be in its process's namespaces -> leave thread out
    #: pidfd and detached exclude each other -> only one of the two
    return bool(flags & CLONE_PIDFD and flags & CLONE_DETACHED)


@linux("kernel/fork.c")
def copy_process(
    flags: int, exit_signal: int, stack: int, child_tid: int, tls: int, name: str
) -> task_struct | int:
    """A new task like the current one, not running yet; on a negative error everything is
    undone."""
    if _invalid_flags(flags):
        return -EINVAL  #: {_invalid_flags}
    p = dup_task_struct(current(), name)
    if p is None:
        return -ENOMEM  #: {dup_task_struct}
    p.set_child_tid = child_tid if flags & CLONE_CHILD_SETTID else 0
    p.clear_child_tid = child_tid if flags & CLONE_CHILD_CLEARTID else 0
    error = (
        copy_files(flags, p) or copy_sighand(flags, p) or copy_signal(flags, p) or copy_mm(flags, p)
    )
    if stack:
        p.regs.sp = stack
    if not error and flags & CLONE_SETTLS:
        error = set_new_tls(p, tls)
    pid = error or alloc_pid()
    if pid < 0:
        _undo_copy(p)
        return pid
    p.pid = pid
    p.tgid = current().tgid if flags & CLONE_THREAD else p.pid
    _link_task(flags, exit_signal, p)
    if flags & CLONE_VM and not flags & (CLONE_THREAD | CLONE_VFORK) and p.mm is not None:
        p.mm.flags |= MMF_MULTIPROCESS
    return p


@linux("kernel/fork.c")
def dup_task_struct(orig: task_struct, name: str) -> task_struct | None:
    """A copy of the task structure: registers, blocked signals, name; counters at zero.  None when
    out of memory."""
    if slab_fails("task_struct"):
        return None
    regs: Any = orig.regs
    thread: Any = orig.thread
    p = task_struct(pid=0, tgid=0, comm=name or orig.comm, thread=attrs.evolve(thread))
    p.flags = (orig.flags | PF_FORKNOEXEC) & ~PF_SIGNALED
    p.blocked = orig.blocked
    p.regs = attrs.evolve(regs, ax=0)
    p.cpu = system.cpu.id
    return p


def set_new_tls(p: task_struct, tls: int) -> int:
    """Set the FS base of the new task to ``tls``; 0, or -EPERM for a kernel address
    (arch/x86/kernel/process.c)."""
    if tls >= task_size_max():
        return -EPERM  #: the thread-local storage would be a kernel address -> a lower address
    p.thread.fsbase = tls
    return 0


@linux("kernel/fork.c")
def copy_files(flags: int, p: task_struct) -> int:
    """Share the descriptors (CLONE_FILES) or copy them, each with a reference; 0 or -ENOMEM."""
    old = current().files
    if old is None:
        return 0
    if flags & CLONE_FILES:
        atomic_inc(old, "count")
        p.files = old
        return 0
    p.files = dup_fd(old)
    return 0 if p.files is not None else -ENOMEM  #: {dup_fd}


@linux("fs/file.c")
def dup_fd(old: files_struct) -> files_struct | None:
    """A copy of the descriptors, each holding a reference to its file; None when out of memory."""
    if slab_fails("files_cache"):
        return None
    new = files_struct()
    for fd in sorted(old.fd):
        get_file(old.fd[fd])
        new.fd.put(fd, old.fd[fd])
    return new


@linux("kernel/fork.c")
def copy_sighand(flags: int, p: task_struct) -> int:
    """Share the signal actions (CLONE_SIGHAND) or copy them; 0 or -ENOMEM."""
    old = current().sighand
    if flags & CLONE_SIGHAND:
        refcount_inc(old, "count")
        p.sighand = old
        return 0
    if slab_fails("sighand_cache"):
        return -ENOMEM  #: {slab_fails}
    p.sighand = sighand_struct()
    for sig in sorted(old.action):
        p.sighand.action.put(sig, old.action[sig])
    return 0


@linux("kernel/fork.c")
def copy_signal(flags: int, p: task_struct) -> int:
    """Threads share the process's structure; a new process starts with the parent's limits and
    oom_score_adj.  0 or -ENOMEM."""
    old = current().signal
    if flags & CLONE_THREAD:
        p.signal = old
        return 0
    if slab_fails("signal_cache"):
        return -ENOMEM  #: {slab_fails}
    p.signal = signal_struct()
    p.signal.oom_score_adj = old.oom_score_adj
    for resource in sorted(old.rlim):
        p.signal.rlim.put(resource, old.rlim[resource])
    return 0


@linux("kernel/fork.c")
def copy_mm(flags: int, p: task_struct) -> int:
    """Share the address space (CLONE_VM: one more user) or duplicate it; 0 or -ENOMEM."""
    oldmm = current().mm
    if oldmm is None:
        return 0
    if flags & CLONE_VM:
        mmget(oldmm)
        mm: mm_struct | None = oldmm
    else:
        mm = dup_mm(oldmm)
        if mm is None:
            return -ENOMEM  #: {dup_mm}
    p.mm = mm
    p.active_mm = mm
    return 0


def _undo_copy(p: task_struct) -> None:
    """Undo the earlier steps of a copy_process that failed."""
    if p.mm is not None:
        mmput(p.mm)
    if p.sighand is current().sighand:
        refcount_dec_and_test(p.sighand, "count")
    if p.files is not None:
        put_files_struct(p.files)


def put_files_struct(files: files_struct) -> None:
    """Drop a task's share of the descriptors; the last one closes them."""
    if atomic_dec_and_test(files, "count"):
        for fd in sorted(files.fd):
            file = files.fd[fd]
            files.fd.put(fd, None)
            fput(file)


@linux("kernel/pid.c")
def alloc_pid() -> int:
    """The next free pid; -ENOMEM."""
    if slab_fails("pid"):
        return -ENOMEM  #: {slab_fails}
    pid = system.counters.last_pid + 1
    system.counters.last_pid = pid
    return pid


def _link_task(flags: int, exit_signal: int, p: task_struct) -> None:
    """Make the new task visible: parent, children list, thread group, pid table."""
    me = current()
    if flags & (CLONE_PARENT | CLONE_THREAD):
        p.real_parent = me.real_parent
        p.exit_signal = -1 if flags & CLONE_THREAD else me.group_leader.exit_signal
    else:
        p.real_parent = me
        p.exit_signal = exit_signal
    p.parent = p.real_parent
    INIT_LIST_HEAD(p.children)
    p.sibling.owner = p
    if flags & CLONE_THREAD:
        p.group_leader = me.group_leader
        p.signal.nr_threads += 1
        atomic_inc(p.signal, "live")
    else:
        p.group_leader = p
        list_add_tail(p.sibling, p.real_parent.children)
    p.signal.thread_head += (p,)
    system.tasks.put(p.pid, p)


@linux("kernel/sched/core.c")
def wake_up_new_task(p: task_struct) -> None:
    """The child may run from now on."""
    p.state = TASK_RUNNING


# ---------------------------------------------------------------- vfork


@linux("kernel/fork.c")
def wait_for_vfork_done(parent: task_struct, child: task_struct) -> None:
    """Put the parent to sleep; ``complete_vfork_done`` wakes it, and its call then returns the
    child's pid."""
    parent.state = TASK_KILLABLE
    parent.blocked_in = "vfork"
    parent.restart_block = ("vfork", child.pid)


@linux("kernel/fork.c")
def complete_vfork_done(tsk: task_struct) -> None:
    """The child no longer needs the parent's address space: wake the parent."""
    parent = tsk.vfork_done
    tsk.vfork_done = None
    wake_up_process(parent)


@linux("kernel/fork.c")
def mm_release(tsk: task_struct, mm: mm_struct | None) -> None:
    """The task leaves ``mm`` (exec or exit): clear the tid word that it registered and complete a
    vfork."""
    if tsk.clear_child_tid:
        if mm is not None and mm.mm_users > 1:
            put_user(0, tsk.clear_child_tid)
        tsk.clear_child_tid = 0
    if tsk.vfork_done is not None:
        complete_vfork_done(tsk)
