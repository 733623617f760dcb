"""The numbers of /proc/PID/smaps, status, stat, statm and pagemap, counted as Linux counts them.

Sources: fs/proc/task_mmu.c (smaps_pte_entry, smaps_account, pte_to_pagemap_entry, task_mem),
fs/proc/array.c, fs/proc/page.c (stable_page_flags).

Pss is kept in 1/4096 bytes until the end, as the kernel does (PSS_SHIFT), so that sums round where
it rounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kemu.abi import uapi
from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.errors import UsageError
from kemu.kernel.arch.pgtable import pte_dirty, pte_pfn, pte_special, pte_young
from kemu.kernel.include import flags, sched_types
from kemu.kernel.include import mm_types as mt
from kemu.kernel.include.mm_types import page, vm_area_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.swapops import classify
from kemu.kernel.include.system import system
from kemu.kernel.mm.rmap import folio_mapcount, folio_test_anon
from kemu.observe.entries import Leaf, entry_kind, leaves, user_end
from kemu.observe.look import looking
from kemu.observe.names import Names, name_of, state_letter, vm_mnemonics
from kemu.observe.space import gate_vma, need_mm, read_vma
from kemu.observe.tasks import rss_pages
from kemu.readings import (
    Pagemap,
    PagemapPage,
    Smaps,
    SmapsCounts,
    SmapsEntry,
    SmapsRollup,
    StatmReading,
    StatReading,
    StatusReading,
    VmStatus,
)

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

PSS_SHIFT = 12


def vm_normal_page(entry: int) -> page | None:
    """The page that a present entry maps; None for the zero page and other special entries."""
    return None if pte_special(entry) else system.mem_map.get(pte_pfn(entry))


# ---------------------------------------------------------------- smaps


class Counter:
    """``struct mem_size_stats``: bytes by field of SmapsCounts; the Pss fields in 1/4096 bytes."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def add(self, field: str, size: int) -> None:
        """Count ``size`` for ``field``."""
        self.sizes[field] = self.sizes.get(field, 0) + size

    def reading(self) -> SmapsCounts:
        """The counts in bytes."""
        shifted = ("pss", "pss_dirty", "pss_anon", "pss_file", "pss_shmem", "swap_pss", "locked")
        return SmapsCounts(
            **{f: size >> PSS_SHIFT if f in shifted else size for f, size in self.sizes.items()}
        )

    def count_vma(self, vma: vm_area_struct) -> None:
        """Count the pages of a VMA (smap_gather_stats)."""
        locked = bool(vma.vm_flags & flags.VM_LOCKED)
        for leaf in leaves(vma.vm_mm.pgd, vma.vm_start, vma.vm_end):
            self._count_entry(leaf, locked=locked)

    def _count_entry(self, leaf: Leaf, *, locked: bool) -> None:
        entry = leaf.entry
        kind = classify(entry)
        if kind == "swap":
            self.add("swap", PAGE)
        if kind != "present":
            return
        folio = vm_normal_page(entry)
        if folio is not None:
            self._account(folio, young=pte_young(entry), dirty=pte_dirty(entry), locked=locked)

    def _account(self, folio: page, *, young: bool, dirty: bool, locked: bool) -> None:
        """One mapping of one page (smaps_account)."""
        dirty_page = bool(folio.flags & flags.PG_dirty)
        anon, swapbacked = folio_test_anon(folio), bool(folio.flags & flags.PG_swapbacked)
        if anon:
            self.add("anonymous", PAGE)
            if not swapbacked and not dirty and not dirty_page:
                self.add("lazyfree", PAGE)
        self.add("rss", PAGE)
        if young or folio.flags & flags.PG_referenced:
            self.add("referenced", PAGE)
        alone = folio._refcount == 1 or folio_mapcount(folio) < 2
        pss = (PAGE << PSS_SHIFT) // (1 if alone else folio_mapcount(folio))
        self.add("pss", pss)
        self.add("pss_anon" if anon else "pss_shmem" if swapbacked else "pss_file", pss)
        if locked:
            self.add("locked", pss)
        if dirty or dirty_page:
            self.add("pss_dirty", pss)
        self.add(
            f"{'private' if alone else 'shared'}_{'dirty' if dirty or dirty_page else 'clean'}",
            PAGE,
        )


