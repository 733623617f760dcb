"""The default buffer of a system call: on the stack of the calling task.

It corresponds to a local `char buffer[8]` of a C program. The page is the task's own memory, so
filling it can fault, as in Linux.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.abi.row import MOST_PAGES
from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

MOST_BYTES = 1 << 24
"""Largest number of bytes that one call may move."""
MOST_SHOWN = 1 << 16
"""Largest number of bytes kept in a reading."""


def buffer_of(task: Task, size: int) -> int:
    """The address of a buffer of `size` bytes below the strings on the stack, at the start of a
    page."""
    check_size(size)
    if task.mm is None:
        return 0
    return (task.mm.start_stack - max(size, 1)) // PAGE * PAGE


def filled_buffer(session: Session, task: Task, data: bytes) -> int:
    """The address of a buffer in which the task has stored `data`. Raises UsageError on a fault."""
    address = buffer_of(task, len(data))
    stored = session.performer.store(task, address, data, cpu=session.cpu_for(task))
    if stored.signal is not None:
        raise UsageError(
            f"{session.name_of(task.pid)} cannot store {len(data)} bytes on its stack",
            hint="the command is undone",
        )
    return address


def seen(session: Session, task: Task, address: int, size: int) -> bytes:
    """The bytes at the address, up to the first unmapped one, read without touching the memory."""
    from kemu.observe.translation import dump

    size = min(size, MOST_SHOWN, 2**64 - address)
    if task.mm is None or size <= 0:
        return b""
    found = dump(session.kernel, task, address, size, session.name_of)
    data = b""
    for _, part in found.chunks:
        if part is None:
            break
        data += part
    return data


def check_size(size: int) -> None:
    """Raise UsageError for more than MOST_BYTES."""
    if size > MOST_BYTES:
        raise UsageError(
            f"size: {size:#x} bytes are too many for one call",
            hint=f"at most {MOST_BYTES:#x}",
            about="size",
        )


def pages_of(length: int, what: str) -> int:
    """Pages in `length` bytes, rounded up. Raises UsageError for more than one `what` may take."""
    pages = (length + PAGE - 1) // PAGE
    if pages > MOST_PAGES:
        raise UsageError(
            f"length: {pages} pages are too many for one {what}",
            hint=f"at most {MOST_PAGES}p",
            about="length",
        )
    return pages
