"""What can be seen of a process from outside: smaps, pagemap, page flags and counters.

    vmas    fs/proc/task_mmu.c: show_map_vma, smaps_account, show_smap_vma_flags
    pages   fs/proc/task_mmu.c: pte_to_pagemap_entry; fs/proc/page.c: stable_page_flags
    mm      fs/proc/task_mmu.c: task_mem

Only the window is observed: every VMA that reaches into it, with its entries.  Nothing is changed.
The kernel's structures are read directly, one table of entries at a time, because a replay observes
after every operation.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kemu.abi.uapi import PAGE_SIZE
from kemu.conform.steps import Observation, PageSeen, VmaSeen
from kemu.kernel.arch.pgtable import (
    pte_dirty,
    pte_none,
    pte_pfn,
    pte_special,
    pte_young,
)
from kemu.kernel.include.flags import (
    VM_ACCOUNT,
    VM_DONTCOPY,
    VM_DONTDUMP,
    VM_DONTEXPAND,
    VM_DROPPABLE,
    VM_EXEC,
    VM_GROWSDOWN,
    VM_HUGEPAGE,
    VM_HUGETLB,
    VM_IO,
    VM_LOCKED,
    VM_LOCKONFAULT,
    VM_MAYBE_GUARD,
    VM_MAYEXEC,
    VM_MAYREAD,
    VM_MAYSHARE,
    VM_MAYWRITE,
    VM_MERGEABLE,
    VM_MIXEDMAP,
    VM_NOHUGEPAGE,
    VM_NORESERVE,
    VM_PFNMAP,
    VM_RAND_READ,
    VM_READ,
    VM_SEALED,
    VM_SEQ_READ,
    VM_SHARED,
    VM_SYNC,
    VM_WIPEONFORK,
    VM_WRITE,
    PG_anon_exclusive,
    PG_dirty,
    PG_mlocked,
    PG_referenced,
    PG_swapbacked,
    PG_unevictable,
    PG_uptodate,
    PG_writeback,
)
from kemu.kernel.include.mm_types import inode, mm_struct, page, vm_area_struct
from kemu.kernel.include.swapops import classify
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.rmap import folio_mapcount, folio_test_anon
from kemu.observe.entries import is_table

WINDOW_PAGES = 256
"""Pages of the window, counted up from its base."""

FLAG_WORDS = (
    (VM_READ, "rd"), (VM_WRITE, "wr"), (VM_EXEC, "ex"), (VM_SHARED, "sh"), (VM_MAYREAD, "mr"),
    (VM_MAYWRITE, "mw"),
    (VM_MAYEXEC, "me"), (VM_MAYSHARE, "ms"), (VM_GROWSDOWN, "gd"), (VM_PFNMAP, "pf"),
    (VM_MAYBE_GUARD, "gu"),
    (VM_LOCKED, "lo"), (VM_IO, "io"), (VM_SEQ_READ, "sr"), (VM_RAND_READ, "rr"),
    (VM_DONTCOPY, "dc"),
    (VM_DONTEXPAND, "de"), (VM_LOCKONFAULT, "lf"), (VM_ACCOUNT, "ac"), (VM_NORESERVE, "nr"),
    (VM_HUGETLB, "ht"),
    (VM_SYNC, "sf"), (VM_WIPEONFORK, "wf"), (VM_DONTDUMP, "dd"), (VM_MIXEDMAP, "mm"),
    (VM_HUGEPAGE, "hg"),
    (VM_NOHUGEPAGE, "nh"), (VM_MERGEABLE, "mg"), (VM_DROPPABLE, "dp"), (VM_SEALED, "sl"),
)  # fmt: skip
"""VmFlags in the order in which Linux prints them: by bit."""

PAGE_LETTERS = ((PG_uptodate, "U"), (PG_dirty, "D"), (PG_writeback, "W"))
LRU_LETTERS = ((PG_swapbacked, "b"), (PG_unevictable, "u"), (PG_mlocked, "m"))

PSS_SHIFT = 12


@attrs.frozen
class Window:
    """The part of the address space that is observed: around ``base``, up to ``WINDOW_PAGES`` above
    it.  With ``heap``, the base is A's program break, and VMAs that end below it are not shown."""

    base: int
    heap: bool = False

    def shows(self, vma: vm_area_struct) -> bool:
        """True if the VMA reaches into the window."""
        low = self.base if self.heap else self.base - 1024 * PAGE_SIZE + 1
        return vma.vm_end >= low and vma.vm_start < self.base + WINDOW_PAGES * PAGE_SIZE

    def page(self, addr: int) -> int:
        """The page number of ``addr`` in the window."""
        return (addr - self.base) // PAGE_SIZE


