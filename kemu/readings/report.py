"""A film: a range of events with the state at its first moment and what each event changed of it.

    start   [op, op, ...]              the state at moment ``first``
    changes [[op], [], [op, op], ...]  one list per event; those up to N, applied to ``start``,
                                      give the state at N

An op is a few numbers. Things that recur (what an entry looks like, what a frame looks like, a
mapping, a task) are stored once in a pool, and ops name them by their index in it. So the size of a
film depends on what happens, not on the size of the machine.

    ENTRY     table, index, count, word, pfn  entries ``index`` .. of the table in frame ``table``;
                                              the following ones lead to the following frames
    NO_ENTRY  table, index, count             these entries are empty
    NO_TABLE  table                           the frame is not a page table any more
    FRAMES    pfn, count, look                frames ``pfn`` .. look like this
    SPACES    space, space, ...               all address spaces, by id
    TASKS     task, task, ...                 all tasks, by pid
"""

from __future__ import annotations

from typing import NamedTuple

from kemu.readings.moments import EventReading
from kemu.readings.spaces import VmaReading
from kemu.readings.tasks import TaskRow

ENTRY, NO_ENTRY, NO_TABLE, FRAMES, SPACES, TASKS = range(6)
"""The first number of an op."""

Op = tuple[int, ...]


class WordLook(NamedTuple):
    """A page-table entry without its frame number. ``base``: its other bits (for one that is not
    present all of them); ``kind``: present, protnone, marker, swap, ...; ``leaf``: above the last
    level it maps memory itself; ``special``: not managed as a page."""

    base: int
    letters: str
    kind: str
    leaf: bool
    special: bool


class FrameLook(NamedTuple):
    """What is shown of a frame; ``state`` as in FrameReading, ``preview`` its first bytes if they
    are a process's or a file's data."""

    state: str
    refcount: int
    mapcount: int
    exclusive: bool
    preview: bytes


class SpaceRow(NamedTuple):
    """An address space: ``label`` the first of its ``users``, or mm#3; ``root`` the frame of its
    first table; ``vmas`` indices in the pool; ``making``: no task uses or borrows it yet (fork is
    filling it) or any longer."""

    id: int
    label: str
    users: tuple[str, ...]
    pids: tuple[int, ...]
    root: int
    vmas: tuple[int, ...]
    making: bool


class Played(NamedTuple):
    """A command with its answer: its events are ``first`` + 1 to ``last``, and it was given
    at the moment ``now``."""

    text: str
    first: int
    last: int
    now: int
    output: str
    ok: bool


class CallRow(NamedTuple):
    """A call in the tree of calls, written in the order in which they were entered."""

    depth: int
    function: str
    path: str
    first: int
    last: int


class Machine(NamedTuple):
    """What does not change: the format of the page tables and the RAM. ``levels``: (name, shift,
    entries) from the root; ``zero``: the frame of the zero page."""

    geometry: str
    levels: tuple[tuple[str, int, int], ...]
    va_bits: int
    user_end: int
    pfn_shift: int
    legend: tuple[tuple[str, str], ...]
    frames: int
    zero: int


class Pools(NamedTuple):
    """The pool: what ops name by index."""

    words: tuple[WordLook, ...]
    looks: tuple[FrameLook, ...]
    vmas: tuple[VmaReading, ...]
    spaces: tuple[SpaceRow, ...]
    tasks: tuple[TaskRow, ...]


class Film(NamedTuple):
    """The events ``first`` + 1 to ``last``. ``shown``: for each event, whether `trace` shows it;
    ``before``: the event that wrote the same thing before (0: none since the thing was created);
    ``rules``: why Linux does it, or an empty text; ``notes``: (moment, heading, text) of a lesson's
    steps; ``part``: the name of this film among several."""

    title: str
    first: int
    last: int
    machine: Machine
    events: tuple[EventReading, ...]
    shown: tuple[bool, ...]
    before: tuple[int, ...]
    rules: tuple[str, ...]
    calls: tuple[CallRow, ...]
    commands: tuple[Played, ...]
    marks: tuple[tuple[str, int], ...]
    pools: Pools
    start: tuple[Op, ...]
    changes: tuple[tuple[Op, ...], ...]
    notes: tuple[tuple[int, str, str], ...] = ()
    part: str = ""
