"""The terms of the lessons, each explained in a sentence or two.

`help WORD` prints the explanation before the related commands. `terms` has a one-line version of
each; the entries here also list alternative spellings.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """An explained term; `commands` show it, `lesson` teaches it."""

    text: str
    commands: tuple[str, ...]
    lesson: str
    spellings: tuple[str, ...] = ()


GLOSSARY: dict[str, Entry] = {
    "VMA": Entry(
        "A virtual memory area: a range of addresses that a process may use, with its access "
        "rights and the file that it maps, if any. It is a promise; no RAM belongs to it until an "
        "address is touched.",
        ("maps", "mmap", "munmap", "mprotect"),
        "vm/promises",
        ("vmas", "virtual memory area", "mapping"),
    ),
    "RSS": Entry(
        "Resident set size: how many pages of a process are in memory now, that is, mapped by its "
        "page tables. The zero page does not count; a shared frame counts in full for each sharer.",
        ("ps", "smaps"),
        "vm/first-touch",
        ("resident", "resident set size", "res"),
    ),
    "PSS": Entry(
        "Proportional set size: like RSS, but a frame that n processes map counts 1/n for each, "
        "so the sum over all processes counts each frame once.",
        ("smaps",),
        "vm/counting",
        ("proportional set size",),
    ),
    "PTE": Entry(
        "A page table entry: 8 bytes that say which frame holds a page and what may be done there "
        "(P present, W writable, U user, N no execute). The lowest of the four levels of tables "
        "is called pte too.",
        ("walk", "pt"),
        "vm/the-walk",
        ("ptes", "page table entry", "entry"),
    ),
    "page table": Entry(
        "512 entries of 8 bytes in one frame. Four levels of such tables make a tree: 9 bits of "
        "the address choose the entry at each level, and the last entry names the frame.",
        ("walk", "pt"),
        "vm/the-walk",
        ("page tables", "table", "pgd", "pud", "pmd", "page-table"),
    ),
    "frame": Entry(
        "A page frame: 4096 bytes of RAM that begin at a multiple of 4096. Its number, the pfn, is "
        "its physical address divided by 4096.",
        ("frame", "mem"),
        "vm/the-walk",
        ("pfn", "page frame", "frames", "page frame number"),
    ),
    "fault": Entry(
        "A page fault: the CPU cannot translate an address with the access rights needed, and "
        "calls the kernel. The kernel either repairs the entry, and the instruction runs again, "
        "or sends the process a signal. A minor fault needs no disk access; a major one does.",
        ("read", "write", "calls", "catch"),
        "vm/first-touch",
        ("page fault", "faults", "minor fault", "major fault"),
    ),
    "zero page": Entry(
        "One frame full of zeros that all processes share. Reading untouched memory maps it "
        "without W; the first write allocates a private frame.",
        ("read", "walk"),
        "vm/first-touch",
        ("zero", "zero frame", "zeropage"),
    ),
    "copy-on-write": Entry(
        "Sharers map the same frame without W. A write faults, and the writer gets a copy, or the "
        "frame itself if nothing else holds it.",
        ("fork", "write", "rmap"),
        "vm/copy-on-write",
        ("cow", "copy on write"),
    ),
    "exclusive": Entry(
        "The mark of a frame of anonymous memory whose only owner may write to it without a copy. "
        "fork clears it, and a write by the last holder of the frame sets it again; in between a "
        "frame can have refcount 1 without the mark.",
        ("frame", "rmap"),
        "vm/counting",
        ("anonexclusive", "pageanonexclusive"),
    ),
    "refcount": Entry(
        "The number of holders of a frame, of any kind: entries that map it, the page cache, "
        "pipes, pins. At 0 the frame is free.",
        ("frame", "history"),
        "vm/counting",
        ("_refcount", "reference count", "references", "reference"),
    ),
    "mapcount": Entry(
        "The number of page table entries that map a frame. Each is also a holder, so the "
        "refcount is never lower. The field _mapcount starts at -1: it is the mapcount minus one.",
        ("frame", "rmap"),
        "vm/counting",
        ("_mapcount", "map count"),
    ),
    "TLB": Entry(
        "A CPU's cache of earlier walks, which saves it from walking again. When an entry changes, "
        "the cached translation is stale until it is flushed on every CPU that may have it.",
        ("tlb",),
        "vm/the-tlb-lies",
        ("translation lookaside buffer", "flush", "shootdown"),
    ),
    "SIGSEGV": Entry(
        "The signal for an access that the kernel cannot repair: SEGV_MAPERR where there is no "
        "VMA, SEGV_ACCERR where the VMA forbids the access. An access beyond the end of a file "
        "raises SIGBUS instead.",
        ("signal", "why", "catch"),
        "vm/promises",
        (
            "segv",
            "segfault",
            "segmentation fault",
            "maperr",
            "accerr",
            "segv_maperr",
            "segv_accerr",
            "sigbus",
        ),
    ),
    "page cache": Entry(
        "The frames that hold pages of files, whether mapped or not. Reading a file fills it; all "
        "mappings of the file share it.",
        ("frame", "ls", "mincore"),
        "vm/shared-and-private",
        ("pagecache", "cache"),
    ),
    "anonymous": Entry(
        "Memory that maps no file: the heap, the stack, and what mmap gives without a file. It "
        "starts as zeros.",
        ("mmap", "maps"),
        "vm/first-touch",
        ("anon", "anonymous memory"),
    ),
    "pin": Entry(
        "A long-term reference, taken for a device, that keeps a frame where it is. It adds 1024 "
        "to the refcount.",
        ("pin", "unpin"),
        "vm/counting",
        ("pinned", "pins"),
    ),
}
"""Term -> its entry."""


def entry_for(word: str) -> tuple[str, Entry] | None:
    """The canonical term for `word` and its entry, or None.

    Any listed spelling matches, in any case; a hyphen matches a blank.
    """
    wanted = _plain(word)
    for name, entry in GLOSSARY.items():
        if wanted in (_plain(name), *map(_plain, entry.spellings)):
            return name, entry
    return None


def _plain(word: str) -> str:
    return " ".join(word.lower().replace("-", " ").split())
