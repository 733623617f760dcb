"""Tasks, and the results of their system calls and accesses."""

from __future__ import annotations

from kemu.readings.base import Address, Pairs, Reading, Word


class TaskRow(Reading):
    """A task in a list. ``name``: what the user calls it; ``state``: the letter of /proc; ``mm`` /
    ``active_mm``: ids, 0 = none; ``size`` and ``rss`` in pages; ``threads`` of its process;
    ``minor`` / ``major`` faults of this task alone."""

    pid: int
    tgid: int
    ppid: int
    comm: str
    name: str
    state: str
    mm: int
    active_mm: int
    cpu: int
    size: int
    rss: int
    threads: int
    minor: int
    major: int
    running_on: int | None = None
    blocked_in: str = ""
    exit_code: int = 0


class ProcessList(Reading):
    """All tasks by pid."""

    tasks: tuple[TaskRow, ...]


class TaskNode(Reading):
    """A process with its children, by pid."""

    task: TaskRow
    children: tuple[TaskNode, ...]


class TaskTree(Reading):
    """The processes as a family: the roots have no parent."""

    roots: tuple[TaskNode, ...]


class Descriptor(Reading):
    """An open file of a task."""

    fd: int
    path: str
    kind: str
    size: int
    count: int


class TaskReading(Reading):
    """One task in full. ``flags``: names of PF_* bits; ``actions``: (signal, handle | ignore);
    ``limits``: (resource, soft, hard) in bytes, 2**64-1 = unlimited; ``vfork``: this task's parent
    waits for it."""

    task: TaskRow
    flags: tuple[str, ...]
    exit_signal: int
    children: tuple[int, ...]
    thread_pids: tuple[int, ...]
    actions: tuple[tuple[int, str], ...]
    pending: tuple[int, ...]
    limits: tuple[tuple[str, int, int], ...]
    descriptors: tuple[Descriptor, ...]
    vfork: bool
    usage: int
    child_minor: int
    child_major: int


class RegsReading(Reading):
    """The registers of a task and of the CPU it is on.  ``running``: they are loaded now;
    ``general``: the general-purpose ones besides ``ax``; ``flags``; ``segments``: selectors and
    bases; ``root`` and ``pcid``: CR3; ``ax``: the result of the last system call, with ``error``
    the errno's name if it failed; ``fault_address``: CR2 of the last fault that was sent as a
    signal, with ``trap`` and ``error_code``."""

    pid: int
    name: str
    geometry: str
    cpu: int
    running: bool
    ip: Address
    sp: Address
    ax: Word
    root: Address
    pcid: int
    fault_address: Address
    trap: int
    error_code: int
    error: str = ""
    general: Pairs = ()
    flags: int = 0
    segments: Pairs = ()


class Decision(Reading):
    """The line of the kernel that made a call fail: its ``function``, the ``path`` of that in Linux
    ("" for a function that Linux does not have), its ``place`` in kemu; the functions that handed
    the errno up, outermost first; the reason, and what to do instead."""

    function: str
    path: str
    place: str
    calls: tuple[str, ...]
    why: str
    instead: str


class Outcome(Reading):
    """The result of a system call. ``value``: the result (an address for mmap, mremap, brk:
    ``is_address``); ``errno``: positive, 0 = success; ``why`` it failed, in words."""

    pid: int
    name: str
    call: str
    arguments: tuple[str, ...]
    value: int
    errno: int = 0
    error: str = ""
    why: str = ""
    is_address: bool = False
    blocked: bool = False
    minor: int = 0
    major: int = 0
    decision: Decision | None = None


class AccessOutcome(Reading):
    """The result of an access by user code. ``kind``: read, write, fetch; ``signal``: its name or
    "", with ``code`` (si_code by name), ``fault_address`` and the page-fault ``error_code`` by
    letters; ``killed``: the signal ended the task; ``effect``: what happened to the pages, in words
    ("copied: pfn 0x120 -> 0x131")."""

    pid: int
    name: str
    kind: str
    address: Address
    size: int
    data: bytes = b""
    minor: int = 0
    major: int = 0
    signal: str = ""
    code: str = ""
    fault_address: Address = 0
    error_code: str = ""
    killed: bool = False
    blocked: bool = False
    effect: str = ""


class DataOutcome(Outcome):
    """The result of a call that moves bytes into memory: an Outcome, with the ``data`` now at
    ``address`` (as much of it as is mapped there)."""

    address: Address = 0
    data: bytes = b""


class Residency(Outcome):
    """The result of mincore: an Outcome, with one digit per page from ``start``: 1 in memory, 0
    not."""

    start: Address = 0
    vector: str = ""