def smaps(kernel: Kernel, task: task_struct, names: Names = None) -> Smaps:
    """/proc/PID/smaps; empty for a task without an address space."""
    with looking(kernel):
        entries = [_smaps_entry(vma) for vma in task.mm.mm_mt] if task.mm is not None else []
        gate = gate_vma(task.mm)
        if gate is not None:
            entries.append(SmapsEntry(gate, SmapsCounts(), ("ex",)))
        return Smaps(task.pid, name_of(task, names), tuple(entries))


def _smaps_entry(vma: vm_area_struct) -> SmapsEntry:
    counter = Counter()
    counter.count_vma(vma)
    return SmapsEntry(read_vma(vma), counter.reading(), vm_mnemonics(vma.vm_flags))


def smaps_rollup(kernel: Kernel, task: task_struct, names: Names = None) -> SmapsRollup:
    """/proc/PID/smaps_rollup.  ``UsageError`` for a task without an address space."""
    with looking(kernel):
        vmas = list(need_mm(task, names).mm_mt)
        total = Counter()
        for vma in vmas:
            total.count_vma(vma)
        start, end = (vmas[0].vm_start, vmas[-1].vm_end) if vmas else (0, 0)
        return SmapsRollup(task.pid, name_of(task, names), start, end, total.reading())


# ---------------------------------------------------------------- status, stat, statm

ALL_CAPABILITIES = (1 << 41) - 1
NR_OPEN_DEFAULT = 64
"""Descriptors in a new table; it grows by powers of two."""


def status(kernel: Kernel, task: task_struct) -> StatusReading:
    """/proc/PID/status."""
    with looking(kernel):
        signal, parent = task.signal, task.real_parent
        nproc, _ = signal.rlim.get(uapi.RLIMIT_NPROC, (0, 0))
        return StatusReading(
            name=task.comm,
            state=state_letter(task),
            tgid=task.tgid,
            pid=task.pid,
            ppid=parent.tgid if parent is not None else 0,
            fd_size=_fd_size(task),
            kthread=bool(task.flags & sched_types.PF_KTHREAD),
            vm=_vm(task),
            threads=signal.nr_threads,
            sig_queued=len(task.pending) + len(signal.shared_pending),
            sig_limit=nproc,
            pending=_signal_set(info.signo for info in task.pending),
            shared_pending=_signal_set(info.signo for info in signal.shared_pending),
            blocked=task.blocked,
            ignored=_action_set(task, "ignore"),
            caught=_action_set(task, "handle"),
            capabilities=ALL_CAPABILITIES,
            cpus=len(system.cpus),
        )


def _fd_size(task: task_struct) -> int:
    if task.files is None:
        return 0
    highest, size = max(task.files.fd, default=0), NR_OPEN_DEFAULT
    while size <= highest:
        size *= 2
    return size


def _signal_set(numbers: Iterable[int]) -> int:
    mask = 0
    for signo in numbers:
        mask |= 1 << (signo - 1)
    return mask


def _action_set(task: task_struct, action: str) -> int:
    return _signal_set(signo for signo, does in task.sighand.action.items() if does == action)


