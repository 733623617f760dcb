"""Rows of the calls about the caller's own mappings."""

from __future__ import annotations

from kemu.abi.row import ADDR, ADVICE, FD, LENGTH, NEEDED, OFFSET, Arg, Call, Fuzz, flags, prot
from kemu.abi.words import (
    MADVISE,
    MLOCK2_FLAGS,
    MLOCKALL_FLAGS,
    MMAP_FLAGS,
    MREMAP_FLAGS,
    MSYNC_FLAGS,
    RECORDED_ADVICE,
    RECORDED_MAP,
)

_TOUCHED = "spawn app; mmap app 0x10000 4p rw; write app 0x10000 7; "
_SHARED = "mkfile /data 2p; spawn app; mmap app 0x10000 2p rw file /data shared; "
_START = "spawn app; mmap app 0x10000 4p rw; "

PROTS = ("rw-",) * 8 + ("r--",) * 3 + ("---", "-w-", "r-x", "rwx", "--x", "-wx")
_MREMAP: tuple[list[str], ...] = (
    (["maymove", "fixed"],) * 4
    + (["maymove", "fixed", "dontunmap"],) * 3
    + (["maymove"], [], ["fixed"], ["maymove", "dontunmap"])
)
_OFTEN = "FREE GUARD_INSTALL GUARD_REMOVE POPULATE_READ POPULATE_WRITE WIPEONFORK DONTFORK"
_SELDOM = (
    "KEEPONFORK DOFORK REMOVE WILLNEED DONTDUMP DODUMP COLD NOHUGEPAGE SEQUENTIAL RANDOM NORMAL "
    "DONTNEED_LOCKED PAGEOUT BOGUS"
)
_ADVICE = (*["DONTNEED"] * 6, *_OFTEN.split() * 2, *_SELDOM.split())
"""Without MERGEABLE, HUGEPAGE and COLLAPSE, which depend on the configuration of the host."""

_MLOCKALL: tuple[list[str], ...] = (["future"], ["future", "onfault"], ["onfault"], [])
"""Without current, which would also lock the worker's own memory."""

