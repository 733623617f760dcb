"""The kernel's own text of /proc/PID/...: byte for byte what Linux 6.18 prints for the same
numbers.

Sources: fs/proc/task_mmu.c (show_map_vma, show_smap, smaps_rollup, task_mem), fs/proc/array.c
(proc_pid_status, do_task_stat, proc_pid_statm).

What the machine does not have is printed as by a Linux without it: no clock (times are 0),
root with all capabilities, no seccomp filter, no supplementary group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.readings import (
    AddressSpace,
    Reading,
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

NAME_COLUMN = 73
"""Column at which a mapping's name begins (seq_pad, then one blank)."""


def map_head(vma: VmaReading) -> str:
    """A line of maps up to the name (show_vma_header_prefix)."""
    return f"{vma.start:08x}-{vma.end:08x} {vma.perm} {vma.offset:08x} {vma.device} {vma.inode} "


def map_line(vma: VmaReading, column: int = NAME_COLUMN) -> str:
    """A line of maps, without the newline; a mapping without a name ends in a blank.  ``column``:
    where the kernel puts names."""
    return f"{map_head(vma):<{column}}{vma.name}" if vma.name else map_head(vma)


def maps_vmas(reading: AddressSpace) -> tuple[VmaReading, ...]:
    """The mappings that maps lists."""
    return (*reading.vmas, reading.gate) if reading.gate is not None else reading.vmas


def maps(reading: AddressSpace, column: int = NAME_COLUMN) -> str:
    """/proc/PID/maps; empty for a task without an address space."""
    return "\n".join(map_line(vma, column) for vma in maps_vmas(reading))


SMAPS_KEYS = (
    ("Rss", "rss"),
    ("Pss", "pss"),
    ("Pss_Dirty", "pss_dirty"),
    ("Pss_Anon", "pss_anon"),
    ("Pss_File", "pss_file"),
    ("Pss_Shmem", "pss_shmem"),
    ("Shared_Clean", "shared_clean"),
    ("Shared_Dirty", "shared_dirty"),
    ("Private_Clean", "private_clean"),
    ("Private_Dirty", "private_dirty"),
    ("Referenced", "referenced"),
    ("Anonymous", "anonymous"),
    ("KSM", "ksm"),
    ("LazyFree", "lazyfree"),
    ("AnonHugePages", "anon_huge_pages"),
    ("ShmemPmdMapped", "shmem_pmd_mapped"),
    ("FilePmdMapped", "file_pmd_mapped"),
    ("Shared_Hugetlb", "shared_hugetlb"),
    ("Private_Hugetlb", "private_hugetlb"),
    ("Swap", "swap"),
    ("SwapPss", "swap_pss"),
    ("Locked", "locked"),
)
"""The kernel's label of each count, in the kernel's order (__show_smap)."""

ROLLUP_ONLY = {"Pss_Anon", "Pss_File", "Pss_Shmem"}


def kb_line(label: str, size: int) -> str:
    """``Rss:  8 kB``: 16 columns of label, 8 of number; ``Private_Hugetlb`` is wider, its number
    narrower."""
    width = 7 if label == "Private_Hugetlb" else 8
    return f"{label + ':':<{24 - width}}{size >> 10:>{width}} kB"


def smaps_counts(counts: SmapsCounts, *, rollup: bool) -> list[str]:
    """The lines from Rss to Locked."""
    return [
        kb_line(label, getattr(counts, name))
        for label, name in SMAPS_KEYS
        if rollup or label not in ROLLUP_ONLY
    ]


def smaps_entry(entry: SmapsEntry, column: int = NAME_COLUMN) -> list[str]:
    """One mapping of smaps (show_smap)."""
    return [
        map_line(entry.vma, column),
        kb_line("Size", entry.vma.end - entry.vma.start),
        kb_line("KernelPageSize", 4096),
        kb_line("MMUPageSize", 4096),
        *smaps_counts(entry.counts, rollup=False),
        f"{'THPeligible:':<16}{0:>8}",
        "VmFlags: " + "".join(f"{flag} " for flag in entry.flags),
    ]


def smaps(reading: Smaps, column: int = NAME_COLUMN) -> str:
    """/proc/PID/smaps."""
    return "\n".join(line for entry in reading.entries for line in smaps_entry(entry, column))


def smaps_rollup(reading: SmapsRollup) -> str:
    """/proc/PID/smaps_rollup."""
    head = VmaReading(reading.start, reading.end, "---p", name="[rollup]")
    return "\n".join([map_line(head), *smaps_counts(reading.counts, rollup=True)])


STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "disk sleep",
    "T": "stopped",
    "t": "tracing stop",
    "X": "dead",
    "Z": "zombie",
    "P": "parked",
    "I": "idle",
}
"""task_state_array."""

