"""Every allocation fails once: nothing leaks, the error is the right one, and what the process sees is unchanged."""

import pytest

from kemu.kernel.files import create_file
from kemu.kernel.mman import ENOMEM, MAP_ANONYMOUS, MAP_FIXED, MAP_POPULATE, MAP_PRIVATE
from kemu.kernel.mremap import MREMAP_FIXED, MREMAP_MAYMOVE
from kemu.testing import BASE, PAGE, World
from kemu.testing.failure import fail_every_alloc

FAR = 0x7000_0000


def prepare(world):
    world.mmap(0, 0, 8)
    for page in range(6):
        world.write(0, page, page + 100, word=page % 2)
    world.pin(0, 2)


def call(name, *arguments):
    return lambda world: world.script.syscall(world.pick(0)[0], name, *arguments)


MAP = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
ENDS_WITH_ENOMEM = {
    "fork": call("fork"),
    "mremap": call("mremap", BASE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, FAR),
}
"""Calls that need a frame to succeed."""
NEVER_FAILS = {
    "mmap populate": call("mmap", FAR, 4 * PAGE, 3, MAP | MAP_POPULATE),
    "a fault": lambda world: world.script.store(world.pick(0)[0], BASE + 7 * PAGE, b"x"),
    "a copy": lambda world: world.script.store(world.pick(0)[0], BASE, b""),
}
"""What is tried again, or says nothing about it: MAP_POPULATE ignores errors, a fault is repeated."""


@pytest.mark.parametrize("name", [*ENDS_WITH_ENOMEM, *NEVER_FAILS])
def test_no_failing_allocation_leaves_anything_behind(name):
    act = ENDS_WITH_ENOMEM.get(name) or NEVER_FAILS[name]
    runs = 0
    for run in fail_every_alloc(prepare, act):
        runs += 1
        assert run.outcome.errno == (ENOMEM if name in ENDS_WITH_ENOMEM else 0), run.number
        assert run.outcome.signal is None
        run.world.invariants()
        if name in ENDS_WITH_ENOMEM:
            run.world.verify()
            run.world.finish()
    assert runs or name == "a copy"


def test_calls_that_need_no_frame_cannot_fail_for_lack_of_one():
    for name, arguments in {"mprotect": (BASE, PAGE, 1), "munmap": (BASE, PAGE), "exit_group": (0,)}.items():
        assert list(fail_every_alloc(prepare, call(name, *arguments))) == [], name


def test_exec_without_memory_fails_or_kills_and_leaves_nothing_behind():
    def prepare_exec(world):
        create_file("/script", "disk", b"#!/nowhere\n")
        prepare(world)

    for run in fail_every_alloc(prepare_exec, call("execve", "/script", [b"script"], [])):
        assert run.outcome.errno, run.number
        run.world.invariants()


def test_a_failed_fork_changes_nothing_that_the_parent_can_see():
    for run in fail_every_alloc(prepare, ENDS_WITH_ENOMEM["fork"]):
        before = World()
        prepare(before)
        task, twin = run.world.pick(0)[0], before.pick(0)[0]
        for field in ("map_count", "total_vm", "data_vm", "locked_vm", "pinned_vm", "pgtables_bytes", "mm_users", "mm_count"):
            assert getattr(task.mm, field) == getattr(twin.mm, field), (run.number, field)
        assert dict(task.mm.rss_stat) == dict(twin.mm.rss_stat)
        run.world.verify()