@attrs.frozen
class Mapped:
    """A page found in a process: its page number, what is shown of it, its ``struct page``, and for
    a page of a file its place in the file (inode number, index)."""

    number: int
    seen: PageSeen
    page: page
    place: tuple[int, int] | None


@attrs.define
class FileNames:
    """The name of a VMA's file: the id that the program gave it, or shm0, shm1 ... in the order in
    which the files are met."""

    known: dict[int, str] = attrs.Factory(dict)
    shared: int = 0

    def name(self, file: inode) -> str:
        """The name of ``file``."""
        if file.i_ino not in self.known:
            self.known[file.i_ino] = f"shm{self.shared}"
            self.shared += 1
        return self.known[file.i_ino]

    def of(self, mm: mm_struct, vma: vm_area_struct) -> str:
        """The name that maps would show for ``vma``, without a path."""
        if vma.vm_file is not None:
            return self.name(vma.vm_file.f_inode)
        if vma.vm_name:
            return vma.vm_name
        if vma.vm_start < mm.brk and vma.vm_end > mm.start_brk:
            return "[heap]"
        if vma.vm_start <= mm.start_stack <= vma.vm_end:
            return "[stack]"
        return "anon"


def counters(mm: mm_struct) -> dict[str, int]:
    """The numbers of /proc/PID/status that are compared, in kB."""
    return {
        "VmSize": mm.total_vm * 4,
        "VmLck": mm.locked_vm * 4,
        "VmPin": mm.pinned_vm * 4,
        "VmData": mm.data_vm * 4,
        "VmPTE": mm.pgtables_bytes // 1024,
    }


def observe(
    mm: mm_struct, window: Window, names: FileNames, start: dict[str, int]
) -> tuple[Observation, list[Mapped]]:
    """The observation of ``mm``, and the pages that still need a name (their ``id`` is not filled
    in).  ``start``: the counters that those of ``mm`` are relative to."""
    look = _Look(mm, window, names)
    vmas = [look.at_vma(vma) for vma in mm.mm_mt if window.shows(vma)]
    now = counters(mm)
    grown = {key: value - start[key] for key, value in now.items() if value != start[key]}
    return {"vmas": vmas, "pages": look.pages, "mm": grown}, look.found


class _Look:
    """One observation of an address space; ``pages`` and ``found`` grow with every VMA."""

    def __init__(self, mm: mm_struct, window: Window, names: FileNames) -> None:
        self.mm = mm
        self.window = window
        self.names = names
        self.pages: dict[str, PageSeen] = {}
        self.found: list[Mapped] = []

    def at_vma(self, vma: vm_area_struct) -> VmaSeen:
        """One VMA with its pages."""
        window, flags = self.window, vma.vm_flags
        smaps = self._pages(vma)
        return {
            "s": "heap0"
            if window.heap and vma.vm_start < window.base
            else window.page(vma.vm_start),
            "e": window.page(vma.vm_end),
            "perm": _perm(flags),
            "off": vma.vm_pgoff if vma.vm_file is not None else 0,
            "file": self.names.of(self.mm, vma),
            "st": smaps.show(locked=bool(flags & VM_LOCKED)),
            "fl": " ".join(word for bit, word in FLAG_WORDS if flags & bit),
        }

    def _pages(self, vma: vm_area_struct) -> _Smaps:
        """The pages of ``vma`` and their sums; pages below a heap window are counted but not
        shown."""
        smaps = _Smaps()
        first = 0 if self.window.heap else None
        for addr, pte in entries(self.mm, vma.vm_start, vma.vm_end):
            number = self.window.page(addr)
            seen, page = _see_entry(pte)
            if page is not None:
                smaps.account(page, pte)
            if first is not None and number < first:
                continue
            self.pages[str(number)] = seen
            if page is not None:
                self.found.append(Mapped(number, seen, page, _place(vma, addr, page)))
        return smaps


def _perm(flags: int) -> str:
    letters = (
        ("r" if flags & VM_READ else "-")
        + ("w" if flags & VM_WRITE else "-")
        + ("x" if flags & VM_EXEC else "-")
    )
    return letters + ("s" if flags & VM_MAYSHARE else "p")


def _place(vma: vm_area_struct, addr: int, page: page) -> tuple[int, int] | None:
    """The place of a page in its file; None for an anonymous page."""
    if vma.vm_file is None or folio_test_anon(page):
        return None
    return vma.vm_file.f_inode.i_ino, vma.vm_pgoff + (addr - vma.vm_start) // PAGE_SIZE


