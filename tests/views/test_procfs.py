"""The text of /proc is the kernel's own, byte for byte: where there is a Linux, its /proc is the
judge."""

import re
import sys
from pathlib import Path

import pytest

from kemu.readings import (
    AddressSpace,
    ProcessList,
    Smaps,
    SmapsCounts,
    SmapsEntry,
    SmapsRollup,
    StatmReading,
    StatReading,
    StatusReading,
    VmaReading,
    VmStatus,
)
from kemu.views import procfs

PROC = Path("/proc/self")
NO_PROC = f"{PROC} is not here: this is {sys.platform}" if not (PROC / "smaps").is_file() else ""
needs_proc = pytest.mark.skipif(bool(NO_PROC), reason=NO_PROC or "there is a /proc")

MAP_LINE = re.compile(
    r"([0-9a-f]+)-([0-9a-f]+) (....) ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) (\d+) +(.*)"
)


def parse_map_line(line):
    start, end, perm, offset, device, inode, name = MAP_LINE.fullmatch(line).groups()
    return VmaReading(int(start, 16), int(end, 16), perm, int(offset, 16), device, int(inode), name)


def keys(text):
    """The word before the colon of each line, without the lines of mappings."""
    return [line.split(":")[0] for line in text.splitlines() if not MAP_LINE.fullmatch(line)]


def reference_kernel():
    """Skip unless the host is the kernel whose text kemu prints."""
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    if not release.startswith("6.18."):
        pytest.skip(f"the host runs Linux {release}, whose keys may differ from 6.18's")


STATUS = StatusReading(
    name="app",
    state="S",
    tgid=3,
    pid=3,
    ppid=1,
    fd_size=64,
    kthread=False,
    vm=VmStatus(*(4096 * n for n in range(15))),
    threads=1,
    sig_queued=0,
    sig_limit=96,
    pending=0,
    shared_pending=0,
    blocked=0,
    ignored=0,
    caught=1 << 10,
    capabilities=(1 << 41) - 1,
    cpus=2,
)


@needs_proc
def test_a_line_of_maps_is_printed_as_the_host_prints_it():
    lines = (PROC / "maps").read_text().splitlines()
    assert len(lines) > 5
    for line in lines:
        assert procfs.map_line(parse_map_line(line)) == line


@needs_proc
def test_a_line_of_smaps_is_printed_as_the_host_prints_it():
    labels = {label for label, _ in procfs.SMAPS_KEYS} | {"Size", "KernelPageSize", "MMUPageSize"}
    checked = set()
    for line in (PROC / "smaps").read_text().splitlines() + (
        PROC / "smaps_rollup"
    ).read_text().splitlines():
        label, _, rest = line.partition(":")
        if label in labels:
            assert procfs.kb_line(label, int(rest.split()[0]) * 1024) == line
            checked.add(label)
    assert {"Size", "Rss", "Private_Dirty", "Private_Hugetlb", "Pss_Anon", "Locked"} <= checked


@needs_proc
def test_smaps_has_the_keys_of_the_host_in_its_order():
    reference_kernel()
    entry = SmapsEntry(VmaReading(0x1000, 0x2000, "rw-p"), SmapsCounts(), ("rd",))
    ours = keys(procfs.render(Smaps(3, "app", (entry,))))
    host = keys((PROC / "smaps").read_text())
    end = host.index("VmFlags") + 1
    assert ours == [key for key in host[:end] if key != "ProtectionKey"]


@needs_proc
def test_smaps_rollup_has_the_keys_of_the_host_in_its_order():
    reference_kernel()
    ours = procfs.render(SmapsRollup(3, "app", 0x1000, 0x2000, SmapsCounts()))
    assert keys(ours) == keys((PROC / "smaps_rollup").read_text())
    assert ours.splitlines()[0] == f"{'00001000-00002000 ---p 00000000 00:00 0 ':<73}[rollup]"


@needs_proc
def test_status_has_the_keys_of_the_host_in_its_order():
    reference_kernel()
    host = keys((PROC / "status").read_text())
    assert keys(procfs.render(STATUS)) == [
        key for key in host if not key.startswith("x86_Thread_features")
    ]


@needs_proc
def test_a_memory_line_of_status_is_printed_as_the_host_prints_it():
    host = {line.split(":")[0]: line for line in (PROC / "status").read_text().splitlines()}
    names = dict(procfs.VM_KEYS)
    numbers = {
        names[key]: int(line.split()[1]) * 1024 for key, line in host.items() if key in names
    }
    ours = procfs.vm_lines(VmStatus(**numbers))
    assert [line for line in ours if line.split(":")[0] in names] == [
        host[key] for key, _ in procfs.VM_KEYS
    ]


@needs_proc
def test_stat_is_one_line_of_as_many_fields_as_the_host_has():
    host = (PROC / "stat").read_text().strip()
    head, _, rest = host.rpartition(") ")
    pid, _, comm = head.partition(" (")
    state, *numbers = rest.split()
    fields = (("pid", int(pid)), *((f"f{n}", int(number)) for n, number in enumerate(numbers)))
    assert procfs.render(StatReading(int(pid), comm, state, fields)) == host


def test_a_mapping_without_a_name_ends_in_a_blank():
    assert (
        procfs.map_line(VmaReading(0x10000, 0x14000, "rw-p"))
        == "00010000-00014000 rw-p 00000000 00:00 0 "
    )


def test_a_long_line_keeps_one_blank_before_the_name():
    vma = VmaReading(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, "--xp", name="[vsyscall]")
    assert (
        procfs.map_line(vma)
        == "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]"
    )


def test_maps_ends_with_the_gate():
    gate = VmaReading(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, "--xp", name="[vsyscall]")
    vma = VmaReading(0x10000, 0x14000, "rw-p")
    text = procfs.render(AddressSpace(3, "app", 2, (vma,), gate))
    assert [line.split()[0] for line in text.splitlines()] == [
        "00010000-00014000",
        "ffffffffff600000-ffffffffff601000",
    ]


def test_pss_is_rounded_down_to_kb():
    assert procfs.kb_line("Pss", 4096 // 3) == "Pss:                   1 kB"


def test_a_kernel_thread_has_no_vm_lines():
    text = procfs.render(STATUS.replace(vm=None, kthread=True, name="kthreadd"))
    assert "Kthread:\t1\nThreads:\t1" in text


def test_signal_sets_and_cpus_are_hexadecimal():
    lines = procfs.render(STATUS).splitlines()
    assert "SigCgt:\t0000000000000400" in lines
    assert "CapEff:\t000001ffffffffff" in lines
    assert "Cpus_allowed:\t3" in lines
    assert "Cpus_allowed_list:\t0-1" in lines


def test_statm_of_a_task_without_memory_is_all_zeros():
    assert procfs.render(StatmReading(0, 0, 0, 0, 0)) == "0 0 0 0 0 0 0"
    assert procfs.render(StatmReading(765, 433, 405, 5, 123)) == "765 433 405 5 0 123 0"


def test_what_proc_does_not_have_is_refused():
    with pytest.raises(TypeError, match="/proc has no file for ProcessList"):
        procfs.render(ProcessList(()))
