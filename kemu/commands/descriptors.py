"""System calls about open files: open, close, pread, pwrite, ftruncate, fallocate, fsync, fadvise,
pipes.

Where a call moves bytes, the address is one of the task's memory, as in Linux: the kernel itself
stores or loads there, and may fault while it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.abi import words
from kemu.commands.buffer import buffer_of, check_size, seen
from kemu.commands.calls import call
from kemu.language import kinds
from kemu.language.spec import CHANGE, command, flags, keyword, maybe, one
from kemu.readings import DataOutcome, Outcome

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

TASK = maybe("task", kinds.TASK)
FD = one("fd", kinds.FD)
_START = "mkfile /data 2p; spawn app; open app /data rdwr; "
_BUFFER = _START + "mmap app 0x10000 1p rw; "


@command(
    "open",
    arguments=(TASK, one("path", kinds.PATH)),
    options=(flags("flags", words.OPEN_FLAGS),),
    group="files",
    effect=CHANGE,
    summary="open a file",
    more="Gives its descriptor, the lowest free number from 3 on. For reading unless wronly or "
    "rdwr is given; creat makes an "
    "empty file in memory where there is none.",
    examples=(
        _START + "close app 3",
        "spawn app; open app /new rdwr creat; mmap app 1p rw shared fd 3",
    ),
    linux="open(2)",
)
def open_(session: Session, task: Task, path: str, flags: tuple[int, ...]) -> Outcome:
    """Open a file."""
    bits = 0
    for flag in flags:
        bits |= flag
    return call(session, task, "open", path, bits)


@command(
    "memfd_create",
    "memfd",
    arguments=(TASK, one("name", kinds.TITLE)),
    group="files",
    effect=CHANGE,
    summary="make a nameless file of memory",
    more="Gives its descriptor. It is empty: ftruncate gives it a size, mmap with fd maps it.",
    examples=(
        "spawn app; memfd_create app buffer; ftruncate app 3 2p; mmap app 2p rw shared fd 3",
        "spawn app; memfd x",
    ),
    linux="memfd_create(2)",
)
def memfd_create(session: Session, task: Task, name: str) -> Outcome:
    """Make a memory file."""
    return call(session, task, "memfd_create", name)


@command(
    "close",
    arguments=(TASK, FD),
    group="files",
    effect=CHANGE,
    summary="close a file",
    more="Mappings of the file stay.",
    examples=(_START + "close app 3", "spawn app; close app 3"),
    linux="close(2)",
)
def close(session: Session, task: Task, fd: int) -> Outcome:
    """Close a descriptor."""
    return call(session, task, "close", fd)


@command(
    "pread",
    arguments=(
        TASK,
        FD,
        one("addr", kinds.ADDRESS),
        one("size", kinds.SIZE),
        maybe("offset", kinds.OFFSET, 0),
    ),
    group="files",
    effect=CHANGE,
    summary="read from a file into memory",
    more="The kernel stores SIZE bytes from OFFSET of the file at ADDR.",
    examples=(
        _BUFFER + "pread app 3 0x10000 8",
        _BUFFER + "pread app 3 0x10000 16 1p; read app 0x10000",
    ),
    linux="pread(2)",
)
def pread(
    session: Session, *, task: Task, fd: int, addr: int, size: int, offset: int
) -> DataOutcome:
    """Read from a file."""
    check_size(size)
    return _filled(session, task, addr, call(session, task, "pread", fd, addr, size, offset))


def _filled(session: Session, task: Task, address: int, answer: Outcome) -> DataOutcome:
    """The answer with the bytes that the call brought."""
    data = seen(session, task, address, answer.value)
    return DataOutcome(**answer.values(), address=address, data=data)


@command(
    "pwrite",
    arguments=(
        TASK,
        FD,
        one("addr", kinds.ADDRESS),
        one("size", kinds.SIZE),
        maybe("offset", kinds.OFFSET, 0),
    ),
    group="files",
    effect=CHANGE,
    summary="write memory into a file",
    more="The kernel loads SIZE bytes at ADDR and puts them at OFFSET of the file.",
    examples=(
        _BUFFER + 'write app 0x10000 "hello"; pwrite app 3 0x10000 5 100',
        _BUFFER + "pwrite app 3 0x10000 1p 5p; ls",
    ),
    linux="pwrite(2)",
)
def pwrite(session: Session, *, task: Task, fd: int, addr: int, size: int, offset: int) -> Outcome:
    """Write into a file."""
    check_size(size)
    return call(session, task, "pwrite", fd, addr, size, offset)


@command(
    "ftruncate",
    arguments=(TASK, FD, one("size", kinds.OFFSET)),
    group="files",
    effect=CHANGE,
    summary="give a file another size",
    more="Pages behind the new end leave every mapping, private copies too; who touches them gets "
    "SIGBUS.",
    examples=(
        _START + "ftruncate app 3 1p; ls",
        _START + "mmap app 0x20000 2p r file /data; ftruncate app 3 1; read app 0x21000",
    ),
    linux="ftruncate(2)",
)
def ftruncate(session: Session, task: Task, fd: int, size: int) -> Outcome:
    """Set the size of a file."""
    return call(session, task, "ftruncate", fd, size)


@command(
    "fallocate",
    arguments=(TASK, FD, one("offset", kinds.OFFSET), one("length", kinds.OFFSET)),
    options=(flags("flags", words.FALLOCATE_FLAGS),),
    group="files",
    effect=CHANGE,
    summary="make room in a file, or a hole",
    more="punch_hole needs keep_size: the file's own pages in the hole go, private copies of them "
    "stay.",
    examples=(
        _START + "fallocate app 3 0 1p punch_hole keep_size; ls",
        _START + "fallocate app 3 2p 2p; ls",
    ),
    linux="fallocate(2)",
)
def fallocate(
    session: Session, *, task: Task, fd: int, offset: int, length: int, flags: tuple[int, ...]
) -> Outcome:
    """Allocate or free a part of a file."""
    return call(session, task, "fallocate", fd, sum(set(flags)), offset, length)


@command(
    "fsync",
    arguments=(TASK, FD),
    group="files",
    effect=CHANGE,
    summary="write a file's dirty pages to the disk",
    examples=(_START + "fsync app 3", _BUFFER + "pwrite app 3 0x10000 8; fsync app 3"),
    linux="fsync(2)",
)
def fsync(session: Session, task: Task, fd: int) -> Outcome:
    """Write a file back."""
    return call(session, task, "fsync", fd)


@command(
    "fadvise",
    arguments=(
        TASK,
        FD,
        one("advice", kinds.FILE_ADVICE),
        maybe("offset", kinds.OFFSET, 0),
        maybe("length", kinds.OFFSET, 0),
    ),
    group="files",
    effect=CHANGE,
    summary="say what will be done with a file",
    more="dontneed drops clean cached pages that nobody maps, willneed reads ahead. A length of 0 "
    "means to the end.",
    examples=(_START + "fadvise app 3 dontneed; ls", _START + "fadvise app 3 willneed 0 1p"),
    linux="posix_fadvise(2)",
)
def fadvise(
    session: Session, *, task: Task, fd: int, advice: int, offset: int, length: int
) -> Outcome:
    """Give advice about a file."""
    return call(session, task, "fadvise64", fd, offset, length, advice)


@command(
    "pipe2",
    arguments=(TASK,),
    options=(keyword("into", kinds.ADDRESS), flags("flags", words.PIPE_FLAGS)),
    group="files",
    effect=CHANGE,
    summary="make a pipe with a descriptor for each end",
    more="The two descriptors, the end to read from first, are stored as ints at ADDR, on the "
    "task's stack if none is given. "
    "A read of an empty pipe sleeps as long as somebody has the other end open, and a fork opens "
    "it once more.",
    examples=(
        (
            'spawn app; mmap app 0x10000 1p rw; write app 0x10000 "hello"; pipe2 app; write_fd app 4 '
            "0x10000 5; pipe_read app 3 8"
        ),
        "spawn app; pipe2 app; close app 4; pipe_read app 3 8",
    ),
    linux="pipe2(2)",
)
def pipe2(session: Session, task: Task, into: int | None, flags: tuple[int, ...]) -> DataOutcome:
    """Make a pipe with two ends."""
    address = buffer_of(task, 8) if into is None else into
    answer = call(session, task, "pipe2", address, sum(set(flags)))
    data = b"" if answer.error else seen(session, task, address, 8)
    return DataOutcome(**answer.values(), address=address, data=data)


@command(
    "read_fd",
    arguments=(TASK, FD, one("addr", kinds.ADDRESS), one("size", kinds.SIZE)),
    group="files",
    effect=CHANGE,
    summary="read from a file where it stands",
    more="The position belongs to the open file: after fork, parent and child share it. pread "
    "reads at a position of its own.",
    examples=(
        _BUFFER
        + "read_fd app 3 0x10000 4; fork app as child; read_fd child 3 0x10000 4; lseek app 3 0 "
        "cur",
        _BUFFER + "lseek app 3 8; read_fd app 3 0x10000 8",
    ),
    linux="read(2)",
)
def read_fd(session: Session, *, task: Task, fd: int, addr: int, size: int) -> DataOutcome:
    """Read at the file's own position."""
    check_size(size)
    return _filled(session, task, addr, call(session, task, "read", fd, addr, size))


