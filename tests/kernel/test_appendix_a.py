"""Thirty worked examples, measured on Linux 6.18: what one step changes, in every number that can
be seen.

Each test is a row (A1 to A30) of the same table; ``MISSING`` names the rows that wait for a
feature.  Pages of one mapping lie under one page table, fault-around is 64 KiB, nothing is swapped.
"""

import errno
import re
from pathlib import Path

import pytest

from kemu.abi.uapi import (
    MADV_DONTNEED,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_FIXED_NOREPLACE,
    MAP_PRIVATE,
    MAP_SHARED,
    MREMAP_MAYMOVE,
    O_RDONLY,
    O_RDWR,
    PROT_READ,
)
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.flags import VM_LOCKED
from kemu.kernel.include.mmzone import totalram_pages
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.rmap import PageAnonExclusive
from kemu.kernel.mm.vma import vma_lookup
from tests.kernel.scenes import PRIVATE, RW, Scene, signal

MISSING = {
    "A27": "swap",
}
BASE = 0x4000_0000


def test_every_row_is_here_or_missing():
    rows = set(re.findall(r'"""(A\d+)[:.,]', Path(__file__).read_text(encoding="utf-8")))
    assert rows | set(MISSING) == {f"A{n}" for n in range(1, 31)}


def numbers(task):
    """What the table speaks of, in pages but for ``pgtables_bytes``."""
    mm = task.mm
    return {
        "total_vm": mm.total_vm,
        "data_vm": mm.data_vm,
        "committed": system.counters.vm_committed_as,
        "map_count": mm.map_count,
        "anon": mm.rss_stat[1],
        "file": mm.rss_stat[0],
        "pgtables": mm.pgtables_bytes,
        "minflt": task.min_flt,
        "reuse": system.vmstat.PGREUSE,
    }


def change(before, task):
    """The numbers that differ from ``before``."""
    now = numbers(task)
    return {name: now[name] - before[name] for name in now if now[name] != before[name]}


def bits(s, task, addr):
    """The letters W, D, A of the entry for ``addr``, and x if the page is exclusive."""
    pte, b = s.pte(task, addr), system.bits
    letters = "".join(
        c for c, bit in (("W", b.write), ("D", b.dirty), ("A", b.accessed)) if pte & bit
    )
    special = pte & b.special
    return letters + (
        "x" if pte and not special and PageAnonExclusive(pfn_to_page(s.pfn(task, addr))) else ""
    )


def eight(s, task=None):
    """Eight fresh pages at BASE, so that they and nothing else lie under one new table."""
    return s.mmap(task or s.p, 8, flags=PRIVATE | MAP_FIXED, addr=BASE)


def test_a_mapping_promises_and_gives_nothing():
    """A1: mmap."""
    s = Scene()
    before = numbers(s.p)
    eight(s)
    assert change(before, s.p) == {"total_vm": 8, "data_vm": 8, "committed": 8, "map_count": 1}


def test_the_first_read_maps_the_zero_page_and_counts_no_page():
    """A2: read after A1."""
    s = Scene()
    a = eight(s)
    s.mmap(s.p, 1, flags=PRIVATE | MAP_FIXED, addr=BASE + (1 << 22))
    s.write(s.p, BASE + (1 << 22), 1)  # the upper tables are there
    before = numbers(s.p)
    assert s.read(s.p, a) == 0
    assert change(before, s.p) == {"minflt": 1, "pgtables": 4096}
    assert s.pfn(s.p, a) == system.zero_pfn
    assert s.pte(s.p, a) & system.bits.special
    assert "W" not in bits(s, s.p, a)
    assert vma_lookup(s.p.mm, a).anon_vma is None


def test_the_first_write_after_a_read_replaces_the_zero_page():
    """A3: write after A2."""
    s = Scene()
    a = eight(s)
    s.read(s.p, a)
    before = numbers(s.p)
    s.write(s.p, a, 1)
    assert change(before, s.p) == {"minflt": 1, "anon": 1}
    assert vma_lookup(s.p.mm, a).anon_vma is not None
    assert bits(s, s.p, a) == "WDAx"


def test_a_first_write_faults_once():
    """A4: write of an untouched page."""
    s = Scene()
    a = eight(s)
    s.write(s.p, a, 1)
    before = numbers(s.p)
    s.write(s.p, a + 4096, 1)
    assert change(before, s.p) == {"minflt": 1, "anon": 1}
    assert bits(s, s.p, a + 4096) == "WDAx"


