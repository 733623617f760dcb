"""What a range of events cost, and what it would cost if fork copied every private page at once.

Everything is counted from the journal: faults and flushes are calls, frames and entries are events.
For the eager column each page that fork shared counts as a frame and 4096 bytes copied at fork, and
each copy and each fault that only came from sharing is taken away:

    eager frames  = frames + pages shared by fork - copies made later
    eager entries = entries - those that only lost W at fork - two for each copy made later
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.kernel.include.mm_types import PGTY_table, anon_vma, page
from kemu.kernel.include.system import system
from kemu.kernel.mm.rows import Row
from kemu.machine.physmem import FRAME_SIZE, Frame
from kemu.observe.events import events, first_mark
from kemu.observe.look import travelling
from kemu.observe.moves import may_be
from kemu.observe.names import Names
from kemu.readings import Cost, CostRow
from kemu.trace.frames import FUNCTIONS
from kemu.trace.journal import SLOTS, Journal

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

COPIERS = frozenset({"wp_page_copy", "do_cow_fault", "copy_present_page"})
"""Functions that fill a new frame from another one."""


def cost(kernel: Kernel, first: int, last: int, names: Names = None) -> Cost:
    """The cost of the events ``first`` + 1 to ``last``."""
    entries, protected = _entries_written(kernel, first, last, names)
    with travelling(kernel) as journal:
        calls = _calls(journal, first, last)
        frames, tables, shared, copied, filled = _pages(journal, first, last)
    later = min(copied, shared)
    cow_faults = (
        min(later + calls.get("wp_page_reuse", 0), calls.get("exc_page_fault", 0)) if shared else 0
    )
    rows = (
        CostRow(
            "faults", calls.get("exc_page_fault", 0), calls.get("exc_page_fault", 0) - cow_faults
        ),
        CostRow("frames allocated", frames - tables, frames - tables + shared - later),
        CostRow("page tables allocated", tables, tables),
        CostRow("bytes copied", filled * FRAME_SIZE, (filled + shared - later) * FRAME_SIZE),
        CostRow(
            "TLB flushes",
            calls.get("flush_tlb_mm_range", 0),
            calls.get("flush_tlb_mm_range", 0) - later,
        ),
        CostRow("entries written", entries, entries - protected - 2 * later),
    )
    return Cost(first, last, rows, shared, later)


def calls_made(kernel: Kernel, first: int, last: int) -> dict[str, int]:
    """How often each kernel function was entered during the events ``first`` + 1 to ``last``."""
    with travelling(kernel) as journal:
        return _calls(journal, first, last)


def _entries_written(kernel: Kernel, first: int, last: int, names: Names) -> tuple[int, int]:
    """The number of page-table entries stored, those in rows counted singly; and how many of the
    stores only cleared W in the parent."""
    named = events(kernel, first, last, names, low=True, only=may_be("", "pte")).events
    written = [event for event in named if event.kind == "pte" and not event.field]
    rows = [
        obj
        for obj in kernel.journal.log[first * SLOTS : last * SLOTS : SLOTS]
        if isinstance(obj, Row)
    ]
    protected = sum(
        event.function == "__copy_present_ptes" and event.note == "W cleared" for event in written
    )
    words = [
        (old, new) for row in rows for obj, _, old, new in row.changes() if isinstance(obj, Frame)
    ]
    protected += sum(old is not None and new is not None for old, new in words)
    return len(written) + len(words), protected


def _calls(journal: Journal, first: int, last: int) -> dict[str, int]:
    """Count how often each function was entered."""
    counts: dict[str, int] = {}
    marks = journal.marks
    for i in range(first_mark(journal, first), first_mark(journal, last), 2):
        if marks[i + 1] >= 0:
            name = FUNCTIONS[marks[i + 1]].name
            counts[name] = counts.get(name, 0) + 1
    return counts


def _pages(journal: Journal, first: int, last: int) -> tuple[int, int, int, int, int]:
    """Frames allocated, tables among them, anonymous pages shared by fork, copies of such a page
    made by a write, and all frames that were filled from another."""
    frames = tables = shared = copied = filled = 0
    inside = _Inside(journal, first)
    log, ram = journal.log, system.phys.frames
    for number in range(first + 1, last + 1):
        obj, field, old, new = log[(number - 1) * SLOTS : number * SLOTS]
        if obj.__class__ is page:
            frames += field == "_refcount" and old == 0 and new == 1
            tables += field == "page_type" and new == PGTY_table
            is_share = field == "_mapcount" and new > old >= 0 and isinstance(obj.mapping, anon_vma)
            shared += is_share and inside.name(number) == "copy_present_ptes"
        elif obj.__class__ is Row:
            shared += sum(
                name == "_mapcount" and after > before and isinstance(p.mapping, anon_vma)
                for p, name, before, after in obj.changes()
            )
        elif obj is ram and (new is not None or old is None):
            name = inside.name(number)
            filled += name in COPIERS
            copied += name == "wp_page_copy"
    return frames, tables, shared, copied, filled


class _Inside:
    """The innermost open function; ask in ascending order of events."""

    def __init__(self, journal: Journal, first: int) -> None:
        from kemu.observe.events import OpenFrames

        self.frames = OpenFrames(journal, first)

    def name(self, number: int) -> str:
        """Its name, or an empty text."""
        fid = self.frames.at(number)
        return FUNCTIONS[fid].name if fid is not None else ""