@command(
    "write_fd",
    arguments=(TASK, FD, one("addr", kinds.ADDRESS), one("size", kinds.SIZE)),
    group="files",
    effect=CHANGE,
    summary="write into a pipe, or into a file where it stands",
    more="A pipe without a reader kills the writer by SIGPIPE. pwrite writes at a position of its "
    "own.",
    examples=(
        _BUFFER + 'write app 0x10000 "hello"; write_fd app 3 0x10000 5; lseek app 3 0 cur',
        (
            "spawn app; mmap app 0x10000 1p rw; pipe2 app; close app 3; signal app PIPE ignore; "
            "write_fd app 4 0x10000 5"
        ),
    ),
    linux="write(2)",
)
def write_fd(session: Session, *, task: Task, fd: int, addr: int, size: int) -> Outcome:
    """Write at the file's own position."""
    check_size(size)
    return call(session, task, "write", fd, addr, size)


@command(
    "lseek",
    arguments=(TASK, FD, one("offset", kinds.OFFSET), maybe("whence", kinds.WHENCE, 0)),
    group="files",
    effect=CHANGE,
    summary="say where a file stands",
    more="From the beginning (set), from where it stands (cur) or from its end (end). Gives the "
    "new position.",
    examples=(_START + "lseek app 3 100; lseek app 3 0 cur", _START + "lseek app 3 0 end"),
    linux="lseek(2)",
)
def lseek(session: Session, *, task: Task, fd: int, offset: int, whence: int) -> Outcome:
    """Set the position of an open file."""
    return call(session, task, "lseek", fd, offset, whence)


