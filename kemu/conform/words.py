"""The words of a recorded program and the numbers that the system calls take for them
(include/uapi, x86-64).

Data only.  A word that is not here does not exist: ``program.py`` refuses it.
"""

from __future__ import annotations

PAGE_SIZE = 4096
WINDOW_BASE = 0x200000000000
"""Where the window of most programs begins: 2 MiB aligned, one table of entries covers it."""

PROCESSES = "ABCDEFGH"

PROT = {"r": 1, "w": 2, "x": 4, "-": 0, "d": 0x01000000, "u": 0x02000000, "?": 0x100}
"""Letters of ``prot``; ``d`` and ``u`` are PROT_GROWSDOWN and PROT_GROWSUP, ``?`` is a bit that
mprotect does not know."""

MAP = {
    "shared": 0x1, "private": 0x2, "shared_validate": 0x3, "droppable": 0x8, "fixed": 0x10, "anon": 0x20,
    "growsdown": 0x100, "denywrite": 0x800, "executable": 0x1000, "locked": 0x2000, "noreserve": 0x4000,
    "populate": 0x8000, "nonblock": 0x10000, "stack": 0x20000, "hugetlb": 0x40000, "sync": 0x80000,
    "fixed_noreplace": 0x100000,
}  # fmt: skip

MREMAP = {"maymove": 1, "fixed": 2, "dontunmap": 4}
MSYNC = {"async": 1, "invalidate": 2, "sync": 4}
MCL = {"current": 1, "future": 2, "onfault": 4}

MADV = {
    "NORMAL": 0, "RANDOM": 1, "SEQUENTIAL": 2, "WILLNEED": 3, "DONTNEED": 4, "FREE": 8, "REMOVE": 9, "DONTFORK": 10,
    "DOFORK": 11, "MERGEABLE": 12, "UNMERGEABLE": 13, "HUGEPAGE": 14, "NOHUGEPAGE": 15, "DONTDUMP": 16, "DODUMP": 17,
    "WIPEONFORK": 18, "KEEPONFORK": 19, "COLD": 20, "PAGEOUT": 21, "POPULATE_READ": 22, "POPULATE_WRITE": 23,
    "DONTNEED_LOCKED": 24, "COLLAPSE": 25, "BOGUS": 77, "GUARD_INSTALL": 102, "GUARD_REMOVE": 103,
}  # fmt: skip

FADVISE = {"NORMAL": 0, "RANDOM": 1, "SEQUENTIAL": 2, "WILLNEED": 3, "DONTNEED": 4}
FALLOCATE = {"alloc": 0, "punch": 3, "zero": 0x10}
RLIMIT = {"FSIZE": 1, "DATA": 2, "STACK": 3, "MEMLOCK": 8, "AS": 9}
OPEN_MODE = {"ro": 0, "wo": 1, "rw": 2}
FILE_KINDS = ("memfd", "tmpfs", "disk")

SEGV_CODES = {1: "MAPERR", 2: "ACCERR", 3: "BNDERR", 4: "PKUERR", 0x80: "SI_KERNEL"}
BUS_CODES = {1: "ADRALN", 2: "ADRERR", 3: "OBJERR"}
PF_LETTERS = "PWURI"
"""Bits 0 to 4 of the page-fault error code."""
