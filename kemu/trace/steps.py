"""The micro-step hook: where another CPU could run in between.

``step()`` stands inside every atomic operation and page-table access.  It does nothing until an explorer is attached;
then it is the place where the explorer may hand the baton to another CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _nothing() -> None:
    """No explorer is attached."""


_attached: list[Callable[[], None]] = [_nothing]


def step() -> None:
    """One micro-step of the executing CPU lies here."""
    _attached[0]()


@contextmanager
def explorer(on_step: Callable[[], None]) -> Iterator[None]:
    """Within the block ``on_step()`` is called at every micro-step."""
    kept = _attached[0]
    _attached[0] = on_step
    try:
        yield
    finally:
        _attached[0] = kept
