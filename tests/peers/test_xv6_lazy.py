"""xv6's lazy-allocation lab on Linux's rules: memory is promised at once and given when it is
touched.

sbrk becomes mmap without reservation, because Linux refuses to promise a gigabyte on a machine of
128 MiB.
"""

import errno

from kemu.abi.uapi import MAP_FIXED, MAP_NORESERVE, O_RDWR, SIGKILL, SIGSEGV
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.system import system
from tests.kernel.scenes import PRIVATE, Scene, signal
from tests.peers.peerdata import load

SCENARIOS = {scenario["name"]: scenario for scenario in load("xv6-lazy")["scenarios"]}
MEMORY = 128 << 20
START = 0x4000_0000
NOT_PLAYED = {
    "lazy_sbrk (2025)": "the edge is xv6's own: its trap frame lies at the end of user memory, "
    "Linux's stack does"
}


def promise(s, task, size):
    """``size`` bytes of address space at START, aligned to 2 MiB."""
    return s.mmap(task, size >> 12, flags=PRIVATE | MAP_FIXED | MAP_NORESERVE, addr=START)


def test_a_sparse_gigabyte_uses_frames_only_where_it_was_touched():
    facts = SCENARIOS["lazy alloc (sparse)"]
    s = Scene(mem=MEMORY)
    p = s.p
    a = promise(s, p, facts["region_bytes"])
    tables, frames = p.mm.pgtables_bytes, s.free_frames()
    stride = facts["stride_pages"] * 4096
    touched = range(a + facts["first_touch_offset"], a + facts["region_bytes"], stride)
    assert len(touched) == facts["pages_touched"]
    for address in touched:
        assert s.write(p, address, address).minor == 1
    assert all(s.read(p, address) == address for address in touched)
    assert s.anon(p) * 4096 == facts["bytes_resident"]
    new_tables = (p.mm.pgtables_bytes - tables) // 4096
    assert (
        0 <= new_tables - facts["leaf_tables_needed_if_heap_start_2MiB_aligned"] <= 2
    )  # and one PMD, one PUD table
    assert frames - s.free_frames() == facts["pages_touched"] + new_tables


def test_a_child_that_unmaps_and_then_writes_is_killed_and_the_parent_keeps_its_pages():
    facts = SCENARIOS["lazy unmap"]
    s = Scene(mem=MEMORY)
    p = s.p
    a = promise(s, p, facts["region_bytes"])
    touched = range(a, a + facts["region_bytes"], facts["stride_bytes"])
    assert len(touched) == facts["pages_touched"]
    for address in touched:
        s.write(p, address, address)
    for address in list(touched)[: facts["forks"]]:
        child = s.fork(p)
        s.ok(child, "munmap", a, facts["region_bytes"])
        assert signal(s.write(child, address, 1)) == "SEGV_MAPERR"
        assert child.exit_code & 0x7F == SIGSEGV
        s.wait(p, child)
    assert [s.read(p, address) for address in touched] == list(touched)


def test_the_machine_survives_a_child_that_wants_all_memory():
    """xv6's child may fail its allocation; Linux's dies by the OOM killer.  The parent sees it end
    either way."""
    facts = SCENARIOS["out of memory"]
    s = Scene(mem=MEMORY)
    p = s.p
    child = s.fork(p)
    free = s.free_frames()
    chunks = MEMORY // facts["chunk_bytes"] + 1
    a = promise(s, child, chunks * facts["chunk_bytes"])
    for address in range(a, a + chunks * facts["chunk_bytes"], 4096):
        outcome = s.write(child, address, address)
        if outcome.signal is not None:
            break
    assert outcome.signal.signo == SIGKILL
    assert system.vmstat.OOM_KILL == 1
    s.wait(p, child)
    assert s.free_frames() >= free
    a = s.mmap(p, 1)
    assert s.write(p, a, 1).signal is None


def test_system_calls_refuse_addresses_that_nobody_mapped():
    facts = SCENARIOS["lazy_copy (2025)"]
    s = Scene(mem=MEMORY)
    create_file("/data", "disk", b"abcdefgh")
    fd = s.ok(s.p, "open", "/data", O_RDWR)
    for text in facts["bad_addresses"]:
        for name in ("pread", "pwrite"):
            assert s.call(s.p, name, fd, int(text, 16), 8, 0).errno == errno.EFAULT


def test_every_scenario_is_played_or_says_why_not():
    assert set(NOT_PLAYED) < set(SCENARIOS)
    assert len(SCENARIOS) - len(NOT_PLAYED) == 4
