"""The words of a recorded program and the numbers that the system calls take for them.

Data only.  A word that is not here does not exist: ``program.py`` refuses it.
"""

from __future__ import annotations

from kemu.abi import uapi, words
from kemu.abi.words import Words

WINDOW_BASE = 0x200000000000
"""Where the window of most programs begins: 2 MiB aligned, one table of entries covers it."""

PROCESSES = "ABCDEFGH"

PROT = {**words.PROT, "d": uapi.PROT_GROWSDOWN, "u": uapi.PROT_GROWSUP, "?": 0x100}
"""Letters of ``prot``; ``?`` is a bit that mprotect does not know."""

MAP = Words(
    "MAP_",
    "shared private shared_validate droppable fixed anon growsdown denywrite executable locked "
    "noreserve populate nonblock stack hugetlb sync fixed_noreplace",
)

MREMAP, MSYNC, MCL = words.MREMAP_FLAGS, words.MSYNC_FLAGS, words.MLOCKALL_FLAGS

MADV = {word.upper(): number for word, number in words.MADVISE.items() if number < 100}
MADV |= {"BOGUS": 77, "GUARD_INSTALL": uapi.MADV_GUARD_INSTALL}
MADV |= {"GUARD_REMOVE": uapi.MADV_GUARD_REMOVE}
"""No hwpoison, no soft_offline: they would break the memory of the computer itself."""

FADVISE = {word.upper(): words.FADVISE[word] for word in list(words.FADVISE)[:5]}
FALLOCATE = {
    "alloc": 0,
    "punch": uapi.FALLOC_FL_PUNCH_HOLE | uapi.FALLOC_FL_KEEP_SIZE,
    "zero": uapi.FALLOC_FL_ZERO_RANGE,
}
RLIMIT = {word.upper(): words.RLIMITS[word] for word in ("fsize", "data", "stack", "memlock", "as")}
OPEN_MODE = {"ro": uapi.O_RDONLY, "wo": uapi.O_WRONLY, "rw": uapi.O_RDWR}
FILE_KINDS = ("memfd", "tmpfs", "disk")

SEGV_CODES, BUS_CODES = (
    {
        code: name.removeprefix(prefix)
        for (number, code), name in words.SIGNAL_CODES.items()
        if number == signo
    }
    for signo, prefix in ((uapi.SIGSEGV, "SEGV_"), (uapi.SIGBUS, "BUS_"))
)
SEGV_CODES[uapi.SI_KERNEL] = "SI_KERNEL"
PF_LETTERS = "PWURI"
"""Bits 0 to 4 of the page-fault error code."""
