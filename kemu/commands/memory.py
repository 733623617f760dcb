"""System calls about mappings: mmap, munmap, mprotect, brk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.abi import uapi, words
from kemu.commands.calls import call
from kemu.language import kinds
from kemu.language.spec import CHANGE, command, flags, keyword, maybe, one
from kemu.readings import Outcome

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.language.kinds import FilePart

TASK = maybe("task", kinds.TASK)
_START = "spawn app; mmap app 0x10000 4p rw; "
_NO_FD = -1


@command(
    "mmap",
    arguments=(
        TASK,
        maybe("addr", kinds.ADDRESS),
        one("length", kinds.SIZE),
        one("prot", kinds.PROT),
    ),
    options=(
        flags("flags", words.MMAP_FLAGS),
        keyword("file", kinds.FILE_PART),
        keyword("fd", kinds.FD),
        keyword("offset", kinds.OFFSET),
    ),
    group="memory",
    effect=CHANGE,
    summary="map memory or a file",
    more="Private anonymous memory unless shared or file says otherwise. Without an address the "
    "kernel looks for a place, "
    "from the top down; an address is a hint unless fixed. file PATH@1p maps from page 1 of the "
    "file on; fd 3 offset 1p does "
    "the same with an open file.",
    examples=(
        "spawn app; mmap app 0x10000 4p rw",
        "spawn app; mmap app 1M r shared; mmap 4p rw populate",
    ),
    linux="mmap(2)",
)
def mmap(
    session: Session,
    *,
    task: Task,
    addr: int | None,
    length: int,
    prot: int,
    flags: tuple[int, ...],
    file: FilePart | None,
    fd: int | None,
    offset: int | None,
) -> Outcome:
    """Map memory."""
    bits = _bits(flags)
    if file is not None:
        return _map_file(session, task, (addr or 0, length, prot, bits), file)
    if fd is None:
        bits |= uapi.MAP_ANONYMOUS
    at = _NO_FD if fd is None else fd
    return call(
        session, task, "mmap", addr or 0, length, prot, bits, at, offset or 0, is_address=True
    )


def _bits(flags: tuple[int, ...]) -> int:
    """MAP_* bits; private unless the flags say otherwise."""
    bits = 0
    for flag in flags:
        bits |= flag
    return bits if bits & 0xF else bits | uapi.MAP_PRIVATE


def _map_file(
    session: Session, task: Task, what: tuple[int, int, int, int], file: FilePart
) -> Outcome:
    """Open the file, map it (`what`: address, length, prot, flags), close it. What the first call
    that fails gave."""
    _, _, prot, bits = what
    fd = call(session, task, "open", file.path, writable_mode(bits, prot))
    if fd.errno:
        return fd
    mapped = call(session, task, "mmap", *what, fd.value, file.offset, is_address=True)
    call(session, task, "close", fd.value)
    return mapped


def writable_mode(bits: int, prot: int) -> int:
    """O_RDWR where a shared mapping could be written, else O_RDONLY."""
    return 2 if bits & uapi.MAP_SHARED and prot & words.PROT["w"] else 0


@command(
    "munmap",
    arguments=(TASK, one("addr", kinds.ADDRESS), one("length", kinds.SIZE)),
    group="memory",
    effect=CHANGE,
    summary="take a mapping away",
    examples=(_START + "munmap app 0x11000 1p", _START + "munmap app 0x10000 4p; maps app"),
    linux="munmap(2)",
)
def munmap(session: Session, task: Task, addr: int, length: int) -> Outcome:
    """Unmap a range."""
    return call(session, task, "munmap", addr, length)


@command(
    "mprotect",
    arguments=(
        TASK,
        one("addr", kinds.ADDRESS),
        one("length", kinds.SIZE),
        one("prot", kinds.PROT),
    ),
    group="memory",
    effect=CHANGE,
    summary="change what may be done with memory",
    examples=(
        _START + "mprotect app 0x11000 1p r",
        _START + "mprotect app 0x10000 4p none; maps app",
    ),
    linux="mprotect(2)",
)
def mprotect(session: Session, task: Task, addr: int, length: int, prot: int) -> Outcome:
    """Change the protection of a range."""
    return call(session, task, "mprotect", addr, length, prot)


@command(
    "brk",
    arguments=(TASK, maybe("addr", kinds.ADDRESS, 0)),
    group="memory",
    effect=CHANGE,
    summary="move the end of the heap",
    more="Gives the end of the heap behind the call; without an address it only asks. The raw call "
    "never fails: where it "
    "cannot move the end, it gives the old one.",
    examples=("spawn app; brk app", "spawn app; brk app app.heap+3p; maps app"),
    linux="brk(2)",
)
def brk(session: Session, task: Task, addr: int) -> Outcome:
    """Move the program break."""
    return call(session, task, "brk", addr, is_address=True)
