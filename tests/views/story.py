"""A recorded machine on which something happened: two processes share pages, write, read, map a
file, one of them ends.

story = Story()             booted
story.tell()                the usual story; story.at["fork"] = (first, last) are the events of the step called fork
"""

from kemu.abi.uapi import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_PRIVATE,
    MAP_SHARED,
    PROT_READ,
    PROT_WRITE,
)
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.machine.geometry import X86_64_4LEVEL
from kemu.observe.translation import walk
from kemu.userland.script import Script

BASE = 0x10000
SHARED = 0x40000
RW = PROT_READ | PROT_WRITE
PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
PAGE = 4096


class Story:
    """A machine, its script, the tasks by name, and the events of each step."""

    def __init__(self, *, geometry=X86_64_4LEVEL, record=True, **kwargs):
        self.kernel = Kernel(geometry=geometry, record=record, **kwargs)
        self.kernel.activate()
        self.script = Script(self.kernel)
        self.tasks = {}
        self.pids = {}
        self.at = {}

    def names(self, pid):
        """What the user calls a pid."""
        return self.pids.get(pid) or (system.tasks[pid].comm if pid in system.tasks else f"@{pid}")

    def known(self, name, task):
        self.tasks[name] = task
        self.pids[task.pid] = name

    def step(self, label, action):
        """Do something and note its events."""
        first = len(self.kernel.journal)
        result = action()
        self.kernel.journal.catch_up()
        self.at[label] = (first, len(self.kernel.journal))
        return result

    def call(self, label, name, call, *args):
        """A system call by the task called ``name``, which must succeed."""
        outcome = self.step(label, lambda: self.script.syscall(self.tasks[name], call, *args))
        assert outcome.errno == 0, f"{call}{args} -> errno {outcome.errno}"
        return outcome.value

    def store(self, label, name, addr, data):
        return self.step(label, lambda: self.script.store(self.tasks[name], addr, data))

    def load(self, label, name, addr, size):
        return self.step(label, lambda: self.script.load(self.tasks[name], addr, size))

    def walk(self, name, addr=BASE):
        return walk(self.kernel, self.tasks[name], addr, self.names)

    def begin(self):
        """A parent with four pages, the first written, the second read, and a shared page."""
        self.known("parent", self.step("spawn", lambda: self.script.spawn("parent")))
        self.call("mmap", "parent", "mmap", BASE, 4 * PAGE, RW, PRIVATE, -1, 0)
        self.store("first write", "parent", BASE, b"hello")
        self.pfn = self.walk("parent").frame.pfn
        self.load("zero page", "parent", BASE + PAGE, 8)
        self.call(
            "mmap shared",
            "parent",
            "mmap",
            SHARED,
            2 * PAGE,
            RW,
            MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
            -1,
            0,
        )
        self.store("shared write", "parent", SHARED, b"both")

    def fork(self):
        """A child of the parent."""
        self.known("child", system.tasks[self.call("fork", "parent", "fork")])

    def tell(self):
        """All of it: fork, a copy on write, a write by the last sharer, mprotect, munmap, exit and
        wait."""
        self.begin()
        self.fork()
        self.store("cow copy", "child", BASE, b"y")
        self.store("cow reuse", "parent", BASE, b"j")
        self.call("mprotect", "child", "mprotect", BASE, PAGE, PROT_READ)
        self.call("munmap", "child", "munmap", BASE + PAGE, PAGE)
        self.call("exit", "child", "exit_group", 3)
        self.call("wait", "parent", "wait4", -1, 0, 0)
        return self
