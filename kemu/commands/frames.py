"""Commands that look at RAM, the TLBs and the map of the address space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import readings
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import command, maybe, one

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

_START = "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; "
_FRAME = (maybe("task_", kinds.TASK), one("pfn", kinds.FRAME))
_PLACE = (
    "PFN is the number of a frame, or after TASK an address, which means the frame that it leads "
    "to. "
)


def frame_at(session: Session, task: Task | None, number: int) -> int:
    """The frame of that number, or without one the frame at the task's address. Raises UsageError
    where nothing is mapped."""
    from kemu.observe.lookup import physical

    if task is None:
        return number
    found = physical(session.kernel, task, number, session.name_of)
    if found is None:
        raise UsageError(
            f"pfn: nothing is mapped at {number:#x} of {session.name_of(task.pid)}",
            hint="walk shows which tables exist; read touches the page",
            about="pfn",
        )
    return found >> 12


@command(
    "frame",
    arguments=_FRAME,
    summary="one frame: counts, flags, owners",
    more=_PLACE + "Names every holder of a reference: page-table entries, the page cache, the "
    "batches of the LRU, and so which processes share it.",
    examples=(_START + "frame app 0x10000", _START + "fork as kid; frame pfn(kid,0x10000)"),
    linux="struct page, /proc/kpageflags",
)
def frame(session: Session, task_: Task | None, pfn: int) -> readings.FrameReading:
    """The frame and its struct page."""
    from kemu.observe import frames

    return frames.frame(session.kernel, frame_at(session, task_, pfn), session.name_of)


@command(
    "rmap",
    arguments=_FRAME,
    summary="what maps a frame",
    more=_PLACE
    + "Follows the reverse mapping as the kernel does: anon_vma or file, then every VMA that "
    "may map the page: all that share it.",
    examples=(_START + "rmap app 0x10000", _START + "fork as kid; rmap pfn(kid,0x10000)"),
    linux="rmap_walk (mm/rmap.c)",
)
def rmap(session: Session, task_: Task | None, pfn: int) -> readings.RmapReading:
    """The reverse walk from the frame."""
    from kemu.observe import frames

    return frames.rmap(session.kernel, frame_at(session, task_, pfn), session.name_of)


@command(
    "mem",
    summary="the whole of RAM on one screen",
    more="One letter per frame or run of frames: owner, shared, table, kernel, free.",
    examples=("mem", _START + "fork as kid; mem"),
    linux="/proc/kpageflags",
)
def mem(session: Session) -> readings.MemoryMap:
    """All frames."""
    from kemu.observe import frames

    return frames.memory_map(session.kernel, session.name_of)


@command(
    "tlb",
    summary="the contents of the TLBs",
    more="Entries that no longer agree with the page tables are marked stale.",
    examples=("tlb", _START + "tlb"),
    linux="arch/x86/mm/tlb.c",
)
def tlb(session: Session) -> readings.TlbReading:
    """The TLB of each CPU."""
    from kemu.observe import frames

    return frames.tlb(session.kernel, session.name_of)


@command(
    "free",
    summary="free and used memory",
    examples=("free", _START + "free"),
    linux="free(1), /proc/buddyinfo, /proc/vmstat",
)
def free(session: Session) -> readings.FreeReading:
    """The allocator's numbers."""
    from kemu.observe import frames

    return frames.free(session.kernel)


@command(
    "layout",
    arguments=(maybe("task", kinds.TASK),),
    summary="the address space, user and kernel half",
    examples=("spawn app; layout app", _START + "layout"),
    linux="Documentation/arch/x86/x86_64/mm.rst",
)
def layout(session: Session, task: Task) -> readings.LayoutReading:
    """The regions of the architecture, with the task's mappings in them."""
    from kemu.observe import space

    return space.layout(session.kernel, task, session.name_of)
