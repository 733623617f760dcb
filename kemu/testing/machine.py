"""A Hypothesis state machine over everything that processes do with memory.

    from kemu.testing.machine import MemoryMachine
    TestMemory = MemoryMachine.TestCase                  pytest finds it

Behind each rule all invariants hold; at the end every byte that is looked at is what the model says, and when all processes
have ended every frame is free again.  A machine of one's own adds rules in a subclass.
"""

from __future__ import annotations

from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kemu.testing.strategies import counts, cpus, kinds, pages, processes, rights, values, words
from kemu.testing.world import PAGES, World


class MemoryMachine(RuleBasedStateMachine):
    """See the module. ``world`` is the kernel with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize()
    def begin(self) -> None:
        """Process 0 has memory."""
        self.world.mmap(0, 0, PAGES)

    @rule(who=processes, page=pages, value=values, cpu=cpus, word=words)
    def write(self, who: int, page: int, value: int, cpu: int, word: int) -> None:
        """A store."""
        self.world.write(who, page, value, cpu, word)

    @rule(who=processes, page=pages, cpu=cpus)
    def read(self, who: int, page: int, cpu: int) -> None:
        """A load."""
        self.world.read(who, page, cpu)

    @rule(who=processes, first=pages, count=counts, letters=rights, kind=kinds)
    def mmap(self, who: int, first: int, count: int, letters: str, kind: str) -> None:
        """A mapping: private or shared, anonymous or of the file."""
        self.world.mmap(who, first, count, letters, kind)

    @rule(who=processes, first=pages, count=counts)
    def munmap(self, who: int, first: int, count: int) -> None:
        """Pages go."""
        self.world.munmap(who, first, count)

    @rule(who=processes, first=pages, count=counts, letters=rights)
    def mprotect(self, who: int, first: int, count: int, letters: str) -> None:
        """Rights change."""
        self.world.mprotect(who, first, count, letters)

    @rule(who=processes, first=pages, count=counts)
    def dontneed(self, who: int, first: int, count: int) -> None:
        """Memory begins again."""
        self.world.dontneed(who, first, count)

    @rule(who=processes, first=pages, count=counts, to=pages)
    def mremap(self, who: int, first: int, count: int, to: int) -> None:
        """Pages move."""
        self.world.mremap(who, first, count, to)

    @rule(who=processes, page=pages, source=pages)
    def pread(self, who: int, page: int, source: int) -> None:
        """The kernel stores."""
        self.world.pread(who, page, source)

    @rule(who=processes, page=pages, to=pages)
    def pwrite(self, who: int, page: int, to: int) -> None:
        """The kernel loads."""
        self.world.pwrite(who, page, to)

    @rule(who=processes, page=pages)
    def pin(self, who: int, page: int) -> None:
        """A device gets a page."""
        self.world.pin(who, page)

    @rule(who=processes, room=counts, limited=words)
    def limit(self, who: int, room: int, limited: int) -> None:
        """RLIMIT_AS comes or goes."""
        self.world.limit(who, room if limited else None)

    @rule(who=processes)
    def fork(self, who: int) -> None:
        """A child."""
        self.world.fork(who)

    @rule(who=processes)
    def clone(self, who: int) -> None:
        """A task in the same memory."""
        self.world.clone(who)

    @precondition(lambda self: len(self.world.processes) > 1)
    @rule(who=processes)
    def exit(self, who: int) -> None:
        """A process ends."""
        self.world.exit(who)

    @rule(cpu=cpus)
    def kthread(self, cpu: int) -> None:
        """A kernel thread borrows."""
        self.world.kthread(cpu)

    def teardown(self) -> None:
        """Everything as the model says, and nothing left behind."""
        self.world.verify()
        self.world.finish()
