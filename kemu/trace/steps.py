"""The micro-step hook: where another CPU could run in between.

Every atomic operation, lock operation and page-table access calls ``step()``.  It does nothing
unless an explorer is attached; then this is where the explorer may let another CPU run.  A CPU must
wait for a lock that is held: on its own it would wait forever, under an explorer another CPU runs
until the lock is free.

    atomic_inc     step(); change the value
    spin_lock      step_until(free, page, "ptl"); mark it held
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from kemu.errors import KernelBug

Ready = Callable[[Any, str], bool]
"""May the CPU go on?  Called with the object and the name of the lock."""


class Explorer(Protocol):
    """What is called at every micro-step."""

    def on_step(self) -> None:
        """The executing CPU is about to take a step; another CPU may go first."""

    def on_wait(self, ready: Ready, obj: Any, lock: str) -> None:
        """Return when ``ready(obj, lock)`` is true and it is the executing CPU's turn: only then
        can it take its step."""

    def is_removed(self, lock: str) -> bool:
        """True if the executing CPU is to run without the lock of this name."""


class _Attached:
    """The explorer that is called at every micro-step, if there is one."""

    __slots__ = ("explorer",)

    def __init__(self) -> None:
        self.explorer: Explorer | None = None


attached = _Attached()


def step() -> None:
    """A micro-step of the executing CPU."""
    if attached.explorer is not None:
        attached.explorer.on_step()


def step_until(ready: Ready, obj: Any, lock: str) -> None:
    """A micro-step that the CPU can take only once ``ready(obj, lock)`` is true.  ``KernelBug`` if
    no other CPU can make it so."""
    if attached.explorer is not None:
        attached.explorer.on_wait(ready, obj, lock)
    elif not ready(obj, lock):
        raise KernelBug(f"deadlock: {lock} of {obj} is held")


def is_explored() -> bool:
    """True while an explorer is attached: other CPUs may be in the middle of something."""
    return attached.explorer is not None


def is_removed(lock: str) -> bool:
    """True if an explorer lets the executing CPU run without the lock of this name."""
    return attached.explorer is not None and attached.explorer.is_removed(lock)


@contextmanager
def explorer(asked: Explorer) -> Iterator[None]:
    """Within the block, call ``asked`` at every micro-step."""
    kept = attached.explorer
    attached.explorer = asked
    try:
        yield
    finally:
        attached.explorer = kept
