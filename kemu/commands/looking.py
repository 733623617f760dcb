"""Commands that show tasks and their address spaces, each as one reading of `observe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import readings
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.result import Shown
from kemu.language.spec import command, flags, maybe, one

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

TASK = maybe("task", kinds.TASK)
_START = "spawn app; mmap app 0x10000 3p rw; write app 0x10000 7; "
_PROC = flags("form", ("proc",), "the kernel's text, byte for byte")
MOST_PAGES = 1 << 16
"""Largest number of pages that one `pagemap` shows."""


@command(
    "ps",
    summary="all tasks",
    examples=("ps", "spawn app; fork as kid; ps"),
    linux="ps(1)",
)
def ps(session: Session) -> readings.ProcessList:
    """Every task, including threads and zombies."""
    from kemu.observe.tasks import process_list

    return process_list(session.kernel, session.name_of)


@command(
    "tree",
    summary="the process tree",
    examples=("tree", "spawn app; fork as kid; tree"),
    linux="pstree(1)",
)
def tree(session: Session) -> readings.TaskTree:
    """The processes as a family."""
    from kemu.observe.tasks import task_tree

    return task_tree(session.kernel, session.name_of)


@command(
    "regs",
    arguments=(TASK,),
    summary="the registers of a task",
    examples=("spawn app; regs app", "spawn app; fork as kid; regs app; regs kid"),
    linux="ptrace(2)",
)
def regs(session: Session, task: Task) -> readings.RegsReading:
    """User registers, and CR3 of the CPU. ax holds the result of the last system call."""
    from kemu.abi.uapi import MAX_ERRNO
    from kemu.abi.words import errno_name
    from kemu.observe.tasks import registers

    found = registers(session.kernel, task, session.name_of)
    failed = (1 << 64) - found.ax
    return found.replace(error=errno_name(failed)) if failed <= MAX_ERRNO else found


@command(
    "mm",
    arguments=(TASK,),
    summary="the address space of a process in numbers",
    more="Shows mm_users and mm_count with their holders, sizes, page-table bytes and the "
    "boundaries of the layout.",
    examples=("spawn app; mm app", "spawn app; clone app vm as thread; mm thread"),
    linux="struct mm_struct",
)
def mm(session: Session, task: Task) -> readings.MmReading:
    """The task's mm_struct."""
    from kemu.observe import space

    _need_mm(session, task)
    return space.mm(session.kernel, task, session.name_of)


@command(
    "maps",
    "vm",
    "vmmap",
    arguments=(TASK,),
    options=(_PROC,),
    summary="the mappings, as /proc/PID/maps",
    more="With proc, prints the kernel's text, byte for byte.",
    examples=(_START + "maps app", _START + "maps app proc"),
    linux="/proc/PID/maps",
)
def maps(session: Session, task: Task, form: tuple[str, ...]) -> Shown:
    """The VMAs, lowest first."""
    from kemu.observe.space import address_space

    return Shown(address_space(task, session.name_of), *form)


@command(
    "smaps",
    arguments=(TASK,),
    options=(flags("form", ("proc", "rollup"), "the kernel's text; the sums over all mappings"),),
    summary="the mappings with their pages, as /proc/PID/smaps",
    more=(
        "With rollup, shows the sums over all mappings; with proc, the kernel's text, byte for "
        "byte."
    ),
    examples=(_START + "smaps app", _START + "smaps app rollup"),
    linux="/proc/PID/smaps",
)
def smaps(session: Session, task: Task, form: tuple[str, ...]) -> Shown:
    """What each VMA has in memory."""
    from kemu.observe import procfs

    _need_mm(session, task)
    look = procfs.smaps_rollup if "rollup" in form else procfs.smaps
    return Shown(look(session.kernel, task, session.name_of), "proc" if "proc" in form else "")


@command(
    "status",
    arguments=(TASK,),
    options=(_PROC,),
    summary="/proc/PID/status",
    examples=("spawn app; status app", "spawn app; status app proc"),
    linux="/proc/PID/status",
)
def status(session: Session, task: Task, form: tuple[str, ...]) -> Shown:
    """State, sizes and signal sets."""
    from kemu.observe import procfs

    return Shown(procfs.status(session.kernel, task), *form)


@command(
    "stat",
    arguments=(TASK,),
    options=(_PROC,),
    summary="/proc/PID/stat",
    examples=("spawn app; stat app", "spawn app; stat app proc"),
    linux="/proc/PID/stat",
)
def stat(session: Session, task: Task, form: tuple[str, ...]) -> Shown:
    """The 52 numbers, with their names."""
    from kemu.observe import procfs

    return Shown(procfs.stat(session.kernel, task), *form)


