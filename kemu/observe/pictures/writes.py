"""What a write would do, decided as the kernel decides it, without doing it.

    no mapping, or one that forbids it          SIGSEGV
    the tables allow it                         write  no fault
    shared memory                               fault  the file system is told, the entry becomes
                                                       writable
    anonymous, exclusive or the only reference  reuse  the entry becomes writable, no copy
    everything else                             copy   a new frame

It is `do_wp_page` read as a question (kemu/kernel/mm/fault_wp.py); a test compares each answer with
what the write then does.
"""

from __future__ import annotations

from kemu.kernel.arch.pgtable import pte_special
from kemu.kernel.include.flags import VM_MAYSHARE, VM_SHARED, VM_WRITE, PG_lru
from kemu.kernel.include.mm_types import mm_struct, page, vm_area_struct
from kemu.kernel.include.system import system
from kemu.kernel.mm.rmap import PageAnonExclusive, folio_test_anon
from kemu.observe.entries import entry_kind

Answer = tuple[str, str]
"""The outcome in one word, and why."""


def write_would(mm: mm_struct, va: int, entry: int, level: int, writable: bool) -> Answer:
    """What a write by user code to ``va`` would do, where ``entry`` is the last one on the way, at
    ``level``; ``writable``: all levels together allow it."""
    vma = mm.mm_mt.find(va)
    if vma is None or vma.vm_start > va:
        return "SIGSEGV", "no mapping covers it"
    if not vma.vm_flags & VM_WRITE:
        return "SIGSEGV", "the mapping forbids writing"
    kind = entry_kind(level, entry)
    if kind == "marker":
        return "SIGSEGV", "a guard page"
    if kind not in ("page", "huge"):
        return "fault", "nothing is mapped there yet"
    if writable:
        return "write", "the entry allows it: no fault"
    return _protected(vma, entry)


def _protected(vma: vm_area_struct, entry: int) -> Answer:
    """A write to a present entry without W in a mapping that allows writing (do_wp_page)."""
    if vma.vm_flags & (VM_SHARED | VM_MAYSHARE):
        told = vma.vm_ops is not None and vma.vm_ops.page_mkwrite is not None
        return "fault", "shared memory: " + (
            "the file is told, then " if told else ""
        ) + "the entry is made writable"
    pfn = system.geometry.entry_pfn(entry)
    found = system.mem_map.get(pfn)
    if pfn == system.zero_pfn or pte_special(entry) or found is None:
        return "copy", "the zero page is replaced by a new frame of zeros"
    if not folio_test_anon(found):
        return "copy", "a page of a file in a private mapping"
    if PageAnonExclusive(found):
        return "reuse", "exclusive: the entry is made writable"
    held = found._refcount - _drained(found)
    if found._refcount <= 3 and held <= 1:
        return "reuse", "not exclusive, but this is the only reference left"
    return "copy", "not exclusive, and others hold the frame too"


def _drained(found: page) -> int:
    """References that the fault itself drops before it counts: those of the LRU batch of CPU 0."""
    return 0 if found.flags & PG_lru else system.cpus[0].lru_add.count(found)