CALLS = (
    Call(
        "mmap",
        9,
        "memory",
        "map memory or a file",
        (
            "spawn app; mmap app 0x10000 4p rw",
            "spawn app; mmap app 1M r shared; mmap 4p rw populate",
        ),
        more="The memory is private and anonymous unless shared or file is given. Without an "
        "address, the kernel chooses one, from the top down; an address is a hint unless "
        "fixed is given. file PATH@1p maps the file from page 1; fd 3 offset 1p does the same "
        "with an open file.",
        args=(
            ADDR,
            LENGTH,
            prot(PROTS),
            flags(MMAP_FLAGS)._replace(default=NEEDED, recorded=RECORDED_MAP),
            FD._replace(default=-1),
            OFFSET,
        ),
        returns="address",
        errnos="EACCES EAGAIN EBADF EINVAL ENODEV ENOMEM EPERM EEXIST EOPNOTSUPP EOVERFLOW",
        op="mmap",
        fuzz=Fuzz(20),
        module="memory",
    ),
    Call(
        "munmap",
        11,
        "memory",
        "remove a mapping",
        (
            _START + "munmap app 0x11000 1p",
            _START + "munmap app 0x10000 4p; maps app",
        ),
        args=(ADDR, LENGTH),
        errnos="EINVAL ENOMEM EPERM",
        op="munmap",
        fuzz=Fuzz(5),
    ),
    Call(
        "mprotect",
        10,
        "memory",
        "change the protection of a range",
        (
            _START + "mprotect app 0x11000 1p r",
            _START + "mprotect app 0x10000 4p none; maps app",
        ),
        args=(ADDR, LENGTH, prot((*PROTS, "rw-d", "r--u", "rw?"))),
        errnos="EACCES EINVAL ENOMEM EPERM",
        op="mprotect",
        fuzz=Fuzz(10, "rights moves io others heap"),
    ),
    Call(
        "brk",
        12,
        "memory",
        "move the end of the heap",
        (
            "spawn app; brk app",
            "spawn app; brk app app.heap+3p; maps app",
        ),
        more="Returns the end of the heap after the call; without an address, only queries "
        "it. The raw call never fails: if it cannot move the end, it returns the old one.",
        args=(ADDR._replace(default=0),),
        returns="address",
        errnos="ENOMEM",
        op="brk",
        unreal="the heap of a program on the host is elsewhere",
        fuzz=Fuzz(1, "heap"),
    ),
    Call(
        "mremap",
        25,
        "memory",
        "make a mapping larger or smaller, or move it",
        (
            _TOUCHED + "mremap app 0x10000 4p 8p",
            _TOUCHED + "mremap app 0x10000 4p 4p maymove fixed to 0x200000; maps app",
        ),
        more="The page-table entries move; the pages stay in place. Without maymove the mapping "
        "grows only if there is room after it; maymove fixed to ADDR names the new place; "
        "dontunmap leaves an empty mapping at the old one; an old length of 0 maps shared "
        "memory again.",
        args=(
            ADDR,
            LENGTH._replace(name="old"),
            Arg("new", "length", field="newlen"),
            flags(MREMAP_FLAGS, draw=_MREMAP),
            Arg("to", "addr", None, field="newpage", option=True),
        ),
        returns="address",
        errnos="EAGAIN EFAULT EINVAL ENOMEM EPERM",
        op="mremap",
        fuzz=Fuzz(8, "moves ranges io heap"),
    ),
    Call(
        "madvise",
        28,
        "memory",
        "give advice about a range",
        (
            _TOUCHED + "madvise app 0x10000 1p dontneed; read app 0x10000",
            _TOUCHED + "madvise app 0x11000 1p guard_install; write app 0x11000 1",
        ),
        more="dontneed and free drop pages, remove punches a hole in a file, populate_read and "
        "populate_write fault pages in, dontfork and wipeonfork set what fork does, "
        "guard_install makes accesses to the pages raise SIGSEGV, guard_remove undoes that; also "
        "cold, pageout, willneed, random, sequential and others.",
        args=(ADDR, LENGTH, ADVICE._replace(recorded=RECORDED_ADVICE, draw=_ADVICE)),
        errnos="EACCES EAGAIN EBADF EFAULT EINVAL EIO ENOMEM EPERM",
        op="madvise",
        remarks={
            MADVISE["hugepage"]: "kemu has no huge pages: each page still takes its own fault",
            MADVISE["collapse"]: "kemu has no huge pages: nothing is collapsed",
            MADVISE["mergeable"]: "kemu has no KSM: equal pages are not merged",
        },
        fuzz=Fuzz(12, "rights ranges files pins"),
    ),
    Call(
        "msync",
        26,
        "memory",
        "write a mapped file back to disk",
        (
            _TOUCHED + "msync app 0x10000 4p sync",
            _SHARED + "write app 0x10000 7; msync app 0x10000 2p sync",
        ),
        more="With sync, dirty pages of a shared file mapping are written to the disk and their "
        "entries become clean and read-only.",
        args=(
            ADDR,
            LENGTH,
            flags(
                MSYNC_FLAGS,
                draw=(["async"], ["sync"], ["sync", "invalidate"], ["async", "sync"], []),
            ),
        ),
        errnos="EBUSY EINVAL ENOMEM",
        op="msync",
        fuzz=Fuzz(1, "files"),
    ),
    Call(
        "mincore",
        27,
        "memory",
        "ask which pages are in memory",
        (
            _TOUCHED + "mincore app 0x10000 4p",
            _TOUCHED + "mmap app 0x20000 1p rw; mincore app 0x10000 4p into 0x20000",
        ),
        more="The answer, one byte per page, is stored on the task's stack unless into ADDR is "
        "given. At most 65536 pages.",
        args=(ADDR, LENGTH, Arg("into", "buffer", None, option=True, size="pages")),
        errnos="EAGAIN EFAULT EINVAL ENOMEM",
        op="mincore",
        fuzz=Fuzz(2, "files"),
        module="memory",
    ),
    Call(
        "mseal",
        462,
        "memory",
        "seal a mapping against changes permanently",
        (
            _TOUCHED + "mseal app 0x10000 4p; munmap app 0x10000 4p",
            _TOUCHED + "mseal app 0x10000 4p; smaps app",
        ),
        args=(ADDR, LENGTH),
        order="addr length 0",
        errnos="EINVAL ENOMEM EPERM",
        op="mseal",
        fuzz=Fuzz(1, "ranges"),
    ),
    Call(
        "remap_file_pages",
        216,
        "memory",
        "map another part of a file into a mapping (deprecated)",
        (
            _SHARED + "remap_file_pages app 0x10000 1p 1",
            _TOUCHED + "remap_file_pages app 0x10000 1p 1",
        ),
        more="PGOFF is a page of the file. Linux now implements it with mmap.",
        args=(
            ADDR,
            LENGTH,
            Arg("pgoff", "number", what="a number", bounds=(0, 2**31), draw=(0, 1, 2, 3)),
        ),
        order="addr length 0 pgoff 0",
        errnos="EINVAL",
        op="remap_file_pages",
        fuzz=Fuzz(1),
    ),
    Call(
        "pkey_mprotect",
        329,
        "memory",
        "mprotect with a protection key",
        (
            _TOUCHED + "pkey_mprotect app 0x10000 1p r -1",
            _TOUCHED + "pkey_mprotect app 0x10000 1p r 1",
        ),
        more="The machine has no protection keys: every key except -1 (none) is refused.",
        args=(
            ADDR,
            LENGTH,
            prot(PROTS),
            Arg("pkey", "number", -1, what="a protection key, or -1 for none", draw=(-1, 0)),
        ),
        errnos="EACCES EINVAL ENOMEM EPERM",
        op="pkey_mprotect",
        fuzz=Fuzz(1),
    ),
    Call(
        "mlock",
        149,
        "memory",
        "lock a range in memory",
        (
            _TOUCHED + "mlock app 0x10000 4p; smaps app",
            _TOUCHED + "mlock app 0x10000 1p; maps app",
        ),
        more="Faults in the whole range at once.",
        args=(ADDR, LENGTH),
        errnos="EAGAIN EINVAL ENOMEM EPERM",
        op="mlock",
        fuzz=Fuzz(3, "ranges locks heap"),
    ),
    Call(
        "mlock2",
        325,
        "memory",
        "lock a range in memory, optionally on first access",
        (
            _TOUCHED + "mlock2 app 0x10000 4p onfault; smaps app",
            _TOUCHED + "mlock2 app 0x10000 4p",
        ),
        more="With onfault, locks each page when it is first touched.",
        args=(ADDR, LENGTH, flags(MLOCK2_FLAGS)),
        errnos="EAGAIN EINVAL ENOMEM EPERM",
    ),
    Call(
        "munlock",
        150,
        "memory",
        "unlock a range",
        (
            _TOUCHED + "mlock app 0x10000 4p; munlock app 0x10000 4p",
            _TOUCHED + "munlock app 0x11000 1p",
        ),
        args=(ADDR, LENGTH),
        errnos="EINVAL ENOMEM",
        op="munlock",
        fuzz=Fuzz(2, "ranges locks"),
    ),
    Call(
        "mlockall",
        151,
        "memory",
        "lock all memory of a process",
        (
            _TOUCHED + "mlockall app current",
            _TOUCHED + "mlockall app future; mmap app 0x20000 2p rw; smaps app",
        ),
        more="current locks the present mappings, future locks later ones, onfault locks each "
        "page when it is first touched.",
        args=(flags(MLOCKALL_FLAGS, draw=_MLOCKALL),),
        errnos="EINVAL ENOMEM EPERM",
        op="mlockall",
        fuzz=Fuzz(1, "locks"),
    ),
    Call(
        "munlockall",
        152,
        "memory",
        "unlock all memory of a process",
        (
            _TOUCHED + "mlockall app current; munlockall app",
            _TOUCHED + "mlock app 0x10000 1p; munlockall app; smaps app",
        ),
        op="munlockall",
        fuzz=Fuzz(1, "locks"),
    ),
)