def _range_of(task: Task, start: int | None, length: int | None) -> tuple[int, int]:
    """The range of `pagemap`, with what was left out. Raises UsageError where there is no
    mapping."""
    vmas = [] if task.mm is None else list(task.mm.mm_mt)
    if start is None:
        start = vmas[0].vm_start if vmas else 0
    if length is None:
        found = next((vma for vma in vmas if vma.vm_start <= start < vma.vm_end), None)
        if found is None:
            raise UsageError(
                f"start: no mapping holds {start:#x}",
                hint="give a length, or see maps",
                about="start",
            )
        length = found.vm_end - start
    return start, length


@command(
    "pagemap",
    arguments=(TASK, maybe("start", kinds.ADDRESS), maybe("length", kinds.SIZE)),
    summary="/proc/PID/pagemap of a range",
    more="Without a length, up to the end of the mapping; without an address, the first mapping. "
    f"At most {MOST_PAGES} pages; pages with a zero word are omitted.",
    examples=(_START + "pagemap app 0x10000 3p", _START + "pagemap app"),
    linux="/proc/PID/pagemap",
)
def pagemap(
    session: Session, task: Task, start: int | None, length: int | None
) -> readings.Pagemap:
    """One 64-bit word per page, with the flags and the mapcount of its frame."""
    from kemu.observe import procfs

    _need_mm(session, task)
    start, length = _range_of(task, start, length)
    if length > MOST_PAGES * 4096:
        raise UsageError(
            f"length: more than {MOST_PAGES} pages", hint="look at a smaller range", about="length"
        )
    end = min(start + length, 2**64)
    return procfs.pagemap(session.kernel, task, start, end, session.name_of)


@command(
    "vma",
    arguments=(TASK, one("addr", kinds.ADDRESS)),
    summary="the mapping at an address",
    more="Shows also its flags, its anon_vma chain and its neighbours; where nothing is "
    "mapped, the mappings on both sides.",
    examples=(_START + "vma app 0x10000", "spawn app; vma app.stack"),
    linux="struct vm_area_struct",
)
def vma(session: Session, task: Task, addr: int) -> readings.VmaDetail:
    """The VMA that holds the address. Raises UsageError where there is none."""
    from kemu.observe import space

    _need_mm(session, task)
    return space.vma(task, addr, session.name_of)


@command(
    "walk",
    "vtop",
    arguments=(TASK, one("addr", kinds.ADDRESS)),
    summary="translate an address, level by level",
    more="Reads the page tables as the MMU does, without side effects. Shows the entries with "
    "their bits, the combined access rights of all levels, the frame, and the TLB entries for "
    "the page.",
    examples=(_START + "walk app 0x10000", _START + "fork as kid; walk kid 0x10000"),
    linux="Documentation/arch/x86/x86_64/mm.rst",
)
def walk(session: Session, task: Task, addr: int) -> readings.Translation:
    """One translation."""
    from kemu.observe import translation

    return translation.walk(session.kernel, task, addr, session.name_of)


@command(
    "pt",
    arguments=(TASK,),
    options=(flags("parts", ("kernel",), "the kernel half too"),),
    summary="the page tables of a process",
    more="Runs of empty entries are folded. With kernel, shows also the kernel half, which "
    "all processes share.",
    examples=(_START + "pt app", _START + "fork as kid; pt kid"),
    linux="/sys/kernel/debug/page_tables",
)
def pt(session: Session, task: Task, parts: tuple[str, ...]) -> readings.PageTables:
    """All tables below the task's pgd."""
    from kemu.observe import translation

    _need_mm(session, task)
    return translation.page_tables(session.kernel, task, session.name_of, kernel_half=bool(parts))


@command(
    "dump",
    "rd",
    "hexdump",
    arguments=(TASK, one("addr", kinds.ADDRESS), maybe("size", kinds.SIZE, 64)),
    summary="the bytes at an address, without touching them",
    more="Unlike read, it does not access the memory: it causes no faults, and marks the "
    "unmapped parts. At most 1 MiB.",
    examples=(_START + "dump app 0x10000", _START + "dump app 0x10ff0 32"),
    linux="/proc/PID/mem; rd of crash(8)",
)
def dump(session: Session, task: Task, addr: int, size: int) -> readings.MemoryDump:
    """The bytes of the range as the tables translate it."""
    from kemu.observe import translation

    return translation.dump(session.kernel, task, addr, min(size, 2**64 - addr), session.name_of)


def _need_mm(session: Session, task: Task) -> None:
    """Raise UsageError for a task without an mm."""
    if task.mm is None:
        name = session.name_of(task.pid)
        why = "it has ended" if task.exit_state else "it is a kernel thread"
        raise UsageError(
            f"{name} has no address space: {why}", hint="ps shows which tasks have one"
        )
