"""Any program of mappings, stores, loads, forks and exits sees the memory that a simple model says.

The model knows no page tables: a private page is a value of its process, fork copies the values, a
shared page is one cell, a private page of a file is the file's until the first store, threads have
one arena.  Two CPUs take turns.  After every step the whole kernel is counted once more
(kemu/invariants).
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kemu.abi.uapi import (
    CLONE_VM,
    EFAULT,
    EINVAL,
    ENOMEM,
    MADV_DONTNEED,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_PRIVATE,
    MAP_SHARED,
    MREMAP_FIXED,
    MREMAP_MAYMOVE,
    O_RDWR,
    SIGCHLD,
)
from kemu.invariants import check
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.system import system
from kemu.kernel.mm.lru import lru_add_drain
from kemu.kernel.mm.rows import bulk
from kemu.machine.geometry import RISCV_SV39, X86_64_4LEVEL, X86_64_5LEVEL
from tests.kernel.scenes import Scene, prot, signal

BASE = 0x4000_0000 - 4 * 4096
PAGES = 12
"""The arena lies across the border of two page tables."""


READABLE = {"x86-64": "rwx", "x86-64-la57": "rwx", "sv39": "rw"}
"""Any of these rights lets a program read: x86 has no execute-only pages, RISC-V has."""


class Cell:
    """A page of memory: rights, and a value that sharers see together."""

    def __init__(self, rights, *, shared):
        self.rights, self.shared, self.value = rights, shared, 0

    def fork(self):
        if self.shared:
            return Half(self)
        copy = Cell(self.rights, shared=False)
        copy.value = self.value
        return copy

    def load(self):
        return self.value

    def store(self, value):
        self.value = value


class FileCell(Cell):
    """A page of a file: shared, or private and then the file's until the first store."""

    def __init__(self, rights, page, *, shared):
        super().__init__(rights, shared=shared)
        self.page, self.own = page, None

    def fork(self):
        copy = FileCell(self.rights, self.page, shared=self.shared)
        copy.own = self.own
        return copy

    def load(self):
        return self.page.value if self.own is None else self.own

    def store(self, value):
        if self.shared:
            self.page.value = value
        else:
            self.own = value


class Half(Cell):
    """Another process's view of a shared page: rights of its own, the value of the first."""

    def __init__(self, other):
        self.rights, self.shared, self.other = other.rights, True, other

    def load(self):
        return self.other.load()

    def store(self, value):
        self.other.store(value)


class Model:
    """What each process's arena holds."""

    def __init__(self, scene, fd):
        self.scene, self.fd = scene, fd
        self.file = [Cell("", shared=True) for _ in range(PAGES)]
        for number, page in enumerate(self.file):
            page.value = number + 1
        self.arenas = [(scene.p, [None] * PAGES)]
        scene.survive(scene.p)
        scene.ok(scene.p, "sigaction", SIGCHLD, "ignore")

    def pick(self, number):
        return self.arenas[number % len(self.arenas)]

    def run(self, step):
        what, *args = step
        getattr(self, f"do_{what}")(*args)

    def do_mmap(self, who, first, count, rights, shared):
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        flags = (MAP_SHARED if shared else MAP_PRIVATE) | MAP_ANONYMOUS | MAP_FIXED
        self.scene.mmap(task, last - first, rights, flags=flags, addr=BASE + first * 4096)
        arena[first:last] = [Cell(rights, shared=shared) for _ in range(first, last)]

    def do_mmap_file(self, who, first, count, rights, shared):
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        flags = (MAP_SHARED if shared else MAP_PRIVATE) | MAP_FIXED
        self.scene.mmap(
            task,
            last - first,
            rights,
            flags=flags,
            addr=BASE + first * 4096,
            fd=self.fd,
            offset=first * 4096,
        )
        arena[first:last] = [
            FileCell(rights, self.file[page], shared=shared) for page in range(first, last)
        ]

    def do_munmap(self, who, first, count):
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        self.scene.ok(task, "munmap", BASE + first * 4096, (last - first) * 4096)
        arena[first:last] = [None] * (last - first)

    def do_mprotect(self, who, first, count, rights):
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        outcome = self.scene.call(
            task, "mprotect", BASE + first * 4096, (last - first) * 4096, prot(rights)
        )
        for page in range(first, last):
            if arena[page] is None:
                assert outcome.errno == ENOMEM
                return
            arena[page].rights = rights
        assert outcome.errno == 0

    def do_dontneed(self, who, first, count):
        task, arena = self.pick(who)
        last = min(first + count, PAGES)
        outcome = self.scene.call(
            task, "madvise", BASE + first * 4096, (last - first) * 4096, MADV_DONTNEED
        )
        assert outcome.errno == (ENOMEM if None in arena[first:last] else 0)
        for cell in arena[first:last]:
            if isinstance(cell, FileCell):
                cell.own = None
            elif cell is not None and not cell.shared:
                cell.store(0)

    def do_mremap(self, who, first, count, to):
        task, arena = self.pick(who)
        count = min(count, PAGES - max(first, to))
        old, new, size = BASE + first * 4096, BASE + to * 4096, count * 4096
        outcome = self.scene.call(
            task, "mremap", old, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, new
        )
        if abs(first - to) < count:
            assert outcome.errno == EINVAL
            return
        moved = arena[first : first + count]
        assert outcome.errno == (EFAULT if moved[0] is None else 0)
        if outcome.errno == 0:
            arena[first : first + count] = [None] * count
            arena[to : to + count] = [
                new or kept for new, kept in zip(moved, arena[to : to + count], strict=True)
            ]

    def do_write(self, who, page, value, cpu):
        task, arena = self.pick(who)
        outcome = self.scene.write(task, BASE + page * 4096, value, cpu=cpu)
        assert signal(outcome) == self.refusal(arena[page], "w")
        if outcome.signal is None:
            arena[page].store(value)

    def do_read(self, who, page, cpu):
        task, arena = self.pick(who)
        outcome = self.scene.load(task, BASE + page * 4096, cpu=cpu)
        assert signal(outcome) == self.refusal(arena[page], READABLE[system.geometry.name])
        if outcome.signal is None:
            assert int.from_bytes(outcome.data, "little") == arena[page].load()

    def refusal(self, cell, wanted):
        if cell is None:
            return "SEGV_MAPERR"
        return None if set(cell.rights) & set(wanted) else "SEGV_ACCERR"

    def do_fork(self, who):
        task, arena = self.pick(who)
        if len(self.arenas) < 4:
            child = self.scene.fork(task)
            self.arenas.append((child, [cell and cell.fork() for cell in arena]))

    def do_clone(self, who):
        task, arena = self.pick(who)
        if len(self.arenas) < 4:
            pid = self.scene.ok(task, "clone", CLONE_VM | SIGCHLD)
            self.arenas.append((system.tasks[pid], arena))

    def do_exit(self, who):
        if len(self.arenas) > 1:
            task, _ = self.arenas.pop(who % len(self.arenas))
            self.scene.exit(task)

    def check_all(self):
        for who in range(len(self.arenas)):
            for page in range(PAGES):
                self.do_read(who, page, page % 2)


