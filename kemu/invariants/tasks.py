"""Tasks and the life of an address space (reference A: numbers 1 to 12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kemu.invariants.registry import ALWAYS, QUIESCENT, Finding, invariant
from kemu.invariants.scan import Scan, listed
from kemu.kernel.include.mm_types import MM_COUNTER_NAMES, mm_struct
from kemu.kernel.include.sched_types import EXIT_DEAD, PF_KTHREAD, TASK_RUNNING, task_struct
from kemu.kernel.include.system import system


@invariant(1, when=ALWAYS)
def mm_counts_are_sane(scan: Scan) -> Iterator[Finding]:
    """``mm_users`` and ``mm_count`` are not negative, and all users together hold one ``mm_count``.

    There are no exceptions.  kernel/fork.c: mmput, __mmdrop."""
    for mm in scan.all_spaces:
        if mm.mm_users < 0 or mm.mm_count < 0:
            yield (
                f"mm of {scan.space(mm)}",
                f"mm_users {mm.mm_users}, mm_count {mm.mm_count}",
                "neither may be below 0",
            )
        elif mm.mm_users and not mm.mm_count:
            yield (
                f"mm of {scan.space(mm)}",
                f"mm_users {mm.mm_users}",
                "mm_count is 0: the structure is free",
            )


@invariant(2, when=QUIESCENT)
def mm_users_are_tasks(scan: Scan) -> Iterator[Finding]:
    """``mm_users`` is the number of tasks with this address space.

    Quiescent, because a task that reads another process's memory is one user more during the read;
    init_mm starts at 2 without users.  kernel/fork.c: copy_mm, mmput."""
    for mm in scan.all_spaces:
        users = sum(task.mm is mm for task in scan.tasks)
        if mm.mm_users != users:
            yield f"mm of {scan.space(mm)}", f"mm_users {mm.mm_users}", f"{users} tasks use it"


@invariant(3, when=QUIESCENT)
def mm_count_is_explained(scan: Scan) -> Iterator[Finding]:
    """``mm_count`` is one for all users together, and one for each CPU that borrows the tables.

    A CPU borrows while it runs a task without an address space.  kernel/sched/core.c:
    context_switch."""
    for mm in [*scan.all_spaces, system.init_mm]:
        lazy = sum(cpu.curr.mm is None and cpu.curr.active_mm is mm for cpu in system.cpus)
        users = 1 if mm.mm_users > 0 else 0
        if mm.mm_count != users + lazy:
            yield (
                f"mm of {scan.space(mm)}",
                f"mm_count {mm.mm_count}",
                f"{users} for its users + {lazy} borrowing CPUs",
            )


@invariant(4, when=QUIESCENT)
def running_tasks_have_tables(scan: Scan) -> Iterator[Finding]:
    """A running task uses its own address space, a running kernel thread a borrowed one.

    A kernel thread that is not running has none.  kernel/sched/core.c: context_switch."""
    running = {id(cpu.curr) for cpu in system.cpus}
    for cpu in system.cpus:
        task = cpu.curr
        if task.active_mm is None or (task.mm is not None and task.active_mm is not task.mm):
            yield (
                f"{scan.task(task)} on CPU {cpu.id}",
                f"active_mm {task.active_mm}",
                f"mm is {task.mm}",
            )
    for task in scan.tasks:
        if task.flags & PF_KTHREAD and id(task) not in running and task.active_mm is not None:
            yield (
                scan.task(task),
                f"active_mm {task.active_mm}",
                "it is a kernel thread that does not run",
            )


@invariant(5, when=ALWAYS)
def dead_tasks_have_no_mm(scan: Scan) -> Iterator[Finding]:
    """A zombie has no address space.

    The converse does not hold: kernel threads have none either.  kernel/exit.c: exit_mm comes
    before exit_notify."""
    for task in scan.tasks:
        if task.exit_state and task.mm is not None:
            yield scan.task(task), f"mm {task.mm}", f"exit_state is {task.exit_state:#x}"


@invariant(6, 7, when=QUIESCENT)
def threads_share_their_process(scan: Scan) -> Iterator[Finding]:
    """Threads of a group share signals, handlers and, while alive, the address space.

    Their tgid is the leader's pid.  kernel/fork.c: copy_process."""
    for task in scan.tasks:
        leader: task_struct = task.group_leader
        if task.tgid != leader.pid:
            yield scan.task(task), f"tgid {task.tgid}", f"its leader is {leader}"
            continue
        shared = task.signal is leader.signal and task.sighand is leader.sighand
        if not shared or (
            task.mm is not None and leader.mm is not None and task.mm is not leader.mm
        ):
            yield (
                scan.task(task),
                "its own signals, handlers or address space",
                f"it is a thread of {scan.task(leader)}",
            )
        elif not any(thread is task for thread in task.signal.thread_head):
            yield scan.task(task), "not in its thread list", "it is a thread"


