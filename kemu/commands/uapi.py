"""Numbers of the system-call interface, by the words that the shell uses for them (Linux's names in
lower case).

Sources: include/uapi/asm-generic/mman.h, mman-common.h, resource.h, errno*.h, siginfo.h,
include/uapi/linux/{sched,falloc,fadvise}.h, arch/x86/include/uapi/asm/signal.h.
"""

from __future__ import annotations

PROT = {"r": 1, "w": 2, "x": 4, "-": 0}
PROT_WORDS = {"none": 0, "growsdown": 0x01000000, "growsup": 0x02000000}

MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE, MAP_DROPPABLE, MAP_ANONYMOUS = 1, 2, 3, 8, 0x20
MMAP_FLAGS = {
    "private": MAP_PRIVATE,
    "shared": MAP_SHARED,
    "shared_validate": MAP_SHARED_VALIDATE,
    "droppable": MAP_DROPPABLE,
    "anon": MAP_ANONYMOUS,
    "fixed": 0x10,
    "fixed_noreplace": 0x100000,
    "growsdown": 0x100,
    "locked": 0x2000,
    "noreserve": 0x4000,
    "populate": 0x8000,
    "nonblock": 0x10000,
    "stack": 0x20000,
    "hugetlb": 0x40000,
    "sync": 0x80000,
}

CLONE_FLAGS = {
    "vm": 0x100,
    "fs": 0x200,
    "files": 0x400,
    "sighand": 0x800,
    "vfork": 0x4000,
    "parent": 0x8000,
    "thread": 0x10000,
    "newns": 0x20000,
    "sysvsem": 0x40000,
    "settls": 0x80000,
    "parent_settid": 0x100000,
    "child_cleartid": 0x200000,
    "detached": 0x400000,
    "untraced": 0x800000,
    "child_settid": 0x1000000,
    "newuser": 0x10000000,
    "newpid": 0x20000000,
    "io": 0x80000000,
}

WAIT_FLAGS = {"nohang": 1}

MREMAP_FLAGS = {"maymove": 1, "fixed": 2, "dontunmap": 4}
MSYNC_FLAGS = {"async": 1, "invalidate": 2, "sync": 4}
MLOCKALL_FLAGS = {"current": 1, "future": 2, "onfault": 4}
MLOCK2_FLAGS = {"onfault": 1}
OPEN_FLAGS = {"rdonly": 0, "wronly": 1, "rdwr": 2, "creat": 0o100}
PIPE_FLAGS = {"nonblock": 0o4000}
WHENCE = {"set": 0, "cur": 1, "end": 2}
FALLOCATE_FLAGS = {
    "keep_size": 1, "punch_hole": 2, "collapse_range": 8, "zero_range": 0x10, "insert_range": 0x20, "unshare_range": 0x40,
}  # fmt: skip

MADVISE = {
    "normal": 0, "random": 1, "sequential": 2, "willneed": 3, "dontneed": 4, "free": 8, "remove": 9, "dontfork": 10,
    "dofork": 11, "mergeable": 12, "unmergeable": 13, "hugepage": 14, "nohugepage": 15, "dontdump": 16, "dodump": 17,
    "wipeonfork": 18, "keeponfork": 19, "cold": 20, "pageout": 21, "populate_read": 22, "populate_write": 23,
    "dontneed_locked": 24, "collapse": 25, "hwpoison": 100, "soft_offline": 101, "guard_install": 102, "guard_remove": 103,
}  # fmt: skip
FADVISE = {"normal": 0, "random": 1, "sequential": 2, "willneed": 3, "dontneed": 4, "noreuse": 5}

RLIMITS = {
    "cpu": 0, "fsize": 1, "data": 2, "stack": 3, "core": 4, "rss": 5, "nproc": 6, "nofile": 7, "memlock": 8, "as": 9,
    "locks": 10, "sigpending": 11, "msgqueue": 12, "nice": 13, "rtprio": 14, "rttime": 15,
}  # fmt: skip
RLIM_INFINITY = 2**64 - 1

