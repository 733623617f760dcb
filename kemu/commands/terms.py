"""One-line definitions of the terms of the lessons, for `help terms` and `help WORD`."""

from __future__ import annotations

TERMS: dict[str, str] = {
    "VMA": "virtual memory area: promised addresses, with rights",
    "page": "4096 bytes of a process's address space",
    "frame": "4096 bytes of RAM; its number is the pfn",
    "pfn": "page frame number; times 4096, the physical address",
    "RSS": "resident set size: pages in memory, without the zero page",
    "PSS": "proportional set size: a page that n map counts 1/n each",
    "page table": "512 entries of 8 bytes; four levels of tables form a tree",
    "pgd, pud, pmd, pte": "the levels from the root down; pte is also an entry",
    "P W U A D N": "entry bits: present write user accessed dirty no-execute",
    "page fault": "the CPU could not translate an address; the kernel runs",
    "zero page": "one frame of zeros, mapped where memory is only read",
    "anonymous": "memory that maps no file",
    "copy-on-write": "sharers have entries without W; a writer gets a copy",
    "exclusive": "mark of a frame whose only owner may write to it",
    "refcount": "number of holders of a frame, of any kind; 0 means free",
    "mapcount": "number of entries that map a frame (_mapcount: minus 1)",
    "TLB": "a CPU's cache of walks; stale entries must be flushed",
    "MAPERR, ACCERR": "causes of SIGSEGV: no mapping; access not permitted",
    "pid": "the number of a task",
    "zombie": "a task that has ended but has not been waited for",
    "minor fault": "a page fault that needs no disk access",
    "pin": "a reference that keeps a frame in place, for a device",
    "mm": "an address space: mm_users use it, mm_count hold it",
    "invariant": "a rule that must always hold; verify checks all of them",
    "mutant": "a bug that can be planted in the kernel",
    "page cache": "the frames that hold pages of files, mapped or not",
}
"""Term -> definition of less than a line."""


SHOWN = 18
"""Number of terms defined on the page `help terms`, which must fit on a screen."""


def terms_page() -> str:
    """The page `help terms`."""
    known = list(TERMS.items())
    margin = max(len(term) for term, _ in known[:SHOWN]) + 2
    rows = [f"  {term:<{margin}}{meaning}" for term, meaning in known[:SHOWN]]
    others = ", ".join(term for term, _ in known[SHOWN:])
    return "\n".join([*rows, "", f"help WORD explains one of them; also\n  {others}"]) + "\n"


def meaning_of(word: str) -> str | None:
    """`RSS: resident set size ...` for a listed term, in any case; None for any other word."""
    wanted = word.lower()
    for term, meaning in TERMS.items():
        if wanted in (term.lower(), *term.lower().replace(",", "").split()) and (
            " " not in term or "," in term
        ):
            return f"{term}: {meaning}"
    return next(
        (f"{term}: {meaning}" for term, meaning in TERMS.items() if wanted == term.lower()), None
    )
