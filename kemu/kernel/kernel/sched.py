"""Switching between tasks and their address spaces (kernel/sched/core.c); membarrier.

    user A -> user B             load B's tables
    user A -> kernel thread      borrow A's tables: active_mm = A's mm, mm_count + 1, lazy CPU
    kernel thread -> user A      the same tables: nothing to load; the borrowed reference is dropped

There is no scheduling policy: the user of kemu decides which task runs (``schedule_to``).  Upward
call: ``system.mmdrop``.
"""

from __future__ import annotations

from kemu.abi import tasks as abi
from kemu.abi.uapi import *
from kemu.kernel.arch.tlbflush import enter_lazy_tlb, switch_mm_irqs_off
from kemu.kernel.include.linkage import asmlinkage
from kemu.kernel.include.mm_types import mm_struct
from kemu.kernel.include.sched_types import TASK_DEAD, TASK_RUNNING, percpu, task_struct
from kemu.kernel.include.system import current_mm, system
from kemu.machine.atomic import atomic_dec_and_test, atomic_inc, refcount_dec_and_test
from kemu.trace.frames import linux


def mmgrab(mm: mm_struct) -> None:
    """Take a reference to the structure (not to the address space)."""
    atomic_inc(mm, "mm_count")


def mmdrop(mm: mm_struct) -> None:
    """Drop a reference to the structure; the last one frees it."""
    if atomic_dec_and_test(mm, "mm_count"):
        system.mmdrop(mm)


@linux("kernel/sched/core.c")
def context_switch(prev: task_struct, next: task_struct) -> None:
    """This CPU stops running ``prev`` and runs ``next``."""
    cpu = system.cpu
    if next.mm is None:
        assert prev.active_mm is not None
        enter_lazy_tlb(prev.active_mm)
        next.active_mm = prev.active_mm
        if prev.mm is not None:
            mmgrab(prev.active_mm)
        else:
            prev.active_mm = None
    else:
        switch_mm_irqs_off(next.mm)
        if prev.mm is None:
            cpu.prev_mm = prev.active_mm
            prev.active_mm = None
    cpu.curr = next
    next.cpu = cpu.id
    finish_task_switch(prev)


@linux("kernel/sched/core.c")
def finish_task_switch(prev: task_struct) -> None:
    """What only the next task can do for the previous one: drop the mm that it borrowed, and its
    task structure if it is dead."""
    cpu = system.cpu
    mm = cpu.prev_mm
    if mm is not None:
        cpu.prev_mm = None
        mmdrop(mm)
    if prev.state == TASK_DEAD:
        put_task_struct(prev)


def put_task_struct(task: task_struct) -> None:
    """Drop a reference to the task structure."""
    refcount_dec_and_test(task, "usage")


def schedule_to(task: task_struct) -> None:
    """Make the executing CPU run ``task``; a CPU that already runs it goes idle first."""
    for cpu in system.cpus:
        if cpu.curr is task and cpu is not system.cpu:
            _go_idle(cpu)
    if system.cpu.curr is not task:
        context_switch(system.cpu.curr, task)


def _go_idle(cpu: percpu) -> None:
    executing = system.cpu
    system.cpu = cpu
    context_switch(cpu.curr, cpu.idle)
    system.cpu = executing


def schedule_idle() -> None:
    """Make the executing CPU run its idle task."""
    if system.cpu.curr is not system.cpu.idle:
        context_switch(system.cpu.curr, system.cpu.idle)


@linux("kernel/sched/core.c")
def wake_up_process(task: task_struct) -> bool:
    """Make a sleeping task runnable; True if it slept."""
    if task.state in (TASK_RUNNING, TASK_DEAD):
        return False
    task.state = TASK_RUNNING
    return True


# ---------------------------------------------------------------- membarrier

MEMBARRIER_STATE_PRIVATE_EXPEDITED_READY, MEMBARRIER_STATE_PRIVATE_EXPEDITED = 1, 2
MEMBARRIER_STATE_GLOBAL_EXPEDITED_READY, MEMBARRIER_STATE_GLOBAL_EXPEDITED = 4, 8
MEMBARRIER_STATE_PRIVATE_EXPEDITED_SYNC_CORE_READY = 0x10
MEMBARRIER_STATE_PRIVATE_EXPEDITED_SYNC_CORE = 0x20
MEMBARRIER_STATE_PRIVATE_EXPEDITED_RSEQ_READY = 0x40
MEMBARRIER_STATE_PRIVATE_EXPEDITED_RSEQ = 0x80

