"""Fail every allocation once: run an operation again and again, each time with the next allocation
failing.

    for run in fail_every_alloc(prepare, act, OBJECTS):
        run.cache                         what could not be made: "anon_vma_chain"
        run.outcome.errno                 what the operation said
        run.world.invariants()            nothing leaked, nothing lost
        run.changes()                     the net effect of the operation: what the journal says is different now

A kernel that forgets something on a path that is never taken is found here.
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
"""Allocations of one operation; more means that it never ends."""

FRAMES, OBJECTS = "fail_alloc", "fail_slab"
"""What fails: a frame of memory, or an object such as a VMA."""


@attrs.frozen
class Failed:
    """One run: the ``number``-th allocation failed, for an object one from ``cache``; ``world`` as
    it is now, ``outcome`` of the operation, whose events are (``first``, ``last``]."""

    number: int
    world: World
    outcome: Outcome
    cache: str
    first: int
    last: int

    def changes(self) -> tuple[FieldChange, ...]:
        """What the operation changed in the end; the world must be one that records."""
        return diff(self.world.kernel, self.first, self.last, low=True).changes


def fail_every_alloc(
    prepare: Callable[[World], None],
    act: Callable[[World], Outcome],
    what: str = FRAMES,
    **options: Any,
) -> Iterator[Failed]:
    """A run for each allocation that ``act`` makes on a world (with these options) made by
    ``prepare``; ends when none is left to fail."""
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
