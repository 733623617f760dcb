"""The end of a task, and what remains of it until its parent waits for it (kernel/exit.c).

do_exit -> exit_mm (the address space is dropped: a zombie has no mm) -> exit_notify -> zombie |
reaped at once wait4 -> do_wait -> wait_task_zombie -> release_task: only now is the pid freed
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.errors import KernelBug
from kemu.kernel.arch.tlbflush import enter_lazy_tlb
from kemu.kernel.arch.uaccess import put_user
from kemu.kernel.include.lists import list_add_tail, list_del, list_for_each
from kemu.kernel.include.sched_types import (
    EXIT_DEAD,
    EXIT_ZOMBIE,
    PF_EXITING,
    SIGNAL_GROUP_EXIT,
    TASK_DEAD,
    TASK_INTERRUPTIBLE,
    TASK_RUNNING,
    siginfo,
    task_struct,
)
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.fork import mm_release, put_files_struct
from kemu.kernel.kernel.mm_life import mmput
from kemu.kernel.kernel.sched import (
    mmgrab,
    put_task_struct,
    schedule_idle,
    schedule_to,
    wake_up_process,
)
from kemu.kernel.kernel.signal import (
    BARE_SIGKILL,
    CLD_EXITED,
    CLD_KILLED,
    __send_signal_locked,
    sig_action,
    signal_wake_up,
)
from kemu.kernel.mm.mmap_lock import mmap_read_lock, mmap_read_unlock
from kemu.kernel.mm.process_vm import unpin_user_pages_dirty_lock
from kemu.machine.atomic import atomic_dec_and_test, refcount_dec_and_test
from kemu.trace.frames import linux
from kemu.trace.steps import is_explored, step

WAIT_OPTIONS = WNOHANG | WUNTRACED | WCONTINUED | WNOTHREAD | WALL | WCLONE


# ---------------------------------------------------------------- exit


@linux("kernel/exit.c")
def do_exit(code: int) -> None:
    """End the current task with wait status ``code``; the CPU switches to the idle task."""
    tsk = current()
    if tsk.flags & PF_EXITING:
        raise KernelBug(f"{tsk} exits twice")
    exit_signals(tsk)
    group_dead = atomic_dec_and_test(tsk.signal, "live")
    tsk.exit_code = code
    exit_mm()
    exit_files(tsk)
    exit_notify(tsk, group_dead)
    do_task_dead()


@linux("kernel/signal.c")
def exit_signals(tsk: task_struct) -> None:
    """No signal will be taken any more."""
    tsk.flags |= PF_EXITING


@linux("kernel/exit.c")
def exit_mm() -> None:
    """Stop using the address space.  Its tables stay loaded, borrowed, until a task with an mm
    runs."""
    tsk = current()
    mm = tsk.mm
    mm_release(tsk, mm)
    if mm is None:
        return
    mmap_read_lock(mm)
    mmgrab(mm)
    tsk.mm = None
    enter_lazy_tlb(mm)
    mmap_read_unlock(mm)
    mmput(mm)


def exit_files(tsk: task_struct) -> None:
    """Close the descriptors."""
    held, tsk.io_buffers = tsk.io_buffers, ()
    unpin_user_pages_dirty_lock([page for _, page in held], make_dirty=False)
    files = tsk.files
    if files is not None:
        tsk.files = None
        put_files_struct(files)


@linux("kernel/sched/core.c")
def do_task_dead() -> None:
    """The last schedule of this task."""
    current().state = TASK_DEAD
    schedule_idle()


@linux("kernel/exit.c")
def do_group_exit(code: int) -> None:
    """End all threads of the current process, the caller last."""
    tsk = current()
    signal = tsk.signal
    if not signal.flags & SIGNAL_GROUP_EXIT:
        signal.group_exit_code = code
        signal.flags |= SIGNAL_GROUP_EXIT
        zap_other_threads(tsk)
    do_exit(signal.group_exit_code)


@linux("kernel/signal.c")
def zap_other_threads(tsk: task_struct) -> None:
    """The other threads die now, each in its own context; one that is running on another CPU dies
    on its way back to user mode, as all of them do in Linux."""
    for thread in tsk.signal.thread_head:
        if thread is tsk or thread.flags & PF_EXITING:
            continue
        if is_explored() and any(cpu.curr is thread for cpu in system.cpus):
            thread.pending += (BARE_SIGKILL,)
            signal_wake_up(thread, True)
            continue
        thread.state = TASK_RUNNING
        thread.blocked_in = ""
        schedule_to(thread)
        do_exit(tsk.signal.group_exit_code)
        schedule_to(tsk)


def fatal_signal(tsk: task_struct) -> None:
    """The hook of ``get_signal``: the current task is killed by the signal in ``tsk.exit_code``."""
    do_group_exit(tsk.exit_code)


# ---------------------------------------------------------------- telling the family


@linux("kernel/exit.c")
def exit_notify(tsk: task_struct, group_dead: bool) -> None:
    """Reparent the children, become a zombie, notify the parent; reaped at once if the parent
    ignores SIGCHLD."""
    forget_original_parent(tsk)
    tsk.exit_state = EXIT_ZOMBIE
    autoreap = False
    if thread_group_leader(tsk):
        if thread_group_empty(tsk):
            autoreap = do_notify_parent(tsk, tsk.exit_signal)
    else:
        autoreap = True
    if autoreap:
        tsk.exit_state = EXIT_DEAD
        release_task(tsk)


def thread_group_leader(tsk: task_struct) -> bool:
    """True for the first thread of its process."""
    return tsk.group_leader is tsk


def thread_group_empty(tsk: task_struct) -> bool:
    """True if no other thread of the process remains, dead or alive."""
    return len(tsk.signal.thread_head) == 1


@linux("kernel/signal.c")
def do_notify_parent(tsk: task_struct, sig: int) -> bool:
    """Send the exit signal and wake a waiting parent; True if the parent ignores SIGCHLD and will
    not wait."""
    parent = tsk.parent
    autoreap = sig == SIGCHLD and sig_action(parent, SIGCHLD) == "ignore"
    if sig > 0 and not autoreap:
        status = tsk.exit_code & 0x7F
        code = CLD_KILLED if status else CLD_EXITED
        __send_signal_locked(siginfo(sig, code, pid=tsk.pid), parent, True)
    __wake_up_parent(parent)
    return autoreap


def __wake_up_parent(parent: task_struct) -> None:
    """Wake a thread of the parent that sleeps in wait4, so that it looks again."""
    for thread in parent.signal.thread_head:
        if thread.blocked_in == "wait4":
            wake_up_process(thread)


@linux("kernel/exit.c")
def forget_original_parent(father: task_struct) -> None:
    """The children get a new parent."""
    reaper = find_new_reaper(father)
    for node in list(list_for_each(father.children)):
        child = node.owner
        for thread in child.signal.thread_head:
            thread.real_parent = reaper
            thread.parent = reaper
        reparent_leader(father, child, reaper)


@linux("kernel/exit.c")
def find_new_reaper(father: task_struct) -> task_struct:
    """Another thread of the father's process, else the nearest child subreaper
    (PR_SET_CHILD_SUBREAPER), else init."""
    for thread in father.signal.thread_head:
        if not thread.flags & PF_EXITING:
            found: task_struct = thread
            return found
    ancestor = father.real_parent
    while ancestor is not None and ancestor.pid > 1:
        if ancestor.signal.is_child_subreaper and not ancestor.flags & PF_EXITING:
            subreaper: task_struct = ancestor
            return subreaper
        ancestor = ancestor.real_parent
    return system.tasks[1]


@linux("kernel/exit.c")
def reparent_leader(father: task_struct, child: task_struct, reaper: task_struct) -> None:
    """Move one child to its new parent, and notify the new parent if the child is a zombie."""
    list_del(child.sibling)
    list_add_tail(child.sibling, reaper.children)
    if reaper.signal is father.signal:
        return
    child.exit_signal = SIGCHLD
    if (
        child.exit_state == EXIT_ZOMBIE
        and thread_group_empty(child)
        and do_notify_parent(child, SIGCHLD)
    ):
        child.exit_state = EXIT_DEAD
        release_task(child)


@linux("kernel/exit.c")
def release_task(p: task_struct) -> None:
    """Remove a dead task: its pid can no longer be found."""
    leader = p.group_leader
    if thread_group_leader(p):
        list_del(p.sibling)
    else:
        p.signal.min_flt += p.min_flt
        p.signal.maj_flt += p.maj_flt
    refcount_dec_and_test(p.sighand, "count")
    p.signal.nr_threads -= 1
    p.signal.thread_head = tuple(t for t in p.signal.thread_head if t is not p)
    system.tasks.put(p.pid, None)
    put_task_struct(p)
    last_thread = (
        leader is not p and leader.exit_state == EXIT_ZOMBIE and thread_group_empty(leader)
    )
    if last_thread and do_notify_parent(leader, leader.exit_signal):
        leader.exit_state = EXIT_DEAD
        release_task(leader)


# ---------------------------------------------------------------- wait


@linux("kernel/exit.c")
def kernel_wait4(upid: int, stat_addr: int, options: int) -> int:
    """The pid of a child that ended, its status stored at ``stat_addr`` unless that is 0; 0 with
    WNOHANG if none has ended; -ECHILD, -EINVAL, -ESRCH, -EFAULT; -ERESTARTSYS: the caller
    sleeps."""
    if options & ~WAIT_OPTIONS:
        return -EINVAL  #: unknown options {options:#x} -> no flag other than nohang
    if upid == -(1 << 31):
        return -ESRCH  #: no process group {upid}
    return do_wait(upid, stat_addr, options)


@linux("kernel/exit.c")
def do_wait(upid: int, stat_addr: int, options: int) -> int:
    """Look at the children once; sleep if there are some but none has ended.  This is one step:
    Linux takes tasklist_lock for it."""
    step()
    tsk = current()
    eligible = False
    for thread in tsk.signal.thread_head:
        for node in list_for_each(thread.children):
            child = node.owner
            if not eligible_child(child, upid, options):
                continue
            eligible = True
            if child.exit_state == EXIT_ZOMBIE and thread_group_empty(child):
                return wait_task_zombie(child, stat_addr)
    if not eligible:
        #: no child to wait for -> a child that has not been waited for: see tree
        return -ECHILD
    if options & WNOHANG:
        return 0
    tsk.state = TASK_INTERRUPTIBLE
    tsk.blocked_in = "wait4"
    return -ERESTARTSYS  #: no child has ended yet


def eligible_child(child: task_struct, upid: int, options: int) -> bool:
    """True if the child has the wanted pid (kemu has one process group) and is of the wanted
    kind."""
    if upid > 0 and child.pid != upid:
        return False
    return bool(options & WALL) or (child.exit_signal != SIGCHLD) == bool(options & WCLONE)


@linux("kernel/exit.c")
def wait_task_zombie(p: task_struct, stat_addr: int) -> int:
    """Reap the child: the parent gets its status and fault counts, and the task is released."""
    pid = p.pid
    signal = p.signal
    status = signal.group_exit_code if signal.flags & SIGNAL_GROUP_EXIT else p.exit_code
    p.exit_state = EXIT_DEAD
    mine = current().signal
    mine.cmin_flt += p.min_flt + signal.min_flt + signal.cmin_flt
    mine.cmaj_flt += p.maj_flt + signal.maj_flt + signal.cmaj_flt
    release_task(p)
    if stat_addr and put_user(status, stat_addr):
        #: {put_user} -> an address for the status that is mapped rw
        return -EFAULT
    return pid
