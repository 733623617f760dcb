"""Properties of kemu for everybody: a kernel beside a simple model, strategies for its operations,
a state machine.

    from kemu.testing import World                        a kernel and the model, no Hypothesis needed
    from kemu.testing.machine import MemoryMachine        a Hypothesis state machine over all operations
    from kemu.testing.strategies import programs          lists of operations, for a property of one's own
    from kemu.testing.failure import fail_every_alloc     one run for each allocation that can fail

The last part of the page docs/invariants.md shows a property in a few lines.
"""

from kemu.testing.world import BASE, PAGE, PAGES, World

__all__ = ["BASE", "PAGE", "PAGES", "World"]
