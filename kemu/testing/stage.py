"""The stage of a ``World``: a kernel, the model, two files, and the processes that take part.

The model learns nothing from the kernel but errnos, and it predicts those first.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import CodeType, FunctionType

from kemu.abi.uapi import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_PRIVATE,
    O_RDWR,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    RLIM_INFINITY,
    RLIMIT_AS,
    SEGV_MAPERR,
    SIGBUS,
    SIGCHLD,
    SIGSEGV,
)
from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.errors import InvariantViolation
from kemu.invariants import check
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.mmzone import nr_free_pages
from kemu.kernel.include.sched_types import TASK_RUNNING, task_struct
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm.filemap import load_file
from kemu.kernel.mm.lru import lru_add_drain
from kemu.machine.geometry import X86_64_4LEVEL, Geometry
from kemu.testing.model import Bytes, Cell, File
from kemu.userland.performer import Outcome
from kemu.userland.script import Script

PAGES = 12
BASE = 0x4000_0000 - 4 * PAGE
SCRATCH = 0x3000_0000
"""A page of each process that is not in the model: buffers of system calls."""

MOST_PROCESSES = 5
EM_X86_64, EM_RISCV = 62, 243
PROTS = {"r": PROT_READ, "w": PROT_WRITE, "x": PROT_EXEC}
DATA_FD, MEMORY_FD, PIPE_FD = 3, 4, 5
"""A file on disk, a memfd, a pipe: open in every process."""


class Arena(list["Cell | None"]):
    """What a process must see: a cell for each page of the arena, ``heap`` above ``start``;
    ``future``: new mappings are locked."""

    def __init__(self, cells: list[Cell | None], start: int, heap: list[Cell]) -> None:
        super().__init__(cells)
        self.start, self.heap, self.future = start, heap, False

    def fork(self) -> Arena:
        """The child's."""
        heap = [copy for copy in (cell.fork() for cell in self.heap) if copy is not None]
        return Arena([cell and cell.fork() for cell in self], self.start, heap)


Actor = tuple[task_struct, Arena]


class Stage:
    """``verifying``: check invariants after every operation; ``bodies``: a wrong kernel's
    functions; ``record``: keep a journal."""

    def __init__(
        self,
        *,
        geometry: Geometry = X86_64_4LEVEL,
        lru_batch: bool = False,
        record: bool = False,
        verifying: bool = True,
        bodies: Mapping[FunctionType, CodeType] | None = None,
    ) -> None:
        self.kernel = Kernel(geometry=geometry, record=record, lru_batch=lru_batch)
        self.kernel.bodies = bodies or {}
        self.script = Script(self.kernel)
        self.verifying = verifying
        self.moments: list[int] = []
        """The numbers of the events between two operations."""
        self.kernel.activate()
        self.cpus = len(system.cpus)
        self.data = create_file(
            "/data", "disk", b"".join((n + 1).to_bytes(PAGE, "little") for n in range(PAGES))
        )
        load_file("/program", program(EM_RISCV if geometry.name == "sv39" else EM_X86_64))
        self._fill_cache()
        self.free, self.promised = self._at_rest()
        first = self._begin()
        self._ok(first, "memfd_create", "memory")
        self._ok(first, "ftruncate", MEMORY_FD, PAGES * PAGE)
        self._ok(first, "pipe")
        self.piped = 0
        """Bytes in the pipe."""
        words: list[Bytes] = [dict(enumerate((n + 1).to_bytes(8, "little"))) for n in range(PAGES)]
        self.files = {DATA_FD: File(words), MEMORY_FD: File([{} for _ in range(PAGES)])}
        self.file = self.files[DATA_FD]
        self.processes: list[Actor] = [(first, self._new_arena(first))]

    def _begin(self) -> task_struct:
        """A process that survives refused accesses, does not wait for its children, and has the
        file open as 3."""
        task = self.script.spawn("p")
        self._harden(task)
        self._ok(task, "sigaction", SIGCHLD, "ignore")
        self._ok(task, "open", "/data", O_RDWR)
        return task

    def _harden(self, task: task_struct) -> None:
        """Handle the signals of refused accesses, and map a scratch page."""
        for number in (SIGSEGV, SIGBUS):
            self._ok(task, "sigaction", number, "handle")
        anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
        self._ok(task, "mmap", SCRATCH, PAGE, PROT_READ | PROT_WRITE, anonymous, -1, 0)

    def _new_arena(self, task: task_struct) -> Arena:
        """Map nothing; the heap begins where the program says."""
        return Arena([None] * PAGES, self._ok(task, "brk", 0), [])

    def _fill_cache(self) -> None:
        """Read the file once, so that later its pages are cached."""
        task = self._begin()
        for page in range(PAGES):
            self._ok(task, "pread", DATA_FD, SCRATCH, 1, page * PAGE)
        self.script.syscall(task, "exit_group", 0)

    def _at_rest(self) -> tuple[int, int]:
        """(frames that are free or cache the file, committed pages) when none of the world's
        processes is left and the batches are empty."""
        for cpu in system.cpus:
            self.script.schedule(system.tasks[1], cpu=cpu.id)
            lru_add_drain()
        return (
            nr_free_pages() + self.data.i_mapping.nrpages,
            system.counters.vm_committed_as,
        )

    # ---------------------------------------------------------------- helpers

    def runnable(self) -> list[Actor]:
        """The processes that can run: not dead, and not waiting in vfork."""
        return [
            actor
            for actor in self.processes
            if actor[0].state == TASK_RUNNING and not actor[0].exit_state
        ]

    def pick(self, number: int) -> Actor:
        """The process for a number."""
        able = self.runnable()
        return able[number % len(able)]

    def _ok(self, task: task_struct, name: str, *args: object) -> int:
        outcome = self.script.syscall(task, name, *args)
        self._expect(outcome.errno, 0, f"{name}{args}: errno")
        return outcome.value

    def _expect(self, has: object, wants: object, what: str) -> None:
        if has != wants:
            raise InvariantViolation(f"contents: {what} {has}, but the model says {wants}")

    def _checked(self) -> None:
        self.moments.append(len(self.kernel.journal))
        if self.verifying:
            self.invariants()

    def invariants(self) -> None:
        """Raise the first invariant that does not hold."""
        for violation in check(self.kernel):
            raise InvariantViolation(f"{violation.invariant}: {violation}")

    def _limited(self, task: task_struct) -> bool:
        return task.signal.rlim.get(RLIMIT_AS, (RLIM_INFINITY, 0))[0] != RLIM_INFINITY


def program(machine: int = EM_X86_64) -> bytes:
    """The smallest program that can be executed: an ELF header, one segment, a few bytes of code at
    0x400000."""
    code, size = bytes.fromhex("b83c0000000f05"), 64 + 56 + 7
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0x40_0078, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    return (
        header + struct.pack("<IIQQQQQQ", 1, 5, 0, 0x40_0000, 0x40_0000, size, size, 0x1000) + code
    )


def clip(first: int, count: int) -> tuple[int, int]:
    """(address, size in bytes) of pages of the arena."""
    return BASE + first * PAGE, (min(first + count, PAGES) - first) * PAGE


def prot(rights: str) -> int:
    """PROT_* of "r", "rw", "" ..."""
    return sum(PROTS[letter] for letter in rights)


def signal(outcome: Outcome) -> str:
    """The code of the signal that an access got, or ""."""
    if outcome.signal is None:
        return ""
    if outcome.signal.signo == SIGBUS:
        return "BUS_ADRERR"
    return "SEGV_MAPERR" if outcome.signal.code == SEGV_MAPERR else "SEGV_ACCERR"
