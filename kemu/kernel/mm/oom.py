"""Out of memory: choose a victim (mm/oom_kill.c).

    badness = resident pages + swap entries + page-table pages + oom_score_adj * (all pages / 1000)

The task with the highest badness is killed, and the caller retries its allocation.  The victim is
torn down at once, as if the scheduler had let it run.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    MM_FILEPAGES,
    MM_SHMEMPAGES,
    MM_SWAPENTS,
    PAGE_SIZE,
)
from kemu.kernel.include.mmzone import totalram_pages
from kemu.kernel.include.sched_types import PF_KTHREAD, PF_SIGNALED, siginfo, task_struct
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.sched import schedule_to
from kemu.trace.frames import linux

OOM_SCORE_ADJ_MIN = -1000
LONG_MIN = -(1 << 63)


@linux("mm/oom_kill.c")
def oom_badness(task: task_struct, totalpages: int) -> int:
    """The badness of ``task`` in pages; LONG_MIN if it must not be killed."""
    mm = task.mm
    unkillable = (
        task.pid == 1 or task.flags & PF_KTHREAD or task.signal.oom_score_adj == OOM_SCORE_ADJ_MIN
    )
    if mm is None or unkillable or mm.flags & MMF_OOM_SKIP or task.vfork_done is not None:
        return LONG_MIN
    rss = mm.rss_stat
    points = rss[MM_FILEPAGES] + rss[MM_ANONPAGES] + rss[MM_SHMEMPAGES] + rss[MM_SWAPENTS]
    points += mm.pgtables_bytes // PAGE_SIZE
    return points + task.signal.oom_score_adj * (totalpages // 1000)


@linux("mm/oom_kill.c")
def select_bad_process() -> task_struct | None:
    """The task with the highest badness, the last one of several; None if no task can be killed."""
    totalpages = totalram_pages()
    chosen, best = None, LONG_MIN
    for pid in sorted(system.tasks):
        points = oom_badness(system.tasks[pid], totalpages)
        if points != LONG_MIN and points >= best:
            chosen, best = system.tasks[pid], points
    return chosen


@linux("mm/oom_kill.c")
def out_of_memory() -> bool:
    """Kill a task; True if that may have freed memory, so that the allocation is retried."""
    victim = select_bad_process()
    if victim is None:
        return False
    oom_kill_process(victim)
    return True


@linux("mm/oom_kill.c")
def oom_kill_process(victim: task_struct) -> None:
    """Send SIGKILL to every task that uses the victim's memory.  When this returns they are gone,
    except the caller and the threads of its process, which die when it leaves the kernel."""
    mm = victim.mm
    system.vmstat.OOM_KILL += 1
    me = current()
    for task in [system.tasks[pid] for pid in sorted(system.tasks)]:
        if task.mm is not mm:  # another process, or a thread of one that has just died
            continue
        task.flags |= PF_SIGNALED
        task.exit_code = SIGKILL
        if task is me:
            task.pending += (siginfo(SIGKILL, SI_KERNEL),)
        elif task.signal is not me.signal:
            schedule_to(task)
            system.fatal_signal(task)
            schedule_to(me)


@linux("mm/oom_kill.c")
def pagefault_out_of_memory() -> None:
    """A fault ended with VM_FAULT_OOM: nothing is left to do here; the access is retried unless the
    task was killed."""
