"""An end to what would run for ever: seconds for a block, where the system can count them.

A lesson has no loops, but it may ask for very much.  Events are bounded in `world`; this bounds
time as well: that of the process, so that a busy machine makes no lesson a bad one.  It needs
setitimer and the main thread; elsewhere only the bound on events holds.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from kemu.lessons.taking.world import WorldError


@contextmanager
def seconds(limit: float, line: int, what: str) -> Iterator[None]:
    """A block that may compute for so long; then WorldError P08 is raised in it, for `line` of the
    lesson."""
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def over(_number: int, _frame: FrameType | None) -> NoReturn:
        raise WorldError(
            "P08", line, f"{what} takes more than {limit:g} seconds", "use fewer pages or commands"
        )

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
