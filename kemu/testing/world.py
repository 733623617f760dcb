"""A kernel and the simple model side by side: every operation is done on both, and both must agree.

    world = World()
    world.mmap(0, 0, 4, "rw")          process 0 maps pages 0..3 of its arena, private
    world.write(0, 1, 7)               and stores
    world.fork(0)                      process 1 is its child
    world.verify()                     invariants, and every page of every process as the model says

Processes and pages are numbers; a process is counted round, so any number means one.  What disagrees raises
``InvariantViolation``.  The arena lies across the border of two page tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, FunctionType

from kemu.errors import InvariantViolation
from kemu.invariants import check
from kemu.kernel.boot import Kernel
from kemu.kernel.files import O_RDWR, create_file
from kemu.kernel.lru import lru_add_drain
from kemu.kernel.madvise import MADV_DONTNEED
from kemu.kernel.mman import (
    CLONE_VM,
    EFAULT,
    EINVAL,
    ENOMEM,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_PRIVATE,
    MAP_SHARED,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
)
from kemu.kernel.mremap import MREMAP_FIXED, MREMAP_MAYMOVE
from kemu.kernel.sched_types import RLIM_INFINITY, RLIMIT_AS, task_struct
from kemu.kernel.signal import SEGV_MAPERR, SIGCHLD, SIGSEGV
from kemu.kernel.system import system
from kemu.machine.geometry import X86_64_4LEVEL, Geometry
from kemu.testing.model import Cell, FileCell, readable, refusal
from kemu.userland.script import Outcome, Script

PAGE = 4096
PAGES = 12
BASE = 0x4000_0000 - 4 * PAGE
MOST_PROCESSES = 4
PROTS = {"r": PROT_READ, "w": PROT_WRITE, "x": PROT_EXEC}

Arena = list[Cell | None]


class World:
    """See the module. ``verifying``: invariants are checked behind every operation; ``bodies``: a wrong kernel's functions."""

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
        """The events between two operations."""
        self.kernel.activate()
        create_file("/data", "disk", b"".join((n + 1).to_bytes(PAGE, "little") for n in range(PAGES)))
        self.cached = self._fill_cache()
        self.free, self.promised = self._at_rest()
        first = self._begin()
        self.file = [Cell("", shared=True) for _ in range(PAGES)]
        for number, cell in enumerate(self.file):
            cell.store(number + 1)
        self.processes: list[tuple[task_struct, Arena]] = [(first, [None] * PAGES)]

    def _begin(self) -> task_struct:
        """A process that survives refused accesses, does not wait for its children, and has the file open as 3."""
        task = self.script.spawn("p")
        self._ok(task, "sigaction", SIGSEGV, "handle")
        self._ok(task, "sigaction", SIGCHLD, "ignore")
        self._ok(task, "open", "/data", O_RDWR)
        return task

    def _fill_cache(self) -> int:
        """Read the file once, so that later its pages are cached; how many."""
        task = self._begin()
        buffer = self._ok(task, "mmap", 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        for page in range(PAGES):
            self._ok(task, "pread", 3, buffer, 1, page * PAGE)
        self.script.syscall(task, "exit_group", 0)
        return PAGES

    def _at_rest(self) -> tuple[int, int]:
        """Free frames and promised pages when no process of ours is left and no batch holds anything."""
        for cpu in system.cpus:
            self.script.schedule(system.tasks[1], cpu=cpu.id)
            lru_add_drain()
        return system.zone.nr_free_pages, system.counters.vm_committed_as

    # ---------------------------------------------------------------- helpers

    def pick(self, number: int) -> tuple[task_struct, Arena]:
        """The process that the number means."""
        return self.processes[number % len(self.processes)]

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

    # ---------------------------------------------------------------- mappings

    def mmap(self, who: int, first: int, count: int, rights: str = "rw", kind: str = "private") -> None:
        """Map pages of the arena over what is there; ``kind``: "private", "shared", "private file", "shared file"."""
        shared, file = "shared" in kind, "file" in kind
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        flags = (MAP_SHARED if shared else MAP_PRIVATE) | MAP_FIXED | (0 if file else MAP_ANONYMOUS)
        where = (3, first * PAGE) if file else (-1, 0)
        outcome = self.script.syscall(task, "mmap", BASE + first * PAGE, (last - first) * PAGE, prot(rights), flags, *where)
        if outcome.errno != ENOMEM or not self._limited(task):
            self._expect(outcome.errno, 0, "mmap: errno")
            for page in range(first, last):
                arena[page] = FileCell(rights, self.file[page], shared=shared) if file else Cell(rights, shared=shared)
        self._checked()

    def munmap(self, who: int, first: int, count: int) -> None:
        """Take pages away."""
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        self._ok(task, "munmap", BASE + first * PAGE, (last - first) * PAGE)
        arena[first:last] = [None] * (last - first)
        self._checked()

    def mprotect(self, who: int, first: int, count: int, rights: str) -> None:
        """Change rights up to the first hole."""
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        outcome = self.script.syscall(task, "mprotect", BASE + first * PAGE, (last - first) * PAGE, prot(rights))
        self._expect(outcome.errno, ENOMEM if None in arena[first:last] else 0, "mprotect: errno")
        for cell in arena[first:last]:
            if cell is None:
                break
            cell.rights = rights
        self._checked()

    def dontneed(self, who: int, first: int, count: int) -> None:
        """madvise(MADV_DONTNEED)."""
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        outcome = self.script.syscall(task, "madvise", BASE + first * PAGE, (last - first) * PAGE, MADV_DONTNEED)
        if outcome.errno != EINVAL:  # locked memory is refused
            self._expect(outcome.errno, ENOMEM if None in arena[first:last] else 0, "madvise: errno")
            for cell in arena[first:last]:
                if cell is not None:
                    cell.drop()
        self._checked()

    def mremap(self, who: int, first: int, count: int, to: int) -> None:
        """Move pages to another place of the arena."""
        task, arena = self.pick(who)
        count = min(count, PAGES - max(first, to))
        size = count * PAGE
        new = BASE + to * PAGE
        outcome = self.script.syscall(task, "mremap", BASE + first * PAGE, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, new)
        moved = arena[first : first + count]
        if abs(first - to) < count:
            self._expect(outcome.errno, EINVAL, "mremap: errno")
        elif moved[0] is None:
            self._expect(outcome.errno, EFAULT, "mremap: errno")
        else:
            self._expect(outcome.errno, 0, "mremap: errno")
            arena[first : first + count] = [None] * count
            for page, cell in enumerate(moved, to):
                arena[page] = cell or arena[page]
        self._checked()

    def limit(self, who: int, pages: int | None) -> None:
        """RLIMIT_AS: so many pages more than now, or no limit."""
        task, _ = self.pick(who)
        space = task.mm
        soft = RLIM_INFINITY if pages is None or space is None else (space.total_vm + pages) * PAGE
        self._ok(task, "setrlimit", RLIMIT_AS, soft, RLIM_INFINITY)

    def _limited(self, task: task_struct) -> bool:
        return task.signal.rlim.get(RLIMIT_AS, (RLIM_INFINITY, 0))[0] != RLIM_INFINITY

    # ---------------------------------------------------------------- accesses

    def write(self, who: int, page: int, value: int, cpu: int = 0, word: int = 0) -> None:
        """A store of 8 bytes at the start of a page, or behind them."""
        task, arena = self.pick(who)
        outcome = self.script.store(task, BASE + page * PAGE + 8 * word, value.to_bytes(8, "little"), cpu=cpu)
        self._expect(signal(outcome), refusal(arena[page], "w"), f"store to page {page}:")
        cell = arena[page]
        if cell is not None and outcome.signal is None:
            cell.store(value, word)
        self._checked()

    def read(self, who: int, page: int, cpu: int = 0) -> None:
        """A load of the two words at the start of a page."""
        self._load(who, page, cpu)
        self._checked()

    def _load(self, who: int, page: int, cpu: int) -> None:
        task, arena = self.pick(who)
        outcome = self.script.load(task, BASE + page * PAGE, 16, cpu=cpu)
        cell = arena[page]
        self._expect(signal(outcome), refusal(cell, readable(system.geometry)), f"load from page {page}:")
        if cell is not None and outcome.signal is None:
            words = (int.from_bytes(outcome.data[:8], "little"), int.from_bytes(outcome.data[8:], "little"))
            self._expect(words, cell.load(), f"page {page} of process {who % len(self.processes)} holds")

    def pread(self, who: int, page: int, source: int) -> None:
        """read(2): the kernel stores 8 bytes of the file's page ``source``."""
        task, arena = self.pick(who)
        outcome = self.script.syscall(task, "pread", 3, BASE + page * PAGE, 8, source * PAGE)
        cell = arena[page]
        if refusal(cell, "w"):
            self._expect(outcome.errno, EFAULT, "pread: errno")
        elif cell is not None:
            self._expect(outcome.errno, 0, "pread: errno")
            cell.store(self.file[source].words[0])
        self._checked()

    def pwrite(self, who: int, page: int, target: int) -> None:
        """write(2): the kernel loads 8 bytes and stores them in the file's page ``target``."""
        task, arena = self.pick(who)
        outcome = self.script.syscall(task, "pwrite", 3, BASE + page * PAGE, 8, target * PAGE)
        cell = arena[page]
        if refusal(cell, readable(system.geometry)):
            self._expect(outcome.errno, EFAULT, "pwrite: errno")
        elif cell is not None:
            self._expect(outcome.errno, 0, "pwrite: errno")
            self.file[target].store(cell.load()[0])
        self._checked()

    def pin(self, who: int, page: int) -> None:
        """Pin a page for good, as a registered buffer: from now on it stays the process's own, whatever fork does."""
        task, arena = self.pick(who)
        outcome = self.script.syscall(task, "pin", BASE + page * PAGE, PAGE)
        if refusal(arena[page], "w"):
            self._expect(outcome.errno, EFAULT, "pin: errno")
        self._checked()

    # ---------------------------------------------------------------- tasks

    def fork(self, who: int) -> None:
        """A child with a copy of the arena, if there is room for one."""
        task, arena = self.pick(who)
        if len(self.processes) < MOST_PROCESSES:
            pid = self._ok(task, "fork")
            self.processes.append((system.tasks[pid], [cell and cell.fork() for cell in arena]))
        self._checked()

    def clone(self, who: int) -> None:
        """A task that shares the arena (CLONE_VM), if there is room for one."""
        task, arena = self.pick(who)
        if len(self.processes) < MOST_PROCESSES:
            pid = self._ok(task, "clone", CLONE_VM | SIGCHLD)
            self.processes.append((system.tasks[pid], arena))
        self._checked()

    def exit(self, who: int) -> None:
        """The process ends, unless it is the last."""
        if len(self.processes) > 1:
            task, _ = self.processes.pop(who % len(self.processes))
            self.script.syscall(task, "exit_group", 0)
        self._checked()

    def kthread(self, cpu: int) -> None:
        """A kernel thread runs on the CPU, on the tables that it finds there."""
        self.script.schedule(system.tasks[2], cpu=cpu)
        self._checked()

    # ---------------------------------------------------------------- the end

    def verify(self) -> None:
        """Every page of every process as the model says, and all invariants."""
        for who in range(len(self.processes)):
            for page in range(PAGES):
                self._load(who, page, page % len(system.cpus))
        self.invariants()

    def finish(self) -> None:
        """All processes end; then everything that they had must be free again."""
        for task, _ in self.processes:
            if not task.exit_state:
                self.script.syscall(task, "exit_group", 0)
        free, promised = self._at_rest()
        self.invariants()
        self._expect(free, self.free, "at the end, free frames")
        self._expect(promised, self.promised, "at the end, promised pages")


def prot(rights: str) -> int:
    """PROT_* of "r", "rw", "" ..."""
    return sum(PROTS[letter] for letter in rights)


def signal(outcome: Outcome) -> str:
    """The code of the SIGSEGV that an access got, or ""."""
    if outcome.signal is None:
        return ""
    return "SEGV_MAPERR" if outcome.signal.code == SEGV_MAPERR else "SEGV_ACCERR"
