"""Accesses by user code: read, write, fetch. No other command touches memory as a program does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kemu.commands.calls import note_completed, reading_of_access
from kemu.commands.effect import effect, pages
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import CHANGE, command, maybe, one
from kemu.observe.lookup import in_page_cache
from kemu.readings import AccessOutcome

if TYPE_CHECKING:
    from kemu.experiment.session import Outcome, Session, Task

TASK = maybe("task", kinds.TASK)
MOST_BYTES = 1 << 30
"""Largest size of one access, in bytes; more is taken for a typing error."""

_START = "spawn app; mmap app 0x10000 2p rw; "


@command(
    "read",
    arguments=(TASK, one("addr", kinds.ADDRESS), maybe("size", kinds.SIZE, 1)),
    effect=CHANGE,
    summary="load bytes, as user code does",
    more="One byte unless a size is given. A page that was never written reads as zeros, from the "
    "zero page.",
    examples=(
        _START + "read app 0x10000",
        _START + 'write app 0x10000 "hello"; read app 0x10000 5',
    ),
    linux="a load instruction",
)
def read(session: Session, task: Task, addr: int, size: int) -> AccessOutcome:
    """Load `size` bytes."""
    _check_size(size, "size")
    load = session.performer.load
    return _access(
        session,
        task,
        lambda cpu: load(task, addr, size, cpu=cpu),
        kind="read",
        address=addr,
        size=size,
    )


@command(
    "write",
    "wr",
    arguments=(
        TASK,
        one("addr", kinds.ADDRESS),
        one("data", kinds.DATA),
        maybe("count", kinds.SIZE, 0),
    ),
    effect=CHANGE,
    summary="store bytes, as user code does",
    more="See: help data. With COUNT, repeat the data to fill COUNT bytes: write "
    "app 0x10000 0b 3p.",
    examples=(
        _START + 'write app 0x10000 "x"',
        _START + "write app 0x10000 7; write app 0x11000 7b",
    ),
    linux="a store instruction",
)
def write(session: Session, task: Task, addr: int, data: bytes, count: int) -> AccessOutcome:
    """Store the bytes."""
    _check_size(count, "count")
    if count:
        data = (data * (count // len(data) + 1))[:count]
    store, size = session.performer.store, len(data)
    return _access(
        session,
        task,
        lambda cpu: store(task, addr, data, cpu=cpu),
        kind="write",
        address=addr,
        size=size,
    )


@command(
    "fetch",
    arguments=(TASK, one("addr", kinds.ADDRESS)),
    effect=CHANGE,
    summary="fetch one instruction, as user code does",
    more="The page must be executable.",
    examples=(
        "spawn app; mmap app 0x10000 1p rx; fetch app 0x10000",
        _START + "signal app SEGV handle; fetch app 0x10000",
    ),
    linux="an instruction fetch",
)
def fetch(session: Session, task: Task, addr: int) -> AccessOutcome:
    """Fetch one byte of code."""
    fetching = session.performer.fetch
    return _access(
        session, task, lambda cpu: fetching(task, addr, cpu=cpu), kind="fetch", address=addr, size=1
    )


def _access(
    session: Session,
    task: Task,
    act: Callable[[int], Outcome],
    *,
    kind: str,
    address: int,
    size: int,
) -> AccessOutcome:
    """Do the access on the task's CPU; report how it changed the pages that it touches."""
    before = pages(session, task, address, size)
    outcome = act(session.cpu_for(task))
    zero, is_cached = session.kernel.globals["zero_pfn"], partial(in_page_cache, session.kernel)
    changed = effect(before, pages(session, task, address, size), zero, is_cached)
    note_completed(session, outcome)
    return reading_of_access(
        session, task, outcome, kind=kind, address=address, size=size, effect=changed
    )


def _check_size(size: int, argument: str) -> None:
    if size > MOST_BYTES:
        raise UsageError(
            f"{argument}: {size:#x} bytes are too many for one access",
            hint=f"at most {MOST_BYTES:#x}",
            about=argument,
        )
