"""Fail every allocation once: run an operation again and again, each time with the next allocation of a frame failing.

    for run in fail_every_alloc(prepare, act):
        run.world.invariants()            nothing leaked, nothing lost
        run.outcome.errno                 what the operation said

A kernel that forgets something on a path that is never taken is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from kemu.errors import KernelBug
from kemu.kernel.system import system
from kemu.testing.world import World
from kemu.userland.script import Outcome

MOST = 1000
"""Allocations of one operation; more means that it never ends."""


@attrs.frozen
class Failed:
    """One run: the ``number``-th allocation failed; ``world`` as it is now, ``outcome`` of the operation."""

    number: int
    world: World
    outcome: Outcome


def fail_every_alloc(prepare: Callable[[World], None], act: Callable[[World], Outcome]) -> Iterator[Failed]:
    """A run for each allocation that ``act`` makes on a world made by ``prepare``; ends when none is left to fail."""
    for number in range(1, MOST):
        world = World()
        prepare(world)
        world.kernel.activate()
        system.sysctl.fail_alloc = number
        outcome = act(world)
        if system.sysctl.fail_alloc:
            return
        yield Failed(number, world, outcome)
    raise KernelBug(f"more than {MOST} allocations in one operation")
