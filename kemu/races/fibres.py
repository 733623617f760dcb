"""Fibres: call stacks of which exactly one runs, until it says which one runs next.

    main   start(0, job)                 end()       main starts each fibre, and gets control
    0          |--- job --- switch(0, 1)             back from whichever switches to MAIN;
    1                       |--- job --- return MAIN a job that is over says which goes on

The explorer of races puts each CPU on one.  Python has two kinds of them: threads that wait for
each other, and greenlets, where the package of that name is installed.  What runs in which order is
the same with both.  A greenlet switches in a twentieth of the time; the runs of a race switch so
seldom that this does not show (docs/measurements.md).  Greenlets are what serves where no thread
can be started.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Protocol

from kemu.errors import HostUnavailable

MAIN = -1
"""The number of the stack that starts the others."""

Job = Callable[[], int]
"""What a fibre runs; the number of the one that goes on when it is over."""


class Fibres(Protocol):
    """Some fibres, numbered from 0.  Each runs one job after the other."""

    def start(self, number: int, job: Job) -> None:
        """Called by MAIN: run ``job`` on the fibre, which has none; returns when somebody switches
        back."""

    def switch(self, me: int, to: int) -> None:
        """Called by ``me``: ``to`` goes on; returns when somebody switches to ``me``."""

    def regain(self) -> None:
        """Called by MAIN after an interrupt while it waited: wait on until it has control."""

    def end(self) -> None:
        """Called by MAIN when no fibre has a job: they are not needed any more."""


class Threads:
    """Fibres on threads.  Each thread waits for its lock; who releases it, hands over control."""

    def __init__(self, count: int) -> None:
        self.go = [Lock() for _ in range(count + 1)]
        for lock in self.go:
            lock.acquire()
        self.jobs: list[Job | None] = [None] * count
        self.waiting = False
        self.threads = [
            Thread(target=self._work, args=(number,), name=f"CPU {number}", daemon=True)
            for number in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def _work(self, number: int) -> None:
        while True:
            self.go[number].acquire()
            job, self.jobs[number] = self.jobs[number], None
            if job is None:
                return
            self.go[job()].release()

    def start(self, number: int, job: Job) -> None:
        """Run a job on a fibre."""
        self.jobs[number] = job
        self.switch(MAIN, number)

    def switch(self, me: int, to: int) -> None:
        """``to`` goes on."""
        if me == MAIN:
            self.waiting = True
        self.go[to].release()
        self.go[me].acquire()
        if me == MAIN:
            self.waiting = False

    def regain(self) -> None:
        """Wait until MAIN has control: the interrupted thread has left its lock to be taken."""
        if self.waiting:
            self.go[MAIN].acquire()
            self.waiting = False

    def end(self) -> None:
        """End the threads."""
        for number, thread in enumerate(self.threads):
            self.go[number].release()
            thread.join()


class Greenlets:
    """Fibres of the package greenlet: all on one thread, an interrupt hits the one that runs."""

    def __init__(self, count: int) -> None:
        from greenlet import getcurrent, greenlet

        self.make = greenlet
        self.stacks = [greenlet(int) for _ in range(count)] + [getcurrent()]

    def start(self, number: int, job: Job) -> None:
        """Run a job on a fibre."""

        def run() -> None:
            stack.parent = self.stacks[job()]

        stack = self.stacks[number] = self.make(run, self.stacks[MAIN])
        stack.switch()

    def switch(self, me: int, to: int) -> None:
        """``to`` goes on."""
        self.stacks[to].switch()

    def regain(self) -> None:
        """MAIN has control whenever it runs."""

    def end(self) -> None:
        """Nothing is left of a greenlet whose job is over."""
        self.stacks.clear()


def fibres(count: int) -> Fibres:
    """So many fibres, of the faster kind that this Python has.  ``HostUnavailable`` where it has
    none, as in a browser."""
    try:
        return Greenlets(count)
    except ImportError:
        pass
    try:
        return Threads(count)
    except RuntimeError as error:
        raise HostUnavailable(
            "race: this Python has neither threads nor greenlets; pip install 'kemu[races]' brings "
            "greenlets, and races of small programs need neither"
        ) from error