VM_KEYS = (
    ("VmPeak", "peak"),
    ("VmSize", "size"),
    ("VmLck", "locked"),
    ("VmPin", "pinned"),
    ("VmHWM", "hwm"),
    ("VmRSS", "rss"),
    ("RssAnon", "rss_anon"),
    ("RssFile", "rss_file"),
    ("RssShmem", "rss_shmem"),
    ("VmData", "data"),
    ("VmStk", "stack"),
    ("VmExe", "exe"),
    ("VmLib", "lib"),
    ("VmPTE", "pte"),
    ("VmSwap", "swap"),
)


def vm_lines(vm: VmStatus) -> list[str]:
    """The memory part of status (task_mem, hugetlb_report_usage, and what they call)."""
    sizes = [f"{label}:\t{getattr(vm, name) >> 10:>8} kB" for label, name in VM_KEYS]
    return [
        *sizes,
        f"HugetlbPages:\t{0:>8} kB",
        "CoreDumping:\t0",
        "THP_enabled:\t1",
        "untag_mask:\t0xffffffffffffffff",
    ]


def status(reading: StatusReading) -> str:
    """/proc/PID/status."""
    r = reading
    head = [
        ("Name", r.name),
        ("Umask", "0022"),
        ("State", f"{r.state} ({STATES[r.state]})"),
        ("Tgid", r.tgid),
        ("Ngid", 0),
        ("Pid", r.pid),
        ("PPid", r.ppid),
        ("TracerPid", 0),
        ("Uid", "0\t0\t0\t0"),
        ("Gid", "0\t0\t0\t0"),
        ("FDSize", r.fd_size),
        ("Groups", " "),
        ("NStgid", r.tgid),
        ("NSpid", r.pid),
        ("NSpgid", 0),
        ("NSsid", 0),
        ("Kthread", int(r.kthread)),
    ]
    vm = [] if r.vm is None else vm_lines(r.vm)
    return "\n".join([*_tabbed(head), *vm, *_tabbed(_status_tail(r))])


def _status_tail(r: StatusReading) -> list[tuple[str, object]]:
    """The lines after the memory part: threads, signals, capabilities, CPUs."""
    sets = [
        ("SigPnd", r.pending),
        ("ShdPnd", r.shared_pending),
        ("SigBlk", r.blocked),
        ("SigIgn", r.ignored),
        ("SigCgt", r.caught),
    ]
    all_caps = r.capabilities
    sets += [
        ("CapInh", 0),
        ("CapPrm", all_caps),
        ("CapEff", all_caps),
        ("CapBnd", all_caps),
        ("CapAmb", 0),
    ]
    return [
        ("Threads", r.threads),
        ("SigQ", f"{r.sig_queued}/{r.sig_limit}"),
        *[(name, f"{mask:016x}") for name, mask in sets],
        ("NoNewPrivs", 0),
        ("Seccomp", 0),
        ("Seccomp_filters", 0),
        ("Speculation_Store_Bypass", "not vulnerable"),
        ("SpeculationIndirectBranch", "not affected"),
        ("Cpus_allowed", f"{(1 << r.cpus) - 1:x}"),
        ("Cpus_allowed_list", f"0-{r.cpus - 1}" if r.cpus > 1 else "0"),
        ("Mems_allowed", 1),
        ("Mems_allowed_list", 0),
        ("voluntary_ctxt_switches", 0),
        ("nonvoluntary_ctxt_switches", 0),
    ]


def _tabbed(pairs: list[tuple[str, object]]) -> list[str]:
    return [f"{name}:\t{value}" for name, value in pairs]


def stat(reading: StatReading) -> str:
    """/proc/PID/stat: one line of 52 fields."""
    numbers = dict(reading.fields)
    rest = [str(value) for name, value in numbers.items() if name != "pid"]
    return " ".join([str(reading.pid), f"({reading.comm})", reading.state, *rest])


def statm(reading: StatmReading) -> str:
    """/proc/PID/statm: pages; the library and dirty fields are 0 for ever."""
    return f"{reading.size} {reading.resident} {reading.shared} {reading.text} 0 {reading.data} 0"


RENDERERS: dict[type[Reading], Callable[[Any], str]] = {
    AddressSpace: maps,
    Smaps: smaps,
    SmapsRollup: smaps_rollup,
    StatusReading: status,
    StatReading: stat,
    StatmReading: statm,
}


def render(reading: Reading) -> str:
    """The kernel's text of ``reading``, without the last newline.  ``TypeError`` if /proc has no
    such file."""
    renderer = RENDERERS.get(type(reading))
    if renderer is None:
        raise TypeError(f"/proc has no file for {type(reading).__name__}")
    return renderer(reading)