who = st.integers(0, 3)
page = st.integers(0, PAGES - 1)
count = st.integers(1, PAGES)
rights = st.sampled_from(["rw", "rw", "r", "", "w", "x", "rx", "rwx"])
value = st.integers(1, (1 << 64) - 1)
cpu = st.integers(0, 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("mmap"), who, page, count, rights, st.booleans()),
        st.tuples(st.just("mmap_file"), who, page, count, rights, st.booleans()),
        st.tuples(st.just("munmap"), who, page, count),
        st.tuples(st.just("mprotect"), who, page, count, rights),
        st.tuples(st.just("dontneed"), who, page, count),
        st.tuples(st.just("mremap"), who, page, count, page),
        st.tuples(st.just("write"), who, page, value, cpu),
        st.tuples(st.just("write"), who, page, value, cpu),
        st.tuples(st.just("read"), who, page, cpu),
        st.tuples(st.just("fork"), who),
        st.tuples(st.just("clone"), who),
        st.tuples(st.just("exit"), who),
    ),
    min_size=5,
    max_size=40,
)


PROLOGUE = [
    ("mmap", 0, 0, PAGES, "rw", False),
    ("mmap", 0, 8, 2, "rw", True),
    ("mmap_file", 0, 10, 2, "rw", False),
    *(("write", 0, page, page, 0) for page in range(2, 10)),
]
"""So that most of a random program has something to work on."""


def play(program, **machine):
    """Run the program step by step with all checks; at its end nothing is left of it."""
    s = Scene(**machine)
    create_file("/data", "disk", b"".join((n + 1).to_bytes(4096, "little") for n in range(PAGES)))
    fd = s.ok(s.p, "open", "/data", O_RDWR)
    for page in range(PAGES):
        s.ok(s.p, "pread", fd, s.mmap(s.p, 1), 1, page * 4096)
    s.exit(s.p)
    s.script.schedule(system.tasks[1])
    lru_add_drain()
    free, promised = s.free_frames(), system.counters.vm_committed_as
    s.p = s.script.spawn("p")
    model = Model(s, s.ok(s.p, "open", "/data", O_RDWR))
    for step in [*PROLOGUE, *program]:
        model.run(step)
        assert check(s.kernel) == []
    model.check_all()
    assert check(s.kernel) == []
    for task, _ in model.arenas:
        s.exit(task)
    for cpu in (0, 1):
        s.script.schedule(system.tasks[1], cpu=cpu)  # an idle CPU keeps the last root page loaded
        lru_add_drain()
    assert check(s.kernel) == []
    assert s.free_frames() == free
    assert system.counters.vm_committed_as == promised


HOLE = [("fork", 0), ("munmap", 1, 2, 3), ("mmap", 1, 2, 3, "rw", False)]
STALE = [("fork", 0), ("clone", 0), ("read", 2, 3, 1), ("write", 0, 3, 2, 0), ("read", 2, 3, 1)]
"""A thread on the other CPU has read a page that copy-on-write then replaces."""


@given(steps)
@example(HOLE)
@example(STALE)
@settings(max_examples=60)
def test_every_process_reads_what_the_model_says_and_the_counts_fit(program):
    play(program)


MACHINES = {
    "5 levels": {"geometry": X86_64_5LEVEL},
    "Sv39": {"geometry": RISCV_SV39},
    "batches": {"geometry": X86_64_4LEVEL, "lru_batch": True},
}


@pytest.mark.parametrize("machine", MACHINES)
@given(steps)
@example(STALE)
@settings(max_examples=15)
def test_the_same_on_other_machines_and_with_whole_rows_copied(machine, program):
    bulk.min_entries = 1
    try:
        play(program, **MACHINES[machine])
    finally:
        bulk.min_entries = 64
