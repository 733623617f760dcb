"""A Hypothesis state machine over everything that processes do with memory.

    from kemu.testing.machine import MemoryMachine
    TestMemory = MemoryMachine.TestCase                  pytest finds it
    TestMemory.settings = profile("ci")                  or "deep"

After each rule all invariants hold; at the end every byte is what the model says, and when all
processes have ended every frame is free again.  There is a rule for each operation of ``World``
(strategies.py has them with their arguments); a subclass can add rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kemu.testing.stage import PAGES
from kemu.testing.strategies import FREQUENT, RULES
from kemu.testing.world import World


def _rule(name: str, number: int) -> Callable[..., None]:
    """The rule for operation ``name``; an operation in ``FREQUENT`` has several rules, with
    numbers."""

    def operation(self: MemoryMachine, **arguments: Any) -> None:
        getattr(self.world, name)(**arguments)

    operation.__name__ = f"{name}_{number}" if number else name
    operation.__doc__ = getattr(World, name).__doc__
    declare: Any = rule
    made: Callable[..., None] = declare(**RULES[name])(operation)
    return made


class MemoryMachine(RuleBasedStateMachine):
    """See the module. ``world`` is the kernel with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize()
    def begin(self) -> None:
        """Give process 0 memory."""
        self.world.mmap(0, 0, PAGES)

    def teardown(self) -> None:
        """Check that everything is as the model says, and that nothing remains at the end."""
        self.world.verify()
        self.world.finish()


for _number, _name in enumerate([*RULES, *FREQUENT]):
    _extra = _number if _number >= len(RULES) else 0
    setattr(MemoryMachine, f"{_name}_{_extra}" if _extra else _name, _rule(_name, _extra))
