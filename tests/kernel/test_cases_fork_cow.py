"""fork and copy-on-write: who faults, who copies, who keeps the old frame."""

from itertools import pairwise

import pytest

from kemu.abi.uapi import MADV_DONTNEED, MREMAP_FIXED, MREMAP_MAYMOVE, O_RDWR
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.system import system
from tests.kernel.elf import tiny_elf
from tests.kernel.scenes import RW, Scene, signal


def test_the_side_that_writes_second_still_pays_a_fault_but_no_copy():
    """Case A01. Most people think that after the copy the other side is writable for free."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    first = s.pfn(p, a)
    c = s.fork(p)
    assert s.mapcount(first) == 2
    assert s.load(c, a).minor == 0
    assert s.write(c, a, 2).minor == 1
    assert s.pfn(c, a) != first
    assert s.mapcount(first) == 1
    assert s.load(p, a).minor == 0
    assert s.write(p, a, 3).minor == 1
    assert s.pfn(p, a) == first
    assert (s.read(p, a), s.read(c, a)) == (3, 2)
    assert len({s.pfn(p, a), s.pfn(c, a)}) == 2


def test_reading_after_fork_is_free_and_writing_is_paid_page_by_page():
    """Case A03."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 8)
    s.write_pages(p, a, 8)
    frames = s.pfns(p, a, 8)
    c = s.fork(p)
    assert s.read_pages(c, a, 8) == 0
    assert s.write_pages(c, a, 8) == 8
    assert not set(s.pfns(c, a, 8)) & set(frames)
    s.exit(c)
    assert s.write_pages(p, a, 8) == 8
    assert s.pfns(p, a, 8) == frames


def test_of_four_sharers_the_first_three_writers_copy_and_the_last_one_keeps_the_frame():
    """Case A05."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    frame = s.pfn(p, a)
    children = [s.fork(p) for _ in range(3)]
    counts = [s.mapcount(frame)]
    faults = copies = 0
    for value, task in enumerate([*children, p]):
        faults += s.write(task, a, value).minor
        copies += s.pfn(task, a) != frame
        counts.append(s.mapcount(frame))
    assert counts[:4] == [4, 3, 2, 1]
    assert (faults, copies) == (4, 3)
    assert len({s.pfn(task, a) for task in (*children, p)}) == 4
    assert [s.read(task, a) for task in (*children, p)] == [0, 1, 2, 3]


def test_one_address_two_frames():
    """Case A07. Both print the same pointer and different values."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 5)
    c = s.fork(p)
    assert s.pfn(p, a) == s.pfn(c, a)
    s.write(c, a, 6)
    assert s.pfn(p, a) != s.pfn(c, a)
    assert (s.read(p, a), s.read(c, a)) == (5, 6)


def test_exec_after_fork_gives_every_shared_page_back():
    """Case A10. A parent of 200 MB: only page tables were copied, and thrown away."""
    s = Scene()
    p = s.p
    create_file("/bin/other", "disk", tiny_elf())
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    frame = s.pfn(p, a)
    c = s.fork(p)
    assert s.mapcount(frame) == 2
    s.ok(c, "execve", "/bin/other", [b"other"], [])
    assert s.mapcount(frame) == 1
    assert s.write(p, a, 2).minor == 1
    assert s.pfn(p, a) == frame


def test_what_one_sharer_throws_away_the_other_keeps():
    """Case A12. madvise(DONTNEED) after fork."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 5)
    frame = s.pfn(p, a)
    c = s.fork(p)
    s.ok(p, "madvise", a, 4096, MADV_DONTNEED)
    assert s.mapcount(frame) == 1
    assert s.read(p, a) == 0
    assert s.pfn(p, a) == system.zero_pfn
    assert s.read(c, a) == 5
    assert s.write(c, a, 6).minor == 1
    assert s.pfn(c, a) == frame


@pytest.mark.parametrize("read_only_before_fork", [False, True])
def test_mprotect_to_writable_after_fork_does_not_undo_copy_on_write(read_only_before_fork):
    """Case A14. The VMA may be writable while the entry must not be."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    if read_only_before_fork:
        s.mprotect(p, a, 1, "r")
    frame = s.pfn(p, a)
    c = s.fork(p)
    s.mprotect(c, a, 1, "r")
    s.mprotect(c, a, 1, "rw")
    assert not s.may_write(c, a)
    assert s.write(c, a, 2).minor == 1
    assert s.pfn(c, a) != frame
    assert s.read(p, a) == 1


