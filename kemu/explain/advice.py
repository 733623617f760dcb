"""Advice for each errno, used where the deciding line gives none: data only."""

from __future__ import annotations

ADVICE = {
    "ENOMEM": "end a process, unmap memory, or start kemu with more --mem",
    "EINVAL": "other arguments: help on the command says what it takes",
    "EFAULT": "addresses that are mapped and allow the access: see maps",
    "EBADF": "an open descriptor whose mode allows this",
    "ENOENT": "a name that exists: see ls",
    "EPERM": "a change that the owner of the memory may still make",
    "EACCES": "a right that the object allows",
    "ESRCH": "a process that exists: see ps",
    "ECHILD": "a child that has not been waited for: see tree",
    "EAGAIN": "a higher limit (setrlimit), or another try",
    "EMFILE": "close a descriptor first, or raise the limit: setrlimit TASK nofile N",
    "ENOSPC": "free room on the file system: truncate or close a file there",
    "EOPNOTSUPP": "another mode, or another kind of file",
    "EINTR": "another try: a signal came first",
    "EBUSY": "another try once what holds it is gone",
    "EEXIST": "another name or place",
    "ESPIPE": "a file: a pipe has no position",
    "EPIPE": "a pipe that someone can still read",
    "ENOEXEC": "a file that opens with an ELF header for this machine, or with #!",
}
