"""Property testing of kemu: a kernel next to a simple model, strategies for its operations, a state
machine.

    from kemu.testing import World                     a kernel and the model, without Hypothesis
    from kemu.testing.machine import MemoryMachine     a Hypothesis state machine of all operations
    from kemu.testing.strategies import programs       lists of operations, for your own properties
    from kemu.testing.failure import fail_every_alloc  one run for each allocation that can fail

The end of docs/invariants.md shows a property in a few lines.
"""

from kemu.testing.world import BASE, PAGE, PAGES, World

__all__ = ["BASE", "PAGE", "PAGES", "World"]
