"""What the words of the lessons mean, in a sentence or two: what `help WORD` says first, before the
commands that are about it.

`terms` has a line for each on one page; here is what a line has no room for, and the spellings
under which people look.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A word explained; `commands` show it, `lesson` teaches it."""

    text: str
    commands: tuple[str, ...]
    lesson: str
    spellings: tuple[str, ...] = ()


GLOSSARY: dict[str, Entry] = {
    "VMA": Entry(
        "A virtual memory area: a range of addresses that a process may use, with the rights it "
        "has there and the file behind "
        "it, if any. It is a promise; no RAM belongs to it until an address is touched.",
        ("maps", "mmap", "munmap", "mprotect"), "vm/promises", ("vmas", "virtual memory area", "mapping"),
    ),
    "RSS": Entry(
        "Resident set size: how many pages of a process are in memory now, that is, mapped by its "
        "page tables. The zero page "
        "does not count; a shared frame counts in full for each sharer.",
        ("ps", "smaps"), "vm/first-touch", ("resident", "resident set size", "res"),
    ),
    "PSS": Entry(
        "Proportional set size: as RSS, but a frame that n processes map counts 1/n for each, so "
        "that the sum over all is true.",
        ("smaps",), "vm/counting", ("proportional set size",),
    ),
    "PTE": Entry(
        "A page table entry: 8 bytes that say which frame a page lies in, and what may be done "
        "there (P present, W writable, "
        "U user, N no execute). The lowest of the four levels of tables is called pte too.",
        ("walk", "pt"), "vm/the-walk", ("ptes", "page table entry", "entry"),
    ),
    "page table": Entry(
        "512 entries of 8 bytes in one frame. Four levels of such tables make a tree: 9 bits of "
        "the address choose the entry at "
        "each level, and the last one names the frame.",
        ("walk", "pt"), "vm/the-walk", ("page tables", "table", "pgd", "pud", "pmd", "page-table"),
    ),
    "frame": Entry(
        "A page frame: 4096 bytes of RAM that begin at a multiple of 4096. Its number, the pfn, is "
        "its physical address "
        "divided by 4096.",
        ("frame", "mem"), "vm/the-walk", ("pfn", "page frame", "frames", "page frame number"),
    ),
    "fault": Entry(
        "A page fault: the CPU could not translate an address with the rights that were asked for, "
        "and calls the kernel. The "
        "kernel mends the entry and the instruction runs again, or the process gets a signal. A "
        "minor fault needs no disk, a "
        "major one does.",
        ("read", "write", "calls", "catch"), "vm/first-touch", ("page fault", "faults", "minor fault", "major fault"),
    ),
    "zero page": Entry(
        "One frame full of zeros that everybody shares. A read of untouched memory maps it, "
        "without W; the first write "
        "gives a frame of one's own.",
        ("read", "walk"), "vm/first-touch", ("zero", "zero frame", "zeropage"),
    ),
    "copy-on-write": Entry(
        "Sharers map the same frame without W. A write faults, and the writer gets a copy, or the "
        "frame itself if nobody else "
        "holds it.",
        ("fork", "write", "rmap"), "vm/copy-on-write", ("cow", "copy on write"),
    ),
    "exclusive": Entry(
        "The mark of a frame of anonymous memory whose one owner may write to it without a copy. "
        "It goes at fork and comes back "
        "with a write by the last holder of the frame: refcount 1 without the mark is "
        "possible in between.",
        ("frame", "rmap"), "vm/counting", ("anonexclusive", "pageanonexclusive"),
    ),
    "refcount": Entry(
        "How many hold a frame, whoever they are: entries that map it, the page cache, pipes, "
        "pins. At 0 it is free.",
        ("frame", "history"), "vm/counting", ("_refcount", ("reference "
                                                           "count"), "references", "reference"),
    ),
    "mapcount": Entry(
        "How many page table entries lead to a frame. They are some of its holders, so the "
        "refcount is never lower. The field "
        "_mapcount begins at -1: it is the mapcount less one.",
        ("frame", "rmap"), "vm/counting", ("_mapcount", "map count"),
    ),
    "TLB": Entry(
        "What a CPU remembers of earlier walks, so that it need not walk again. When an entry is "
        "changed the old answer is "
        "stale until it is flushed, on every CPU that may have it.",
        ("tlb",), "vm/the-tlb-lies", ("translation lookaside buffer", "flush", "shootdown"),
    ),
    "SIGSEGV": Entry(
        "The signal for an access that the kernel cannot mend: SEGV_MAPERR where no VMA is, "
        "SEGV_ACCERR where its rights forbid "
        "the access. SIGBUS is the one for an access beyond the end of a file.",
        ("signal", "why", "catch"), "vm/promises", ("segv", "segfault", "segmentation fault", "maperr", "accerr",
        "segv_maperr", "segv_accerr", "sigbus"),
    ),
    "page cache": Entry(
        "The frames that hold pages of files, whether mapped or not. Reading fills it; all "
        "mappings of a file share it.",
        ("frame", "ls", "mincore"), "vm/shared-and-private", ("pagecache", "cache"),
    ),
    "anonymous": Entry(
        "Memory without a file behind it: heap, stack, and what mmap gives without a file. It "
        "begins as zeros.",
        ("mmap", "maps"), "vm/first-touch", ("anon", "anonymous memory"),
    ),
    "pin": Entry(
        "A hold, for a device, that keeps a frame where it is until it is given back. It counts "
        "1024 in the refcount.",
        ("pin", "unpin"), "vm/counting", ("pinned", "pins"),
    ),
}  # fmt: skip
"""Word -> its entry."""


def entry_for(word: str) -> tuple[str, Entry] | None:
    """The word as it is written, and its entry, for any spelling in any case; blanks and hyphens
    are the same."""
    wanted = _plain(word)
    for name, entry in GLOSSARY.items():
        if wanted in (_plain(name), *map(_plain, entry.spellings)):
            return name, entry
    return None


def _plain(word: str) -> str:
    return " ".join(word.lower().replace("-", " ").split())
