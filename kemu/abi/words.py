"""The words that the shell and recordings use for the numbers of `uapi`, and the numbers' names.

Words("MAP_", "private shared anon")   {"private": MAP_PRIVATE, "shared": ..., "anon": ...}
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kemu.abi import uapi

_NUMBERS: dict[str, Any] = vars(uapi)


class Words(dict[str, int]):
    """Word -> number. `prefix`: the part of Linux's name before the word in capitals."""

    def __init__(
        self, prefix: str, words: str, numbers: Mapping[str, Any] = MappingProxyType(vars(uapi))
    ) -> None:
        """`numbers`: where Linux's names are defined, for one call alone the module of its row."""
        self.prefix = prefix
        super().__init__((word, numbers[prefix + word.upper()]) for word in words.split())

    def in_c(self, name: str) -> str:
        """The word for Linux's name: `anon` for MAP_ANONYMOUS; the name itself for any other."""
        if not name.startswith(self.prefix):
            return name
        word = SYNONYMS.get(name, name.removeprefix(self.prefix).lower())
        return word if word in self else name


SYNONYMS = {
    "MAP_ANONYMOUS": "anon",
    "RLIM_INFINITY": "unlimited",
    "SIG_DFL": "default",
    "SIG_IGN": "ignore",
}
"""Names of Linux that are not the word in capitals after a prefix."""


PROT = {"r": uapi.PROT_READ, "w": uapi.PROT_WRITE, "x": uapi.PROT_EXEC, "-": uapi.PROT_NONE}
PROT_WORDS = Words("PROT_", "none growsdown growsup")
MMAP_FLAGS = Words(
    "MAP_",
    "private shared shared_validate droppable anon fixed fixed_noreplace growsdown locked "
    "noreserve populate nonblock stack hugetlb sync",
)
CLONE_FLAGS = Words(
    "CLONE_",
    "vm fs files sighand vfork parent thread newns sysvsem settls parent_settid child_cleartid "
    "detached untraced child_settid newuser newpid io",
)
WAIT_FLAGS = Words("W", "nohang")
MREMAP_FLAGS = Words("MREMAP_", "maymove fixed dontunmap")
MSYNC_FLAGS = Words("MS_", "async invalidate sync")
MLOCKALL_FLAGS = Words("MCL_", "current future onfault")
MLOCK2_FLAGS = Words("MLOCK_", "onfault")
OPEN_FLAGS = Words("O_", "rdonly wronly rdwr creat")
PIPE_FLAGS = Words("O_", "nonblock")
WHENCE = Words("SEEK_", "set cur end data hole")
FALLOCATE_FLAGS = Words(
    "FALLOC_FL_", "keep_size punch_hole collapse_range zero_range insert_range unshare_range"
)
MADVISE = Words(
    "MADV_",
    "normal random sequential willneed dontneed free remove dontfork dofork mergeable unmergeable "
    "hugepage nohugepage dontdump dodump wipeonfork keeponfork cold pageout populate_read "
    "populate_write dontneed_locked collapse hwpoison soft_offline guard_install guard_remove",
)
FADVISE = Words("POSIX_FADV_", "normal random sequential willneed dontneed noreuse")
RLIMITS = Words(
    "RLIMIT_",
    "cpu fsize data stack core rss nproc nofile memlock as locks sigpending msgqueue nice rtprio "
    "rttime",
)

