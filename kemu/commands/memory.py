"""Commands about memory that do more than their system call: mmap, mincore, setrlimit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.abi import uapi, words
from kemu.abi.calls import BY_WORD
from kemu.commands.buffer import buffer_of, pages_of, seen
from kemu.commands.calls import call
from kemu.commands.syscalls import TASK, own_body, parts
from kemu.language import kinds
from kemu.language.spec import flags, keyword, maybe, one
from kemu.readings import Outcome, Residency

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.language.kinds import FilePart

_NO_FD = -1


@own_body(
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
    """Open the file, map it (`what`: address, length, prot, flags), close it. Returns the outcome
    of mmap, or of open if it fails."""
    _, _, prot, bits = what
    fd = call(session, task, "open", file.path, writable_mode(bits, prot))
    if fd.errno:
        return fd
    mapped = call(session, task, "mmap", *what, fd.value, file.offset, is_address=True)
    call(session, task, "close", fd.value)
    return mapped


def writable_mode(bits: int, prot: int) -> int:
    """O_RDWR for a writable shared mapping, otherwise O_RDONLY."""
    return 2 if bits & uapi.MAP_SHARED and prot & words.PROT["w"] else 0


@own_body("mincore")
def mincore(session: Session, task: Task, addr: int, length: int, into: int | None) -> Residency:
    """Ask which pages are resident."""
    pages = pages_of(length, "mincore")
    vector = buffer_of(task, pages) if into is None else into
    answer = call(session, task, "mincore", addr, length, vector)
    stored = b"" if answer.errno else seen(session, task, vector, pages)
    digits = "".join(str(byte & 1) for byte in stored)
    return Residency(**answer.values(), start=addr, vector=digits)


@own_body(
    "setrlimit",
    arguments=(*parts(BY_WORD["setrlimit"])[0][:-1], maybe("hard", kinds.LIMIT)),
)
def setrlimit(session: Session, task: Task, resource: int, soft: int, hard: int | None) -> Outcome:
    """Set the soft and the hard limit of a resource."""
    if hard is None:
        hard = task.signal.rlim.get(resource, (0, uapi.RLIM_INFINITY))[1]
    return call(session, task, "setrlimit", resource, soft, hard)