@invariant(6, when=QUIESCENT)
def shared_structures_are_counted(scan: Scan) -> Iterator[Finding]:
    """The count of a shared structure is the number of tasks that share it.

    This holds for descriptors, signal handlers and the signal structure.  A dead task has no
    descriptors.  kernel/fork.c: copy_files, copy_sighand, copy_signal; kernel/exit.c."""
    sharers: Counter[int] = Counter()
    for task in scan.tasks:
        sharers.update((id(task.files), id(task.sighand), id(task.signal)))
    for task in scan.tasks:
        counts = {
            "sighand count": (task.sighand.count, task.sighand),
            "nr_threads": (task.signal.nr_threads, task.signal),
        }
        if task.files is not None:
            counts["files count"] = (task.files.count, task.files)
        for what, (count, shared) in counts.items():
            if count != sharers[id(shared)]:
                yield scan.task(task), f"{what} {count}", f"{sharers[id(shared)]} tasks have it"


@invariant(9, when=QUIESCENT)
def the_pid_table_knows_the_living(scan: Scan) -> Iterator[Finding]:
    """A task is found under its own pid until it is reaped, and no longer.

    When a thread other than the leader calls exec, the two swap their pids.  kernel/exit.c:
    release_task; kernel/pid.c."""
    for pid, task in sorted(system.tasks.items()):
        if task.pid != pid:
            yield scan.task(task), f"found under pid {pid}", f"its pid is {task.pid}"
        if task.exit_state == EXIT_DEAD:
            yield scan.task(task), "exit_state EXIT_DEAD", "its pid can still be found"


@invariant(8, when=QUIESCENT)
def children_know_their_parent(scan: Scan) -> Iterator[Finding]:
    """A process is on its parent's list of children once, and the parent has not been released.

    Threads are not on such a list.  kernel/exit.c: forget_original_parent, release_task."""
    alive = {id(task) for task in [*scan.tasks, *(cpu.idle for cpu in system.cpus)]}
    standing: set[int] = set()
    for parent in scan.tasks:
        for node in listed(parent.children):
            if node.owner is None:
                yield (
                    scan.task(parent),
                    "its list of children leads to the head of a list",
                    "only tasks are on it",
                )
                continue
            if node.owner.real_parent is not parent:
                yield (
                    scan.task(node.owner),
                    f"real_parent {node.owner.real_parent}",
                    f"it is a child of {scan.task(parent)}",
                )
            standing.add(id(node.owner))
    for task in scan.tasks:
        if task.real_parent is not None and id(task.real_parent) not in alive:
            yield scan.task(task), f"real_parent {task.real_parent}", "that task was released"
        elif task.pid and task.group_leader is task and id(task) not in standing:
            yield scan.task(task), "in no list of children", f"its parent is {task.real_parent}"


@invariant(10, when=QUIESCENT)
def vfork_parents_wait(scan: Scan) -> Iterator[Finding]:
    """A parent waits in vfork if and only if a child has not completed the vfork.

    A parent that was killed no longer waits.  kernel/fork.c: wait_for_vfork_done, mm_release."""
    waited_for = {id(task.vfork_done) for task in scan.tasks if task.vfork_done is not None}
    for task in scan.tasks:
        waits = task.blocked_in == "vfork" and task.state != TASK_RUNNING
        if not task.exit_state and waits != (id(task) in waited_for):
            has = "waits in vfork" if waits else "does not wait"
            yield (
                scan.task(task),
                has,
                "no child has it to complete" if waits else "a vfork child has not completed",
            )


@invariant(11, when=QUIESCENT)
def unused_spaces_are_empty(scan: Scan) -> Iterator[Finding]:
    """An address space without users has no VMA, no resident page and no table but its root.

    The root stays for CPUs that have borrowed it.  kernel/fork.c: __mmput, check_mm."""
    for mm in scan.all_spaces:
        if mm.mm_users:
            continue
        left = _leftovers(mm)
        if left:
            yield f"mm of {scan.space(mm)}", left, "it has no users"


def _leftovers(mm: mm_struct) -> str:
    counted = [
        f"{name} {mm.rss_stat[member]}"
        for member, name in enumerate(MM_COUNTER_NAMES)
        if mm.rss_stat[member]
    ]
    counted += [f"{len(mm.mm_mt)} VMAs"] if len(mm.mm_mt) else []
    return ", ".join(
        counted + ([f"pgtables_bytes {mm.pgtables_bytes}"] if mm.pgtables_bytes else [])
    )


@invariant(58, when=QUIESCENT)
def faults_are_counted_once(scan: Scan) -> Iterator[Finding]:
    """The tasks together are charged with at most as many faults as the machine has counted.

    A fault is charged to one task, or to none if it ended in a signal.  A process's count passes to
    its parent once, in wait4.  mm/memory.c: mm_account_fault; kernel/exit.c."""
    charged = sum(task.min_flt + task.maj_flt for task in scan.tasks)
    for shared in {id(task.signal): task.signal for task in scan.tasks}.values():
        charged += shared.min_flt + shared.maj_flt + shared.cmin_flt + shared.cmaj_flt
    if charged > system.vmstat.PGFAULT:
        yield (
            "the machine",
            f"PGFAULT {system.vmstat.PGFAULT}",
            f"tasks were charged {charged} faults",
        )