SIGNALS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10, "SEGV": 11,
    "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20,
    "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29, "PWR": 30,
    "SYS": 31,
}  # fmt: skip
STOPPING = frozenset(SIGNALS[name] for name in ("STOP", "TSTP", "TTIN", "TTOU"))
"""Those that stop a process, in Linux."""
SIGNAL_NAMES = {number: f"SIG{name}" for name, number in SIGNALS.items()}

SIGNAL_CODES = {
    (11, 1): "SEGV_MAPERR", (11, 2): "SEGV_ACCERR", (11, 3): "SEGV_BNDERR", (11, 4): "SEGV_PKUERR",
    (7, 1): "BUS_ADRALN", (7, 2): "BUS_ADRERR", (7, 3): "BUS_OBJERR", (7, 4): "BUS_MCEERR_AR", (7, 5): "BUS_MCEERR_AO",
}  # fmt: skip
SIGNAL_CODES_OF_ALL = {0: "SI_USER", 0x80: "SI_KERNEL", -6: "SI_TKILL"}

ERRNO = {
    1: "EPERM", 2: "ENOENT", 3: "ESRCH", 4: "EINTR", 5: "EIO", 6: "ENXIO", 7: "E2BIG", 8: "ENOEXEC", 9: "EBADF",
    10: "ECHILD", 11: "EAGAIN", 12: "ENOMEM", 13: "EACCES", 14: "EFAULT", 15: "ENOTBLK", 16: "EBUSY", 17: "EEXIST",
    18: "EXDEV", 19: "ENODEV", 20: "ENOTDIR", 21: "EISDIR", 22: "EINVAL", 23: "ENFILE", 24: "EMFILE", 25: "ENOTTY",
    26: "ETXTBSY", 27: "EFBIG", 28: "ENOSPC", 29: "ESPIPE", 30: "EROFS", 31: "EMLINK", 32: "EPIPE", 36: "ENAMETOOLONG",
    38: "ENOSYS", 39: "ENOTEMPTY", 40: "ELOOP", 75: "EOVERFLOW", 80: "ELIBBAD", 95: "EOPNOTSUPP", 133: "EHWPOISON",
}  # fmt: skip

ERRNO_TEXT = {
    1: "not permitted", 2: "no such file", 3: "no "
                                              "such "
                                              "process", 4: "a signal came first", 5: "input/output error",
    6: "nothing there", 7: "argument list too long", 8: "not an "
                                                        "executable "
                                                        "that Linux "
                                                        "knows", 9: "bad file descriptor",
    10: "no child to wait for", 11: "try again", 12: "not enough memory "
                                                     "or address space", 13: "permission denied",
    14: "bad address", 16: "busy", 17: "it exists", 19: "the file cannot "
                                                        "be mapped", 20: "not a directory",
    21: "it is a directory", 22: "invalid argument", 23: "too many "
                                                         "open files "
                                                         "in the system", 24: "too many open files",
    26: "text file busy", 27: "file too large", 28: "no "
                                                    "room "
                                                    "left", 29: "it has no position", 31: "too many links",
    32: "nobody reads the pipe", 36: "name too long", 38: "no such system "
                                                          "call", 40: "too many links",
    75: "the value is too large", 80: "bad "
                                      "interpreter "
                                      "or "
                                      "library", 95: "not supported", 133: "the page is poisoned",
}  # fmt: skip


MOST_ERRNO = 4095
"""A result from -4095 to -1 is an errno (MAX_ERRNO)."""


def errno_name(number: int) -> str:
    """`ENOMEM` for 12."""
    return ERRNO.get(number, f"errno {number}")


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11."""
    return SIGNAL_NAMES.get(number, f"signal {number}")


def code_name(signo: int, code: int) -> str:
    """`SEGV_MAPERR` for (11, 1)."""
    return SIGNAL_CODES_OF_ALL.get(code) or SIGNAL_CODES.get((signo, code), f"code {code}")