PRIVATE_STATES = {
    abi.MEMBARRIER_CMD_PRIVATE_EXPEDITED: (
        MEMBARRIER_STATE_PRIVATE_EXPEDITED_READY,
        MEMBARRIER_STATE_PRIVATE_EXPEDITED,
    ),
    abi.MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE: (
        MEMBARRIER_STATE_PRIVATE_EXPEDITED_SYNC_CORE_READY,
        MEMBARRIER_STATE_PRIVATE_EXPEDITED | MEMBARRIER_STATE_PRIVATE_EXPEDITED_SYNC_CORE,
    ),
    abi.MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ: (
        MEMBARRIER_STATE_PRIVATE_EXPEDITED_RSEQ_READY,
        MEMBARRIER_STATE_PRIVATE_EXPEDITED | MEMBARRIER_STATE_PRIVATE_EXPEDITED_RSEQ,
    ),
}
"""A private command: the bit that marks it ready, and the one that its registration sets before."""

REGISTRATIONS = (
    (
        MEMBARRIER_STATE_GLOBAL_EXPEDITED | MEMBARRIER_STATE_GLOBAL_EXPEDITED_READY,
        abi.MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
    ),
    (
        MEMBARRIER_STATE_PRIVATE_EXPEDITED | MEMBARRIER_STATE_PRIVATE_EXPEDITED_READY,
        abi.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
    ),
    (
        MEMBARRIER_STATE_PRIVATE_EXPEDITED_SYNC_CORE
        | MEMBARRIER_STATE_PRIVATE_EXPEDITED_SYNC_CORE_READY,
        abi.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
    ),
    (
        MEMBARRIER_STATE_PRIVATE_EXPEDITED_RSEQ | MEMBARRIER_STATE_PRIVATE_EXPEDITED_RSEQ_READY,
        abi.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ,
    ),
)
"""Bits that are set once a command is registered, and the command that registers it."""


@linux("kernel/sched/membarrier.c")
def membarrier_private_expedited(mm: mm_struct, cmd: int) -> int:
    """0, or -EPERM without registration.  Linux interrupts the CPUs that run the process; here
    there is nothing to order."""
    ready, _ = PRIVATE_STATES[cmd]
    if not mm.membarrier_state & ready:
        return -EPERM  #: the process has not registered for it -> the register_ command first
    return 0


@linux("kernel/sched/membarrier.c")
def membarrier_register_private_expedited(mm: mm_struct, cmd: int) -> int:
    """Register for the private command ``cmd``; 0."""
    ready, registered = PRIVATE_STATES[cmd]
    if mm.membarrier_state & ready:
        return 0
    mm.membarrier_state |= registered
    mm.membarrier_state |= ready
    return 0


@linux("kernel/sched/membarrier.c")
def membarrier_register_global_expedited(mm: mm_struct) -> int:
    """Take part in the global barriers of others; 0."""
    if mm.membarrier_state & MEMBARRIER_STATE_GLOBAL_EXPEDITED_READY:
        return 0
    mm.membarrier_state |= MEMBARRIER_STATE_GLOBAL_EXPEDITED
    mm.membarrier_state |= MEMBARRIER_STATE_GLOBAL_EXPEDITED_READY
    return 0


@linux("kernel/sched/membarrier.c")
def membarrier_get_registrations(mm: mm_struct) -> int:
    """The commands that registered the process, as bits."""
    return sum(cmd for state, cmd in REGISTRATIONS if mm.membarrier_state & state)


@asmlinkage
def sys_membarrier(cmd: int, flags: int = 0, cpu_id: int = 0) -> int:
    """membarrier(2): a mask of commands, 0, -EINVAL or -EPERM.  With MEMBARRIER_CMD_FLAG_CPU only
    the CPU ``cpu_id`` is meant; a CPU that does not exist is not an error."""
    mm = current_mm()
    takes_cpu = cmd == abi.MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ
    if flags and not (takes_cpu and flags == abi.MEMBARRIER_CMD_FLAG_CPU):
        #: command {cmd} does not take the flags {flags:#x}
        #: -> no flags; cpu goes only with private_expedited_rseq
        return -EINVAL
    if cmd == abi.MEMBARRIER_CMD_QUERY:
        return 2 * abi.MEMBARRIER_CMD_GET_REGISTRATIONS - 1
    if cmd in (abi.MEMBARRIER_CMD_GLOBAL, abi.MEMBARRIER_CMD_GLOBAL_EXPEDITED):
        return 0
    if cmd == abi.MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED:
        return membarrier_register_global_expedited(mm)
    if cmd == abi.MEMBARRIER_CMD_GET_REGISTRATIONS:
        return membarrier_get_registrations(mm)
    if cmd in PRIVATE_STATES:
        return membarrier_private_expedited(mm, cmd)
    if cmd > 0 and cmd >> 1 in PRIVATE_STATES:
        return membarrier_register_private_expedited(mm, cmd >> 1)
    return -EINVAL  #: no command {cmd} -> one that membarrier query lists
