"""The words of the lessons, a line each: `help terms`, and `help WORD` for one of them."""

from __future__ import annotations

TERMS: dict[str, str] = {
    "VMA": "virtual memory area: promised addresses, with rights",
    "page": "4096 bytes of addresses of a process",
    "frame": "4096 bytes of RAM; its number is the pfn",
    "pfn": "page frame number; times 4096 it is a physical address",
    "RSS": "resident set size: pages in memory, without the zero page",
    "PSS": "proportional set size: what n map counts 1/n for each",
    "page table": "512 entries of 8 bytes; four levels of them, in a tree",
    "pgd, pud, pmd, pte": "the levels from the root down; pte is also an entry",
    "P W U A D N": "entry bits: present write user accessed dirty no-execute",
    "page fault": "the walk of an address failed, and the kernel is called",
    "zero page": "one frame of zeros, mapped where memory is only read",
    "anonymous": "memory without a file behind it",
    "copy-on-write": "sharers have entries without W; a writer gets a copy",
    "exclusive": "mark of a frame whose one owner may write at once",
    "refcount": "how many holders a frame has, of any kind; at 0 it is free",
    "mapcount": "how many entries lead to a frame (_mapcount begins at -1)",
    "TLB": "what a CPU remembers of walks; stale until it is flushed",
    "MAPERR, ACCERR": "of SIGSEGV: no mapping there; one without that right",
    "pid": "the number of a task",
    "zombie": "a task that has ended and was not waited for",
    "minor fault": "a page fault that needed no disk",
    "pin": "a hold that keeps a frame where it is, for a device",
    "mm": "an address space: mm_users live in it, mm_count hold it",
    "invariant": "a rule that must always hold; verify checks all of them",
    "mutant": "a kernel with one planted bug",
    "page cache": "the frames that hold pages of files, mapped or not",
}
"""What each word means, in less than a line."""


SHOWN = 18
"""As many have a line on the page, which must fit on a screen; the others are named."""


def terms_page() -> str:
    """The page `help terms`."""
    known = list(TERMS.items())
    margin = max(len(term) for term, _ in known[:SHOWN]) + 2
    rows = [f"  {term:<{margin}}{meaning}" for term, meaning in known[:SHOWN]]
    others = ", ".join(term for term, _ in known[SHOWN:])
    return "\n".join([*rows, "", f"help WORD tells one of them, and also\n  {others}"]) + "\n"


def meaning_of(word: str) -> str | None:
    """`RSS: resident set size ...` for a word of the list, in any case; None if it is not there."""
    wanted = word.lower()
    for term, meaning in TERMS.items():
        if wanted in (term.lower(), *term.lower().replace(",", "").split()) and (
            " " not in term or "," in term
        ):
            return f"{term}: {meaning}"
    return next(
        (f"{term}: {meaning}" for term, meaning in TERMS.items() if wanted == term.lower()), None
    )