def forked():
    """(scene, address, child) after A1 to A5: pages 0 and 1 written, then fork."""
    s = Scene()
    a = eight(s)
    s.write_pages(s.p, a, 2)
    return s, a, s.fork(s.p)


def test_fork_write_protects_both_sides_and_copies_no_page():
    """A5: fork after A4."""
    s = Scene()
    a = eight(s)
    s.write_pages(s.p, a, 2)
    before = numbers(s.p)
    stack = sum(v.vm_end - v.vm_start for v in s.p.mm.mm_mt if v.vm_flags & 0x100) >> 12
    c = s.fork(s.p)
    assert change(before, s.p) == {"committed": 8 + stack}
    for page in (a, a + 4096):
        assert (bits(s, s.p, page), bits(s, c, page)) == ("DA", "D")
        assert (s.mapcount(s.pfn(c, page)), s.refcount(s.pfn(c, page))) == (2, 2)
    assert (s.anon(c), c.min_flt) == (2, 0)


def test_the_child_that_writes_gets_a_copy_and_the_parent_stays_as_it_was():
    """A6: the child writes after A5."""
    s, a, c = forked()
    old = s.pfn(s.p, a)
    before = numbers(c)
    s.write(c, a, 2)
    assert change(before, c) == {"minflt": 1}
    assert s.pfn(c, a) != old
    assert bits(s, c, a) == "WDAx"
    assert (s.pfn(s.p, a), s.mapcount(old), s.refcount(old)) == (old, 1, 1)
    assert bits(s, s.p, a) == "DA"


def test_the_parent_that_writes_last_reuses_its_page():
    """A7: the parent writes after A6."""
    s, a, c = forked()
    old = s.pfn(s.p, a)
    s.write(c, a, 2)
    before = numbers(s.p)
    s.write(s.p, a, 3)
    assert change(before, s.p) == {"minflt": 1, "reuse": 1}
    assert s.pfn(s.p, a) == old
    assert bits(s, s.p, a) == "WDAx"


def test_a_child_that_has_gone_leaves_its_pages_to_be_reused():
    """A8: the child exits instead of A6, then the parent writes."""
    s, a, c = forked()
    old = s.pfn(s.p, a + 4096)
    s.exit(c)
    before = numbers(s.p)
    s.write(s.p, a + 4096, 3)
    assert change(before, s.p) == {"minflt": 1, "reuse": 1}
    assert s.pfn(s.p, a + 4096) == old


def test_fork_copies_a_pinned_page_at_once():
    """A9: a page pinned for writing (1024 references in one) stays with its owner, whole."""
    s = Scene()
    a = eight(s)
    s.write_pages(s.p, a, 2)
    s.ok(s.p, "pin", a, 4096)
    pinned = s.pfn(s.p, a)
    assert s.refcount(pinned) == 1025
    c = s.fork(s.p)
    assert s.pfn(c, a) != pinned
    assert s.pfn(s.p, a) == pinned
    assert bits(s, s.p, a) == "WDAx"
    assert bits(s, c, a) == "WDAx"
    assert s.pfn(c, a + 4096) == s.pfn(s.p, a + 4096)
    assert (bits(s, s.p, a + 4096), bits(s, c, a + 4096)) == ("DA", "D")
    s.ok(s.p, "unpin", a, 4096)
    assert s.refcount(pinned) == 1


def test_a_plain_reference_from_outside_forces_a_copy():
    """A10: a pipe holds the page (vmsplice) when its only mapper writes; the pipe keeps the old
    bytes."""
    s, a, c = forked()
    s.write(c, a, 2)
    pipe = s.ok(s.p, "pipe")
    s.ok(s.p, "vmsplice", pipe, a, 8)
    held = s.pfn(s.p, a)
    s.write(s.p, a, 3)
    assert s.pfn(s.p, a) != held
    assert (s.mapcount(held), s.refcount(held)) == (0, 1)
    buffer = a + 7 * 4096
    assert s.ok(s.p, "read", pipe, buffer, 8) == 8
    assert s.read(s.p, buffer) == 1
    assert s.refcount(held) == 0


