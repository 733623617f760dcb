"""Several CPUs, one baton: kernel functions on fibres (``fibres.py``) of which exactly one runs.

    CPU 0   |--- fault ---step|            |step--- ... ---|    a CPU holds the baton until it is
    CPU 1                     |step--- lock|                    about to take a step; there the
                                                                chooser says which CPU runs next

Each CPU runs up to its first step and waits there; from then on every choice names the CPU that
takes its next step.  A CPU that waits for a lock cannot be chosen until the lock is free; if no CPU
can be chosen and not all are done, that is a deadlock.  Nothing here depends on the host's
scheduler: the same choices give the same run.

A CPU without the baton touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs

from kemu.errors import KernelBug
from kemu.kernel.include.sched_types import percpu, siginfo
from kemu.kernel.include.system import system
from kemu.races.fibres import MAIN, Fibres
from kemu.trace.steps import Ready, explorer

Body = Callable[[], None]
"""What one CPU does in a run."""

Choose = Callable[[list[int], int], int]
"""The CPU to run next: (CPUs that can run, CPU that ran last or -1) -> CPU, or -1 to end the
run."""


class Observer:
    """Observer of a run; this one does nothing."""

    def switched(self, number: int) -> None:
        """CPU ``number`` runs from now on; -1: the run is over and the rest is unwinding."""

    def standing(self, number: int, lock: str) -> None:
        """CPU ``number`` has come to a step; ``lock`` is the lock that it is about to take, or
        empty."""


FALLS = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Exceptions that mean corrupt kernel data: what Python raises for a bad pointer."""


class Abandon(BaseException):
    """Unwinds a CPU whose run is over."""


@attrs.define
class Place:
    """A CPU's state in a run: the lock that it waits for, its values of the globals, and whether it
    is done."""

    waits: tuple[Ready, Any, str] | None = None
    cpu: percpu | None = None
    delivered: list[siginfo] = attrs.field(factory=list)
    done: bool = False

    def able(self) -> bool:
        """True if it can take a step."""
        return not self.done and (self.waits is None or self.waits[0](self.waits[1], self.waits[2]))


@attrs.define
class Ending:
    """How a run ended: ``why`` is "done", "deadlock", "stopped" (the chooser ended it), "bug" or
    "oops" (the kernel refused to go on, or crashed), with the CPU and the message."""

    why: str
    cpu: int = -1
    text: str = ""


class Run:
    """One run of several CPUs under a chooser; also the explorer that the kernel's steps call."""

    def __init__(
        self,
        crew: Fibres,
        bodies: Sequence[Body],
        choose: Choose,
        removed: frozenset[tuple[str, int]] = frozenset(),
        observer: Observer | None = None,
    ) -> None:
        self.crew, self.bodies, self.choose = crew, bodies, choose
        self.removed, self.observer = removed, observer
        self.places = [Place() for _ in bodies]
        self.active = -1
        self.choosing = False
        self.deciding = False
        self.over = False
        self.ending = Ending("done")
        self.failure: BaseException | None = None

    # ---------------------------------------------------------------- called by the kernel's steps

    def on_step(self) -> None:
        """The active CPU is about to take a step."""
        self._wait_turn(None)

    def on_wait(self, ready: Ready, obj: Any, lock: str) -> None:
        """The active CPU is about to take a lock."""
        self._wait_turn((ready, obj, lock))

    def is_removed(self, lock: str) -> bool:
        """True if the active CPU runs without that lock."""
        return (lock, self.active) in self.removed

    def _wait_turn(self, waits: tuple[Ready, Any, str] | None) -> None:
        """Wait before a step until it is this CPU's turn.  Reading the machine while the next CPU
        is chosen is not a step."""
        if self.deciding:
            return
        if self.over:
            raise Abandon
        me = self.active
        place = self.places[me]
        place.waits = waits
        if self.observer is not None:
            self.observer.standing(me, waits[2] if waits is not None else "")
        if not self.choosing:
            self._pass(me, MAIN)
        else:
            chosen = self._chosen(me)
            if chosen != me:
                self._pass(me, chosen)
        place.waits = None

    # ---------------------------------------------------------------- passing the baton

    def _chosen(self, last: int) -> int:
        """The CPU that runs next, or MAIN at the end of the run."""
        able = [number for number, place in enumerate(self.places) if place.able()]
        if not able:
            if not all(place.done for place in self.places):
                waits = [
                    f"CPU {number} waits for {place.waits[2]} of {place.waits[1]}"
                    for number, place in enumerate(self.places)
                    if place.waits is not None
                ]
                self.ending = Ending("deadlock", text=", ".join(waits))
            return MAIN
        self.deciding = True
        chosen = self.choose(able, last)
        self.deciding = False
        if chosen < 0:
            self.ending = Ending("stopped")
        return chosen

    def _pass(self, me: int, to: int) -> None:
        """Pass the baton and wait to get it back."""
        place = self.places[me]
        place.cpu, place.delivered = system.cpu, system.delivered
        self.crew.switch(me, to)
        if self.over:
            raise Abandon
        self._take(me)

    def _take(self, me: int) -> None:
        """This CPU runs now: make its globals the current ones."""
        place = self.places[me]
        self.active = me
        system.cpu, system.delivered = place.cpu or system.cpus[me], place.delivered
        if self.observer is not None:
            self.observer.switched(me)

    # ---------------------------------------------------------------- the life of a run

    def perform(self) -> Ending:
        """Run all bodies to the end of the run."""
        before = system.cpu
        with explorer(self):
            try:
                for number, place in enumerate(self.places):
                    place.cpu, place.delivered = system.cpus[number], []
                    self.crew.start(number, partial(self._body, number))
                self.choosing = True
                chosen = self._chosen(MAIN)
                if chosen != MAIN and self.ending.why == "done":
                    self.crew.switch(MAIN, chosen)
            finally:
                if self.observer is not None:
                    self.observer.switched(-1)
                self._stop()
                system.cpu = before
        if self.failure is not None:
            raise self.failure
        return self.ending

    def _body(self, number: int) -> int:
        """The job of a CPU's fibre in this run; returns the fibre that runs next."""
        place = self.places[number]
        self._take(number)
        try:
            self.bodies[number]()
        except Abandon:
            place.done = True
            return MAIN
        except KernelBug as bug:
            self.ending = Ending("bug", number, str(bug))
        except FALLS as fall:
            self.ending = Ending("oops", number, f"{type(fall).__name__}: {fall}")
        except BaseException as failure:  # noqa: BLE001 - perform raises it again, for its caller
            self.failure = failure
            self.ending = Ending("oops", number)
        place.done, place.delivered = True, system.delivered
        goes_on = self.choosing and not self.over and self.ending.why == "done"
        return self._chosen(number) if goes_on else MAIN

    def _stop(self) -> None:
        """Unwind the CPUs that are inside a call.  If the run was interrupted, one of them still
        has the baton: it gives it back at its next step."""
        self.over = True
        self.crew.regain()
        for number, place in enumerate(self.places):
            if place.cpu is not None and not place.done:
                self.crew.switch(MAIN, number)
