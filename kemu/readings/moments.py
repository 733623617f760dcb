"""Time: events, calls, and what differs between two moments."""

from __future__ import annotations

from kemu.readings.base import Address, Reading
from kemu.readings.spaces import VmaReading
from kemu.readings.tables import EntryReading, FrameReading


class EventReading(Reading):
    """One event. ``kind``: frame, pte, ram, vma, mm, task, tlb, cpu, list, alloc, anon, file, row,
    count; ``what``: the object by name; ``field``; ``old`` / ``new`` as text; ``note``: what it
    means ("W cleared"); ``function``: the innermost open one, with Linux's ``path``."""

    number: int
    kind: str
    what: str
    field: str
    old: str
    new: str
    note: str = ""
    function: str = ""
    path: str = ""

    @property
    def text(self) -> str:
        """The event in one line: ``pfn 0x1a3 _refcount 1 -> 2``."""
        name = f"{self.what} {self.field}".strip()
        change = f"{self.old} -> {self.new}" if self.old or self.new else ""
        return " ".join(
            part for part in (name, change, f"({self.note})" if self.note else "") if part
        )


class EventList(Reading):
    """The events ``first`` + 1 to ``last``; ``hidden``: how many of them are left out (list links
    and the like)."""

    first: int
    last: int
    events: tuple[EventReading, ...]
    hidden: int = 0


class CallReading(Reading):
    """One call; its events are ``first`` + 1 to ``last``. ``children``: calls and, where asked for,
    events in their order."""

    function: str
    path: str
    first: int
    last: int
    children: tuple[CallReading | EventReading, ...]


class CallTree(Reading):
    """The calls of the events ``first`` + 1 to ``last``."""

    first: int
    last: int
    roots: tuple[CallReading | EventReading, ...]


class FieldChange(Reading):
    """A field that differs between two moments: ``old`` at the earlier, ``new`` at the later, as
    text. ``kind`` as in EventReading."""

    kind: str
    what: str
    field: str
    old: str
    new: str
    note: str = ""


class Difference(Reading):
    """What differs between the moments ``first`` and ``last``, by object."""

    first: int
    last: int
    changes: tuple[FieldChange, ...]
    hidden: int = 0


class Change(Reading):
    """What a command changed: its text, its events (first, last], the net difference, and further
    remarks."""

    command: str
    first: int
    last: int
    difference: Difference
    notes: tuple[str, ...] = ()


class PageState(Reading):
    """A page of an address space at one moment: the mapping that holds it, the last entry on the
    way, the frame that it leads to."""

    vma: VmaReading | None
    entry: EntryReading
    frame: FrameReading | None


class PagePicture(Reading):
    """A page of a task at two moments; None: the address space was not there."""

    pid: int
    name: str
    address: Address
    before: PageState | None
    after: PageState | None


class ThreeLines(Reading):
    """The pages that a command or a move was about, at the moments ``first`` and ``last``;
    ``more``: how many others there are."""

    first: int
    last: int
    pages: tuple[PagePicture, ...]
    more: int = 0


class OpenCall(Reading):
    """A kernel function that is open at a moment."""

    function: str
    path: str


class Backtrace(Reading):
    """The kernel functions that are open at the moment ``now``, outermost first; the ``command``
    that the moment belongs to, or ""."""

    now: int
    command: str
    calls: tuple[OpenCall, ...]


class Listing(Reading):
    """Lines of a kernel function from line ``first`` of ``file`` on; ``marked``: the line that made
    the event of the moment, 0 without one; ``path``: the file in Linux."""

    function: str
    path: str
    file: str
    first: int
    marked: int
    lines: tuple[str, ...]


class Moment(Reading):
    """Where the experiment is: event ``now`` of ``end``; ``mark``: a name of the moment or "";
    ``event``: the last one that happened, ``rule``: why, in a sentence; ``entered``: the function
    at whose entry a stop was reported (then there is no ``event``); ``outcome``: the reading of the
    command that ends here, where a stop had held it back; ``stops``: the breakpoints, watchpoints
    and catchpoints that stopped here; ``shown``: what ``display`` shows.

    With ``context`` also ``calls``: the functions in which the event happened, outermost first
    (``kept``: how many of them were open at the moment before, too); ``changes``: the net change
    since then, where more than this event lies between; ``picture``: the page in question then and
    now; ``hint``: what else to look at here; ``marked``: the event is drawn as a change."""

    now: int
    end: int
    timeline: int
    mark: str = ""
    inside: str = ""
    event: EventReading | None = None
    rule: str = ""
    entered: str = ""
    outcome: Reading | None = None
    stops: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    calls: tuple[OpenCall, ...] = ()
    kept: int = 0
    changes: tuple[FieldChange, ...] = ()
    picture: ThreeLines | None = None
    hint: str = ""
    marked: bool = False


class Why(Reading):
    """What made a thing what it is: the ``events`` that wrote it, oldest first (``more``: how many
    older ones are left out); the functions that were open at the newest, outermost first; the
    command at the root; the rule in one sentence; what would have changed the outcome, or ""."""

    thing: str
    events: tuple[EventReading, ...]
    more: int
    calls: tuple[str, ...]
    command: str
    rule: str
    advice: str = ""
    place: str = ""


class History(Reading):
    """Every change of a thing, oldest first; ``more``: how many older ones are left out."""

    thing: str
    changes: tuple[HistoryValue, ...]
    more: int


class HistoryValue(Reading):
    """One change of a value, as text; ``note``: what it means ("W cleared")."""

    number: int
    old: str
    new: str
    function: str
    command: str
    note: str = ""


class Cost(Reading):
    """What the events ``first`` + 1 to ``last`` cost, and what the same would cost if fork copied
    at once."""

    first: int
    last: int
    rows: tuple[CostRow, ...]
    shared: int
    copied: int


class CostRow(Reading):
    """One kind of cost: the actual one, and the one with eager copying."""

    what: str
    now: int
    eager: int


class SubSteps(Reading):
    """Entries of the whole-row event ``number``, one by one: its sub-steps ``number``.1,
    ``number``.2 ..., whose own numbers count from 1; ``total``: how many it has."""

    number: int
    events: tuple[EventReading, ...]
    total: int


class TimelineRow(Reading):
    """A timeline: it left timeline ``parent`` after event ``branched`` (0: the first); how many
    commands it has, and its last one."""

    number: int
    parent: int
    branched: int
    commands: int
    newest: str
    current: bool


class Timelines(Reading):
    """All timelines of the experiment."""

    rows: tuple[TimelineRow, ...]


class TimelineDifference(Reading):
    """What differs between the ends of two timelines: ``old`` in timeline ``one``, ``new`` in
    ``other``."""

    one: int
    other: int
    changes: tuple[FieldChange, ...]


class Text(Reading):
    """Plain lines: an answer that is text (help, a source place, a version)."""

    lines: tuple[str, ...]


class Value(Reading):
    """The value of an expression."""

    text: str
    value: int | str | bool | None