def test_a_right_taken_and_given_back_is_back_at_once_for_an_exclusive_page():
    """A11: mprotect to read-only and back."""
    s = Scene()
    a = eight(s)
    s.write(s.p, a, 1)
    s.read(s.p, a + 4096)
    s.mprotect(s.p, a, 8, "r")
    assert bits(s, s.p, a) == "DAx"
    s.mprotect(s.p, a, 8, "rw")
    assert bits(s, s.p, a) == "WDAx"
    assert "W" not in bits(s, s.p, a + 4096)
    before = numbers(s.p)
    s.write(s.p, a, 2)
    assert change(before, s.p) == {}


def test_a_right_given_back_does_not_reach_a_shared_page():
    """A11, for a page shared by fork."""
    s, a, _ = forked()
    s.mprotect(s.p, a, 8, "r")
    s.mprotect(s.p, a, 8, "rw")
    assert bits(s, s.p, a) == "DA"


def with_file(flags, pages=16, rights="rw"):
    """(scene, address) of a mapping of a disk file of 16 cached pages at BASE."""
    s = Scene()
    create_file("/data", "disk", b"".join(bytes([n + 1]) * 4096 for n in range(16)))
    fd = s.ok(s.p, "open", "/data", O_RDWR)
    buffer = s.mmap(s.p, 1)
    for n in range(16):
        s.ok(s.p, "pread", fd, buffer, 1, n * 4096)
    a = s.mmap(s.p, pages, rights, flags=flags | MAP_FIXED, fd=fd, addr=BASE)
    return s, a


def test_a_read_of_a_file_maps_what_is_cached_around_it():
    """A12: read page 3 of a private mapping of 16 cached pages."""
    s, a = with_file(MAP_PRIVATE)
    before = numbers(s.p)
    assert s.read(s.p, a + 3 * 4096, 1) == 4
    assert {name: n for name, n in change(before, s.p).items() if name != "pgtables"} == {
        "minflt": 1,
        "file": 16,
    }
    assert None not in s.pfns(s.p, a, 16)


def test_a_write_to_a_private_file_page_that_was_read_copies_it():
    """A13: write page 3 after A12."""
    s, a = with_file(MAP_PRIVATE)
    s.read(s.p, a + 3 * 4096)
    cached = s.pfns(s.p, a, 16)
    before = numbers(s.p)
    s.write(s.p, a + 3 * 4096, 9)
    assert change(before, s.p) == {"minflt": 1, "file": -1, "anon": 1}
    now = s.pfns(s.p, a, 16)
    assert now[3] != cached[3]
    assert now[:3] + now[4:] == cached[:3] + cached[4:]


def test_a_first_write_to_a_private_file_page_makes_the_copy_directly():
    """A14: write page 5, nothing was read."""
    s, a = with_file(MAP_PRIVATE)
    before = numbers(s.p)
    s.write(s.p, a + 5 * 4096, 9)
    assert {name: n for name, n in change(before, s.p).items() if name != "pgtables"} == {
        "minflt": 1,
        "anon": 1,
    }
    assert s.pfns(s.p, a, 5) == [None] * 5
    assert s.read(s.p, a + 5 * 4096 + 8, 1) == 6


def test_fork_copies_no_entry_of_a_shared_file():
    """A15: the child faults its pages in again."""
    s, a = with_file(MAP_SHARED)
    assert s.write_pages(s.p, a, 10) == 10
    assert sum(pfn is not None for pfn in s.pfns(s.p, a, 16)) == 10
    c = s.fork(s.p)
    assert s.pfns(c, a, 16) == [None] * 16
    assert s.file(c) == 0
    assert s.read_pages(c, a, 16) == 1


def test_what_is_not_needed_any_more_is_free_and_still_promised():
    """A16: MADV_DONTNEED of all eight pages."""
    s = Scene()
    a = eight(s)
    s.write_pages(s.p, a, 8)
    before, free = numbers(s.p), s.free_frames()
    s.ok(s.p, "madvise", a, 8 * 4096, MADV_DONTNEED)
    assert change(before, s.p) == {"anon": -8}
    assert s.free_frames() == free + 8
    assert s.read(s.p, a) == 0


def test_a_hole_makes_two_mappings_of_three_pages():
    """A17: munmap of the middle page."""
    s = Scene()
    a = s.mmap(s.p, 3, flags=PRIVATE | MAP_FIXED, addr=BASE)
    before = numbers(s.p)
    s.ok(s.p, "munmap", a + 4096, 4096)
    assert change(before, s.p) == {"map_count": 1, "total_vm": -1, "data_vm": -1, "committed": -1}


