"""The point of no return: the old program goes, the new one takes its place in the same task
(fs/exec.c).

    begin_new_exec    de_thread        the other threads die; the caller becomes the leader
                      exec_mmap        load the new address space, drop the old one
                      ...              handlers go back to default, the task gets its new name
    setup_new_exec    where mappings will go
    setup_arg_pages   the stack to its place, and 128 KiB of room

An error from here on kills the task: there is no program left to return it to.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.mmap_layout import arch_align_stack, arch_pick_mmap_layout
from kemu.kernel.arch.tlbflush import switch_mm_irqs_off
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.fs.binprm import acct_arg_size, linux_binprm
from kemu.kernel.include.flags import *
from kemu.kernel.include.lists import list_add, list_del
from kemu.kernel.include.mm_types import PAGE_ALIGN, PAGE_MASK, mm_struct
from kemu.kernel.include.sched_types import (
    EXIT_DEAD,
    PF_FORKNOEXEC,
    PF_RANDOMIZE,
    SIGNAL_GROUP_EXIT,
    sighand_struct,
    task_struct,
)
from kemu.kernel.include.system import current, current_mm, system
from kemu.kernel.kernel.exit import (
    release_task,
    thread_group_empty,
    thread_group_leader,
    zap_other_threads,
)
from kemu.kernel.kernel.fork import dup_fd, mm_release, put_files_struct
from kemu.kernel.kernel.mm_life import mmput, set_mm_exe_file
from kemu.kernel.kernel.sched import mmdrop
from kemu.kernel.mm.mmap_lock import (
    mmap_read_lock,
    mmap_read_unlock,
    mmap_write_lock,
    mmap_write_unlock,
)
from kemu.kernel.mm.mprotect import mprotect_fixup
from kemu.kernel.mm.slab import slab_fails
from kemu.kernel.mm.stack import expand_stack_locked
from kemu.kernel.mm.vma_exec import relocate_vma_down
from kemu.kernel.mm.zap import tlb_finish_mmu, tlb_gather_mmu
from kemu.machine.atomic import refcount_dec_and_test
from kemu.trace.frames import linux

EXSTACK_DEFAULT, EXSTACK_DISABLE_X, EXSTACK_ENABLE_X = 0, 1, 2
STACK_EXPAND = 131072
TASK_COMM_LEN = 16


@linux("fs/exec.c")
def begin_new_exec(bprm: linux_binprm) -> int:
    """Give up the old program; 0, or a negative error that no program will see."""
    me = current()
    bprm.point_of_no_return = True
    retval = de_thread(me)
    if retval:
        return retval
    retval = unshare_files()
    if retval:
        return retval
    mm = bprm.mm
    assert mm is not None
    set_mm_exe_file(mm, bprm.file)
    acct_arg_size(bprm, 0)
    exec_mmap(mm)
    bprm.mm = None
    retval = unshare_sighand(me)
    if retval:
        return retval
    me.flags &= ~(PF_RANDOMIZE | PF_FORKNOEXEC)
    __set_task_comm(me, bprm.filename.rpartition(b"/")[2])
    flush_signal_handlers(me)
    return 0


# ---------------------------------------------------------------- one thread


@linux("fs/exec.c")
def de_thread(tsk: task_struct) -> int:
    """End the other threads of the process; ``tsk`` is then its leader and has its pid.  0 or
    -EAGAIN."""
    if not thread_group_empty(tsk):
        if tsk.signal.flags & SIGNAL_GROUP_EXIT:
            return -EAGAIN  #: the process is ending
        zap_other_threads(tsk)
        if not thread_group_leader(tsk):
            _replace_leader(tsk, tsk.group_leader)
    tsk.exit_signal = SIGCHLD
    return 0


def _replace_leader(tsk: task_struct, leader: task_struct) -> None:
    """The dead leader becomes an ordinary dead thread; ``tsk`` gets its pid and its place among its
    parent's children."""
    exchange_tids(tsk, leader)
    list_add(tsk.sibling, leader.sibling)
    list_del(leader.sibling)
    tsk.group_leader = tsk
    leader.group_leader = tsk
    leader.exit_signal = -1
    leader.exit_state = EXIT_DEAD
    release_task(leader)


@linux("kernel/pid.c")
def exchange_tids(left: task_struct, right: task_struct) -> None:
    """Two tasks of one process swap their pids."""
    left.pid, right.pid = right.pid, left.pid
    system.tasks.put(left.pid, left)
    system.tasks.put(right.pid, right)


# ---------------------------------------------------------------- a new address space


