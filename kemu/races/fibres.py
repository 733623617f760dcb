"""Fibres: call stacks of which exactly one runs, until it names the next one.

    main   start(0, job)                 end()       main starts each fibre, and gets control
    0          |--- job --- switch(0, 1)             back from whichever switches to MAIN;
    1                       |--- job --- return MAIN a job that ends names the next fibre

The explorer of races puts each CPU on one.  There are two kinds: threads that wait for each other,
and greenlets, if the package of that name is installed.  The order of execution is the same with
both.  A greenlet switches in a twentieth of the time, but races switch too seldom for this to
matter (docs/measurements.md).  Greenlets are used where no thread can be started.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Protocol

from kemu.errors import HostUnavailable

MAIN = -1
"""The number of the stack that starts the others."""

Job = Callable[[], int]
"""What a fibre runs; returns the number of the fibre that runs next."""


class Fibres(Protocol):
    """Some fibres, numbered from 0.  Each runs one job after the other."""

    def start(self, number: int, job: Job) -> None:
        """Called by MAIN: run ``job`` on the fibre, which has none; returns when a fibre switches
        to MAIN."""

    def switch(self, me: int, to: int) -> None:
        """Called by ``me``: run ``to``; returns when a fibre switches to ``me``."""

    def regain(self) -> None:
        """Called by MAIN after an interrupt while it waited: wait until it has control again."""

    def end(self) -> None:
        """Called by MAIN when no fibre has a job: release them."""


class Threads:
    """Fibres on threads.  Each thread waits for its own lock; releasing that lock passes control to
    it."""

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
        """Pass control to ``to``."""
        if me == MAIN:
            self.waiting = True
        self.go[to].release()
        self.go[me].acquire()
        if me == MAIN:
            self.waiting = False

    def regain(self) -> None:
        """Wait until MAIN has control: the interrupted thread did not take its lock."""
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
        """Pass control to ``to``."""
        self.stacks[to].switch()

    def regain(self) -> None:
        """MAIN has control whenever it runs."""

    def end(self) -> None:
        """Nothing to do: a greenlet ends with its job."""
        self.stacks.clear()


def fibres(count: int) -> Fibres:
    """``count`` fibres, of the faster kind that this Python has.  ``HostUnavailable`` if it has
    neither, as in a browser."""
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
