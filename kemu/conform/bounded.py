"""A bound on the time of one program: a hostile one (huge numbers, endless populating) is stopped,
and reported.

The time is the CPU time of this process, so that no honest program is stopped because the computer
is busy.  On a system without such a timer, it is wall-clock time.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 30.0
"""Seconds that one program may take; the slowest recorded one, which fills a process with mappings,
takes a few."""


class TimeUp(Exception):
    """The program was stopped.  Its machine stopped in the middle of an operation and must not be
    used any more."""


@contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[None]:
    """Raise ``TimeUp`` in the block after so many seconds.  Does nothing outside the main thread,
    where a block cannot be interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
    elif hasattr(signal, "setitimer"):
        yield from _by_timer(seconds)
    else:
        yield from _by_thread(seconds)


def _by_timer(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _by_thread(seconds: float) -> Iterator[None]:
    over = threading.Event()

    def stop() -> None:
        over.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if over.is_set():
            raise TimeUp from None
        raise
    finally:
        timer.cancel()