@linux("fs/exec.c")
def exec_mmap(mm: mm_struct) -> None:
    """Switch the current task to ``mm``, as its only user; its old address space loses a user."""
    tsk = current()
    old_mm = tsk.mm
    exec_mm_release(tsk, old_mm)
    if old_mm is not None:
        mmap_read_lock(old_mm)
    active_mm = tsk.active_mm
    tsk.active_mm = mm
    tsk.mm = mm
    switch_mm_irqs_off(mm)
    if old_mm is not None:
        mmap_read_unlock(old_mm)
        mmput(old_mm)
    elif active_mm is not None:
        mmdrop(active_mm)


@linux("kernel/fork.c")
def exec_mm_release(tsk: task_struct, mm: mm_struct | None) -> None:
    """The task no longer needs ``mm``: a parent that lent it by vfork continues."""
    mm_release(tsk, mm)


# ---------------------------------------------------------------- descriptors, signals, name


@linux("kernel/fork.c")
def unshare_files() -> int:
    """Descriptors that other tasks share are copied (none is close-on-exec here); 0 or -ENOMEM."""
    me = current()
    old = me.files
    if old is None or old.count == 1:
        return 0
    new = dup_fd(old)
    if new is None:
        return -ENOMEM  #: {dup_fd}
    me.files = new
    put_files_struct(old)
    return 0


@linux("fs/exec.c")
def unshare_sighand(me: task_struct) -> int:
    """Signal actions that other processes share (CLONE_SIGHAND) are copied; 0 or -ENOMEM."""
    old = me.sighand
    if old.count == 1:
        return 0
    if slab_fails("sighand_cache"):
        return -ENOMEM  #: {slab_fails}
    new = sighand_struct()
    for sig in sorted(old.action):
        new.action.put(sig, old.action[sig])
    me.sighand = new
    refcount_dec_and_test(old, "count")
    return 0


@linux("kernel/signal.c")
def flush_signal_handlers(tsk: task_struct) -> None:
    """Reset handlers, which went with the old program, to the default.  An ignored signal stays
    ignored."""
    for sig in sorted(tsk.sighand.action):
        if tsk.sighand.action[sig] != "ignore":
            tsk.sighand.action.put(sig, None)


@linux("fs/exec.c")
def __set_task_comm(tsk: task_struct, name: bytes) -> None:
    """Name the task: at most 15 bytes."""
    tsk.comm = name[: TASK_COMM_LEN - 1].decode("utf-8", "replace")


# ---------------------------------------------------------------- layout and stack


@linux("fs/exec.c")
def setup_new_exec(bprm: linux_binprm) -> None:
    """Choose where mappings will go."""
    mm = current_mm()
    arch_pick_mmap_layout(mm, bprm.rlim_stack[0])
    mm.task_size = task_size_max()


@linux("fs/exec.c")
def setup_arg_pages(bprm: linux_binprm, stack_top: int, executable_stack: int) -> int:
    """Move the stack to ``stack_top``, with its final permissions and room to grow; 0, -ENOMEM,
    -EFAULT."""
    mm, vma = current_mm(), bprm.vma
    stack_top = PAGE_ALIGN(arch_align_stack(stack_top))
    min_addr = system.sysctl.mmap_min_addr
    if stack_top < min_addr or vma.vm_end - vma.vm_start >= stack_top - min_addr:
        return -ENOMEM  #: the stack does not fit between {min_addr:#x} and {stack_top:#x}
    stack_shift = vma.vm_end - stack_top
    bprm.p -= stack_shift
    mm.arg_start = bprm.p
    bprm.exec -= stack_shift
    mmap_write_lock(mm)
    ret = _finish_stack(bprm, stack_shift, executable_stack)
    mmap_write_unlock(mm)
    return ret


def _finish_stack(bprm: linux_binprm, stack_shift: int, executable_stack: int) -> int:
    """Set the stack's permissions, place and size; the lock is held."""
    mm, vma = current_mm(), bprm.vma
    vm_flags = VM_STACK_FLAGS | mm.def_flags | VM_STACK_INCOMPLETE_SETUP
    if executable_stack == EXSTACK_ENABLE_X:
        vm_flags |= VM_EXEC
    tlb = tlb_gather_mmu(mm)
    ret = mprotect_fixup(tlb, vma, vma.vm_start, vma.vm_end, vm_flags)
    tlb_finish_mmu(tlb)
    if not ret and stack_shift:
        ret = relocate_vma_down(vma, stack_shift)
    if ret:
        return ret
    vma.vm_flags &= ~VM_STACK_INCOMPLETE_SETUP
    size = vma.vm_end - vma.vm_start + STACK_EXPAND
    mm.start_stack = bprm.p
    #: {expand_stack_locked}
    return (
        -EFAULT
        if expand_stack_locked(vma, vma.vm_end - min(size, bprm.rlim_stack[0] & PAGE_MASK))
        else 0
    )


@linux("fs/exec.c")
def finalize_exec(bprm: linux_binprm) -> None:
    """Keep the stack limit with which the program was set up."""
    current().signal.rlim.put(RLIMIT_STACK, bprm.rlim_stack)
