"""Rows of the calls about open files and pipes."""

from __future__ import annotations

from kemu.abi.row import (
    ADDR,
    FD,
    FILE_ADVICE,
    INTO,
    OFFSET,
    PATH,
    SEEK,
    SIZE,
    Arg,
    Call,
    Fuzz,
    flags,
)
from kemu.abi.words import (
    FALLOCATE_FLAGS,
    OPEN_FLAGS,
    PIPE_FLAGS,
    RECORDED_FADVISE,
    RECORDED_FALLOCATE,
)

_BUFFER = "mkfile /data 2p; spawn app; open app /data rdwr; mmap app 0x10000 1p rw; "
_START = "mkfile /data 2p; spawn app; open app /data rdwr; "
_HELLO = 'spawn app; mmap app 0x10000 1p rw; write app 0x10000 "hello"; '
_OFFSETS = (0, 1, 2, 3, 4)
_POSITION = "recorded programs have no file position: use pread, pwrite"

CALLS = (
    Call(
        "open",
        2,
        "files",
        "open a file",
        (
            _START + "close app 3",
            "spawn app; open app /new rdwr creat; mmap app 1p rw shared fd 3",
        ),
        more="Returns its descriptor, the lowest free number from 3 on. The file is opened "
        "for reading unless wronly or rdwr is given; creat makes an empty file in memory if "
        "the path does not exist.",
        args=(PATH, flags(OPEN_FLAGS)),
        returns="fd",
        errnos=(
            "EACCES EEXIST EFAULT EINVAL EISDIR ELOOP EMFILE ENAMETOOLONG ENFILE ENOENT ENOMEM "
            "ENOSPC ENOTDIR EROFS ETXTBSY"
        ),
    ),
    Call(
        "memfd_create",
        319,
        "files",
        "make an anonymous file in memory",
        (
            "spawn app; memfd_create app buffer; ftruncate app 3 2p; mmap app 2p rw shared fd 3",
            "spawn app; memfd x",
        ),
        more="Returns its descriptor. The file is empty: ftruncate gives it a size, mmap with fd "
        "maps it.",
        also=("memfd",),
        args=(Arg("name", "title"),),
        returns="fd",
        errnos="EFAULT EINVAL EMFILE ENFILE ENOMEM",
    ),
    Call(
        "close",
        3,
        "files",
        "close a file",
        (
            _START + "close app 3",
            "spawn app; close app 3",
        ),
        more="Mappings of the file remain.",
        args=(FD,),
        errnos="EBADF EINTR EIO",
        op="close",
        fuzz=Fuzz(1, "io"),
    ),
    Call(
        "pread",
        17,
        "files",
        "read from a file into memory",
        (
            _BUFFER + "pread app 3 0x10000 8",
            _BUFFER + "pread app 3 0x10000 16 1p; read app 0x10000",
        ),
        more="The kernel stores SIZE bytes from OFFSET of the file at ADDR.",
        args=(FD, ADDR, SIZE, OFFSET),
        returns="count",
        fills="addr",
        errnos="EBADF EFAULT EINVAL EIO ESPIPE",
        op="sysread",
        fuzz=Fuzz(2, "io"),
    ),
    Call(
        "pwrite",
        18,
        "files",
        "write to a file from memory",
        (
            _BUFFER + 'write app 0x10000 "hello"; pwrite app 3 0x10000 5 100',
            _BUFFER + "pwrite app 3 0x10000 1p 5p; ls",
        ),
        more="The kernel loads SIZE bytes from ADDR and stores them at OFFSET of the file.",
        args=(FD, ADDR, SIZE, OFFSET),
        returns="count",
        errnos="EBADF EFAULT EFBIG EINVAL EIO ENOSPC ESPIPE",
        op="syswrite",
        fuzz=Fuzz(2, "io"),
    ),
    Call(
        "ftruncate",
        77,
        "files",
        "change the size of a file",
        (
            _START + "ftruncate app 3 1p; ls",
            _START + "mmap app 0x20000 2p r file /data; ftruncate app 3 1; read app 0x21000",
        ),
        more="Pages beyond the new end are unmapped everywhere, private copies too; touching "
        "them raises SIGBUS.",
        args=(FD, Arg("size", "file_size")),
        errnos="EBADF EFBIG EINTR EINVAL EIO EPERM ETXTBSY",
        op="ftruncate",
        fuzz=Fuzz(2, "files"),
    ),
    Call(
        "fallocate",
        285,
        "files",
        "allocate space in a file, or punch a hole",
        (
            _START + "fallocate app 3 0 1p punch_hole keep_size; ls",
            _START + "fallocate app 3 2p 2p; ls",
        ),
        more="punch_hole needs keep_size. It removes the file's own pages in the hole; "
        "private copies of them remain.",
        args=(
            FD,
            Arg("offset", "extent", field="foff", draw=_OFFSETS),
            Arg("length", "extent", field="len", draw=(1, 2, 3, 4)),
            flags(FALLOCATE_FLAGS)._replace(
                default="punch", field="mode", recorded=RECORDED_FALLOCATE, draw=("punch", "alloc")
            ),
        ),
        order="fd flags offset length",
        errnos="EBADF EFBIG EINTR EINVAL EIO ENODEV ENOSPC EOPNOTSUPP EPERM ESPIPE ETXTBSY",
        op="fallocate",
        fuzz=Fuzz(1, "files"),
    ),
    Call(
        "fsync",
        74,
        "files",
        "write a file's dirty pages to the disk",
        (
            _START + "fsync app 3",
            _BUFFER + "pwrite app 3 0x10000 8; fsync app 3",
        ),
        args=(FD,),
        errnos="EBADF EINTR EINVAL EIO ENOSPC EROFS",
        op="fsync",
        fuzz=Fuzz(1, "files"),
    ),
    Call(
        "fadvise64",
        221,
        "files",
        "give advice about a file",
        (
            _START + "fadvise app 3 dontneed; ls",
            _START + "fadvise app 3 willneed 0 1p",
        ),
        more="dontneed drops clean cached pages that are not mapped, willneed reads ahead. A "
        "length of 0 means to the end of the file.",
        linux="posix_fadvise(2)",
        word="fadvise",
        args=(
            FD,
            FILE_ADVICE._replace(recorded=RECORDED_FADVISE),
            Arg("offset", "extent", 0, field="foff", draw=_OFFSETS),
            Arg("length", "extent", 0, field="len", draw=_OFFSETS),
        ),
        order="fd offset length advice",
        errnos="EBADF EINVAL ESPIPE",
        op="fadvise",
        fuzz=Fuzz(1, "files"),
    ),
    Call(
        "pipe",
        None,
        "files",
        "make a pipe",
        (
            "spawn app; pipe app",
            (
                "spawn app; mmap app 0x10000 1p rw; pipe app; vmsplice app 3 0x10000 8; "
                "pipe_read app 3 8"
            ),
        ),
        more="One descriptor serves as both ends, and no call on it ever sleeps; pipe2 makes "
        "two descriptors. vmsplice puts pages into the pipe, pipe_read takes bytes out.",
        returns="fd",
        errnos="EMFILE ENFILE ENOMEM",
    ),
    Call(
        "pipe2",
        293,
        "files",
        "make a pipe with a descriptor for each end",
        (
            _HELLO + "pipe2 app; write_fd app 4 0x10000 5; pipe_read app 3 8",
            "spawn app; pipe2 app; close app 4; pipe_read app 3 8",
        ),
        more="The two descriptors, the reading end first, are stored as ints at ADDR, by "
        "default on the task's stack. Reading an empty pipe sleeps while any process has the "
        "writing end open; after fork, parent and child both do.",
        args=(INTO._replace(size=8), flags(PIPE_FLAGS)),
        fills="into",
        errnos="EFAULT EINVAL EMFILE ENFILE ENOMEM",
        unreal="recorded programs have no pipe flags",
    ),
    Call(
        "read",
        0,
        "files",
        "read from a file at its position",
        (
            _BUFFER
            + (
                "read_fd app 3 0x10000 4; fork app as child; read_fd child 3 0x10000 4; lseek "
                "app 3 0 cur"
            ),
            _BUFFER + "lseek app 3 8; read_fd app 3 0x10000 8",
        ),
        more="The position belongs to the open file: after fork, parent and child share it. "
        "pread reads at a given offset instead.",
        word="read_fd",
        args=(FD, ADDR, SIZE),
        returns="count",
        fills="addr",
        errnos="EAGAIN EBADF EFAULT EINTR EINVAL EIO EISDIR",
        unreal=_POSITION,
    ),
    Call(
        "write",
        1,
        "files",
        "write to a pipe, or to a file at its position",
        (
            _BUFFER + 'write app 0x10000 "hello"; write_fd app 3 0x10000 5; lseek app 3 0 cur',
            (
                "spawn app; mmap app 0x10000 1p rw; pipe2 app; close app 3; signal app PIPE "
                "ignore; write_fd app 4 0x10000 5"
            ),
        ),
        more="Writing to a pipe without a reader raises SIGPIPE. pwrite writes at a given "
        "offset instead.",
        word="write_fd",
        args=(FD, ADDR, SIZE),
        returns="count",
        errnos="EAGAIN EBADF EFAULT EFBIG EINTR EINVAL EIO ENOSPC EPERM EPIPE",
        unreal=_POSITION,
    ),
    Call(
        "lseek",
        8,
        "files",
        "set the position of an open file",
        (
            _START + "lseek app 3 100; lseek app 3 0 cur",
            _START + "lseek app 3 0 end",
        ),
        more="OFFSET counts from the beginning (set, the default), the current position (cur) "
        "or the end (end). Returns the new position.",
        args=(FD, Arg("offset", "offset"), SEEK),
        returns="offset",
        errnos="EBADF EINVAL ENXIO EOVERFLOW ESPIPE",
        unreal=_POSITION,
    ),
    Call(
        "vmsplice",
        278,
        "files",
        "put pages into a pipe without copying them",
        (
            (
                "spawn app; mmap app 0x10000 1p rw; pipe app; vmsplice app 3 0x10000 1; write "
                'app 0x10000 "b"; pipe_read app 3 1'
            ),
            "spawn app; pipe app; vmsplice app 3 0x10000 8",
        ),
        more="The pipe holds a plain reference to each page: a later write to the page changes "
        "what is read from the pipe.",
        args=(FD, ADDR, SIZE),
        host="fd {addr size} 1 0",
        returns="count",
        errnos="EAGAIN EBADF EINVAL ENOMEM EFAULT",
        op="splice",
        fuzz=Fuzz(1, "pins"),
    ),
    Call(
        "read",
        0,
        "files",
        "read bytes from a pipe",
        (
            (
                "spawn app; mmap app 0x10000 1p rw; pipe app; vmsplice app 3 0x10000 8; "
                "pipe_read app 3 8 into 0x10000"
            ),
            "spawn app; pipe app; pipe_read app 3 8",
        ),
        more="The bytes go to the task's stack unless into ADDR is given.",
        word="pipe_read",
        args=(FD, SIZE, INTO),
        order="fd into size",
        returns="count",
        fills="into",
        errnos="EAGAIN EBADF EFAULT EINTR EINVAL EIO EISDIR",
        op="splice_read",
        fuzz=Fuzz(1, "pins"),
    ),
)