def _see_entry(pte: int) -> tuple[PageSeen, page | None]:
    """What pagemap and the page flags show for an entry that is not empty, and its page, if it maps
    an ordinary one."""
    kind = classify(pte)
    if kind != "present":
        return {"pm": "SG" if kind == "guard" else "S"}, None
    if pte_special(pte):
        return {"pm": "P", "id": "zero"}, None
    page = pfn_to_page(pte_pfn(pte))
    mapcount = folio_mapcount(page)
    letters = "P" + ("" if folio_test_anon(page) else "F") + ("X" if mapcount == 1 else "")
    return {"pm": letters, "mc": mapcount, "kf": _page_flags(page)}, page


def _page_flags(page: page) -> str:
    """The letters of /proc/kpageflags, in order of bit."""
    flags = page.flags
    anon = folio_test_anon(page)
    letters = [letter for bit, letter in PAGE_LETTERS if flags & bit]
    letters.append("Ma" if anon else "M")
    letters += [letter for bit, letter in LRU_LETTERS if flags & bit]
    if anon and flags & PG_anon_exclusive:
        letters.append("E")
    return "".join(letters)


# ---------------------------------------------------------------- smaps


class _Smaps:
    """The sums of one VMA (struct mem_size_stats): bytes, ``pss`` and ``pss_dirty`` in bytes <<
    PSS_SHIFT."""

    __slots__ = (
        "anonymous",
        "dirty",
        "lazyfree",
        "pss",
        "pss_dirty",
        "referenced",
        "resident",
        "shared",
        "shared_dirty",
    )

    def __init__(self) -> None:
        self.resident = self.anonymous = self.lazyfree = self.referenced = 0
        self.pss = self.pss_dirty = 0
        self.dirty = self.shared = self.shared_dirty = 0

    def account(self, page: page, pte: int) -> None:
        """Add one entry that maps ``page``."""
        mapcount = folio_mapcount(page)
        share = (PAGE_SIZE << PSS_SHIFT) // max(mapcount, 1)
        dirty = pte_dirty(pte) or bool(page.flags & PG_dirty)
        self.resident += 1
        self.pss += share
        self.shared += mapcount > 1
        self.referenced += pte_young(pte) or bool(page.flags & PG_referenced)
        if dirty:
            self.dirty += 1
            self.pss_dirty += share
            self.shared_dirty += mapcount > 1
        if folio_test_anon(page):
            self.anonymous += 1
            self.lazyfree += not dirty and not page.flags & PG_swapbacked

    def show(self, *, locked: bool) -> dict[str, int]:
        """The lines of smaps that are not 0, in kB."""
        pss = self.pss >> (PSS_SHIFT + 10)
        clean, shared_clean = self.resident - self.dirty, self.shared - self.shared_dirty
        lines = {
            "Rss": self.resident * 4,
            "Pss": pss,
            "Pss_Dirty": self.pss_dirty >> (PSS_SHIFT + 10),
            "Shared_Clean": shared_clean * 4,
            "Shared_Dirty": self.shared_dirty * 4,
            "Private_Clean": (clean - shared_clean) * 4,
            "Private_Dirty": (self.dirty - self.shared_dirty) * 4,
            "Referenced": self.referenced * 4,
            "Anonymous": self.anonymous * 4,
            "LazyFree": self.lazyfree * 4,
            "Locked": pss if locked else 0,
        }
        return {key: value for key, value in lines.items() if value}


# ---------------------------------------------------------------- page tables


def entries(mm: mm_struct, start: int, end: int) -> Iterator[tuple[int, int]]:
    """(address, entry) of every last-level entry from ``start`` to ``end`` that is not empty."""
    addr = start
    while addr < end:
        table, boundary = _table(mm, addr)
        stop = min(end, boundary)
        frame = system.phys.frames.get(table) if table is not None else None
        if frame:
            first = (addr // PAGE_SIZE) & 511
            last = first + (stop - addr) // PAGE_SIZE
            for index in sorted(frame):
                if first <= index < last and not pte_none(frame[index]):
                    yield addr + (index - first) * PAGE_SIZE, frame[index]
        addr = stop


def _table(mm: mm_struct, addr: int) -> tuple[int | None, int]:
    """The frame of the table that has the entry for ``addr``, or None; and the end of the range for
    which this is the answer."""
    phys = system.phys
    frame = mm.pgd // PAGE_SIZE
    for number, level in enumerate(system.geometry.levels[:-1]):
        entry = phys.load(frame * PAGE_SIZE + ((addr >> level.shift) & (level.entries - 1)) * 8)
        boundary = ((addr >> level.shift) + 1) << level.shift
        if not is_table(number, entry):
            return None, boundary
        frame = pte_pfn(entry)
    return frame, boundary