def _vm(task: task_struct) -> VmStatus | None:
    """The Vm lines (task_mem); None without an address space."""
    mm = task.mm
    if mm is None:
        return None
    rss, exec_size = rss_pages(mm), mm.exec_vm * PAGE
    text = min(_text(mm), exec_size)
    return VmStatus(
        peak=max(mm.hiwater_vm, mm.total_vm) * PAGE,
        size=mm.total_vm * PAGE,
        locked=mm.locked_vm * PAGE,
        pinned=mm.pinned_vm * PAGE,
        hwm=max(mm.hiwater_rss, rss) * PAGE,
        rss=rss * PAGE,
        rss_anon=mm.rss_stat[mt.MM_ANONPAGES] * PAGE,
        rss_file=mm.rss_stat[mt.MM_FILEPAGES] * PAGE,
        rss_shmem=mm.rss_stat[mt.MM_SHMEMPAGES] * PAGE,
        data=mm.data_vm * PAGE,
        stack=mm.stack_vm * PAGE,
        exe=text,
        lib=exec_size - text,
        pte=mm.pgtables_bytes,
        swap=mm.rss_stat[mt.MM_SWAPENTS] * PAGE,
    )


def _text(mm: mt.mm_struct) -> int:
    """Bytes of the program's code in whole pages (u64: a program without any has ``start_code``
    after ``end_code``)."""
    return (mt.PAGE_ALIGN(mm.end_code) - (mm.start_code & mt.PAGE_MASK)) & mt.U64


def stat(kernel: Kernel, task: task_struct) -> StatReading:
    """/proc/PID/stat (do_task_stat for a whole process)."""
    with looking(kernel):
        fields = [
            ("pid", task.pid),
            *_stat_head(task),
            *_stat_memory(task),
            *_stat_signals(task),
            *_stat_tail(task),
        ]
        return StatReading(task.pid, task.comm, state_letter(task), tuple(fields))


def _stat_head(task: task_struct) -> list[tuple[str, int]]:
    """Fields 4 to 22."""
    signal, parent = task.signal, task.real_parent
    threads = signal.thread_head or (task,)
    minor = signal.min_flt + sum(thread.min_flt for thread in threads)
    major = signal.maj_flt + sum(thread.maj_flt for thread in threads)
    return [
        ("ppid", parent.tgid if parent is not None else 0),
        *_zeros("pgrp", "session", "tty_nr"),
        ("tpgid", -1),
        ("flags", task.flags),
        ("minflt", minor),
        ("cminflt", signal.cmin_flt),
        ("majflt", major),
        ("cmajflt", signal.cmaj_flt),
        *_zeros("utime", "stime", "cutime", "cstime"),
        ("priority", 20),
        ("nice", 0),
        ("num_threads", signal.nr_threads),
        *_zeros("itrealvalue", "starttime"),
    ]


def _zeros(*names: str) -> list[tuple[str, int]]:
    return [(name, 0) for name in names]


def _stat_memory(task: task_struct) -> list[tuple[str, int]]:
    """Fields 23 to 30; the stack and instruction pointers are shown for a dying task only, and then
    they are 0 here."""
    mm = task.mm
    return [
        ("vsize", mm.total_vm * PAGE if mm is not None else 0),
        ("rss", rss_pages(mm)),
        ("rsslim", uapi.RLIM_INFINITY),
        *[(name, getattr(mm, field) if mm is not None else 0) for name, field in _CODE],
        *_zeros("kstkesp", "kstkeip"),
    ]


_CODE = (("startcode", "start_code"), ("endcode", "end_code"), ("startstack", "start_stack"))
_DATA = ("start_data", "end_data", "start_brk", "arg_start", "arg_end", "env_start", "env_end")


def _stat_signals(task: task_struct) -> list[tuple[str, int]]:
    """Fields 31 to 34: the first 31 signals."""
    low = 0x7FFFFFFF
    return [
        ("signal", _signal_set(info.signo for info in task.pending) & low),
        ("blocked", task.blocked & low),
        ("sigignore", _action_set(task, "ignore") & low),
        ("sigcatch", _action_set(task, "handle") & low),
    ]


def _stat_tail(task: task_struct) -> list[tuple[str, int]]:
    """Fields 35 to 52."""
    mm = task.mm
    return [
        ("wchan", int(task.state != sched_types.TASK_RUNNING)),
        *_zeros("nswap", "cnswap"),
        ("exit_signal", task.exit_signal),
        ("processor", task.cpu),
        *_zeros("rt_priority", "policy", "blkio_ticks", "guest_time", "cguest_time"),
        *[(name, getattr(mm, name) if mm is not None else 0) for name in _DATA],
        ("exit_code", task.exit_code),
    ]


