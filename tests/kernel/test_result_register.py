"""The result of a system call stands in the caller's register (regs->ax at the end of
do_syscall_64; syscall(2): rax)."""

import pytest

from kemu.abi.uapi import EBADF, EINTR, EINVAL, ENOMEM, RLIM_INFINITY, RLIMIT_AS, SIGKILL
from kemu.kernel.include.mm_types import PAGE_SIZE
from kemu.kernel.include.system import system
from kemu.machine.geometry import GEOMETRIES
from tests.kernel.scenes import RW, Scene

SIGUSR1 = 10


@pytest.fixture(params=sorted(GEOMETRIES))
def scene(request):
    return Scene(record=True, geometry=GEOMETRIES[request.param])


def as_c(number):
    """A negative long as the register holds it."""
    return number % (1 << 64)


def test_an_address_and_the_end_of_the_heap_are_results(scene):
    addr = scene.mmap(scene.p, 1)
    assert scene.p.regs.ax == addr
    heap = scene.ok(scene.p, "brk", 0)
    assert scene.p.regs.ax == heap
    scene.mprotect(scene.p, addr, 1, "r")
    assert scene.p.regs.ax == 0


def test_fork_returns_twice(scene):
    child = scene.fork(scene.p)
    assert (scene.p.regs.ax, child.regs.ax) == (child.pid, 0)
    other = system.tasks[scene.ok(scene.p, "clone", 0)]
    assert (scene.p.regs.ax, other.regs.ax, child.regs.ax) == (other.pid, 0, 0)


def test_a_call_that_fails_leaves_the_negative_errno(scene):
    scene.call(scene.p, "munmap", 0x123, PAGE_SIZE)
    assert scene.p.regs.ax == as_c(-EINVAL)
    scene.call(scene.p, "close", 9)
    assert scene.p.regs.ax == as_c(-EBADF)
    scene.ok(scene.p, "setrlimit", RLIMIT_AS, 0, RLIM_INFINITY)
    assert scene.call(scene.p, "mmap", 0, PAGE_SIZE, RW, 0x22, -1, 0).errno == ENOMEM
    assert scene.p.regs.ax == as_c(-ENOMEM) == 0xFFFF_FFFF_FFFF_FFF4


def test_a_load_or_a_store_is_no_call(scene):
    addr = scene.mmap(scene.p, 1)
    scene.write(scene.p, addr, 5)
    assert scene.read(scene.p, addr) == 5
    assert scene.p.regs.ax == addr


def test_a_call_that_waits_gives_its_result_when_it_returns(scene):
    child = system.tasks[scene.call(scene.p, "vfork").value]
    assert (scene.p.regs.ax, child.regs.ax) == (0, 0)
    scene.exit(child)
    assert scene.p.regs.ax == child.pid
    second = scene.fork(scene.p)
    scene.ok(scene.p, "mprotect", 0, 0, 0)
    assert scene.call(scene.p, "wait4", second.pid, 0, 0).blocked
    assert scene.p.regs.ax == 0
    scene.exit(second)
    assert scene.p.regs.ax == second.pid


def test_a_wait_that_a_signal_ends_gives_eintr(scene):
    child = scene.fork(scene.p)
    scene.ok(scene.p, "sigaction", SIGUSR1, "handle")
    assert scene.call(scene.p, "wait4", child.pid, 0, 0).blocked
    scene.ok(child, "kill", scene.p.pid, SIGUSR1)
    assert scene.p.regs.ax == as_c(-EINTR)


def test_who_was_killed_has_no_result_any_more(scene):
    addr = scene.mmap(scene.p, 1)
    child = scene.fork(scene.p)
    scene.ok(scene.p, "kill", child.pid, SIGKILL)
    assert (scene.p.regs.ax, child.regs.ax) == (0, 0)
    scene.p.regs.ax = addr
    scene.exit(scene.p)
    assert scene.p.regs.ax == addr


def test_the_result_is_an_event_and_can_be_undone(scene):
    journal = scene.kernel.journal
    before = scene.p.regs.ax
    start = journal.cursor
    scene.mmap(scene.p, 1)
    journal.seek(start)
    assert scene.p.regs.ax == before


def test_the_same_result_again_is_no_event(scene):
    addr = scene.mmap(scene.p, 1)
    scene.mprotect(scene.p, addr, 1, "r")
    journal = scene.kernel.journal
    end = journal.cursor
    scene.mprotect(scene.p, addr, 1, "r")
    assert all(journal.log[at + 1] != "ax" for at in range(end * 4, len(journal.log), 4))
