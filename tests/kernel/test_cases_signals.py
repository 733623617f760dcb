"""Signals of bad accesses: which one, with which code and address, and what a handler changes."""

import pytest

from kemu.abi.uapi import EINVAL, ENOSPC, MAP_FIXED, MAP_SHARED, MS_SYNC, O_CREAT, O_RDWR, SIGSEGV
from kemu.kernel.fs.files import create_file, lookup, shmem_limit
from tests.kernel.scenes import Scene, signal


@pytest.mark.parametrize(
    ("address", "code", "si_addr"),
    [
        (0xFFFF_8880_0000_0000, "SEGV_MAPERR", 0xFFFF_8880_0000_0000),
        (0x8000_0000_0000_0000, "SI_KERNEL", 0),
        (0x0000_8000_0000_0000, "SI_KERNEL", 0),
    ],
)
def test_a_kernel_address_looks_unmapped_and_a_non_canonical_one_never_reaches_the_tables(
    address, code, si_addr
):
    """Case E02."""
    s = Scene()
    outcome = s.load(s.p, address)
    assert signal(outcome) == code
    assert outcome.signal.addr == si_addr


def test_a_handler_that_just_returns_faults_again_for_ever():
    """Case E04. Refused faults do not count as minor faults."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1, "r")
    s.read(p, a)
    s.ok(p, "sigaction", SIGSEGV, "handle")
    outcomes = [s.write(p, a, 1) for _ in range(1000)]
    assert {signal(outcome) for outcome in outcomes} == {"SEGV_ACCERR"}
    assert sum(outcome.minor for outcome in outcomes) == 0
    assert s.read(p, a) == 0


def shared_file(s, size, pages, *, addr=0x4000_0000):
    """A file of ``size`` bytes, mapped shared over ``pages`` pages; (descriptor, address)."""
    create_file("/data", "disk", bytes([65]) * size)
    fd = s.ok(s.p, "open", "/data", O_RDWR)
    return fd, s.mmap(s.p, pages, flags=MAP_SHARED | MAP_FIXED, fd=fd, addr=addr)


def test_beyond_the_end_of_a_file_lies_zero_then_sigbus_then_nothing():
    """Case E06."""
    s = Scene()
    p = s.p
    s.survive(p)
    _, a = shared_file(s, 5000, 3)
    assert s.read(p, a + 4999, 1) == 65
    assert s.read(p, a + 5000, 1) == 0
    assert signal(s.load(p, a + 2 * 4096, 1)) == "BUS_ADRERR"
    assert signal(s.load(p, a + 3 * 4096, 1)) == "SEGV_MAPERR"


@pytest.mark.parametrize("written_back", [True, False])
def test_what_is_stored_behind_the_end_of_a_file_is_lost(written_back):
    """Case E08, and the same without the msync: the file system zeroes the rest of the page when
    the file grows."""
    s = Scene()
    p = s.p
    fd, a = shared_file(s, 5000, 2)
    buffer = s.mmap(p, 1)
    s.write(p, a + 6000, ord("X"), 1)
    if written_back:
        s.ok(p, "msync", a, 8192, MS_SYNC)
    assert lookup("/data").i_size == 5000
    assert s.ok(p, "pread", fd, buffer, 1, 6000) == 0
    s.ok(p, "ftruncate", fd, 12288)
    assert s.read(p, a + 6000, 1) == 0


def test_a_full_tmpfs_is_enospc_for_write_and_sigbus_for_a_store():
    """Case E09. The file was made large without a word; room is asked for a page at a time."""
    s = Scene()
    p = s.p
    s.survive(p)
    assert shmem_limit(16) == 0
    fd = s.ok(p, "open", "/data", O_RDWR | O_CREAT)
    s.ok(p, "ftruncate", fd, 1 << 20)
    a = s.mmap(p, 256, flags=MAP_SHARED | MAP_FIXED, fd=fd, addr=0x4000_0000)
    outcomes = [s.write(p, a + page * 4096, 1) for page in range(17)]
    assert [signal(outcome) for outcome in outcomes] == [None] * 16 + ["BUS_ADRERR"]
    assert outcomes[16].signal.addr == a + 16 * 4096
    buffer = s.mmap(p, 1)
    s.write(p, buffer, 7)
    assert s.call(p, "pwrite", fd, buffer, 8, 100 * 4096).errno == ENOSPC
    assert s.call(p, "fallocate", fd, 0, 100 * 4096, 4096).errno == ENOSPC
    assert signal(s.load(p, a + 200 * 4096)) == "BUS_ADRERR"
    s.ok(p, "pwrite", fd, buffer, 8, 3 * 4096)


def test_a_tmpfs_has_room_again_for_what_was_cut_off_and_takes_no_limit_below_what_it_holds():
    s = Scene()
    p = s.p
    s.survive(p)
    fd = s.ok(p, "open", "/data", O_RDWR | O_CREAT)
    s.ok(p, "ftruncate", fd, 64 * 4096)
    a = s.mmap(p, 64, flags=MAP_SHARED | MAP_FIXED, fd=fd, addr=0x4000_0000)
    assert s.write_pages(p, a, 4) == 4
    assert shmem_limit(3) == -EINVAL
    assert shmem_limit(4) == 0
    assert signal(s.load(p, a + 9 * 4096)) == "BUS_ADRERR"
    s.ok(p, "ftruncate", fd, 2 * 4096)
    s.ok(p, "ftruncate", fd, 64 * 4096)
    assert signal(s.load(p, a + 9 * 4096)) is None
    assert shmem_limit(0) == 0
    assert s.write_pages(p, a + 20 * 4096, 10) == 10
