"""Lives of tasks and of address spaces: who shares, who waits, who keeps what alive."""

from kemu.abi.uapi import (
    CLONE_SIGHAND,
    CLONE_THREAD,
    CLONE_VM,
    EAGAIN,
    EBADF,
    EFAULT,
    EINTR,
    EINVAL,
    EPIPE,
    ESPIPE,
    O_RDWR,
    SEEK_CUR,
    SEEK_END,
    SEEK_SET,
    SIGCHLD,
    SIGPIPE,
    SIGUSR1,
)
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.mmzone import nr_free_pages
from kemu.kernel.include.sched_types import SIGNAL_GROUP_EXIT
from kemu.kernel.include.system import system
from kemu.kernel.kernel.mm_life import mmget, mmget_not_zero, mmput
from kemu.kernel.kernel.sched import mmdrop, mmgrab
from tests.kernel.elf import tiny_elf
from tests.kernel.scenes import Scene


def clone(s, task, flags):
    return system.tasks[s.ok(task, "clone", flags)]


def test_a_vfork_child_writes_into_its_parents_memory_while_the_parent_waits():
    """Case I02."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    frame = s.pfn(p, a)
    c = system.tasks[s.call(p, "vfork").value]
    assert p.blocked_in
    assert c.mm is p.mm
    outcome = s.write(c, a, 42)
    assert outcome.minor == 0
    assert (s.pfn(c, a), s.mapcount(frame)) == (frame, 1)
    s.exit(c)
    assert not p.blocked_in
    assert s.read(p, a) == 42
    assert (s.pfn(p, a), s.mapcount(frame)) == (frame, 1)


def test_two_tasks_can_share_one_address_space_until_one_leaves():
    """Case I04. One page table, so the frame is mapped once; users are counted beside it."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    c = clone(s, p, CLONE_VM | SIGCHLD)
    s.write(c, a, 5)
    assert s.read(p, a) == 5
    assert s.mapcount(s.pfn(p, a)) == 1
    assert p.mm.mm_users == 2
    s.exit(c)
    assert p.mm.mm_users == 1
    assert s.read(p, a) == 5


def test_exec_of_one_sharer_leaves_the_memory_to_the_other():
    """Case I04, second half."""
    s = Scene()
    p = s.p
    create_file("/bin/other", "disk", tiny_elf())
    a = s.mmap(p, 1)
    c = clone(s, p, CLONE_VM | SIGCHLD)
    s.write(c, a, 5)
    s.ok(c, "execve", "/bin/other", [b"other"], [])
    assert c.mm is not p.mm
    assert p.mm.mm_users == 1
    assert s.read(p, a) == 5


def test_a_hold_on_the_structure_does_not_keep_the_pages_and_a_user_does():
    """Case I06. A descriptor that counted as a user pinned the whole memory of a dead process."""
    s = Scene()
    for hold, kept in (("users", True), ("count", False)):
        c = s.script.spawn(f"holds {hold}")
        free = s.free_frames()
        a = s.mmap(c, 8)
        s.write_pages(c, a, 8)
        mm = c.mm
        if hold == "users":
            mmget(mm)
        else:
            mmgrab(mm)
        s.exit(c)
        s.script.schedule(s.p)  # the idle CPU held the structure too, lazily
        assert (s.free_frames() < free) == kept
        assert mm.mm_users == (1 if kept else 0)
        if kept:
            mmput(mm)
            assert s.free_frames() >= free
        else:
            assert not mmget_not_zero(mm)
            mmdrop(mm)
        assert mm.mm_count == 0


def test_another_tasks_mm_is_looked_at_with_a_reference():
    """Case I10. The task's own pointer goes away with its exit; who holds a user reads on."""
    s = Scene()
    c = s.script.spawn("c")
    a = s.mmap(c, 1)
    s.write(c, a, 5)
    mm, frame = c.mm, s.pfn(c, a)
    mmget(mm)
    assert mm.mm_users == 2
    s.exit(c)
    assert c.mm is None
    assert mm.mm_users == 1
    assert system.phys.load(frame << 12) == 5
    assert s.mapcount(frame) == 1
    mmput(mm)
    assert (mm.mm_users, s.mapcount(frame)) == (0, 0)


def test_a_main_thread_that_has_ended_has_no_mm_while_its_threads_live():
    """Case I10, the variant."""
    s = Scene()
    c = s.script.spawn("c")
    thread = clone(s, c, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)
    mm = c.mm
    s.call(c, "exit", 0)
    assert c.mm is None
    assert not c.signal.flags & SIGNAL_GROUP_EXIT
    assert (thread.mm, mm.mm_users) == (mm, 1)


def pipe_ends(s, task, at):
    """The two descriptors of a new pipe, stored at ``at``."""
    assert s.ok(task, "pipe2", at) == 0
    return s.read(task, at, 4), s.read(task, at + 4, 4)