def statm(task: task_struct) -> StatmReading:
    """/proc/PID/statm; all 0 without an address space."""
    mm = task.mm
    if mm is None:
        return StatmReading(0, 0, 0, 0, 0)
    shared = mm.rss_stat[mt.MM_FILEPAGES] + mm.rss_stat[mt.MM_SHMEMPAGES]
    text = _text(mm) >> mt.PAGE_SHIFT
    return StatmReading(
        mm.total_vm, shared + mm.rss_stat[mt.MM_ANONPAGES], shared, text, mm.data_vm + mm.stack_vm
    )


# ---------------------------------------------------------------- pagemap

PM_MMAP_EXCLUSIVE = 1 << 56
PM_GUARD_REGION = 1 << 58
PM_FILE = 1 << 61
PM_SWAP = 1 << 62
PM_PRESENT = 1 << 63

KPAGEFLAGS = (
    ("U", flags.PG_uptodate),
    ("D", flags.PG_dirty),
    ("M", 0),
    ("a", 0),
    ("b", flags.PG_swapbacked),
    ("u", flags.PG_unevictable),
    ("m", flags.PG_mlocked),
    ("W", flags.PG_writeback),
    ("E", flags.PG_anon_exclusive),
)
"""Letters for bits of /proc/kpageflags; M (mapped) and a (anonymous) are not bits of
``page.flags``."""


def kpageflags(folio: page) -> str:
    """The letters of a page: U uptodate, D dirty, M mapped, a anonymous, b swap-backed, u
    unevictable, m mlocked, W writeback, E PageAnonExclusive."""
    facts = {"M": folio_mapcount(folio) > 0, "a": folio_test_anon(folio)}
    return "".join(
        letter for letter, mask in KPAGEFLAGS if facts.get(letter, bool(folio.flags & mask))
    )


def pagemap(
    kernel: Kernel, task: task_struct, start: int, end: int, names: Names = None
) -> Pagemap:
    """/proc/PID/pagemap of the pages in [start, end) that have an entry.  ``UsageError`` for an
    impossible range."""
    with looking(kernel):
        mm = need_mm(task, names)
        if start % PAGE or not 0 <= start <= end:
            raise UsageError(
                f"not a range of pages: {start:#x} to {end:#x}",
                hint="give a start that is a multiple of 4096 and below the end",
                about="start",
            )
        found = leaves(mm.pgd, start, min(end, user_end()))
        pages = tuple(
            _pagemap_page(leaf) for leaf in found if entry_kind(leaf.level, leaf.entry) != "none"
        )
        return Pagemap(task.pid, name_of(task, names), start, end, pages)


def _pagemap_page(leaf: Leaf) -> PagemapPage:
    """One page (pte_to_pagemap_entry); an entry that is not present is shown as swapped."""
    kind = classify(leaf.entry)
    if kind == "guard":
        return PagemapPage(leaf.va, PM_SWAP | PM_GUARD_REGION, "SG")
    if kind != "present":
        return PagemapPage(leaf.va, PM_SWAP, "S")
    pfn, folio = pte_pfn(leaf.entry), vm_normal_page(leaf.entry)
    if folio is None:
        return PagemapPage(leaf.va, PM_PRESENT | pfn, "P", pfn, zero=pfn == system.zero_pfn)
    backed, mapcount = not folio_test_anon(folio), folio_mapcount(folio)
    word = (
        PM_PRESENT | pfn | (PM_FILE if backed else 0) | (PM_MMAP_EXCLUSIVE if mapcount == 1 else 0)
    )
    letters = "P" + ("F" if backed else "") + ("X" if mapcount == 1 else "")
    return PagemapPage(leaf.va, word, letters, pfn, mapcount=mapcount, kpageflags=kpageflags(folio))