@pytest.mark.parametrize(("flags", "error"), [(MAP_SHARED, errno.EACCES), (MAP_PRIVATE, 0)])
def test_a_file_opened_for_reading_can_be_made_writable_in_private_only(flags, error):
    """A18: mprotect of a mapping of an O_RDONLY descriptor."""
    s = Scene()
    create_file("/data", "disk", bytes(4096))
    fd = s.ok(s.p, "open", "/data", O_RDONLY)
    a = s.mmap(s.p, 1, "r", flags=flags, fd=fd)
    assert s.call(s.p, "mprotect", a, 4096, RW).errno == error


def test_mprotect_stops_at_a_hole_with_the_first_part_changed():
    """A19: [A][hole][B]."""
    s = Scene()
    s.mmap(s.p, 1, flags=PRIVATE | MAP_FIXED, addr=BASE)
    s.mmap(s.p, 1, flags=PRIVATE | MAP_FIXED, addr=BASE + 8192)
    assert s.call(s.p, "mprotect", BASE, 3 * 4096, PROT_READ).errno == errno.ENOMEM
    assert s.vmas(s.p, BASE, BASE + 3 * 4096) == [
        (BASE, BASE + 4096, "r--"),
        (BASE + 8192, BASE + 12288, "rw-"),
    ]


def test_mprotect_stops_at_a_mapping_that_may_not_with_the_first_part_changed():
    """A20: [A may be written][B may not]."""
    s = Scene()
    create_file("/data", "disk", bytes(4096))
    fd = s.ok(s.p, "open", "/data", O_RDONLY)
    s.mmap(s.p, 1, "r", flags=PRIVATE | MAP_FIXED, addr=BASE)
    s.mmap(s.p, 1, "r", flags=MAP_SHARED | MAP_FIXED, fd=fd, addr=BASE + 4096)
    assert s.call(s.p, "mprotect", BASE, 2 * 4096, RW).errno == errno.EACCES
    assert s.vmas(s.p, BASE, BASE + 8192) == [
        (BASE, BASE + 4096, "rw-"),
        (BASE + 4096, BASE + 8192, "r--"),
    ]


def test_mlock_minds_holes_and_munmap_does_not():
    """A21: [A][hole][B]; what lies before the hole is locked."""
    s = Scene()
    s.mmap(s.p, 1, flags=PRIVATE | MAP_FIXED, addr=BASE)
    s.mmap(s.p, 1, flags=PRIVATE | MAP_FIXED, addr=BASE + 8192)
    assert s.call(s.p, "mlock", BASE, 3 * 4096).errno == errno.ENOMEM
    assert [bool(vma_lookup(s.p.mm, at).vm_flags & VM_LOCKED) for at in (BASE, BASE + 8192)] == [
        True,
        False,
    ]
    assert s.p.mm.locked_vm == 1
    assert s.call(s.p, "munmap", BASE - 4096, 5 * 4096).errno == 0
    assert s.vmas(s.p, BASE - 4096, BASE + 5 * 4096) == []


def test_a_page_behind_the_end_of_a_file_is_sigbus_and_the_rest_of_the_last_one_is_zero():
    """A22: a file of one page and a half under three pages."""
    s = Scene()
    s.survive(s.p)
    create_file("/data", "disk", b"x" * 6000)
    fd = s.ok(s.p, "open", "/data", O_RDWR)
    a = s.mmap(s.p, 3, flags=MAP_SHARED | MAP_FIXED, fd=fd, addr=BASE)
    assert s.read(s.p, a + 5999, 1) == ord("x")
    assert s.read(s.p, a + 6000, 1) == 0
    outcome = s.load(s.p, a + 8192)
    assert (signal(outcome), outcome.signal.addr, outcome.minor, outcome.major) == (
        "BUS_ADRERR",
        a + 8192,
        0,
        0,
    )


@pytest.mark.parametrize(
    "address",
    [0xFFFF_FFFF_FF60_0000, 0xFFFF_8880_0000_0000, 0x7FFF_FFFF_F000, 0xFFFF_FFFF_8100_0000],
)
def test_a_user_write_to_a_kernel_address_finds_nothing_there(address):
    """A23: vsyscall page, direct map, first address above the user's half, kernel text."""
    s = Scene()
    outcome = s.write(s.p, address, 1)
    assert (signal(outcome), outcome.signal.addr, outcome.minor) == ("SEGV_MAPERR", address, 0)


