"""The micro-step hook: where another CPU could run in between.

``step()`` stands inside every atomic operation and page-table access.  It does nothing until an explorer is attached;
then it is the place where the explorer may hand the baton to another CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Attached:
    """The explorer that is asked at every micro-step, if there is one."""

    on_step: Callable[[], None] | None = None


_attached = _Attached()


def step() -> None:
    """One micro-step of the executing CPU lies here."""
    if _attached.on_step is not None:
        _attached.on_step()


@contextmanager
def explorer(on_step: Callable[[], None]) -> Iterator[None]:
    """Within the block ``on_step()`` is called at every micro-step."""
    kept = _attached.on_step
    _attached.on_step = on_step
    try:
        yield
    finally:
        _attached.on_step = kept