def test_a_page_that_is_already_copy_on_write_may_be_forked_again():
    """Case A16. The read-only bit of the entry does not say whether a write is an error; the VMA
    does."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    frame = s.pfn(p, a)
    c1 = s.fork(p)
    c2 = s.fork(c1)
    assert s.mapcount(frame) == 3
    outcome = s.write(c2, a, 2)
    assert (outcome.minor, outcome.signal) == (1, None)
    assert s.pfn(c2, a) != frame
    assert s.mapcount(frame) == 2


def test_moving_a_shared_page_moves_the_entry_and_copies_nothing():
    """Case A17."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    frame = s.pfn(p, a)
    c = s.fork(p)
    q = s.ok(c, "mremap", a, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, 0x4000_0000)
    assert (q, s.pfn(c, q), s.mapcount(frame)) == (0x4000_0000, frame, 2)
    assert not s.may_write(c, q)
    assert s.write(c, q, 2).minor == 1
    assert s.pfn(c, q) != frame
    assert s.read(p, a) == 1


def test_three_forks_in_a_row_make_eight_processes():
    """Case A20 (a)."""
    s = Scene()
    before = len(system.tasks)
    family = [s.p]
    for _ in range(3):
        family += [s.fork(task) for task in family]
    assert len(family) == 8
    assert len(system.tasks) - before == 7


def test_what_was_not_flushed_before_fork_comes_out_twice():
    """Case A20 (b). A buffer of the C library is ordinary memory."""
    s = Scene()
    p = s.p
    fd = s.ok(p, "memfd_create", "terminal")
    buffer = s.mmap(p, 1)
    s.write(p, buffer, ord("x"), 1)
    c = s.fork(p)
    written = 0
    for task in (p, c):
        written += s.ok(task, "pwrite", fd, buffer, 1, written)
        s.exit(task)
    assert written == 2


def test_a_child_whose_parent_ends_keeps_its_memory_and_becomes_inits():
    """Case A21."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    frame = s.pfn(p, a)
    c = s.fork(p)
    s.exit(p)
    assert s.mapcount(frame) == 1
    assert s.write(c, a, 2).minor == 1
    assert s.pfn(c, a) == frame
    assert c.real_parent.pid == 1


@pytest.mark.parametrize("order", ["parent first", "child first"])
def test_the_order_after_fork_changes_who_copies_and_no_value(order):
    """Case A23, one at a time (both at once is a matter of the race explorer)."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    frame = s.pfn(p, a)
    c = s.fork(p)
    steps = [(p, 3), (c, 2)] if order == "parent first" else [(c, 2), (p, 3)]
    faults = sum(s.write(task, a, value).minor for task, value in steps)
    assert faults == 2
    assert (s.read(p, a), s.read(c, a)) == (3, 2)
    assert s.pfn(steps[0][0], a) != frame
    assert s.pfn(steps[1][0], a) == frame


def test_a_kernel_write_into_a_shared_page_copies_it_too():
    """Beside the cases: pread into a page shared by fork, as copy_to_user must break
    copy-on-write."""
    s = Scene()
    p = s.p
    create_file("/data", "disk", b"file")
    fd = s.ok(p, "open", "/data", O_RDWR)
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    c = s.fork(p)
    frames = s.pfn(p, a)
    outcome = s.call(c, "pread", fd, a, 4, 0)
    assert (outcome.value, outcome.minor) == (4, 1)
    assert s.pfn(c, a) != frames
    assert s.read(p, a) == 1
    assert s.read(c, a, 4).to_bytes(4, "little") == b"file"


def test_a_shared_anonymous_page_is_never_copied():
    """Beside the cases: MAP_SHARED is the counter-example to all of the above."""
    s = Scene()
    p = s.p
    a = s.ok(p, "mmap", 0, 4096, RW, 0x21, -1, 0)
    s.write(p, a, 1)
    c = s.fork(p)
    s.write(c, a, 2)
    assert s.read(p, a) == 2
    assert s.pfn(p, a) == s.pfn(c, a)


def test_the_frames_of_a_family_that_has_ended_are_all_free_again():
    """Beside the cases: nothing leaks through forks, copies and exits in any order."""
    s = Scene()
    free = s.free_frames()
    top = s.script.spawn("top")
    a = s.mmap(top, 16)
    s.write_pages(top, a, 16)
    family = [top]
    for n, task in pairwise([top, *(s.fork(top) for _ in range(3))]):
        family.append(task)
        s.write_pages(task, a, 4 * len(family) % 17, value=n.pid)
    for task in family:
        s.exit(task)
    s.script.schedule(s.p)  # an idle CPU would keep the last root page loaded
    assert s.free_frames() == free


def test_a_write_to_read_only_memory_is_an_error_and_no_copy():
    """Beside the cases: copy-on-write never makes a VMA writable."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, 1)
    s.mprotect(p, a, 1, "r")
    c = s.fork(p)
    outcome = s.write(c, a, 2)
    assert (signal(outcome), outcome.minor) == ("SEGV_ACCERR", 0)
    assert s.read(p, a) == 1
