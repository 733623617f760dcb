"""Tasks: the list, the family, one task in full, its registers."""

from __future__ import annotations

from kemu.errors import UsageError
from kemu.kernel.include import mm_types as mt
from kemu.kernel.include.lists import list_for_each
from kemu.kernel.include.mm_types import mm_struct
from kemu.kernel.include.sched_types import GENERAL_REGISTERS, percpu, task_struct
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.observe.look import looking
from kemu.observe.names import Names, name_of, state_letter, task_flags
from kemu.readings import (
    Descriptor,
    ProcessList,
    RegsReading,
    TaskNode,
    TaskReading,
    TaskRow,
    TaskTree,
)


def rss_pages(mm: mm_struct | None) -> int:
    """Resident pages: file, anonymous and shared memory, not swap (get_mm_rss)."""
    if mm is None:
        return 0
    return sum(mm.rss_stat[i] for i in (mt.MM_FILEPAGES, mt.MM_ANONPAGES, mt.MM_SHMEMPAGES))


def cpu_running(task: task_struct) -> percpu | None:
    """The CPU on which the task runs now."""
    return next((cpu for cpu in system.cpus if cpu.curr is task), None)


def task_row(task: task_struct, names: Names = None) -> TaskRow:
    """One line of a task list."""
    mm, active, parent, on = task.mm, task.active_mm, task.real_parent, cpu_running(task)
    return TaskRow(
        pid=task.pid,
        tgid=task.tgid,
        ppid=parent.tgid if parent is not None else 0,
        comm=task.comm,
        name=name_of(task, names),
        state=state_letter(task),
        mm=mm.id if mm is not None else 0,
        active_mm=active.id if active is not None else 0,
        cpu=task.cpu,
        size=mm.total_vm if mm is not None else 0,
        rss=rss_pages(mm),
        threads=task.signal.nr_threads,
        minor=task.min_flt,
        major=task.maj_flt,
        running_on=on.id if on is not None else None,
        blocked_in=task.blocked_in,
        exit_code=task.exit_code,
    )


def process_list(kernel: Kernel, names: Names = None) -> ProcessList:
    """All tasks by pid."""
    with looking(kernel):
        return ProcessList(tuple(task_row(task, names) for _, task in sorted(system.tasks.items())))


def task_tree(kernel: Kernel, names: Names = None) -> TaskTree:
    """The family: children below their real parent, threads below their leader."""
    with looking(kernel):
        below: dict[int, list[task_struct]] = {}
        for pid, task in sorted(system.tasks.items()):
            below.setdefault(_above(pid, task), []).append(task)
        return TaskTree(tuple(_node(task, below, names) for task in below.get(-1, [])))


def _above(pid: int, task: task_struct) -> int:
    """The pid under which the task is drawn; -1 for a root."""
    above = task.group_leader if pid != task.tgid else task.real_parent
    return (
        above.pid if above is not None and above is not task and above.pid in system.tasks else -1
    )


def _node(task: task_struct, below: dict[int, list[task_struct]], names: Names) -> TaskNode:
    children = tuple(_node(child, below, names) for child in below.get(task.pid, []))
    return TaskNode(task_row(task, names), children)


RLIMIT_NAMES = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")
"""By number (include/uapi/asm-generic/resource.h)."""


def task(kernel: Kernel, task: task_struct, names: Names = None) -> TaskReading:
    """One task in full."""
    with looking(kernel):
        signal = task.signal
        return TaskReading(
            task=task_row(task, names),
            flags=task_flags(task.flags),
            exit_signal=task.exit_signal,
            children=tuple(node.owner.pid for node in list_for_each(task.children)),
            thread_pids=tuple(thread.pid for thread in signal.thread_head),
            actions=tuple(sorted(task.sighand.action.items())),
            pending=tuple(info.signo for info in (*task.pending, *signal.shared_pending)),
            limits=tuple(
                (RLIMIT_NAMES[number] if number < len(RLIMIT_NAMES) else str(number), *limit)
                for number, limit in sorted(signal.rlim.items())
            ),
            descriptors=_descriptors(task),
            vfork=task.vfork_done is not None,
            usage=task.usage,
            child_minor=signal.cmin_flt,
            child_major=signal.cmaj_flt,
        )


def _descriptors(task: task_struct) -> tuple[Descriptor, ...]:
    if task.files is None:
        return ()
    files = sorted(task.files.fd.items())
    return tuple(
        Descriptor(fd, f.f_path, f.f_inode.kind, f.f_inode.i_size, f.f_count) for fd, f in files
    )


def registers(kernel: Kernel, task: task_struct, names: Names = None) -> RegsReading:
    """The task's user registers, and CR3 of the CPU where it runs, or the root that would be
    loaded."""
    with looking(kernel):
        cpu = cpu_running(task)
        if cpu is None and task.mm is None:
            raise UsageError(
                f"{name_of(task, names)} has no user registers",
                hint="it has no address space and does not run",
            )
        regs = task.regs
        return RegsReading(
            pid=task.pid,
            name=name_of(task, names),
            geometry=system.geometry.name,
            cpu=task.cpu if cpu is None else cpu.id,
            running=cpu is not None,
            ip=regs.ip,
            sp=regs.sp,
            ax=regs.ax,
            root=cpu.hw.root if cpu is not None else task.mm.pgd if task.mm is not None else 0,
            pcid=cpu.hw.pcid if cpu is not None else 0,
            fault_address=task.cr2,
            trap=task.trap_nr,
            error_code=task.error_code,
            general=tuple((name, getattr(regs, name)) for name in GENERAL_REGISTERS[1:]),
            flags=regs.flags,
            segments=(
                ("cs", regs.cs),
                ("ss", regs.ss),
                *((name, getattr(task.thread, name)) for name in SEGMENTS),
            ),
        )


SEGMENTS = ("ds", "es", "fsindex", "gsindex", "fsbase", "gsbase")
"""Fields of ``thread_struct``, in the order in which they are shown."""
