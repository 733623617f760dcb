"""A bound on the time of one program: a hostile one (huge numbers, endless populating) is stopped,
and it is said.

The time is this process's own CPU time, so that a busy computer stops nothing that is honest.
Where the system has no timer for that, the clock is taken.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 30.0
"""What one program may take; the slowest recorded one, which fills a process with mappings, takes a
few."""


class TimeUp(Exception):
    """The program was stopped.  The machine that it ran on is broken off in the middle and must not
    be used."""


@contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[None]:
    """Raise ``TimeUp`` in the block after so many seconds.  Does nothing outside of the main
    thread: there nothing can be stopped."""
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
