"""Where the next move ends: over a call, out of a function, to the border of a call.

    depth  3           .-- 13 14 --.        15 happens in the caller, 13 and 14 in what it calls
           2   11 12 --'           `-- 15
                  ^ next: 14             ^ next: 16, or out into the caller of this function

A moment lies between two events, and with it between the marks of calls that end and calls that
begin there. The function *at* a moment is the innermost one that is open both before and after it;
`next` and `reverse-next` stay in it, `finish` and `reverse-finish` leave it. So each move and its
reverse are mirror images.

This module reads marks, never the log, and moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import attrs

from kemu.kernel.include.mm_types import (
    anon_vma,
    anon_vma_chain,
    maple_tree,
    mm_struct,
    page,
    vm_area_struct,
)
from kemu.kernel.mm.rows import Row
from kemu.machine.physmem import Frame
from kemu.observe.events import first_mark
from kemu.trace.barrier import STRUCTS, Table
from kemu.trace.frames import FUNCTIONS, Function
from kemu.trace.index import STRETCH
from kemu.trace.journal import SLOTS, Journal


class Place(NamedTuple):
    """A moment among the marks: the functions that are open (fids, outermost first), and the index
    in ``journal.marks`` of the first mark after the point where just these are open."""

    stack: tuple[int, ...]
    mark: int

    @property
    def depth(self) -> int:
        """How many functions are open."""
        return len(self.stack)


def place(journal: Journal, now: int, frame: int | None = None) -> Place:
    """The function at the moment `now`: of the marks there, the point where the fewest
    calls are open. `frame`: if fewer are open there, the point where the call that makes them so
    many has just been entered."""
    marks = journal.marks
    index = first_mark(journal, now)
    stack = journal.open_before(index)
    best, entered = Place(tuple(stack), index), None
    while index < len(marks) and marks[index] == now * SLOTS:
        if marks[index + 1] >= 0:
            stack.append(marks[index + 1])
        elif stack:
            stack.pop()
        index += 2
        if len(stack) < best.depth:
            best = Place(tuple(stack), index)
        if marks[index - 1] >= 0 and len(stack) == frame:
            entered = Place(tuple(stack), index)
    return entered if entered is not None and best.depth < entered.depth else best


def after_next(journal: Journal, now: int, frame: int | None = None) -> int:
    """Where `next` ends: the next event of this function, or the end of the call that comes before
    it. `frame`: the function is not the innermost one here, but that of so many open calls."""
    marks = journal.marks
    here = place(journal, now, frame)
    depth = here.depth
    base = depth if frame is None else min(frame, depth)
    for i in range(here.mark, len(marks), 2):
        at = marks[i] // SLOTS
        if at > now and depth == base:
            return now + 1
        depth += 1 if marks[i + 1] >= 0 else -1
        base = min(base, depth)
        if at > now and depth == base:
            return at
    return min(now + 1, len(journal))


def before_next(journal: Journal, now: int, frame: int | None = None) -> int:
    """Where `reverse-next` ends: before the last event of this function, or before the call that
    came after it."""
    marks = journal.marks
    here = place(journal, now, frame)
    depth = here.depth
    base = depth if frame is None else min(frame, depth)
    for i in range(here.mark - 2, -1, -2):
        at = marks[i] // SLOTS
        if at < now and depth == base:
            return now - 1
        depth += -1 if marks[i + 1] >= 0 else 1
        base = min(base, depth)
        if at < now and depth == base:
            return at
    return max(now - 1, 0)


def after_finish(
    journal: Journal, now: int, fid: int | None = None, frame: int | None = None
) -> int | None:
    """The moment at which the function at `now` returns, or the innermost open call of function
    `fid`; None if none is open."""
    here = place(journal, now, frame)
    target = _call_depth(here, fid, frame)
    if target is None:
        return None
    marks, depth = journal.marks, here.depth
    for i in range(here.mark, len(marks), 2):
        depth += 1 if marks[i + 1] >= 0 else -1
        if depth < target:
            return marks[i] // SLOTS
    return len(journal)


def before_finish(
    journal: Journal, now: int, fid: int | None = None, frame: int | None = None
) -> int | None:
    """The moment at which the function at `now` was called; None if none is open."""
    here = place(journal, now, frame)
    target = _call_depth(here, fid, frame)
    if target is None:
        return None
    marks, depth = journal.marks, here.depth
    for i in range(here.mark - 2, -1, -2):
        depth += -1 if marks[i + 1] >= 0 else 1
        if depth < target:
            return marks[i] // SLOTS
    return 0


def _call_depth(here: Place, fid: int | None, frame: int | None) -> int | None:
    """The depth of the call to leave."""
    if fid is None:
        return (here.depth if frame is None else min(frame, here.depth)) or None
    return next((depth for depth in range(here.depth, 0, -1) if here.stack[depth - 1] == fid), None)


def frame_of(journal: Journal, number: int, fids: frozenset[int]) -> int | None:
    """How many calls are open up to the outermost one of these functions that was entered just
    before the event; None if none was."""
    index = first_mark(journal, number - 1)
    before = len(journal.open_before(index))
    opened = journal.open_before(_behind(journal, number))
    return next(
        (depth for depth in range(before + 1, len(opened) + 1) if opened[depth - 1] in fids), None
    )


def next_border(journal: Journal, now: int) -> int:
    """The next moment at which a call begins or ends."""
    marks = journal.marks
    index = first_mark(journal, now + 1)
    return marks[index] // SLOTS if index < len(marks) else len(journal)


def border_before(journal: Journal, now: int) -> int:
    """The last moment before `now` at which a call begins or ends."""
    index = first_mark(journal, now)
    return journal.marks[index - 2] // SLOTS if index else 0


def fids_named(name: str) -> frozenset[int]:
    """The functions of that name (some have a namesake in another file)."""
    return frozenset(function.fid for function in FUNCTIONS if function.name == name)


@cache
def event_fields() -> frozenset[str]:
    """The fields of all structures, which events can be about."""
    return frozenset(field.name for cls in STRUCTS for field in attrs.fields(cls))


def entries(
    journal: Journal, fids: frozenset[int], first: int, last: int
) -> list[tuple[int, int, int]]:
    """(moment, fid, index of the mark) of each call of one of `fids` that begins at a moment from
    `first` to before `last`, in order."""
    marks = journal.marks
    begin, end = first_mark(journal, first), first_mark(journal, last)
    return [
        (marks[i] // SLOTS, marks[i + 1], i) for i in range(begin, end, 2) if marks[i + 1] in fids
    ]


def _behind(journal: Journal, number: int) -> int:
    """Index of the first mark after the point at which the event happened."""
    marks = journal.marks
    index = first_mark(journal, number - 1)
    while index < len(marks) and marks[index] == (number - 1) * SLOTS:
        index += 2
    return index


FAR = 50_000
"""Maximum number of marks searched for a call that is open at two moments; further apart no call is
taken for the same."""


def open_calls(journal: Journal, number: int) -> list[Function]:
    """The functions that were open when the event happened, outermost first; none for event 0."""
    return (
        [FUNCTIONS[fid] for fid in journal.open_before(_behind(journal, number))] if number else []
    )


def open_names(journal: Journal, number: int) -> tuple[str, ...]:
    """The names of those functions."""
    return tuple(function.name for function in open_calls(journal, number))


def kept_calls(journal: Journal, one: int, other: int) -> int:
    """How many of the calls that were open when event `one` happened (outermost first) were open at
    event `other`, too."""
    if not one or not other:
        return 0
    first, last = sorted((_behind(journal, one), _behind(journal, other)))
    if last - first > FAR:
        return 0
    depth = least = len(journal.open_before(first))
    for fid in journal.marks[first + 1 : last : 2]:
        depth += 1 if fid >= 0 else -1
        least = min(least, depth)
    return max(least, 0)


def function_of(journal: Journal, number: int) -> tuple[str, str]:
    """Name and path of the function in which the event happened; empty texts for user code."""
    calls = open_calls(journal, number)
    return (calls[-1].name, calls[-1].path) if calls else ("", "")


def named(fid: int) -> Function:
    """The function with that number."""
    return FUNCTIONS[fid]


def functions() -> list[Function]:
    """All functions that leave frames."""
    return FUNCTIONS


def first_words(name: str) -> str:
    """The first paragraph of the function's docstring, as one line; "" for one that leaves no
    frames."""
    doc = next((function.doc for function in FUNCTIONS if function.name == name), "")
    return " ".join(without_marks(doc).split("\n\n")[0].split())


def without_marks(doc: str) -> str:
    """The text of a docstring without the marks around code."""
    return doc.replace("``", "")


def may_have(
    journal: Journal, field: str, kind: str, first: int, last: int
) -> list[tuple[int, int]]:
    """The parts of (first, last] in which an event about the field, or an event of the kind, may
    lie."""
    classes = CLASSES_OF.get(kind)
    found = []
    for stretch in range(first // STRETCH, -(-last // STRETCH)):
        held = journal.index.of(journal.log, stretch)
        if (
            field in held.fields
            if field
            else classes is None or not classes.isdisjoint(held.classes)
        ):
            found.append((max(first, stretch * STRETCH), min(last, (stretch + 1) * STRETCH)))
    return found


def may_be(field: str, kind: str) -> Callable[[Any, Any], bool]:
    """Whether an event with that object and field can be about the field, or of the kind."""
    classes = CLASSES_OF.get(kind)
    if field:
        return lambda _obj, name: bool(name == field)
    return lambda obj, _name: classes is None or type(obj) in classes


CLASSES_OF: dict[str, frozenset[type]] = {
    "row": frozenset({Row}),
    "pte": frozenset({Frame, Table}),
    "ram": frozenset({Frame, Table}),
    "vma": frozenset({vm_area_struct, maple_tree}),
    "mm": frozenset({mm_struct, Table}),
    "frame": frozenset({page}),
    "anon": frozenset({anon_vma, anon_vma_chain}),
}
"""The classes whose events are of a kind; events of the other kinds may be of any class."""


def system_call(journal: Journal, first: int, last: int) -> tuple[int, int, int] | None:
    """(moment, fid, index of the mark) of the first function that the command with the events
    (first, last] entered by a system call."""
    marks, depth = journal.marks, 0
    for i in range(place(journal, first).mark, len(marks), 2):
        at, fid = marks[i] // SLOTS, marks[i + 1]
        if at >= last:
            break
        if fid >= 0 and not depth and FUNCTIONS[fid].name not in NO_SYSTEM_CALL:
            return at, fid, i
        depth += 1 if fid >= 0 else -1
    return None


NO_SYSTEM_CALL = frozenset(
    {"context_switch", "exc_page_fault", "page_walk", "get_signal", "wake_up_process", "do_exit"}
)
"""Functions that are entered from outside of the kernel, or by its own loop, without a system
call."""
