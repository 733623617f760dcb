"""A kernel and the simple model side by side: every operation is done on both, and both must agree.

    world = World()
    world.mmap(0, 0, 4, "rw")          process 0 maps pages 0..3 of its arena, private
    world.write(0, 1, 7)               and stores
    world.fork(0)                      process 1 is its child
    world.verify()                     invariants, and every byte of every process as the model says

Processes and pages are numbers; a process number is taken modulo the number of runnable ones, so
any number is valid.  A disagreement raises ``InvariantViolation``.  The arena spans the border of
two page tables; each process also has a heap.

    stage.py    the kernel, the model, the processes     copies.py   accesses of all kinds
    moves.py    mappings                                 family.py   tasks, signals
"""

from __future__ import annotations

from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.testing.copies import Copies
from kemu.testing.family import Family
from kemu.testing.moves import Moves
from kemu.testing.stage import BASE, PAGES

__all__ = ["BASE", "PAGE", "PAGES", "World"]


class World(Moves, Copies, Family):
    """See the module; the options are those of ``Stage``."""

    def verify(self) -> None:
        """Check every byte of every process against the model, and all invariants."""
        for who in range(len(self.runnable())):
            for page in range(PAGES):
                self._load(who, page, page % self.cpus, 0, PAGE)
            self._load_heap(who)
        self.invariants()

    def finish(self) -> None:
        """End all processes; then everything that they had must be free again."""
        while self.runnable():
            self._end(self.runnable()[-1][0])
        free, promised = self._at_rest()
        self.invariants()
        self._expect(free, self.free, "at the end, free frames")
        self._expect(promised, self.promised, "at the end, promised pages")
