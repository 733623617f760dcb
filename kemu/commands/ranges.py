"""System calls about a range of an address space: mremap, madvise, msync, mincore, mseal, the mlock
family, pins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.abi import words
from kemu.commands.buffer import buffer_of, seen
from kemu.commands.calls import call
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import CHANGE, command, flags, keyword, maybe, one
from kemu.readings import Outcome, Residency

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

TASK = maybe("task", kinds.TASK)
RANGE = (TASK, one("addr", kinds.ADDRESS), one("length", kinds.SIZE))
_START = "spawn app; mmap app 0x10000 4p rw; write app 0x10000 7; "
_SHARED = "mkfile /data 2p; spawn app; mmap app 0x10000 2p rw file /data shared; "
MOST_PAGES = 1 << 16
"""Pages of one `mincore` or `pin`."""


@command(
    "mremap",
    arguments=(TASK, one("addr", kinds.ADDRESS), one("old", kinds.SIZE), one("new", kinds.SIZE)),
    options=(flags("flags", words.MREMAP_FLAGS), keyword("to", kinds.ADDRESS)),
    group="memory",
    effect=CHANGE,
    summary="make a mapping larger or smaller, or move it",
    more="The page-table entries move, the pages stay. Without maymove it grows only where room "
    "follows; fixed maymove to ADDR "
    "names the new place; dontunmap leaves an empty mapping behind; an old length of 0 maps "
    "shared memory once more.",
    examples=(
        _START + "mremap app 0x10000 4p 8p",
        _START + "mremap app 0x10000 4p 4p maymove fixed to 0x200000; maps app",
    ),
    linux="mremap(2)",
)
def mremap(
    session: Session,
    *,
    task: Task,
    addr: int,
    old: int,
    new: int,
    flags: tuple[int, ...],
    to: int | None,
) -> Outcome:
    """Grow, shrink or move a mapping."""
    return call(session, task, "mremap", addr, old, new, sum(set(flags)), to or 0, is_address=True)


@command(
    "madvise",
    arguments=(*RANGE, one("advice", kinds.ADVICE)),
    group="memory",
    effect=CHANGE,
    summary="say what will be done with a range",
    more="dontneed and free drop pages, remove punches a hole into a file, populate_read and "
    "populate_write fault in, dontfork "
    "and wipeonfork say what fork does, guard_install makes pages that kill and guard_remove takes "
    "them away; cold, pageout, "
    "willneed, random, sequential and others.",
    examples=(
        _START + "madvise app 0x10000 1p dontneed; read app 0x10000",
        _START + "madvise app 0x11000 1p guard_install; write app 0x11000 1",
    ),
    linux="madvise(2)",
)
def madvise(session: Session, task: Task, addr: int, length: int, advice: int) -> Outcome:
    """Give advice about a range."""
    return call(session, task, "madvise", addr, length, advice)


@command(
    "msync",
    arguments=RANGE,
    options=(flags("flags", words.MSYNC_FLAGS),),
    group="memory",
    effect=CHANGE,
    summary="write a mapped file back",
    more="With sync the dirty pages of a shared file mapping are written to the disk and their "
    "entries made clean and read-only.",
    examples=(
        _START + "msync app 0x10000 4p sync",
        _SHARED + "write app 0x10000 7; msync app 0x10000 2p sync",
    ),
    linux="msync(2)",
)
def msync(session: Session, task: Task, addr: int, length: int, flags: tuple[int, ...]) -> Outcome:
    """Write dirty pages back."""
    return call(session, task, "msync", addr, length, sum(set(flags)))


@command(
    "mincore",
    arguments=RANGE,
    options=(keyword("into", kinds.ADDRESS),),
    group="memory",
    effect=CHANGE,
    summary="which pages are in memory",
    more="The answer, a byte a page, is stored on the task's stack unless into ADDR is given. At "
    f"most {MOST_PAGES} pages.",
    examples=(
        _START + "mincore app 0x10000 4p",
        _START + "mmap app 0x20000 1p rw; mincore app 0x10000 4p into 0x20000",
    ),
    linux="mincore(2)",
)
def mincore(session: Session, task: Task, addr: int, length: int, into: int | None) -> Residency:
    """Ask which pages are resident."""
    pages = _pages(length, "mincore")
    vector = buffer_of(task, pages) if into is None else into
    answer = call(session, task, "mincore", addr, length, vector)
    stored = b"" if answer.errno else seen(session, task, vector, pages)
    digits = "".join(str(byte & 1) for byte in stored)
    return Residency(**answer.values(), start=addr, vector=digits)


def _pages(length: int, what: str) -> int:
    """Pages of a range. Raises UsageError for too many."""
    pages = (length + 4095) // 4096
    if pages > MOST_PAGES:
        raise UsageError(
            f"length: {pages} pages are too many for one {what}", hint=f"at most {MOST_PAGES}p"
        )
    return pages


@command(
    "mseal",
    arguments=RANGE,
    group="memory",
    effect=CHANGE,
    summary="forbid changes of a mapping for ever",
    examples=(
        _START + "mseal app 0x10000 4p; munmap app 0x10000 4p",
        _START + "mseal app 0x10000 4p; smaps app",
    ),
    linux="mseal(2)",
)
def mseal(session: Session, task: Task, addr: int, length: int) -> Outcome:
    """Seal a range."""
    return call(session, task, "mseal", addr, length)


@command(
    "remap_file_pages",
    arguments=(*RANGE, one("pgoff", kinds.COUNT)),
    group="memory",
    effect=CHANGE,
    summary="show another part of a file in a mapping (the old way)",
    more="PGOFF is a page of the file. Linux does it with mmap today.",
    examples=(
        _SHARED + "remap_file_pages app 0x10000 1p 1",
        _START + "remap_file_pages app 0x10000 1p 1",
    ),
    linux="remap_file_pages(2)",
)
def remap_file_pages(session: Session, task: Task, addr: int, length: int, pgoff: int) -> Outcome:
    """Remap pages of a shared file mapping."""
    return call(session, task, "remap_file_pages", addr, length, 0, pgoff, 0)


@command(
    "pkey_mprotect",
    arguments=(*RANGE, one("prot", kinds.PROT), maybe("pkey", kinds.KEY, -1)),
    group="memory",
    effect=CHANGE,
    summary="mprotect with a protection key",
    more="The machine has no protection keys, so that every key but -1, the one that means none, "
    "is refused.",
    examples=(
        _START + "pkey_mprotect app 0x10000 1p r -1",
        _START + "pkey_mprotect app 0x10000 1p r 1",
    ),
    linux="pkey_mprotect(2)",
)
def pkey_mprotect(
    session: Session, *, task: Task, addr: int, length: int, prot: int, pkey: int
) -> Outcome:
    """Change the protection of a range."""
    return call(session, task, "pkey_mprotect", addr, length, prot, pkey)


@command(
    "mlock",
    arguments=RANGE,
    group="memory",
    effect=CHANGE,
    summary="keep a range in memory",
    more="Faults in all of it at once.",
    examples=(
        _START + "mlock app 0x10000 4p; smaps app",
        _START + "mlock app 0x10000 1p; maps app",
    ),
    linux="mlock(2)",
)
def mlock(session: Session, task: Task, addr: int, length: int) -> Outcome:
    """Lock a range."""
    return call(session, task, "mlock", addr, length)


@command(
    "mlock2",
    arguments=RANGE,
    options=(flags("flags", words.MLOCK2_FLAGS),),
    group="memory",
    effect=CHANGE,
    summary="keep a range in memory, page by page",
    more="With onfault each page is locked when it is first touched, not before.",
    examples=(
        _START + "mlock2 app 0x10000 4p onfault; smaps app",
        _START + "mlock2 app 0x10000 4p",
    ),
    linux="mlock2(2)",
)
def mlock2(session: Session, task: Task, addr: int, length: int, flags: tuple[int, ...]) -> Outcome:
    """Lock a range, perhaps only as it is touched."""
    return call(session, task, "mlock2", addr, length, sum(set(flags)))


@command(
    "munlock",
    arguments=RANGE,
    group="memory",
    effect=CHANGE,
    summary="take the lock off a range",
    examples=(
        _START + "mlock app 0x10000 4p; munlock app 0x10000 4p",
        _START + "munlock app 0x11000 1p",
    ),
    linux="munlock(2)",
)
def munlock(session: Session, task: Task, addr: int, length: int) -> Outcome:
    """Unlock a range."""
    return call(session, task, "munlock", addr, length)


@command(
    "mlockall",
    arguments=(TASK,),
    options=(flags("flags", words.MLOCKALL_FLAGS),),
    group="memory",
    effect=CHANGE,
    summary="keep all memory of a process",
    more="current: what is mapped now; future: what will be; onfault: each page when it is "
    "touched.",
    examples=(
        _START + "mlockall app current",
        _START + "mlockall app future; mmap app 0x20000 2p rw; smaps app",
    ),
    linux="mlockall(2)",
)
def mlockall(session: Session, task: Task, flags: tuple[int, ...]) -> Outcome:
    """Lock everything."""
    return call(session, task, "mlockall", sum(set(flags)))


@command(
    "munlockall",
    arguments=(TASK,),
    group="memory",
    effect=CHANGE,
    summary="take all locks off",
    examples=(
        _START + "mlockall app current; munlockall app",
        _START + "mlock app 0x10000 1p; munlockall app; smaps app",
    ),
    linux="munlockall(2)",
)
def munlockall(session: Session, task: Task) -> Outcome:
    """Unlock everything."""
    return call(session, task, "munlockall")


@command(
    "pin",
    arguments=RANGE,
    group="memory",
    effect=CHANGE,
    summary="let a device use a range: a long-term pin",
    more="As io_uring does with a registered buffer: the pages become exclusive and stay where "
    "they are; fork copies them at "
    "once.",
    examples=(
        _START + "pin app 0x10000 1p; frame (pfn(app,0x10000))",
        _START + "pin app 0x10000 1p; fork app as kid; walk kid 0x10000",
    ),
    linux="io_uring_register(2), IORING_REGISTER_BUFFERS",
)
def pin(session: Session, task: Task, addr: int, length: int) -> Outcome:
    """Register a buffer."""
    _pages(length, "pin")
    return call(session, task, "pin", addr, length)


@command(
    "unpin",
    arguments=RANGE,
    group="memory",
    effect=CHANGE,
    summary="take the pin off a range",
    examples=(_START + "pin app 0x10000 1p; unpin app 0x10000 1p", _START + "unpin app 0x10000 1p"),
    linux="io_uring_register(2), IORING_UNREGISTER_BUFFERS",
)
def unpin(session: Session, task: Task, addr: int, length: int) -> Outcome:
    """Give a registered buffer back."""
    _pages(length, "unpin")
    return call(session, task, "unpin", addr, length)
