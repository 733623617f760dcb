"""System calls of one task about another: its memory, its limits, a signal for one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.abi import uapi, words
from kemu.commands.buffer import buffer_of, check_size, filled_buffer, seen
from kemu.commands.calls import call, note_no_stop
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import CHANGE, command, keyword, maybe, one
from kemu.readings import DataOutcome, Outcome

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

TASK = maybe("task", kinds.TASK)
OTHER = one("other", kinds.TASK)
_START = 'spawn app; mmap app 0x10000 1p rw; write app 0x10000 "hello"; fork app as kid; '
_SOURCE = (TASK, OTHER, one("addr", kinds.ADDRESS), one("size", kinds.SIZE))
_TARGET = (TASK, OTHER, one("addr", kinds.ADDRESS), one("data", kinds.DATA))
_INTO = "The bytes go to the reader's stack unless into ADDR is given."


@command(
    "process_vm_readv",
    arguments=_SOURCE,
    options=(keyword("into", kinds.ADDRESS),),
    group="memory",
    effect=CHANGE,
    summary="read the memory of another process",
    more="The first task reads from the second; with one task the current one reads. It honours "
    "the rights of the pages, and "
    "even reading gives the other process a copy of its own where fork left it to share. " + _INTO,
    examples=(
        _START + "process_vm_readv app kid 0x10000 5",
        _START + "process_vm_readv kid 0x10000 5; walk kid 0x10000",
    ),
    linux="process_vm_readv(2)",
)
def process_vm_readv(
    session: Session, *, task: Task, other: Task, addr: int, size: int, into: int | None
) -> DataOutcome:
    """Read from another address space."""
    return _read(session, "process_vm_readv", task, other, (addr, size, into))


@command(
    "process_vm_writev",
    arguments=_TARGET,
    group="memory",
    effect=CHANGE,
    summary="write into the memory of another process",
    more="The first task writes into the second; with one task the current one writes. The data "
    "lies on the writer's stack.",
    examples=(
        _START + 'process_vm_writev app kid 0x10000 "bye"',
        _START + "process_vm_writev kid 0x10000 7; read kid 0x10000 8",
    ),
    linux="process_vm_writev(2)",
)
def process_vm_writev(session: Session, task: Task, other: Task, addr: int, data: bytes) -> Outcome:
    """Write into another address space."""
    local = filled_buffer(session, task, data)
    return call(session, task, "process_vm_writev", other.pid, local, addr, len(data))


@command(
    "memread",
    arguments=_SOURCE,
    options=(keyword("into", kinds.ADDRESS),),
    group="memory",
    effect=CHANGE,
    summary="read /proc/PID/mem",
    more="As a debugger reads: also what the other process itself may not read. " + _INTO,
    examples=(
        _START + "memread app kid 0x10000 5",
        _START + "mprotect kid 0x10000 1p none; memread app kid 0x10000 5",
    ),
    linux="pread(2) on /proc/PID/mem",
)
def memread(
    session: Session, *, task: Task, other: Task, addr: int, size: int, into: int | None
) -> DataOutcome:
    """Read another process's memory file."""
    return _read(session, "memread", task, other, (addr, size, into))


@command(
    "memwrite",
    arguments=_TARGET,
    group="memory",
    effect=CHANGE,
    summary="write /proc/PID/mem",
    more="As a debugger sets a breakpoint: where the other process may not write, it gets a "
    "private copy first.",
    examples=(
        _START + 'memwrite app kid 0x10000 "bye"; read kid 0x10000 5',
        _START + "mprotect kid 0x10000 1p r; memwrite app kid 0x10000 7b; walk kid 0x10000",
    ),
    linux="pwrite(2) on /proc/PID/mem",
)
def memwrite(session: Session, task: Task, other: Task, addr: int, data: bytes) -> Outcome:
    """Write another process's memory file."""
    return call(
        session, task, "memwrite", other.pid, filled_buffer(session, task, data), addr, len(data)
    )


def _read(
    session: Session, name: str, task: Task, other: Task, what: tuple[int, int, int | None]
) -> DataOutcome:
    """Read `what` (address, bytes, and where to, None for the stack) of the other task."""
    addr, size, into = what
    check_size(size)
    local = buffer_of(task, size) if into is None else into
    answer = call(session, task, name, other.pid, local, addr, size)
    return DataOutcome(
        **answer.values(), address=addr, data=seen(session, task, local, answer.value)
    )


@command(
    "setrlimit",
    "prlimit",
    arguments=(
        TASK,
        one("resource", kinds.RESOURCE),
        one("soft", kinds.LIMIT),
        maybe("hard", kinds.LIMIT),
    ),
    group="memory",
    effect=CHANGE,
    summary="set a limit",
    more="as (all of the address space), data, stack, memlock, fsize in bytes; others are kept but "
    "bind nothing. The hard "
    "limit stays as it is unless it is given.",
    examples=(
        "spawn app; setrlimit app as 1M; mmap app 2M rw",
        "spawn app; setrlimit app stack 64K unlimited",
    ),
    linux="setrlimit(2), prlimit(2)",
)
def setrlimit(session: Session, task: Task, resource: int, soft: int, hard: int | None) -> Outcome:
    """Set the soft and the hard limit of a resource."""
    if hard is None:
        hard = task.signal.rlim.get(resource, (0, uapi.RLIM_INFINITY))[1]
    return call(session, task, "setrlimit", resource, soft, hard)


@command(
    "tgkill",
    arguments=(TASK, maybe("signal", kinds.SIGNAL, words.SIGNALS["TERM"])),
    options=(keyword("sender", kinds.TASK, "by"),),
    group="doing",
    effect=CHANGE,
    summary="send a signal to one thread",
    more="As kill, but TASK alone may take the signal, not another thread of its process.",
    examples=(
        "spawn app; fork as kid; tgkill kid",
        "spawn app; fork as kid; tgkill kid SEGV by app; wait app",
    ),
    linux="tgkill(2)",
)
def tgkill(session: Session, task: Task, signal: int, sender: Task | None) -> Outcome:
    """Send a signal to the task."""
    if sender is not None and (sender.exit_state or sender.blocked_in):
        raise UsageError(
            f"by: {session.name_of(sender.pid)} can do nothing now", hint="name a task that runs"
        )
    current = session.current
    able = session.tasks[1] if current.blocked_in or current.exit_state else current
    shown = [session.name_of(task.pid), words.signal_name(signal)]
    note_no_stop(session, task, signal)
    return call(session, sender or able, "tgkill", task.tgid, task.pid, signal, shown=shown)