@command(
    "pipe",
    arguments=(TASK,),
    group="files",
    effect=CHANGE,
    summary="make a pipe",
    more="One descriptor stands for both ends and nobody ever sleeps at it; pipe2 makes two. "
    "vmsplice puts pages into it, "
    "pipe_read takes bytes out.",
    examples=(
        "spawn app; pipe app",
        "spawn app; mmap app 0x10000 1p rw; pipe app; vmsplice app 3 0x10000 8; pipe_read app 3 8",
    ),
    linux="pipe(2)",
)
def pipe(session: Session, task: Task) -> Outcome:
    """Make a pipe."""
    return call(session, task, "pipe")


@command(
    "vmsplice",
    arguments=(TASK, FD, one("addr", kinds.ADDRESS), one("size", kinds.SIZE)),
    group="files",
    effect=CHANGE,
    summary="put pages into a pipe, not copies of them",
    more="The pipe holds a plain reference to each page: who writes to it later changes what is "
    "read from the pipe.",
    examples=(
        (
            "spawn app; mmap app 0x10000 1p rw; pipe app; vmsplice app 3 0x10000 1; write app 0x10000 "
            '"b"; pipe_read app 3 1'
        ),
        "spawn app; pipe app; vmsplice app 3 0x10000 8",
    ),
    linux="vmsplice(2)",
)
def vmsplice(session: Session, task: Task, fd: int, addr: int, size: int) -> Outcome:
    """Splice pages into a pipe."""
    check_size(size)
    return call(session, task, "vmsplice", fd, addr, size)


@command(
    "pipe_read",
    arguments=(TASK, FD, one("size", kinds.SIZE)),
    options=(keyword("into", kinds.ADDRESS),),
    group="files",
    effect=CHANGE,
    summary="read bytes from a pipe",
    more="The bytes go to the task's stack unless into ADDR is given.",
    examples=(
        (
            "spawn app; mmap app 0x10000 1p rw; pipe app; vmsplice app 3 0x10000 8; pipe_read app 3 8 "
            "into 0x10000"
        ),
        "spawn app; pipe app; pipe_read app 3 8",
    ),
    linux="read(2)",
)
def pipe_read(session: Session, task: Task, fd: int, size: int, into: int | None) -> DataOutcome:
    """Read from a pipe."""
    address = buffer_of(task, size) if into is None else into
    check_size(size)
    return _filled(session, task, address, call(session, task, "read", fd, address, size))