def test_the_end_of_a_pipe_is_no_end_while_somebody_has_the_other_end_open():
    """Case I08."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    reads, writes = pipe_ends(s, p, a)
    c = s.fork(p)
    s.ok(p, "close", writes)
    outcome = s.call(p, "read", reads, a, 8)
    assert (outcome.blocked, outcome.errno, p.blocked_in) == (True, 0, "read")
    assert [(done.pid, done.call, done.value) for done in s.exit(c).completed] == [
        (p.pid, "read", 0)
    ]
    assert not p.blocked_in
    assert s.ok(p, "read", reads, a, 8) == 0


def test_parent_and_child_share_the_position_of_an_open_file():
    """Case I08, second half. The open file is shared and counted; it has one position."""
    s = Scene()
    p = s.p
    create_file("/data", "disk", b"abcdefgh")
    fd = s.ok(p, "open", "/data", O_RDWR)
    a = s.mmap(p, 1)
    c = s.fork(p)
    assert s.ok(c, "read", fd, a, 4) == 4
    assert s.ok(p, "lseek", fd, 0, SEEK_CUR) == 4
    assert s.ok(p, "read", fd, a, 100) == 4
    assert s.read(p, a, 4) == int.from_bytes(b"efgh", "little")
    assert s.ok(p, "lseek", fd, -3, SEEK_END) == 5
    assert s.ok(p, "write", fd, a, 2) == 2
    assert s.ok(c, "lseek", fd, 0, SEEK_CUR) == 7
    assert s.call(p, "lseek", fd, -1, SEEK_SET).errno == EINVAL


def test_no_advice_is_taken_for_a_pipe():
    """Measured: not even advice that does not exist, for which a file would have -EINVAL."""
    s = Scene()
    for end in pipe_ends(s, s.p, s.mmap(s.p, 1)):
        assert s.call(s.p, "fadvise64", end, 0, 1, 0).errno == ESPIPE
        assert s.call(s.p, "fadvise64", end, 0, -1, 99).errno == ESPIPE


def test_a_write_wakes_the_reader_and_a_pipe_without_reader_kills_the_writer():
    s = Scene()
    p = s.p
    a = s.mmap(p, 20)
    reads, writes = pipe_ends(s, p, a)
    c = s.fork(p)
    s.call(p, "read", reads, a, 8)
    s.write(c, a, 0x41)
    outcome = s.call(c, "write", writes, a, 3)
    assert [(done.pid, done.value) for done in outcome.completed] == [(p.pid, 3)]
    assert s.read(p, a, 3) == 0x41
    assert s.call(c, "lseek", reads, 0, SEEK_SET).errno == ESPIPE
    assert s.call(c, "pread", reads, a, 1, 0).errno == ESPIPE
    assert s.call(c, "read", writes, a, 1).errno == EBADF
    assert s.ok(c, "write", writes, a, 20 * 4096) == 16 * 4096
    assert s.call(c, "write", writes, a, 1).errno == EAGAIN
    s.ok(c, "close", reads)
    s.ok(p, "close", reads)
    s.ok(c, "sigaction", SIGPIPE, "ignore")
    assert s.call(c, "write", writes, a, 1).errno == EPIPE
    s.ok(c, "sigaction", SIGPIPE, "default")
    assert s.call(c, "write", writes, a, 1).signal.signo == SIGPIPE
    assert c.exit_state


def test_a_pipe_gives_back_its_pages_and_its_ends():
    s = Scene()
    p = s.p
    a = s.mmap(p, 4)
    s.write_pages(p, a, 4)
    free = nr_free_pages()
    reads, writes = pipe_ends(s, p, a)
    assert s.ok(p, "write", writes, a, 10) + s.ok(p, "write", writes, a, 10) == 20
    assert free - nr_free_pages() == 1
    assert s.ok(p, "write", writes, a, 5000) == 5000
    assert s.ok(p, "read", reads, a + 8192, 15) == 15
    s.ok(p, "close", writes)
    s.ok(p, "close", reads)
    assert nr_free_pages() == free
    assert s.call(p, "pipe2", 0x1000).errno == EFAULT
    assert s.call(p, "pipe2", a, 1).errno == EINVAL
    assert pipe_ends(s, p, a) == (reads, writes)


def test_a_signal_ends_the_wait_at_a_pipe():
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    reads, writes = pipe_ends(s, p, a)
    s.ok(p, "sigaction", SIGUSR1, "handle")
    c = s.fork(p)
    s.call(p, "read", reads, a, 8)
    outcome = s.call(c, "kill", p.pid, SIGUSR1)
    assert [(done.pid, done.value) for done in outcome.completed] == [(p.pid, -EINTR)]
    assert s.ok(c, "write", writes, a, 8) == 8
    assert s.ok(p, "read", reads, a, 8) == 8
