"""The processes of a program, each of which runs a stand-in for the recorder's worker.

    0x400000        its segments, none of them touched
    0x4a9000        MEMORY   a buffer for system calls and the other memory that the worker
                             writes to; every process has touched it
    0x63d000        HEAP     34 pages, the first two touched; the window of "brk" programs
                             begins right above
    0x200000000000  window   what the program is about (words.py)
    0x7ffff7ff7000  [vvar], [vvar_vclock], [vdso]: the kernel chooses addresses right below
    0x7ffffffde000  stack    touched at its upper end

These are eleven mappings, as many as the recorder's worker has, because some programs reach the
limit on their number.

The worker handles SIGSEGV, SIGBUS, SIGILL and SIGTRAP and goes on; it ignores SIGCHLD, so its
children are reaped at once.  After a fork, first the parent and then the child touch the memory
that they will need, so that no later fault count includes it.  The parent touches more pages than
an LRU batch holds, so that pages written before a fork are on the LRU lists after it.
"""

from __future__ import annotations

import attrs

from kemu.abi.uapi import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_NORESERVE,
    MAP_PRIVATE,
    PAGE_SIZE,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    SIGBUS,
    SIGCHLD,
    SIGILL,
    SIGSEGV,
    SIGTRAP,
)
from kemu.conform.identity import Identities
from kemu.conform.observation import FileNames, Mapped, Window, counters, observe
from kemu.conform.program import Program
from kemu.conform.steps import Observation
from kemu.conform.words import WINDOW_BASE
from kemu.errors import KernelBug
from kemu.kernel.arch.vdso import map_vdso
from kemu.kernel.include.mm_types import inode, mm_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.userland.performer import Outcome
from kemu.userland.script import Script

_R, _RW, _RX = PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC

MEMORY = 0x4A9000
MEMORY_PAGES = 32
"""How many pages a parent touches after a fork: one more than an LRU batch holds (PAGEVEC_SIZE)."""

BUFFER_PAGES = 4
"""The part of it that holds the bytes of system calls."""

HEAP = 0x63D000
HEAP_PAGES = 34
"""Where exec put the program break, and what the C library took of the heap: a malloc arena of
132 kB and two pages for itself."""

STACK_TOP = 0x7FFFFFFFF000
WARM_UP = 8
"""Where a new worker reads once to check that its signal handler works; usually nothing is mapped
there."""

LAYOUT = (
    (0x400000, 0x401000, _R, 0),
    (0x401000, 0x47A000, _RX, 0),
    (0x47A000, 0x4A2000, _R, 0),
    (0x4A2000, 0x4A6000, _R, MAP_NORESERVE),
    (0x4A6000, MEMORY, _RW, 0),
    (MEMORY, HEAP, _RW, MAP_NORESERVE),
)
"""Start, end, rights and flags: no two neighbours are alike, so that none merge."""

RAM = 24 << 30
CPUS = 2


@attrs.define
class Process:
    """A process of the program; ``cpu`` is where it runs."""

    name: str
    task: task_struct
    cpu: int = 0


def mm_of(process: Process) -> mm_struct:
    """The address space of a living process."""
    if process.task.mm is None:
        raise KernelBug(f"process {process.name} has no address space")
    return process.task.mm


