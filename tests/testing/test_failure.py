"""Every allocation fails once: nothing leaks, the error is the right one, and what the process sees
is unchanged."""

import pytest

from kemu.abi.uapi import (
    CLONE_SIGHAND,
    CLONE_THREAD,
    CLONE_VM,
    E2BIG,
    EAGAIN,
    EFAULT,
    ENFILE,
    ENOMEM,
    ENOSPC,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_GROWSDOWN,
    MAP_POPULATE,
    MAP_PRIVATE,
    MAP_SHARED,
    MREMAP_DONTUNMAP,
    MREMAP_FIXED,
    MREMAP_MAYMOVE,
    SIGSEGV,
)
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.flags import PG_locked
from kemu.kernel.include.system import system
from kemu.kernel.mm.vma import vma_lookup
from kemu.machine.geometry import RISCV_SV39, X86_64_5LEVEL
from kemu.testing import BASE, PAGE
from kemu.testing.failure import FRAMES, OBJECTS, fail_every_alloc
from tests.kernel.elf import tiny_elf

FAR = 0x7000_0000
NEAR = 0x5000_0000
FILE = 0x5400_0000
STACK = 0x6000_0000
MADV_DONTFORK = 10
MAP = MAP_PRIVATE | MAP_ANONYMOUS


def prepare(world):
    """Six written pages of eight, one pinned, one shared with a child; a hole, a second mapping
    behind it, a stack."""
    world.mmap(0, 0, 8)
    for page in range(6):
        world.write(0, page, page + 100, word=page % 2)
    world.pin(0, 2)
    world.mmap(0, 9, 3)
    world.write(0, 10, 5)
    task, _ = world.pick(0)
    assert world.script.syscall(
        task, "mmap", STACK, 4 * PAGE, 3, MAP | MAP_FIXED | MAP_GROWSDOWN
    ).ok
    assert world.script.syscall(task, "mmap", NEAR, 4 * PAGE, 3, MAP | MAP_FIXED).ok
    for number, flags in enumerate((MAP_SHARED, MAP_PRIVATE, MAP_SHARED | MAP_ANONYMOUS)):
        fd = -1 if flags & MAP_ANONYMOUS else 3
        assert world.script.syscall(
            task, "mmap", FILE + (number << 21), 4 * PAGE, 3, flags | MAP_FIXED, fd, 0
        ).ok
    world.fork(0)


def call(name, *arguments):
    return lambda world: world.script.syscall(world.pick(0)[0], name, *arguments)


def store(address):
    return lambda world: world.script.store(world.pick(0)[0], address, b"x")


MOVE = MREMAP_MAYMOVE | MREMAP_FIXED
THREAD = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD
TASK = {"task_struct", "files_cache", "sighand_cache", "signal_cache", "pid"}
FORK = TASK | {"mm_struct", "vm_area_struct", "anon_vma", "anon_vma_chain"}
VMA = {"vm_area_struct", "anon_vma_chain"}
"""What a split or a copy of a VMA makes."""

ACTS = {
    "fork": call("fork"),
    "vfork": call("vfork"),
    "a thread": call("clone", THREAD),
    "mmap": call("mmap", FAR, 4 * PAGE, 3, MAP | MAP_FIXED),
    "mmap of a file": call("mmap", FAR, 4 * PAGE, 3, MAP_SHARED | MAP_FIXED, 3),
    "mmap shared": call("mmap", FAR, 4 * PAGE, 3, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED),
    "mmap into the middle": call("mmap", BASE + 2 * PAGE, PAGE, 1, MAP | MAP_FIXED),
    "mmap populate": call("mmap", FAR, 4 * PAGE, 3, MAP | MAP_FIXED | MAP_POPULATE),
    "munmap of the middle": call("munmap", BASE + 2 * PAGE, PAGE),
    "mprotect of the middle": call("mprotect", BASE + 2 * PAGE, PAGE, 1),
    "madvise of the middle": call("madvise", BASE + 2 * PAGE, PAGE, MADV_DONTFORK),
    "mlock of the middle": call("mlock", BASE + 6 * PAGE, PAGE),
    "mremap": call("mremap", BASE, 2 * PAGE, 2 * PAGE, MOVE, FAR),
    "mremap leaving the old place": call(
        "mremap", BASE, 2 * PAGE, 2 * PAGE, MOVE | MREMAP_DONTUNMAP, FAR
    ),
    "mremap to grow": call("mremap", BASE, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE),
    "brk": call("brk", 0x100_4000),
    "open": call("open", "/data", 2),
    "memfd_create": call("memfd_create", "m"),
    "pipe": call("pipe"),
    "read(2) into a shared page": call("pread", 3, BASE + PAGE, 8, 0),
    "pin": call("pin", BASE + 7 * PAGE, PAGE),
    "first touch": store(NEAR),
    "copy on write": store(BASE + PAGE),
    "a stack grows": store(STACK - PAGE),
    "first read of a file": lambda world: world.script.load(world.pick(0)[0], FILE, 8),
    "first write of a file": store(FILE),
    "first write of a private page of a file": store(FILE + 0x20_0000),
    "first read of shared memory": lambda world: world.script.load(
        world.pick(0)[0], FILE + 0x40_0000, 8
    ),
    "exit": call("exit_group", 0),
}