def test_a_page_without_rights_is_there_and_refuses():
    """A24: PROT_NONE."""
    s = Scene()
    s.survive(s.p)
    a = s.mmap(s.p, 2, "")
    b = eight(s)
    s.write(s.p, b, 7)
    s.mprotect(s.p, b, 1, "")
    for address in (a, b):
        outcome = s.load(s.p, address + 5, 1)
        assert (signal(outcome), outcome.signal.addr, outcome.minor) == (
            "SEGV_ACCERR",
            address + 5,
            0,
        )
    s.mprotect(s.p, b, 1, "r")
    assert s.read(s.p, b) == 7


def test_a_mapping_moves_with_its_frames_if_a_neighbour_is_in_the_way():
    """A25: mremap to twice the size."""
    s = Scene()
    a = eight(s)
    s.write_pages(s.p, a, 8)
    s.mmap(s.p, 1, "r", flags=PRIVATE | MAP_FIXED, addr=a + 8 * 4096)
    frames, before = s.pfns(s.p, a, 8), numbers(s.p)
    assert s.call(s.p, "mremap", a, 8 * 4096, 16 * 4096, 0).errno == errno.ENOMEM
    b = s.ok(s.p, "mremap", a, 8 * 4096, 16 * 4096, MREMAP_MAYMOVE)
    assert b != a
    assert s.pfns(s.p, b, 8) == frames
    changed = change(before, s.p)
    assert (changed["total_vm"], changed["committed"]) == (8, 8)
    assert not {"anon", "minflt"} & changed.keys()


def test_strict_overcommit_refuses_what_could_not_be_kept():
    """A26: vm.overcommit_memory = 2."""
    s = Scene()
    system.sysctl.overcommit_memory = 2
    limit = totalram_pages() // 2
    assert s.call(s.p, "mmap", 0, (limit + 1) * 4096, RW, PRIVATE, -1, 0).errno == errno.ENOMEM
    s.mmap(s.p, limit * 6 // 10)
    tasks, free, committed = len(system.tasks), s.free_frames(), system.counters.vm_committed_as
    assert s.call(s.p, "fork").errno == errno.ENOMEM
    assert (len(system.tasks), s.free_frames(), system.counters.vm_committed_as) == (
        tasks,
        free,
        committed,
    )


def test_a_vfork_child_writes_what_its_parent_reads():
    """A28: vfork."""
    s = Scene()
    a = eight(s)
    s.write(s.p, a, 1)
    c = system.tasks[s.call(s.p, "vfork").value]
    s.write(c, a, 2)
    s.exit(c)
    assert s.read(s.p, a) == 2


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ((0, 0, RW, PRIVATE, -1, 0), errno.EINVAL),
        ((0, 4096, RW, PRIVATE, -1, 1), errno.EINVAL),
        ((BASE + 1, 4096, RW, PRIVATE | MAP_FIXED, -1, 0), errno.EINVAL),
        ((0, 4096, RW, MAP_ANONYMOUS, -1, 0), errno.EINVAL),
        ((0, 1 << 48, RW, PRIVATE, -1, 0), errno.ENOMEM),
    ],
    ids=["no length", "offset", "fixed address", "no type", "too long"],
)
def test_mmap_refuses_what_makes_no_sense(args, error):
    """A29: and address 0, fixed, is for the superuser, who is the only user here."""
    s = Scene()
    assert s.call(s.p, "mmap", *args).errno == error
    assert s.mmap(s.p, 1, flags=PRIVATE | MAP_FIXED, addr=0) == 0


def test_noreplace_finds_the_place_taken():
    """A30: MAP_FIXED_NOREPLACE."""
    s = Scene()
    a = eight(s)
    s.write(s.p, a, 5)
    flags = PRIVATE | MAP_FIXED_NOREPLACE
    assert s.call(s.p, "mmap", a + 7 * 4096, 2 * 4096, RW, flags, -1, 0).errno == errno.EEXIST
    assert s.mmap(s.p, 1, flags=flags, addr=a + 8 * 4096) == a + 8 * 4096
    assert s.read(s.p, a) == 5
