"""Lives of tasks and of address spaces: who shares, who waits, who keeps what alive."""

from kemu.kernel.files import create_file
from kemu.kernel.mm_life import mmget, mmget_not_zero, mmput
from kemu.kernel.mman import CLONE_SIGHAND, CLONE_THREAD, CLONE_VM
from kemu.kernel.sched import mmdrop, mmgrab
from kemu.kernel.sched_types import SIGNAL_GROUP_EXIT
from kemu.kernel.signal import SIGCHLD
from kemu.kernel.system import system
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
