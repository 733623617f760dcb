"""Operations on mappings: holes, heap, rounding, and the errors of wrong arguments."""

import errno

import pytest

from kemu.abi.uapi import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_PRIVATE,
    MAP_SHARED,
    MREMAP_MAYMOVE,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    PROT_READ,
    PROT_WRITE,
)
from kemu.kernel.fs.files import create_file
from tests.kernel.scenes import PRIVATE, RW, Scene, signal

KERNEL = 0xFFFF_8880_0000_0000
TASK_SIZE_MAX = 0x7FFF_FFFF_F000


def test_a_hole_splits_a_mapping_and_refilling_it_merges_again():
    """Case D02."""
    s = Scene()
    p = s.p
    s.survive(p)
    a = s.mmap(p, 3)
    for page in range(3):
        s.write(p, a + page * 4096, page + 1)
    free = s.free_frames()
    s.ok(p, "munmap", a + 4096, 4096)
    assert s.free_frames() == free + 1
    assert s.vmas(p, a, a + 3 * 4096) == [(a, a + 4096, "rw-"), (a + 8192, a + 12288, "rw-")]
    assert s.read(p, a) == 1
    assert signal(s.load(p, a + 4096)) == "SEGV_MAPERR"
    assert s.read(p, a + 8192) == 3
    s.mmap(p, 1, flags=PRIVATE | MAP_FIXED, addr=a + 4096)
    assert s.vmas(p, a, a + 3 * 4096) == [(a, a + 3 * 4096, "rw-")]
    assert s.read(p, a + 4096) == 0


def test_a_mapping_that_cannot_grow_in_place_moves_with_its_frames():
    """Case D05."""
    s = Scene()
    p = s.p
    s.survive(p)
    a = s.mmap(p, 2, flags=PRIVATE | MAP_FIXED, addr=0x4000_0000)
    s.mmap(p, 1, "r", flags=PRIVATE | MAP_FIXED, addr=a + 8192)
    s.write_pages(p, a, 2, 7)
    frames = s.pfns(p, a, 2)
    assert s.call(p, "mremap", a, 8192, 16384, 0).errno == errno.ENOMEM
    b = s.ok(p, "mremap", a, 8192, 16384, MREMAP_MAYMOVE)
    assert s.pfns(p, b, 2) == frames
    assert s.write_pages(p, b, 2, 8) == 0
    assert s.write(p, b + 8192, 1).minor == 1
    assert signal(s.load(p, a)) == "SEGV_MAPERR"


def test_the_heap_shrinks_grows_again_empty_and_stops_at_a_neighbour():
    """Case D06. The raw call returns the break, never an errno: ENOMEM is the C library's word."""
    s = Scene()
    p = s.p
    s.survive(p)
    start = s.ok(p, "brk", 0)
    assert s.ok(p, "brk", start + 4 * 4096) == start + 4 * 4096
    s.write(p, start, 1)
    s.write(p, start + 3 * 4096, 7)
    free = s.free_frames()
    s.ok(p, "brk", start + 2 * 4096)
    assert s.free_frames() == free + 1
    assert signal(s.load(p, start + 3 * 4096)) == "SEGV_MAPERR"
    s.ok(p, "brk", start + 4 * 4096)
    assert s.read(p, start + 3 * 4096) == 0
    s.mmap(p, 1, flags=PRIVATE | MAP_FIXED, addr=start + 4 * 4096)
    assert s.ok(p, "brk", start + 6 * 4096) == start + 4 * 4096
    s.ok(p, "brk", start + 2 * 4096 + 1)
    assert s.write(p, start + 3 * 4096 - 1, 9, 1).signal is None


def test_a_length_is_rounded_up_to_whole_pages():
    """Case D09."""
    s = Scene()
    p = s.p
    a = s.ok(p, "mmap", 0x4000_0000, 5000, RW, PRIVATE | MAP_FIXED, -1, 0)
    assert s.vmas(p, a, a + 1) == [(a, a + 8192, "rw-")]
    assert s.write(p, a + 8191, 1, 1).signal is None
    assert signal(s.write(p, a + 8192, 1, 1)) == "SEGV_MAPERR"


def test_each_wrong_argument_of_mmap_and_munmap_has_its_error():
    """Case D10."""
    s = Scene()
    p = s.p
    create_file("/data", "disk", bytes(8192))
    read_only = s.ok(p, "open", "/data", O_RDONLY)
    write_only = s.ok(p, "open", "/data", O_WRONLY)
    shared = s.ok(p, "mmap", 0, 4096, PROT_READ, MAP_SHARED, read_only, 0)
    calls = [
        ("mmap", 0, 4096, PROT_READ, MAP_SHARED, read_only, 100),
        ("mmap", 0, 0, RW, PRIVATE, -1, 0),
        ("mmap", 0, 4096, RW, MAP_ANONYMOUS, -1, 0),
        ("mmap", 0, 4096, RW, MAP_SHARED, read_only, 0),
        ("mmap", 0, 4096, RW, MAP_PRIVATE, read_only, 0),
        ("mprotect", shared, 4096, PROT_READ | PROT_WRITE),
        ("mmap", 0, 4096, PROT_READ, MAP_PRIVATE, write_only, 0),
        ("munmap", 0x5000_0000, 4096),
        ("munmap", 0x5000_0001, 4096),
    ]
    errors = [s.call(p, *call).errno for call in calls]
    assert [errno.errorcode.get(e, "ok") for e in errors] == [
        "EINVAL", "EINVAL", "EINVAL", "EACCES", "ok", "EACCES", "EACCES", "ok", "EINVAL",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("mmap", KERNEL, 4096, RW, PRIVATE | MAP_FIXED, -1, 0), errno.ENOMEM),
        (("mmap", TASK_SIZE_MAX, 4096, RW, PRIVATE | MAP_FIXED, -1, 0), errno.ENOMEM),
        (("mprotect", KERNEL, 4096, PROT_READ), errno.ENOMEM),
        (("munmap", KERNEL, 4096), errno.EINVAL),
    ],
    ids=["mmap kernel", "mmap at the limit", "mprotect kernel", "munmap kernel"],
)
def test_user_calls_do_not_reach_the_kernel_half(call, error):
    """Case D13."""
    s = Scene()
    assert s.call(s.p, *call).errno == error


def test_proc_maps_shows_promises_and_not_pages():
    """Case D14."""
    s = Scene()
    p = s.p
    create_file("/data", "disk", bytes(4 * 4096))
    fd = s.ok(p, "open", "/data", O_RDWR)
    a = s.mmap(p, 3)
    s.mprotect(p, a + 4096, 1, "")
    b = s.mmap(p, 2, "r", flags=MAP_SHARED, fd=fd, offset=0x2000)
    lines = [line.split() for line in s.maps(p)]
    mine = [fields for fields in lines if a <= int(fields[0].split("-")[0], 16) < a + 3 * 4096]
    assert [fields[1:3] for fields in mine] == [
        ["rw-p", "00000000"],
        ["---p", "00000000"],
        ["rw-p", "00000000"],
    ]
    (file_line,) = (fields for fields in lines if fields[0] == f"{b:x}-{b + 8192:x}")
    assert (file_line[1], file_line[2], file_line[-1]) == ("r--s", "00002000", "/data")
    s.mprotect(p, a + 4096, 1, "rw")
    assert s.vmas(p, a, a + 3 * 4096) == [(a, a + 3 * 4096, "rw-")]
    before = s.maps(p)
    s.write_pages(p, a, 3)
    s.fork(p)
    assert s.maps(p) == before