RECORDED_MAP = Words(
    "MAP_",
    "shared private shared_validate droppable fixed anon growsdown denywrite executable locked "
    "noreserve populate nonblock stack hugetlb sync fixed_noreplace",
)
"""From here on: words of recorded programs; other flags use the shell's words."""
RECORDED_ADVICE = {
    **{word.upper(): MADVISE[word] for word in MADVISE if MADVISE[word] <= uapi.MADV_COLLAPSE},
    "BOGUS": 77,
    "GUARD_INSTALL": uapi.MADV_GUARD_INSTALL,
    "GUARD_REMOVE": uapi.MADV_GUARD_REMOVE,
}
"""Without hwpoison and soft_offline, which would disable memory of the host."""
RECORDED_FADVISE = {word.upper(): FADVISE[word] for word in list(FADVISE)[:5]}
RECORDED_FALLOCATE = {
    "alloc": 0,
    "punch": uapi.FALLOC_FL_PUNCH_HOLE | uapi.FALLOC_FL_KEEP_SIZE,
    "zero": uapi.FALLOC_FL_ZERO_RANGE,
}
RECORDED_RLIMITS = {
    word.upper(): RLIMITS[word] for word in ("fsize", "data", "stack", "memlock", "as")
}

SIGNALS = {
    name[3:]: number
    for name, number in _NUMBERS.items()
    if name.startswith("SIG") and isinstance(number, int)
}
"""`SEGV`: 11."""
STOPPING = frozenset((uapi.SIGSTOP, uapi.SIGTSTP, uapi.SIGTTIN, uapi.SIGTTOU))
"""Signals that stop a process in Linux."""

_CODES = {uapi.SIGSEGV: "SEGV_", uapi.SIGBUS: "BUS_"}
SIGNAL_CODES = {
    (signo, number): name
    for signo, prefix in _CODES.items()
    for name, number in _NUMBERS.items()
    if name.startswith(prefix)
}
SIGNAL_CODES_OF_ALL = {number: name for name, number in _NUMBERS.items() if name.startswith("SI_")}

ERRNO = {
    number: name
    for name, number in _NUMBERS.items()
    if name.startswith("E") and number <= uapi.MAX_ERRNO and number != uapi.ERESTARTSYS
}
"""12: `ENOMEM`."""

ERRNO_TEXT = {
    uapi.EPERM: "not permitted",
    uapi.ENOENT: "no such file",
    uapi.ESRCH: "no such process",
    uapi.EINTR: "interrupted by a signal",
    uapi.EIO: "input/output error",
    uapi.ENXIO: "no such device or address",
    uapi.E2BIG: "argument list too long",
    uapi.ENOEXEC: "not in an executable format",
    uapi.EBADF: "bad file descriptor",
    uapi.ECHILD: "no child to wait for",
    uapi.EAGAIN: "try again",
    uapi.ENOMEM: "not enough memory or address space",
    uapi.EACCES: "permission denied",
    uapi.EFAULT: "bad address",
    uapi.EBUSY: "busy",
    uapi.EEXIST: "it already exists",
    uapi.ENODEV: "the file cannot be mapped",
    uapi.ENOTDIR: "not a directory",
    uapi.EISDIR: "it is a directory",
    uapi.EINVAL: "invalid argument",
    uapi.ENFILE: "too many open files in the system",
    uapi.EMFILE: "too many open files",
    uapi.ETXTBSY: "text file busy",
    uapi.EFBIG: "file too large",
    uapi.ENOSPC: "no room left",
    uapi.ESPIPE: "the file has no position",
    uapi.EMLINK: "too many links",
    uapi.EPIPE: "the pipe has no reader",
    uapi.ENAMETOOLONG: "name too long",
    uapi.ENOSYS: "no such system call",
    uapi.ELOOP: "too many links",
    uapi.EOVERFLOW: "the value is too large",
    uapi.ELIBBAD: "bad interpreter or library",
    uapi.EOPNOTSUPP: "not supported",
    uapi.EHWPOISON: "the page is poisoned",
}

_SIGNAL_NAMES = {number: f"SIG{name}" for name, number in SIGNALS.items()}


def errno_name(number: int) -> str:
    """`ENOMEM` for 12."""
    return ERRNO.get(number, f"errno {number}")


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11."""
    return _SIGNAL_NAMES.get(number, f"signal {number}")


def code_name(signo: int, code: int) -> str:
    """`SEGV_MAPERR` for (11, 1)."""
    return SIGNAL_CODES_OF_ALL.get(code) or SIGNAL_CODES.get((signo, code), f"code {code}")
