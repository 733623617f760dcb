"""A machine with a few processes on it, and short words for what they do and what can be seen.

    s = Scene()                       a booted machine; s.p, a spawned process
    a = s.mmap(s.p, 8)                8 pages, private anonymous, read and write; their address
    s.write(s.p, a, 5)                a store of 8 bytes by user code; the Outcome
    c = s.fork(s.p)                   the child's task
    s.pfn(c, a), s.mapcount(pfn)      what the page tables and struct page say

``Outcome.minor`` counts the minor faults of the acting task in that one step.
"""

from kemu.abi.uapi import (
    BUS_ADRERR,
    MAP_ANONYMOUS,
    MAP_PRIVATE,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    SEGV_ACCERR,
    SEGV_MAPERR,
    SI_KERNEL,
    SIGBUS,
    SIGSEGV,
)
from kemu.kernel.include.mm_types import MM_ANONPAGES, MM_FILEPAGES, MM_SHMEMPAGES, PAGE_SIZE
from kemu.kernel.include.mmzone import nr_free_pages
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.init.boot import Kernel
from kemu.machine.mmu import walk
from kemu.observe.space import address_space
from kemu.userland.script import Script
from kemu.views import procfs

RW = PROT_READ | PROT_WRITE
PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS
PROTS = {"r": PROT_READ, "w": PROT_WRITE, "x": PROT_EXEC}
K = 1024


def prot(letters):
    """PROT_* of "r", "rw", "rx", "" ..."""
    return sum(PROTS[letter] for letter in letters)


class Scene:
    """A booted machine and its script; ``p`` is the first process."""

    def __init__(self, *, mem=64 << 20, record=False, **kwargs):
        self.kernel = Kernel(mem=mem, record=record, **kwargs)
        self.kernel.activate()
        self.script = Script(self.kernel)
        self.p = self.script.spawn("p")

    # ------------------------------------------------ doing

    def call(self, task, name, *args, **kwargs):
        """A system call; the Outcome."""
        return self.script.syscall(task, name, *args, **kwargs)

    def ok(self, task, name, *args, **kwargs):
        """A system call that succeeds; its value."""
        outcome = self.call(task, name, *args, **kwargs)
        assert outcome.errno == 0, f"{name}{args}: errno {outcome.errno}"
        return outcome.value

    def mmap(self, task, pages, rights="rw", *, flags=PRIVATE, addr=0, fd=-1, offset=0):
        """Map ``pages`` pages; the address."""
        return self.ok(task, "mmap", addr, pages * PAGE_SIZE, prot(rights), flags, fd, offset)

    def mprotect(self, task, addr, pages, rights):
        self.ok(task, "mprotect", addr, pages * PAGE_SIZE, prot(rights))

    def fork(self, task):
        """The child."""
        return system.tasks[self.ok(task, "fork")]

    def exit(self, task, code=0):
        return self.call(task, "exit_group", code)

    def wait(self, task, child):
        """Reap ``child``."""
        assert self.ok(task, "wait4", child.pid, 0, 0) == child.pid

    def survive(self, task):
        """From now on the task handles SIGSEGV and SIGBUS: the access fails, the task goes on."""
        for signal in (SIGSEGV, SIGBUS):
            self.ok(task, "sigaction", signal, "handle")

    def write(self, task, addr, value, size=8, **kwargs):
        """Store an integer; the Outcome."""
        return self.script.store(task, addr, value.to_bytes(size, "little"), **kwargs)

    def load(self, task, addr, size=8, **kwargs):
        """Load; the Outcome."""
        return self.script.load(task, addr, size, **kwargs)

    def read(self, task, addr, size=8):
        """Load an integer that can be loaded."""
        outcome = self.load(task, addr, size)
        assert outcome.signal is None, outcome.signal
        return int.from_bytes(outcome.data, "little")

    def write_pages(self, task, addr, pages, value=1):
        """Store ``value`` at the start of each page; the minor faults it took."""
        return sum(self.write(task, addr + page * PAGE_SIZE, value).minor for page in range(pages))

    def read_pages(self, task, addr, pages):
        """Load the first word of each page; the minor faults it took."""
        return sum(self.load(task, addr + page * PAGE_SIZE).minor for page in range(pages))

    # ------------------------------------------------ looking

    def steps(self, task, addr):
        return walk(system.phys, system.geometry, task.mm.pgd, addr)

    def pte(self, task, addr):
        """The last-level entry for ``addr``, 0 if there is none."""
        steps = self.steps(task, addr).steps
        return steps[-1].entry if len(steps) == len(system.geometry.levels) else 0

    def pfn(self, task, addr):
        """The frame that ``addr`` maps to; None if nothing is mapped."""
        pte = self.pte(task, addr)
        return system.geometry.entry_pfn(pte) if pte else None

    def pfns(self, task, addr, pages):
        return [self.pfn(task, addr + page * PAGE_SIZE) for page in range(pages)]

    def may_write(self, task, addr):
        """True if the entry allows writing."""
        return bool(self.pte(task, addr) & system.bits.write)

    def mapcount(self, pfn):
        """How many entries map the frame."""
        return pfn_to_page(pfn)._mapcount + 1

    def refcount(self, pfn):
        return pfn_to_page(pfn)._refcount

    def anon(self, task):
        """Anonymous pages resident."""
        return task.mm.rss_stat[MM_ANONPAGES]

    def file(self, task):
        """Pages of files resident, shared memory too."""
        return task.mm.rss_stat[MM_FILEPAGES] + task.mm.rss_stat[MM_SHMEMPAGES]

    def vmas(self, task, low=0, high=1 << 47):
        """(start, end, rights) of the VMAs in [low, high)."""
        return [
            (
                vma.vm_start,
                vma.vm_end,
                "".join(
                    c if vma.vm_flags & bit else "-" for c, bit in (("r", 1), ("w", 2), ("x", 4))
                ),
            )
            for vma in task.mm.mm_mt
            if vma.vm_start < high and vma.vm_end > low
        ]

    def maps(self, task):
        """The lines of /proc/PID/maps."""
        return procfs.maps(address_space(task)).splitlines()

    def free_frames(self):
        return nr_free_pages()


SIGNALS = {
    "SEGV_MAPERR": (SIGSEGV, SEGV_MAPERR),
    "SEGV_ACCERR": (SIGSEGV, SEGV_ACCERR),
    "SI_KERNEL": (SIGSEGV, SI_KERNEL),
    "BUS_ADRERR": (SIGBUS, BUS_ADRERR),
}


def signal(outcome):
    """The name of the si_code of the signal that the step raised, or None."""
    if outcome.signal is None:
        return None
    return next(
        name
        for name, pair in SIGNALS.items()
        if pair == (outcome.signal.signo, outcome.signal.code)
    )
