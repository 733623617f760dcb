"""Fail every allocation once: run an operation again and again, each time with the next allocation
failing.

    for run in fail_every_alloc(prepare, act, OBJECTS):
        run.cache                         the object that failed: "anon_vma_chain"
        run.outcome.errno                 the result of the operation
        run.world.invariants()            nothing leaked, nothing lost
        run.changes()                     the net effect of the operation, from the journal

This finds errors on paths that are hardly ever taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from kemu.errors import KernelBug
from kemu.kernel.include.system import system
from kemu.observe.difference import diff
from kemu.readings import FieldChange
from kemu.testing.world import World
from kemu.userland.performer import Outcome

MOST = 1000
"""The most allocations of one operation; more means that it never ends."""

FRAMES, OBJECTS = "fail_alloc", "fail_slab"
"""The kind of allocation that fails: a frame, or an object such as a VMA."""


@attrs.frozen
class Failed:
    """One run: the ``number``-th allocation failed (of an object: one from ``cache``); ``world``
    afterwards; ``outcome`` of the operation, whose events are (``first``, ``last``]."""

    number: int
    world: World
    outcome: Outcome
    cache: str
    first: int
    last: int

    def changes(self) -> tuple[FieldChange, ...]:
        """The net changes of the operation; the world must record."""
        return diff(self.world.kernel, self.first, self.last, low=True).changes


def fail_every_alloc(
    prepare: Callable[[World], None],
    act: Callable[[World], Outcome],
    what: str = FRAMES,
    **options: Any,
) -> Iterator[Failed]:
    """A run for each allocation that ``act`` makes on a world (with these options) made by
    ``prepare``; ends after the last one."""
    for number in range(1, MOST):
        world = World(**options)
        prepare(world)
        world.kernel.activate()
        setattr(system.sysctl, what, number)
        world.kernel.journal.catch_up()
        first = len(world.kernel.journal)
        outcome = act(world)
        if getattr(system.sysctl, what):
            setattr(system.sysctl, what, 0)
            return
        world.kernel.journal.catch_up()
        yield Failed(
            number, world, outcome, system.sysctl.failed_slab, first, len(world.kernel.journal)
        )
    raise KernelBug(f"more than {MOST} allocations in one operation")
