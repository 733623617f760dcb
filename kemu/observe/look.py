"""Looking at a kernel: it is made the active one and sealed, so that any write raises.

A look at another moment moves the journal's cursor and brings it back. That is not a write: the
state is the same at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kemu.errors import UsageError
from kemu.kernel.init.boot import Kernel
from kemu.trace.barrier import sealed
from kemu.trace.journal import Journal


@contextmanager
def looking(kernel: Kernel) -> Iterator[None]:
    """Within the block ``system`` is this kernel, and nothing can be written."""
    kernel.activate()
    with sealed():
        yield


@contextmanager
def travelling(kernel: Kernel) -> Iterator[Journal]:
    """Like `looking`, with a journal whose cursor may be moved; at the end it is back where it was.
    ``UsageError`` without one."""
    if not kernel.recording:
        raise UsageError(
            "this machine keeps no journal",
            hint="only a machine that records has a past to look at",
        )
    with looking(kernel):
        journal = kernel.journal
        before = journal.cursor
        try:
            yield journal
        finally:
            journal.seek(before)