class Cast:
    """A fresh machine (``kernel``, which must have just booted, if given) with process A, ready for
    ``program``."""

    def __init__(self, program: Program, kernel: Kernel | None = None) -> None:
        self.kernel = kernel or Kernel(mem=RAM, nr_cpus=CPUS, record=False, lru_batch=True)
        self.kernel.activate()
        self.script = Script(self.kernel)
        self.processes: dict[str, Process] = {}
        self.files: dict[str, int] = {}
        self.kept: dict[str, tuple[int, int]] = {}
        self.names = FileNames()
        self.identities = Identities()
        first = Process("A", self.script.spawn("A"))
        self.processes["A"] = first
        top = self._settle(first)
        heap = program.window == "brk"
        self.window = Window(top if heap else WINDOW_BASE, heap=heap)
        self.start = counters(mm_of(first))

    # ---------------------------------------------------------------- what processes do

    def call(self, process: Process, name: str, *args: int | str) -> Outcome:
        """The system call ``name`` by ``process`` on its CPU."""
        return self.script.syscall(process.task, name, *args, cpu=process.cpu)

    def store(self, process: Process, addr: int, data: bytes) -> Outcome:
        """A store by ``process``."""
        return self.script.store(process.task, addr, data, cpu=process.cpu)

    def load(self, process: Process, addr: int, nbytes: int) -> Outcome:
        """A load by ``process``."""
        return self.script.load(process.task, addr, nbytes, cpu=process.cpu)

    def fetch(self, process: Process, addr: int) -> Outcome:
        """An instruction fetch by ``process``."""
        return self.script.fetch(process.task, addr, cpu=process.cpu)

    def live(self) -> list[str]:
        """The processes that have not ended, in order of name."""
        return sorted(self.processes)

    def bury(self) -> None:
        """Forget the processes that have ended."""
        self.processes = {
            name: process for name, process in self.processes.items() if process.task.mm is not None
        }

    def observe(self, name: str) -> tuple[Observation, list[Mapped]]:
        """The observation of process ``name``, and its pages that still need a name."""
        return observe(mm_of(self.processes[name]), self.window, self.names, self.start)

    def born(self, parent: Process, name: str, pid: int) -> None:
        """Call the task ``pid``, a child of ``parent``, process ``name``; both touch the memory
        that they will need."""
        child = Process(name, system.tasks[pid], parent.cpu)
        if child.task.mm is parent.task.mm:
            self.identities.share(parent.name, name)
        else:
            self.identities.fork(name)
        self.processes[name] = child
        self._touch(parent, MEMORY_PAGES)
        self._touch(child, BUFFER_PAGES)
        self.load(child, WARM_UP, 1)

    def must(self, process: Process, name: str, *args: int | str) -> int:
        """The value of a call that cannot fail."""
        outcome = self.call(process, name, *args)
        if outcome.errno:
            raise KernelBug(f"{name}{args} of process {process.name} gave errno {outcome.errno}")
        return outcome.value

    def inode(self, process: Process, fd: int) -> inode:
        """The file of a descriptor of ``process``."""
        files = process.task.files
        if files is None or fd not in files.fd:
            raise KernelBug(f"process {process.name} has no descriptor {fd}")
        return files.fd[fd].f_inode

    # ---------------------------------------------------------------- the stand-in

    def _settle(self, process: Process) -> int:
        """Make and touch the worker's own memory and set up its signals; returns the page-aligned
        program break."""
        for signal in (SIGSEGV, SIGBUS, SIGILL, SIGTRAP):
            self.must(process, "sigaction", signal, "handle")
        self.must(process, "sigaction", SIGCHLD, "ignore")
        for start, end, prot, flags in LAYOUT:
            self.must(
                process,
                "mmap",
                start,
                end - start,
                _RW,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags,
                -1,
                0,
            )
            if prot != _RW:
                self.must(process, "mprotect", start, end - start, prot)
        map_vdso(0)
        self.load(process, mm_of(process).vdso, 1)
        mm_of(process).start_brk = mm_of(process).brk = HEAP
        top = self.must(process, "brk", HEAP + HEAP_PAGES * PAGE_SIZE)
        self.store(process, HEAP, b"\0")
        self.store(process, HEAP + PAGE_SIZE, b"\0")
        self._touch(process, MEMORY_PAGES)
        return top

    def _touch(self, process: Process, pages: int) -> None:
        """Write to the first ``pages`` of MEMORY, and to the other memory that a process of the
        recorder writes to between operations."""
        for page in range(pages):
            self.store(process, MEMORY + page * PAGE_SIZE, b"\0")
        self.store(process, HEAP, b"\0")
        self.store(process, STACK_TOP - 8, b"\0")
