"""An end to what would run for ever: seconds for a block, where the system can count them.

A lesson has no loops, but it may ask for very much.  Events are bounded in `world`; this bounds time as well.  It needs
setitimer and the main thread; elsewhere only the bound on events holds.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from kemu.tutor.world import WorldError


@contextmanager
def seconds(limit: float, line: int, what: str) -> Iterator[None]:
    """A block that may take so long; then WorldError P08 is raised in it, for `line` of the lesson."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(_number: int, _frame: FrameType | None) -> NoReturn:
        raise WorldError("P08", line, f"{what} takes more than {limit:g} seconds", "use fewer pages or commands")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
