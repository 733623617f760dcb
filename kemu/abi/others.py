"""Rows of the calls about pins, other processes' memory, and limits."""

from __future__ import annotations

from kemu.abi.row import (
    ADDR,
    DATA,
    INTO,
    LENGTH,
    MOST_PAGES,
    OTHER,
    RESOURCE,
    SIZE,
    Arg,
    Call,
    Fuzz,
)
from kemu.abi.words import RECORDED_RLIMITS

_TOUCHED = "spawn app; mmap app 0x10000 4p rw; write app 0x10000 7; "
_FAMILY = 'spawn app; mmap app 0x10000 1p rw; write app 0x10000 "hello"; fork app as kid; '

CALLS = (
    Call(
        "pin",
        None,
        "memory",
        "pin a range for a device, long-term",
        (
            _TOUCHED + "pin app 0x10000 1p; frame (pfn(app,0x10000))",
            _TOUCHED + "pin app 0x10000 1p; fork app as kid; walk kid 0x10000",
        ),
        more="As io_uring does with a registered buffer: the pages become exclusive and "
        "cannot move; fork copies them immediately.",
        linux="io_uring_register(2), IORING_REGISTER_BUFFERS",
        args=(ADDR, LENGTH._replace(most=MOST_PAGES)),
        errnos="EFAULT ENOMEM EOPNOTSUPP EOVERFLOW",
        op="pin",
        fuzz=Fuzz(1, "pins"),
    ),
    Call(
        "unpin",
        None,
        "memory",
        "unpin a range",
        (
            _TOUCHED + "pin app 0x10000 1p; unpin app 0x10000 1p",
            _TOUCHED + "unpin app 0x10000 1p",
        ),
        linux="io_uring_register(2), IORING_UNREGISTER_BUFFERS",
        args=(ADDR, LENGTH._replace(most=MOST_PAGES)),
        errnos="EINVAL",
        op="unpin",
        fuzz=Fuzz(1, "pins"),
    ),
    Call(
        "process_vm_readv",
        310,
        "memory",
        "read the memory of another process",
        (
            _FAMILY + "process_vm_readv app kid 0x10000 5",
            _FAMILY + "process_vm_readv kid 0x10000 5; walk kid 0x10000",
        ),
        more="The first task reads from the second; with one task, the current one reads. It "
        "honours page protection; even reading gives the other process its own copy of a page "
        "shared by fork. The bytes go to the reader's stack unless into ADDR is given.",
        args=(OTHER, ADDR, SIZE, INTO),
        order="other into addr size",
        host="other {into size} 1 {addr size} 1 0",
        returns="count",
        fills="into",
        errnos="EFAULT EINVAL ENOMEM EPERM ESRCH",
        op="vmread",
        fuzz=Fuzz(1, "others"),
    ),
    Call(
        "process_vm_writev",
        311,
        "memory",
        "write to the memory of another process",
        (
            _FAMILY + 'process_vm_writev app kid 0x10000 "bye"',
            _FAMILY + "process_vm_writev kid 0x10000 7; read kid 0x10000 8",
        ),
        more="The first task writes to the second; with one task, the current one writes. The "
        "data is on the writer's stack.",
        args=(OTHER, ADDR, DATA),
        order="other data addr size",
        host="other {data size} 1 {addr size} 1 0",
        returns="count",
        errnos="EFAULT EINVAL ENOMEM EPERM ESRCH",
        op="vmwrite",
        fuzz=Fuzz(2, "rights others"),
    ),
    Call(
        "memread",
        None,
        "memory",
        "read /proc/PID/mem",
        (
            _FAMILY + "memread app kid 0x10000 5",
            _FAMILY + "mprotect kid 0x10000 1p none; memread app kid 0x10000 5",
        ),
        more="Reads as a debugger does, including pages that the other process may not read. The "
        "bytes go to the reader's stack unless into ADDR is given.",
        linux="pread(2) on /proc/PID/mem",
        args=(OTHER, ADDR, SIZE, INTO),
        order="other into addr size",
        returns="count",
        fills="into",
        errnos="EACCES EFAULT EIO ESRCH",
        op="memread",
        fuzz=Fuzz(1, "others"),
    ),
    Call(
        "memwrite",
        None,
        "memory",
        "write /proc/PID/mem",
        (
            _FAMILY + 'memwrite app kid 0x10000 "bye"; read kid 0x10000 5',
            _FAMILY + "mprotect kid 0x10000 1p r; memwrite app kid 0x10000 7b; walk kid 0x10000",
        ),
        more="Writes as a debugger does to set a breakpoint: a page that the other process "
        "may not write is first replaced by a private copy.",
        linux="pwrite(2) on /proc/PID/mem",
        args=(OTHER, ADDR, DATA),
        order="other data addr size",
        returns="count",
        errnos="EACCES EFAULT EIO ESRCH",
        op="memwrite",
        fuzz=Fuzz(1, "others"),
    ),
    Call(
        "setrlimit",
        160,
        "memory",
        "set a limit",
        (
            "spawn app; setrlimit app as 1M; mmap app 2M rw",
            "spawn app; setrlimit app stack 64K unlimited",
        ),
        more="as (the whole address space), data, stack, memlock and fsize are in bytes; the "
        "other limits are stored but not enforced. The hard limit is unchanged unless given.",
        linux="setrlimit(2), prlimit(2)",
        also=("prlimit",),
        args=(
            RESOURCE._replace(recorded=RECORDED_RLIMITS, draw=("STACK",)),
            Arg("soft", "limit", draw=(0, 8192, 1 << 16)),
            Arg("hard", "limit", draw=(1 << 40,)),
        ),
        host="resource {soft hard}",
        errnos="EFAULT EINVAL EPERM",
        op="setrlimit",
        fuzz=Fuzz(1, "heap"),
        module="memory",
    ),
)
