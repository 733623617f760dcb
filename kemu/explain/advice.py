"""What would have made a call succeed, by call and errno, and why an access brought its signal:
data only.

A row with "" for the call stands for all calls that have no row of their own. The check itself is
not here: it is read off the kernel (`checks.py`), so that what is said cannot differ from what was
done.
"""

from __future__ import annotations

MAPPED = "a range that is mapped without a gap: see maps"
ALIGNED = "an address that is a multiple of the page size (4096), and a length above 0"
MEMORY = (
    "end a process, unmap memory, or start kemu with more --mem; after set fail, only trying again"
)

ADVICE: dict[tuple[str, str], str] = {
    ("mmap", "ENOMEM"): "map less, free mappings first (munmap), or raise the limit: setrlimit",
    (
        "mmap",
        "EINVAL",
    ): "a length above 0, address and offset multiples of the page size, and one of private or "
    "shared",
    ("mmap", "EEXIST"): "another address, or fixed instead of fixed_noreplace",
    (
        "mmap",
        "EACCES",
    ): "a file that is open for what the protection asks: rdwr for a shared mapping with w",
    (
        "mmap",
        "EPERM",
    ): "an address at or above the lowest one that may be mapped, and no mapping that is sealed",
    ("mmap", "EOVERFLOW"): "an offset and a length that fit into the file's range of pages",
    ("munmap", "EINVAL"): ALIGNED + ", all of it below task_size",
    (
        "munmap",
        "ENOMEM",
    ): "fewer mappings: a hole in the middle of one makes two (limit max_map_count)",
    ("munmap", "EPERM"): "a range without a sealed mapping: mseal cannot be undone",
    ("mprotect", "ENOMEM"): MAPPED,
    (
        "mprotect",
        "EACCES",
    ): "a right that the mapping may have: a shared file must be open for writing to get w",
    ("mprotect", "EINVAL"): ALIGNED,
    ("mprotect", "EPERM"): "a range without a sealed mapping: mseal cannot be undone",
    (
        "mremap",
        "EFAULT",
    ): "an old address inside a mapping, and an old size that does not reach beyond it",
    (
        "mremap",
        "ENOMEM",
    ): "maymove, where the mapping cannot grow in place; a higher limit; or a smaller size",
    (
        "mremap",
        "EINVAL",
    ): "multiples of the page size, a new size above 0, and old and new ranges that do not overlap",
    ("mremap", "EPERM"): "a mapping that is not sealed",
    (
        "brk",
        "ENOMEM",
    ): "a break that stays clear of the next mapping and below the limit of data: setrlimit TASK "
    "data SIZE",
    ("mlock", "ENOMEM"): MAPPED,
    ("mlock2", "ENOMEM"): MAPPED,
    ("munlock", "ENOMEM"): MAPPED,
    ("mlockall", "EINVAL"): "current or future, or both; onfault only beside one of them",
    ("madvise", "ENOMEM"): MAPPED,
    (
        "madvise",
        "EINVAL",
    ): "an address that is a multiple of the page size, advice that Linux knows and that suits "
    "the mapping",
    ("madvise", "EPERM"): "a mapping that is not sealed, or one that may be written",
    ("madvise", "EACCES"): "a shared mapping of a file that is open for writing",
    ("madvise", "EBADF"): "a mapping of a file: this advice is about its pages",
    ("madvise", "EFAULT"): "a range in which every page may be touched in this way: see maps",
    ("msync", "ENOMEM"): MAPPED,
    (
        "msync",
        "EINVAL",
    ): "an address that is a multiple of the page size, and sync or async, not both",
    ("msync", "EBUSY"): "without invalidate, or after munlock: a page is locked",
    ("mincore", "ENOMEM"): MAPPED,
    ("mincore", "EINVAL"): "an address that is a multiple of the page size",
    ("mincore", "EFAULT"): "a place for the answer that the process may write",
    ("mseal", "ENOMEM"): MAPPED,
    ("mseal", "EINVAL"): "an address that is a multiple of the page size, and no flags",
    ("wait4", "ECHILD"): "a child that has not been waited for: see tree",
    ("wait4", "EINVAL"): "no other flags than nohang",
    ("wait4", "EFAULT"): "a place for the status that the process may write",
    ("fork", "EAGAIN"): "fewer tasks: end one, and let its parent wait for it",
    ("clone", "EINVAL"): "flags that go together: thread needs sighand, sighand needs vm",
    ("execve", "ENOEXEC"): "a file that opens with an ELF header for this machine, or with #!",
    ("execve", "ENOENT"): "load the file first: load HOSTFILE as PATH",
    (
        "execve",
        "E2BIG",
    ): "fewer or shorter arguments: together at most a quarter of the stack limit",
    ("execve", "EACCES"): "a regular file",
    ("execve", "ELIBBAD"): "an interpreter that is an ELF file itself",
    ("execve", "EFAULT"): "arguments that lie in readable memory",
    ("open", "ENOENT"): "creat, or a file that is there: see ls; mkfile and load make one",
    ("open", "EMFILE"): "close one first, or raise the limit: setrlimit TASK nofile N",
    ("pread", "EBADF"): "a descriptor that is open for reading: open TASK PATH rdonly, or rdwr",
    ("pread", "EFAULT"): "a buffer in memory that the process may write: mmap it first",
    ("pread", "EINVAL"): "an offset that is not negative",
    ("pwrite", "EBADF"): "a descriptor that is open for writing: open TASK PATH rdwr",
    ("pwrite", "EFAULT"): "bytes that lie in memory that the process may read",
    ("pwrite", "ENOSPC"): "a tmpfs with room for another page",
    (
        "ftruncate",
        "EINVAL",
    ): "a descriptor that is open for writing, and a size that is not negative",
    ("fallocate", "EOPNOTSUPP"): "a mode that this file system has; punch_hole goes with keep_size",
    ("fallocate", "EINVAL"): "an offset that is not negative, and a length above 0",
    ("fallocate", "ENOSPC"): "memory, or a smaller range",
    ("kill", "ESRCH"): "a process that exists: see ps",
    ("kill", "EINVAL"): "a signal from 0 to 64",
    ("kill", "EPERM"): "a process of the same user",
    ("setrlimit", "EINVAL"): "a soft limit that is not above the hard one",
    ("setrlimit", "EPERM"): "a hard limit that is not above the present one",
    ("process_vm_readv", "ESRCH"): "a process that exists and has an address space: see ps",
    ("process_vm_writev", "ESRCH"): "a process that exists and has an address space: see ps",
    (
        "process_vm_readv",
        "EFAULT",
    ): "addresses that are mapped and readable in the other process, and writable in this one",
    (
        "process_vm_writev",
        "EFAULT",
    ): "addresses that are mapped in both; a private read-only page is copied, not refused",
    ("", "ENOMEM"): MEMORY,
    ("", "EINVAL"): "arguments that pass the check above: help on the command says what it takes",
    ("", "EFAULT"): "addresses that are mapped and allow the access: see maps",
    ("", "EBADF"): "a descriptor that open gave, that is not closed, and that is open for this",
    ("", "ENOENT"): "a name that exists: see ls",
    ("", "EPERM"): "a change that the owner of the memory still may make",
    ("", "EACCES"): "a right that the object allows",
    ("", "ESRCH"): "a process that exists: see ps",
    ("", "EAGAIN"): "a higher limit (setrlimit), or trying again",
    ("", "EMFILE"): "close a descriptor first, or raise the limit: setrlimit TASK nofile N",
    ("", "ENOSPC"): "room on the file system: truncate or close a file there",
    ("", "EOPNOTSUPP"): "another mode, or another kind of file",
    ("", "EINTR"): "trying again: a signal came first",
    ("", "EBUSY"): "trying again after what holds it is gone",
    ("", "EEXIST"): "another name or place",
    ("", "ENXIO"): "an offset before the end of the file",
    ("", "ESPIPE"): "a file: a pipe has no position",
    ("", "EPIPE"): "a pipe that somebody can still read",
}
"""What would have made the call succeed."""


def advice_for(call: str, errno: str) -> str:
    """The words for a call that gave an errno; for one without a row of its own those for the
    errno."""
    return ADVICE.get((call, errno)) or ADVICE.get(
        ("", errno), "other arguments, or another state: the check says which"
    )
