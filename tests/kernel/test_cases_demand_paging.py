"""Demand paging: nothing exists before it is touched, and reading and writing touch differently."""

import pytest

from kemu.abi.uapi import MAP_PRIVATE, MAP_SHARED, O_RDWR
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.system import system
from tests.kernel.scenes import Scene


def test_reading_first_and_writing_later_faults_twice():
    """Case C02."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 4)
    rss = s.anon(p)
    assert s.read_pages(p, a, 4) == 4
    assert set(s.pfns(p, a, 4)) == {system.zero_pfn}
    assert s.anon(p) == rss
    assert s.write_pages(p, a, 4) == 4
    frames = set(s.pfns(p, a, 4))
    assert len(frames) == 4
    assert system.zero_pfn not in frames
    assert s.anon(p) == rss + 4


def test_a_zero_page_in_a_mapping_that_becomes_writable_is_replaced_at_the_write():
    """Case C05."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1, "r")
    assert s.read(p, a) == 0
    assert s.pfn(p, a) == system.zero_pfn
    s.mprotect(p, a, 1, "rw")
    assert s.write(p, a, 1).minor == 1
    assert s.pfn(p, a) != system.zero_pfn


def cached_file(s, pages):
    """A disk file all of whose pages are cached, open for reading and writing in ``s.p``."""
    create_file("/data", "disk", b"".join(bytes([n % 251]) * 4096 for n in range(pages)))
    fd = s.ok(s.p, "open", "/data", O_RDWR)
    buffer = s.mmap(s.p, 1)
    for page in range(pages):
        s.ok(s.p, "pread", fd, buffer, 1, page * 4096)
    return fd


@pytest.mark.parametrize(
    ("around", "aligned", "faults"), [(True, True, 16), (True, False, 17), (False, True, 256)]
)
def test_reading_a_cached_file_costs_one_fault_per_64_kib(around, aligned, faults):
    """Case C07 (a): fault-around maps what is cached beside the touched page."""
    s = Scene()
    fd = cached_file(s, 256)
    if not around:
        system.sysctl.fault_around_bytes = 4096
    a = 0x4000_0000 if aligned else 0x4000_1000
    s.mmap(s.p, 256, "r", flags=MAP_SHARED | 0x10, fd=fd, addr=a)
    assert s.read_pages(s.p, a, 256) == faults
    assert s.file(s.p) == 256


@pytest.mark.parametrize(("flags", "copies"), [(MAP_SHARED, 0), (MAP_PRIVATE, 256)])
def test_writing_a_cached_file_costs_one_fault_a_page(flags, copies):
    """Case C07 (b) and (c): every write must be seen, so nothing is mapped ahead."""
    s = Scene()
    fd = cached_file(s, 256)
    before = s.anon(s.p)
    a = s.mmap(s.p, 256, flags=flags, fd=fd)
    assert s.write_pages(s.p, a, 256) == 256
    assert s.anon(s.p) - before == copies


def test_a_system_call_can_take_the_fault():
    """Case C08. pread into an untouched page: one fault, taken in kernel mode, and the call
    succeeds."""
    s = Scene()
    p = s.p
    create_file("/data", "disk", b"Z")
    fd = s.ok(p, "open", "/data", O_RDWR)
    u = s.mmap(p, 1)
    outcome = s.call(p, "pread", fd, u, 1, 0)
    assert (outcome.value, outcome.errno, outcome.minor) == (1, 0, 1)
    assert s.read(p, u, 1) == ord("Z")
