"""The life of an address space: two counts (kernel/fork.c).

    mm_users   tasks that use it, and readers while they read it 0 -> __mmput: unmap everything
    mm_count   holders of the structure; all users count as one  0 -> __mmdrop: free the root table

A kernel thread that borrows the tables holds the structure, not the contents: the process may end
in the meantime.
"""

from __future__ import annotations

from kemu.errors import KernelBug
from kemu.kernel.arch.pgtable import pgd_alloc, pgd_free
from kemu.kernel.arch.tlbflush import switch_mm_irqs_off
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.fs.file_table import fput, get_file
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import MM_COUNTER_NAMES, file, maple_tree, mm_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.kernel.kernel.sched import mmdrop
from kemu.kernel.mm.slab import slab_fails
from kemu.kernel.mm.zap import exit_mmap
from kemu.machine.atomic import atomic_dec_and_test, atomic_inc, atomic_inc_not_zero
from kemu.trace.frames import linux
from kemu.trace.steps import step


def mmget(mm: mm_struct) -> None:
    """Add a user of the address space."""
    atomic_inc(mm, "mm_users")


def mmget_not_zero(mm: mm_struct) -> bool:
    """Add a user, unless the last one is gone already; True if added."""
    return atomic_inc_not_zero(mm, "mm_users")


@linux("kernel/fork.c")
def get_task_mm(task: task_struct) -> mm_struct | None:
    """The task's address space with one more user; None if it has none, or no longer has one.
    The check and the increment are one step, as in Linux under ``task_lock``, which exit_mm takes
    too: the task's own reference is not dropped in between."""
    step()
    mm: mm_struct | None = task.mm
    if mm is not None:
        mm.mm_users += 1
    return mm


@linux("kernel/fork.c")
def mmput(mm: mm_struct) -> None:
    """Drop a user; the last one tears the address space down."""
    if atomic_dec_and_test(mm, "mm_users"):
        __mmput(mm)


@linux("kernel/fork.c")
def __mmput(mm: mm_struct) -> None:
    """The last user is gone: unmap everything, then drop the users' reference to the structure."""
    if mm.mm_users:
        raise KernelBug(f"{mm} is torn down with {mm.mm_users} users")
    exit_mmap(mm)
    set_mm_exe_file(mm, None)
    mmdrop(mm)


@linux("kernel/fork.c")
def __mmdrop(mm: mm_struct) -> None:
    """The last reference to the structure is gone: free the root table."""
    if mm is system.init_mm:
        raise KernelBug("init_mm is dropped")
    _forget_loaded(mm)
    pgd_free(mm)
    check_mm(mm)


def _forget_loaded(mm: mm_struct) -> None:
    """Switch a CPU that still has the dead mm's tables loaded to those of init_mm."""
    executing = system.cpu
    for cpu in system.cpus:
        if cpu.loaded_mm is mm:
            system.cpu = cpu
            switch_mm_irqs_off(system.init_mm)
    system.cpu = executing


@linux("kernel/fork.c")
def check_mm(mm: mm_struct) -> None:
    """All counters must be back at zero."""
    for i, name in enumerate(MM_COUNTER_NAMES):
        if mm.rss_stat[i]:
            raise KernelBug(f"Bad rss-counter state {mm} type:{name} val:{mm.rss_stat[i]}")
    if mm.pgtables_bytes:
        raise KernelBug(f"non-zero pgtables_bytes on freeing {mm}: {mm.pgtables_bytes}")


def set_mm_exe_file(mm: mm_struct, file: file | None) -> None:
    """Set the file of /proc/PID/exe, taking a reference to it."""
    old = mm.exe_file
    if file is not None:
        get_file(file)
    mm.exe_file = file
    if old is not None:
        fput(old)


def allocate_mm() -> mm_struct | None:
    """A blank structure; None when out of memory."""
    if slab_fails("mm_struct"):
        return None
    number = system.counters.next_mm
    system.counters.next_mm = number + 1
    mm = mm_struct(id=number, mm_mt=maple_tree())
    mm.mm_mt.mm = mm
    return mm


@linux("kernel/fork.c")
def mm_init(mm: mm_struct) -> mm_struct | None:
    """Initialise ``mm``: counts at one, no VMAs, a root table with the kernel half, a unique
    context id; None when out of memory."""
    mm.mm_users = 1
    mm.mm_count = 1
    mm.def_flags &= VM_NOHUGEPAGE
    mm.task_size = task_size_max()
    mm.context_id = system.counters.next_ctx
    system.counters.next_ctx += 1
    mm.pgd = pgd_alloc(mm)
    return mm if mm.pgd else None


@linux("kernel/fork.c")
def mm_alloc() -> mm_struct | None:
    """A new empty address space (for exec); None when out of memory."""
    mm = allocate_mm()
    return mm_init(mm) if mm is not None else None
