"""Switching between tasks, and which address space comes along (kernel/sched/core.c).

    user A -> user B             load B's tables
    user A -> kernel thread      keep A's tables, borrowed: active_mm = A's mm, mm_count + 1, the CPU is lazy
    kernel thread -> user A      the same tables: nothing to load; the borrowed reference is dropped

There is no scheduling policy: kemu's user decides who runs (``schedule_to``).  Upward call:
``system.mmdrop``.
"""

from __future__ import annotations

from kemu.kernel.arch.tlbflush import enter_lazy_tlb, switch_mm_irqs_off
from kemu.kernel.include.mm_types import mm_struct
from kemu.kernel.include.sched_types import TASK_DEAD, TASK_RUNNING, percpu, task_struct
from kemu.kernel.include.system import system
from kemu.machine.atomic import atomic_dec_and_test, atomic_inc
from kemu.trace.frames import linux


def mmgrab(mm: mm_struct) -> None:
    """Hold the structure (not the address space)."""
    atomic_inc(mm, "mm_count")


def mmdrop(mm: mm_struct) -> None:
    """Drop a hold on the structure; the last one frees it."""
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
    """What only the next task can do for the one before: drop its borrowed mm, drop a dead task."""
    cpu = system.cpu
    mm = cpu.prev_mm
    if mm is not None:
        cpu.prev_mm = None
        mmdrop(mm)
    if prev.state == TASK_DEAD:
        put_task_struct(prev)


def put_task_struct(task: task_struct) -> None:
    """Drop a reference to the task structure."""
    atomic_dec_and_test(task, "usage")


def schedule_to(task: task_struct) -> None:
    """Let the executing CPU run ``task``; if another CPU runs it, that one goes idle first."""
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
    """The executing CPU has nothing to run."""
    if system.cpu.curr is not system.cpu.idle:
        context_switch(system.cpu.curr, system.cpu.idle)


@linux("kernel/sched/core.c")
def wake_up_process(task: task_struct) -> bool:
    """Make a sleeping task runnable; True if it slept."""
    if task.state in (TASK_RUNNING, TASK_DEAD):
        return False
    task.state = TASK_RUNNING
    return True
