"""xv6's copy-on-write lab at its full size: 128 MiB of RAM, a heap of two thirds of it, three
generations, a leak check.

Memory grows with mmap instead of sbrk where the size is more than a heap needs; a heap that xv6
fills with frames at once is written page by page first.  Pipes, which kemu has not, become reads of
a file: what matters is that the kernel writes.
"""

import pytest

from kemu.abi.uapi import O_RDONLY
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.system import system
from tests.kernel.scenes import Scene
from tests.peers.peerdata import load

FILE = load("xv6-cow")
SCENARIOS = {scenario["name"].split()[0]: scenario for scenario in FILE["scenarios"]}
PAGE = 4096


def scene():
    """xv6's machine, unrecorded."""
    s = Scene(mem=FILE["physical_memory"]["bytes"])
    assert system.phys.nr_frames == FILE["physical_memory"]["frames"]
    return s


def grow(s, task, size):
    """sbrk; the start of the new memory."""
    start = s.ok(task, "brk", 0)
    assert s.ok(task, "brk", start + size) == start + size
    return start


def shrink(s, task, start):
    assert s.ok(task, "brk", start) == start


def data_frames(s, tasks, start, pages):
    """The different frames behind ``pages`` pages of all ``tasks``."""
    return {pfn for task in tasks for pfn in s.pfns(task, start, pages) if pfn is not None}


def test_simple_forks_a_process_that_fills_two_thirds_of_memory_twice():
    facts = SCENARIOS["simple"]
    pages = facts["pages_touched"]
    s = scene()
    p = s.p
    assert 2 * pages == facts["expect"]["eager_copy_frames_needed"]
    free_at_start = None
    for _ in range(facts["repeat"]):
        start = grow(s, p, facts["sbrk_bytes"])
        assert s.write_pages(p, start, pages, p.pid) == pages
        free = s.free_frames()
        assert free < pages  # an eager copy would not fit
        child = s.fork(p)
        assert free - s.free_frames() < 100  # page tables only
        assert len(data_frames(s, (p, child), start, pages)) == pages
        s.exit(child)
        s.wait(p, child)
        shrink(s, p, start)
        free_at_start = free_at_start or s.free_frames()
        assert s.free_frames() == free_at_start


def test_three_generations_write_their_shares_and_no_frame_is_lost():
    facts = SCENARIOS["three"]
    s = scene()
    left = set()
    for _ in range(facts["repeat"]):
        one_run_of_three(s, facts)
        left.add(s.free_frames())
    assert len(left) == 1


def one_run_of_three(s, facts):
    p = s.p
    pages, writes = facts["pages"], facts["writes"]
    start = grow(s, p, facts["sbrk_bytes"])
    assert facts["sbrk_bytes"] == pages * PAGE
    s.write_pages(p, start, pages, 1)  # xv6 gives frames at once
    child = s.fork(p)
    grandchild = s.fork(child)
    s.write_pages(grandchild, start, writes["grandchild"]["pages"], grandchild.pid)
    s.write_pages(child, start, writes["child"]["pages"], writes["child"]["value"])
    s.write_pages(p, start, writes["parent"]["pages"], p.pid)
    family = (p, child, grandchild)
    check_sharing(s, family, start, facts["expect"])
    for page in range(writes["grandchild"]["pages"]):
        assert s.read(grandchild, start + page * PAGE) == grandchild.pid
    for task, parent in ((grandchild, child), (child, p)):
        s.exit(task)
        s.wait(parent, task)
    for page in range(pages):
        assert s.read(p, start + page * PAGE) == p.pid
    shrink(s, p, start)


def check_sharing(s, family, start, expect):
    """The number of data frames, in all and in each zone of the breakdown."""
    for low, high, frames in expect["breakdown"].values():
        assert len(data_frames(s, family, start + low * PAGE, high - low)) == frames
    assert (
        len(data_frames(s, family, start, 8192)) == expect["max_data_frames_if_nobody_exits_early"]
    )
    assert len(family) * 8192 == expect["eager_copy_data_frames"]


def test_the_kernel_itself_writes_into_a_shared_page_of_four_children():
    facts = SCENARIOS["file"]
    s = scene()
    p = s.p
    children = facts["processes"] - 1
    create_file("/numbers", "disk", b"".join(n.to_bytes(4, "little") for n in range(children)))
    fd = s.ok(p, "open", "/numbers", O_RDONLY)
    buffer = s.mmap(p, 1)
    s.write(p, buffer, facts["expect"]["parent_buf0"], 4)
    frame = s.pfn(p, buffer)
    codes = []
    for n in range(children):
        child = s.fork(p)
        outcome = s.call(child, "pread", fd, buffer, 4, 4 * n)
        assert (outcome.value, outcome.minor) == (4, 1)
        assert s.pfn(child, buffer) != frame
        s.exit(child, 0 if s.read(child, buffer, 4) == n else 1)
        codes.append(child.exit_code)
        s.wait(p, child)
    assert codes == facts["expect"]["children_exit"]
    assert s.read(p, buffer, 4) == facts["expect"]["parent_buf0"]
    assert s.pfn(p, buffer) == frame


def test_three_hundred_families_of_four_leave_the_heap_of_their_ancestor_alone():
    facts = SCENARIOS["forkfork"]
    s = scene()
    p = s.p
    pages = facts["heap_pages"]
    start = grow(s, p, pages * PAGE)
    fill = int.from_bytes(bytes([facts["fill_byte"]]) * 8, "little")
    s.write_pages(p, start, pages, fill)
    frames = s.pfns(p, start, pages)
    free = s.free_frames()
    for _ in range(facts["iterations"]):
        children = [s.fork(p) for _ in range(facts["children_per_iteration"])]
        for child in children:
            family = [child]
            for _ in range(2):
                family += [s.fork(task) for task in family]
            assert s.mapcount(frames[0]) >= 4
            for task in reversed(family):
                s.exit(task)
        for child in children:
            s.wait(p, child)
    assert s.pfns(p, start, pages) == frames
    assert {s.mapcount(pfn) for pfn in frames} == {1}
    assert {s.read(p, start + page * PAGE) for page in range(pages)} == {fill}
    assert s.free_frames() == free


def test_the_physical_address_tells_when_a_page_was_copied():
    facts = SCENARIOS["physical-address"]
    s = scene()
    p = s.p
    a = s.mmap(p, 1)
    s.write(p, a, facts["initial_value"], 4)
    before = s.pfn(p, a)
    child = s.fork(p)
    assert s.pfn(child, a) == before
    s.write(child, a, facts["child_writes"], 4)
    assert s.pfn(child, a) != before
    s.exit(child)
    s.wait(p, child)
    assert s.pfn(p, a) == before
    assert s.read(p, a, 4) == facts["initial_value"]


@pytest.mark.parametrize("name", ["simple", "three", "file", "forkfork", "physical-address"])
def test_every_scenario_of_the_lab_is_played(name):
    assert name in SCENARIOS
    assert len(SCENARIOS) == 5
