"""One page in three lines, before and after: the VMA, the page-table entry, the frame.

    kid 0x10000            before                  after
      VMA    0x10000-0x11000 rw-p anonymous        the same
      PTE    pfn 0x112, read only                  pfn 0x117, writable
      frame  0x112, held by app and kid            0x117, of kid alone

Which page?  The one that the events are about: a command changes entries of the last level, and the
first of them determines the page; in the middle of a command it is the page whose entry is written
next. If no entry changes, the mapping that goes, comes or changes determines it.

It reads entries and VMAs of two moments, and names no kernel function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kemu.kernel.include.mm_types import maple_tree, mm_struct, vm_area_struct
from kemu.kernel.include.system import system
from kemu.kernel.mm.rows import Row
from kemu.machine import mmu
from kemu.machine.physmem import Frame
from kemu.observe.entries import read_entry
from kemu.observe.events import check_range, directory_at
from kemu.observe.frames import read_frame
from kemu.observe.look import travelling
from kemu.observe.names import Names, mm_owner
from kemu.observe.space import read_vma
from kemu.observe.who import Directory
from kemu.readings import PagePicture, PageState, ThreeLines
from kemu.trace.journal import SLOTS

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel
    from kemu.trace.journal import Journal

MOST_PAGES = 2
"""Maximum number of pages in a picture: one address in two address spaces, or two addresses."""

WINDOW = 2048
"""Events before and after a moment that are searched for its page."""


INTERESTING = frozenset({Frame, Row, maple_tree, vm_area_struct})
"""Classes whose events are about a page or a mapping."""


class Page(NamedTuple):
    """A page of an address space, and the event that is about it."""

    event: int
    mm: mm_struct
    address: int


def of_command(kernel: Kernel, first: int, last: int, names: Names = None) -> ThreeLines:
    """The pages that the events (first, last] changed, before and after; none where they changed no
    page."""
    with travelling(kernel) as journal:
        check_range(journal, first, last)
        return picture(journal, _pages(journal, first, last, names), first, last, names)


def of_move(
    kernel: Kernel, begin: int, end: int, command: tuple[int, int], names: Names = None
) -> ThreeLines:
    """The page in question at the moment `end`, as it was at the moment `begin` and as it is now;
    empty if that is the same. `command`: the events (first, last] of the command to which the
    moment belongs."""
    with travelling(kernel) as journal:
        check_range(journal, *command)
        low, high = max(command[0], end - WINDOW), min(command[1], end + WINDOW)
        pages = _pages(journal, low, high, names)
        chosen = next((page for page in pages if page.event >= end), pages[-1] if pages else None)
        return picture(journal, [chosen] if chosen else [], begin, end, names)


def picture(journal: Journal, pages: list[Page], begin: int, end: int, names: Names) -> ThreeLines:
    """The pages that differ between the two moments, and how many more there are."""
    once = list({(id(page.mm), page.address): page for page in pages}.values())
    chosen = _alike(once)[:MOST_PAGES]
    journal.seek(begin)
    before = [_state(page, names) for page in chosen]
    owners = [_owner(page, names) for page in chosen]
    journal.seek(end)
    after = [_state(page, names) for page in chosen]
    owners = [_owner(page, names) or owner for page, owner in zip(chosen, owners, strict=True)]
    found = [
        PagePicture(*(owner or (0, "nobody")), page.address, old, new)
        for page, owner, old, new in zip(chosen, owners, before, after, strict=True)
        if old != new
    ]
    return ThreeLines(begin, end, tuple(found), len(once) - len(chosen) if found else 0)


def _alike(pages: list[Page]) -> list[Page]:
    """The pages at the first one's address come first: the parent's and the child's."""
    return sorted(pages, key=lambda page: page.address != pages[0].address)


# ---------------------------------------------------------------- which page


def _pages(journal: Journal, first: int, last: int, names: Names) -> list[Page]:
    """The pages whose entries of the last level the events change, in order; without any, where
    mappings change."""
    who = directory_at(journal, first, first, names)
    who.learn_births(journal, first, last)
    log = journal.log[first * SLOTS : last * SLOTS]
    found: list[Page] = []
    mappings = _Mappings()
    for number, obj, field, old, new in zip(
        range(first + 1, last + 1),
        log[::SLOTS],
        log[1::SLOTS],
        log[2::SLOTS],
        log[3::SLOTS],
        strict=True,
    ):
        if obj.__class__ in INTERESTING:
            who.follow(obj, field, new)
            found += _entries(who, number, obj, field)
            mappings.see(number, obj, field, old, new)
        elif field == "page_type":
            who.follow(obj, field, new)
    return found or mappings.most_telling()


def _entries(who: Directory, number: int, obj: Any, field: Any) -> list[Page]:
    """The page of an entry that is stored; of a row the first one, in the parent and in the
    child."""
    if isinstance(obj, Frame):
        return _entry(who, number, obj.pfn, field)
    if isinstance(obj, Row):
        first: dict[int, int] = {}
        for part, index, _, _ in obj.changes():
            if isinstance(part, Frame):
                first.setdefault(part.pfn, index)
        return [page for pfn in first for page in _entry(who, number, pfn, min(first.values()))]
    return []


def _entry(who: Directory, number: int, pfn: int, index: int) -> list[Page]:
    place = who.tables.get(pfn)
    if place is None or place.level != len(system.geometry.levels) - 1:
        return []
    return [Page(number, place.space, place.va | index << system.geometry.page_shift)]


class _Mappings:
    """The mappings that events are about, each with where it begins when that happens."""

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}
        self.gone: list[Page] = []
        self.others: list[Page] = []

    def see(self, number: int, obj: Any, field: Any, old: Any, new: Any) -> None:
        """Take in an event."""
        if isinstance(obj, maple_tree):
            self._note(number, new or old, self.others if new else self.gone)
        elif isinstance(obj, vm_area_struct) and field == "vm_start":
            self.starts[id(obj)] = new
        elif isinstance(obj, vm_area_struct) and field == "vm_flags":
            self._note(number, obj, self.others)

    def _note(self, number: int, vma: vm_area_struct, where: list[Page]) -> None:
        where.append(Page(number, vma.vm_mm, self.starts.get(id(vma), vma.vm_start)))

    def most_telling(self) -> list[Page]:
        """The first page of a mapping that went, else of one that came or got other rights."""
        return (self.gone or self.others)[:1]


# ---------------------------------------------------------------- the three lines


def _owner(page: Page, names: Names) -> tuple[int, str] | None:
    owner = mm_owner(page.mm)
    return (
        (owner.pid, names(owner.pid) if names is not None else owner.comm)
        if owner is not None
        else None
    )


def _state(page: Page, names: Names) -> PageState | None:
    """The page now; None while no task has the address space."""
    mm = page.mm
    if mm_owner(mm) is None or not mm.pgd:
        return None
    vma = mm.mm_mt.find(page.address)
    steps, stopped = mmu.walk(system.phys, system.geometry, mm.pgd, page.address)
    entry = read_entry(*steps[-1])
    return PageState(
        vma=read_vma(vma) if vma is not None and vma.vm_start <= page.address else None,
        entry=entry,
        frame=read_frame(entry.pfn, names).replace(preview=b"")
        if not stopped and entry.pfn is not None
        else None,
    )
