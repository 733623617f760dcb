"""The built-in races of real kernel paths: the commands that set the machine up, and those that
race, one per CPU."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

_THREADS = ("spawn a", "mmap a 0x10000 1p rw", "clone a vm sighand thread files fs as b")
"""One process with two threads and an untouched page."""

_TOUCHED = (*_THREADS, "write a 0x10000 1")
_FORKED = (
    "spawn parent",
    "mmap parent 0x10000 1p rw",
    "write parent 0x10000 1",
    "fork parent as child",
)


@attrs.frozen
class KernelCase:
    """A built-in race: what it shows, the commands before it, and those that race."""

    name: str
    summary: str
    setup: tuple[str, ...]
    commands: tuple[str, ...]


_ALL = (
    KernelCase(
        "cow-cow",
        "parent and child write to a page that fork left shared",
        _FORKED,
        ("write parent 0x10000 2", "write child 0x10000 3"),
    ),
    KernelCase(
        "cow-threads",
        "two threads write to a page that they share with a child",
        (*_TOUCHED, "fork a as child"),
        ("write a 0x10000 2", "write b 0x10000 3"),
    ),
    KernelCase(
        "first-touch",
        "two threads touch one untouched page",
        _THREADS,
        ("write a 0x10000 2", "write b 0x10000 3"),
    ),
    KernelCase(
        "fork-write",
        "one thread forks while another writes",
        _TOUCHED,
        ("fork a", "write b 0x10000 3"),
    ),
    KernelCase(
        "fork-fault",
        "one thread forks while another copies a page on write",
        (*_TOUCHED, "fork a as child"),
        ("fork a", "write b 0x10000 3"),
    ),
    KernelCase(
        "munmap-fault",
        "one thread unmaps a page while another touches it for the first time",
        _THREADS,
        ("munmap a 0x10000 1p", "write b 0x10000 3"),
    ),
    KernelCase(
        "mprotect-fault",
        "one thread allows writing to half of a mapping while another writes to the other half",
        ("spawn a", "mmap a 0x10000 2p r", "clone a vm sighand thread files fs as b"),
        ("mprotect a 0x10000 1p rw", "write b 0x11000 3"),
    ),
    KernelCase(
        "exit-reader",
        "a process ends while another reads its memory",
        (
            "spawn a",
            "mmap a 0x10000 1p rw",
            "write a 0x10000 5",
            "spawn b",
            "mmap b 0x20000 1p rw",
            "write b 0x20000 1",
        ),
        ("exit a", "process_vm_readv b a 0x10000 1 into 0x20000"),
    ),
    KernelCase(
        "tlb-shootdown",
        "one thread unmaps a page that the other's CPU has in its TLB",
        (*_TOUCHED, "on 1 read b 0x10000"),
        ("munmap a 0x10000 1p", "read b 0x10000"),
    ),
    KernelCase(
        "file-write",
        "parent and child write to a page of a file that both share",
        (
            "mkfile /data 1p",
            "spawn parent",
            "mmap parent 0x10000 1p rw file /data shared",
            "fork parent as child",
        ),
        ("write parent 0x10000 2", "write child 0x10000 3"),
    ),
    KernelCase(
        "truncate-fault",
        "one process truncates a file while another reads the page that is cut off",
        (
            "mkfile /data 1p",
            "spawn a",
            "open a /data rdwr",
            "spawn b",
            "mmap b 0x10000 1p rw file /data shared",
        ),
        ("ftruncate a 3 0", "read b 0x10000"),
    ),
)

KERNEL_CASES: Mapping[str, KernelCase] = {case.name: case for case in _ALL}
"""The built-in races of kernel paths by name."""