FAILS = {
    ("fork", FRAMES): {ENOMEM},
    ("fork", OBJECTS): {(cache, ENOMEM) for cache in FORK},
    ("vfork", OBJECTS): {(cache, ENOMEM) for cache in TASK},
    ("a thread", OBJECTS): {(cache, ENOMEM) for cache in ("task_struct", "files_cache", "pid")},
    ("mmap", OBJECTS): {("vm_area_struct", ENOMEM)},
    ("mmap of a file", OBJECTS): {("vm_area_struct", ENOMEM)},
    ("mmap shared", OBJECTS): {
        ("vm_area_struct", ENOMEM),
        ("shmem_inode_cache", ENOSPC),
        ("filp", ENOMEM),
    },
    ("mmap into the middle", OBJECTS): {(cache, ENOMEM) for cache in VMA},
    ("mmap populate", FRAMES): {0},
    ("mmap populate", OBJECTS): {
        ("vm_area_struct", ENOMEM),
        ("anon_vma_chain", 0),
        ("anon_vma", 0),
    },
    ("munmap of the middle", OBJECTS): {(cache, ENOMEM) for cache in VMA},
    ("mprotect of the middle", OBJECTS): {(cache, ENOMEM) for cache in VMA},
    ("madvise of the middle", OBJECTS): {(cache, EAGAIN) for cache in VMA},
    ("mlock of the middle", OBJECTS): {(cache, ENOMEM) for cache in VMA},
    ("mlock of the middle", FRAMES): {EAGAIN},
    ("mremap", FRAMES): {ENOMEM},
    ("mremap", OBJECTS): {(cache, errno) for cache in VMA for errno in (ENOMEM, 0)},
    ("mremap leaving the old place", FRAMES): {ENOMEM},
    ("mremap leaving the old place", OBJECTS): {(cache, ENOMEM) for cache in VMA},
    ("mremap to grow", FRAMES): {ENOMEM},
    ("mremap to grow", OBJECTS): {(cache, ENOMEM) for cache in VMA},
    ("brk", OBJECTS): {("vm_area_struct", 0)},
    ("open", OBJECTS): {("filp", ENOMEM)},
    ("memfd_create", OBJECTS): {("shmem_inode_cache", ENOSPC), ("filp", ENOMEM)},
    ("pipe", OBJECTS): {("inode_cache", ENFILE), ("filp", ENOMEM)},
    ("read(2) into a shared page", FRAMES): {EFAULT},
    ("pin", FRAMES): {ENOMEM},
    ("first touch", FRAMES): {0},
    ("first touch", OBJECTS): {("anon_vma_chain", 0), ("anon_vma", 0)},
    ("first read of a file", FRAMES): {0},
    ("first write of a file", FRAMES): {0},
    ("first write of a private page of a file", FRAMES): {0},
    ("first write of a private page of a file", OBJECTS): {("anon_vma_chain", 0), ("anon_vma", 0)},
    ("first read of shared memory", FRAMES): {0},
    ("copy on write", FRAMES): {0},
    ("a stack grows", FRAMES): {0},
    ("a stack grows", OBJECTS): {("anon_vma_chain", 0), ("anon_vma", 0)},
}
"""What each operation says when an allocation fails: Linux's errno, by the cache where that
matters.  A fault is tried again and nobody hears of it (0; in the kernel's own access EFAULT),
MAP_POPULATE says nothing, brk(2) gives back the old break, and mremap that cannot split what it
leaves behind keeps it, empty (0).  What is not here makes no such allocation."""


def forget_gap(world):
    """MAP_FIXED that fails late leaves a gap where the old mapping was, in Linux too."""
    task, arena = world.pick(0)
    arena[2] = arena[2] if vma_lookup(task.mm, BASE + 2 * PAGE) else None


@pytest.mark.parametrize("what", [FRAMES, OBJECTS])
@pytest.mark.parametrize("name", ACTS)
def test_no_failing_allocation_leaves_anything_behind(name, what):
    found = set()
    for run in fail_every_alloc(prepare, ACTS[name], what):
        found.add((run.cache, run.outcome.errno) if what == OBJECTS else run.outcome.errno)
        run.world.invariants()
        assert not any(page.flags & PG_locked for page in system.mem_map.values())
        if run.outcome.errno:
            forget_gap(run.world)
            run.world.verify()
        run.world.finish()
    assert found == FAILS.get((name, what), set())


@pytest.mark.parametrize("geometry", [X86_64_5LEVEL, RISCV_SV39])
def test_no_failing_fork_leaves_anything_behind_in_other_tables(geometry):
    for run in fail_every_alloc(prepare, ACTS["fork"], geometry=geometry):
        assert run.outcome.errno == ENOMEM
        run.world.verify()
        run.world.finish()


