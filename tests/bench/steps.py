"""kemu's side of one measurement, in a process of its own: map, touch, fork, copy half, exit, and
the journal.

    python -m tests.bench.steps PAGES 0|1            0 unrecorded, 1 recorded; one line of JSON

A touch is what the C program's loop does: the CPU stores 8 bytes at an address, faults, the kernel
serves the fault, the store runs again.  Garbage collection stays as the kernel sets it.
"""

import json
import random
import sys
import time

from kemu.abi.uapi import MADV_DONTNEED, MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.machine.mmu import WRITE, access
from kemu.userland.script import Script

PAGE = 4096
JUMPS, JUMPS_IF_LARGE = 121, 9
"""How many jumps are timed; fewer if each goes through millions of events."""


def clock():
    """Microseconds of CPU time: what somebody else's processes do on the computer counts less
    so."""
    return time.thread_time() * 1e6


class Machine:
    """A kernel, a process with ``pages`` pages of anonymous memory, and what was measured on it
    (microseconds)."""

    def __init__(self, pages, *, recorded):
        self.pages = pages
        self.kernel = Kernel(mem=memory_for(pages), record=recorded)
        self.journal = self.kernel.journal
        self.script = Script(self.kernel)
        self.found = {}
        self.task = self.script.spawn("bench")
        prot, flags = PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
        self.area = self.script.syscall(
            self.task, "mmap", 0, pages * PAGE, prot, flags, -1, 0
        ).value
        self.script.store(self.task, self.area, b"the first")

    def measure(self, name, count, action):
        """Do ``action``; note microseconds, events and frames of each of its ``count`` parts."""
        events, marks, start = len(self.journal), len(self.journal.marks), clock()
        action()
        self.found[name] = (clock() - start) / count
        self.found[name + "_events"] = (len(self.journal) - events) / count
        self.found[name + "_frames"] = (
            (len(self.journal.marks) - marks) / 4 / count
        )  # enter and leave, two slots each

    def touch(self, first, last):
        """One store of 8 bytes a page, by the program that runs."""
        cpu, phys = system.cpu.hw, system.phys
        for i in range(first, last):
            phys.store(access(cpu, self.area + i * PAGE, WRITE, True, system.trap), i)

    def run(self):
        half = self.pages // 2
        self.measure("fault", self.pages - 1, lambda: self.touch(1, self.pages))
        self.measure("fork", self.pages, lambda: self.script.syscall(self.task, "fork"))
        child = system.tasks[max(system.tasks)]
        self.script.store(child, self.area, b"a second")
        self.measure("cow", half - 1, lambda: self.touch(1, half))
        self.measure("exit", self.pages, lambda: self.script.syscall(child, "exit_group", 0))
        assert self.task.min_flt >= self.pages
        assert child.mm is None
        assert self.task.mm is not None
        return self.found

    def give_back(self):
        """Give up all pages, write them again, and unmap them, as the C program does at its
        end."""
        where = (self.area, self.pages * PAGE)
        self.script.store(self.task, self.area, b"the parent again")
        self.touch(1, self.pages)
        self.measure(
            "dontneed",
            self.pages,
            lambda: self.script.syscall(self.task, "madvise", *where, MADV_DONTNEED),
        )
        self.touch(0, self.pages)
        self.measure("munmap", self.pages, lambda: self.script.syscall(self.task, "munmap", *where))


def memory_for(pages):
    """Bytes of emulated RAM: one and a half times the pages, and room for tables and watermarks."""
    return (pages * 3 // 2 + pages // 16 + (32 << 8)) * PAGE


def seeks(journal):
    """Milliseconds: median and longest of jumps to random events, from the end to event 0, and back
    to the end."""
    choose = random.Random(2)
    number = JUMPS if len(journal) < 3_000_000 else JUMPS_IF_LARGE
    took = sorted(jump(journal, choose.randrange(len(journal) + 1)) for _ in range(number))
    jump(journal, len(journal))
    back, forward = jump(journal, 0), jump(journal, len(journal))
    single = jump(journal, len(journal) - 1)
    jump(journal, len(journal))
    return {
        "seek": took[number // 2],
        "seek_max": took[-1],
        "rewind": back,
        "replay": forward,
        "step_back": single,
    }


def jump(journal, number):
    start = clock()
    journal.seek(number)
    return (clock() - start) / 1000


def resident():
    """The most host memory that this process has held, in bytes; 0 where the system does not
    say."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def main(pages, recorded):
    machine = Machine(pages, recorded=recorded)
    found = machine.run()
    found["rss"] = resident()
    found["events"] = len(machine.journal)
    if recorded:
        found |= seeks(machine.journal)
    machine.give_back()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "1")