def test_a_stack_that_cannot_grow_is_a_segfault():
    """The only fault that is not tried again: anon_vma_prepare fails while the stack is expanded,
    before the fault proper."""
    signals = {
        run.outcome.signal.signo
        for run in fail_every_alloc(prepare, ACTS["a stack grows"], OBJECTS)
    }
    assert signals == {SIGSEGV}


@pytest.mark.parametrize("what", [FRAMES, OBJECTS])
def test_exec_says_so_or_kills_and_leaves_nothing_behind(what):
    """Before the point of no return an errno (E2BIG: no page for the strings), behind it nobody is
    left to tell: SIGSEGV."""

    def prepare_exec(world):
        create_file("/program", "disk", tiny_elf(flags=7, bss=2 * PAGE))
        prepare(world)

    seen = set()
    for run in fail_every_alloc(prepare_exec, call("execve", "/program", [b"program"], []), what):
        task, _ = run.world.processes[0]
        killed = bool(task.exit_state)
        seen.add((killed, run.outcome.errno if not killed else run.outcome.signal.signo))
        run.world.invariants()
        if not killed and run.outcome.errno:
            run.world.verify()
        run.world.free -= system.files["/program"].i_mapping.nrpages
        run.world.finish()
    assert seen == {(False, ENOMEM), (False, E2BIG), (True, SIGSEGV)}


COUNTERS = {
    "next_mm",
    "next_ctx",
    "next_anon_vma",
    "PGALLOC",
    "PGFREE",
    "fail_alloc",
    "fail_slab",
    "failed_slab",
}
"""Where numbers come from, statistics, and the failing itself."""

MAY_STAY = {
    ("mm", "tlb_gen"),
    ("mm", "write_protect_seq"),
    ("frame", "flags"),
    ("pte", ""),
    ("task", "ax"),
}
"""What a failed fork may change in the parent: its result is there, its CPUs were flushed, and
entries were write-protected, as for a fork that went well; the next write finds the page unshared
and puts W back."""


def left_behind(world, changes):
    """The changes that are not the parent's permitted ones, not counters, and not of what no longer
    exists: frames that are free again, objects that nobody leads to."""
    free = {pfn for pfn, page in system.mem_map.items() if not page._refcount}
    gone = {f"pfn {pfn:#x}" for pfn in free} | {f"ram {pfn << 12:#x}" for pfn in free}
    spaces = [task.mm for task, _ in world.processes]
    alive = {
        f"anon_vma#{link.anon_vma.id}"
        for mm in spaces
        for vma in mm.mm_mt
        for link in vma.anon_vma_chain
    }
    for change in changes:
        new = change.kind == "task" and "none" in (change.old, change.new)
        new = new or (change.field == "count" and change.new == "0")
        dead = (
            change.what in gone
            or (change.kind == "anon" and change.what not in alive)
            or change.kind == "tlb"
            or new
        )
        if (
            not dead
            and change.field not in COUNTERS
            and (change.kind, change.field) not in MAY_STAY
        ):
            yield change


def prepare_alone(world):
    """As above, without a child: all entries are writable."""
    prepare(world)
    world.exit(1)
    for page in (0, 1, 3, 4, 5, 10):
        world.write(0, page, page + 200)


@pytest.mark.parametrize("what", [FRAMES, OBJECTS])
def test_the_net_effect_of_a_failed_fork_is_nothing(what):
    """The journal says all that is different afterwards: no entry but for its W, no page but for
    its exclusive mark."""
    lowered = 0
    for run in fail_every_alloc(prepare_alone, ACTS["fork"], what, record=True):
        changes = run.changes()
        assert list(left_behind(run.world, changes)) == []
        for change in changes:
            if change.kind == "pte" and "parent" not in change.what:
                lowered += 1
                assert (
                    int(change.old.split()[0], 16) - int(change.new.split()[0], 16)
                    == system.bits.write
                ), change
        run.world.verify()
        run.world.finish()
    assert lowered or what == OBJECTS


def test_the_whole_state_after_a_refused_call_is_the_state_before_it():
    """mprotect, munmap, madvise, mlock that find no memory for the first thing they need change
    nothing but their result."""
    for name in (
        "munmap of the middle",
        "mprotect of the middle",
        "madvise of the middle",
        "mlock of the middle",
        "mmap",
        "brk",
    ):
        run = next(fail_every_alloc(prepare, ACTS[name], OBJECTS, record=True))
        result = [change for change in run.changes() if change.field == "ax"]
        outcome = run.outcome
        given = (1 << 64) - outcome.errno if outcome.errno else outcome.value
        assert [change.new for change in result] in ([hex(given)], []), name
        assert {change.field for change in run.changes()} <= {"fail_slab", "failed_slab", "ax"}, (
            name
        )
