"""What a debugger keeps in addition to an experiment: where to stop, what to show after each move,
and what was asked last. It does not change the machine, nor the machine it.

    stops       1 break do_wp_page    2 watch app.rss    3 catch fault
    displays    1: app.rss
    history     $1, $2 ... of print, $last of a call or print
    places      the function that a stop was set at, the row that is stepped into, the race replayed
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from kemu.language.expr import Expression, Value

if TYPE_CHECKING:
    from kemu.racing.wanted import Wanted
    from kemu.readings import EventReading, OpenCall, RaceReplay


@attrs.define
class Stop:
    """One breakpoint, watchpoint or catchpoint; one of `functions`, `event` and `watched` says
    where it stops."""

    number: int
    kind: str
    text: str
    functions: frozenset[int] = frozenset()
    event: str = ""
    watched: Expression | None = None
    condition: Expression | None = None
    temporary: bool = False
    enabled: bool = True
    hits: int = 0

    @property
    def is_entry(self) -> bool:
        """Whether it stops at the entry of functions rather than after an event."""
        return not self.event and self.watched is None

    def says(self, what: str) -> str:
        """The line about a hit."""
        return f"{self.kind} {self.number}: {what}"


class OpenRow(NamedTuple):
    """A whole-row event that is stepped into: its number, its entries, how many were shown."""

    event: int
    entries: tuple[EventReading, ...]
    seen: int


class Frame(NamedTuple):
    """At this moment `next` and `finish` apply to the function with this many open calls, at which
    a stop was set, instead of the innermost one."""

    moment: int
    depth: int


class Entry(NamedTuple):
    """The moment of a stop at the entry of a function, and the functions that are open there,
    outermost first."""

    moment: int
    calls: tuple[OpenCall, ...]


class Held(NamedTuple):
    """The reading of a command with the events (first, last] in which something stopped; it is
    shown when a move reaches its end."""

    first: int
    last: int
    reading: Any


@attrs.define
class Debugger:
    """See the module. `given` are the newest numbers of stops and displays, which are never reused.
    `verifying`: the invariants are checked after every command. `entered`: where the newest stop at
    the entry of a function is, until a move."""

    stops: list[Stop] = attrs.field(factory=list)
    displays: dict[int, Expression] = attrs.field(factory=dict)
    given: dict[str, int] = attrs.field(factory=lambda: {"stop": 0, "display": 0})
    values: list[Value] = attrs.field(factory=list)
    last: Value = None
    frame: Frame | None = None
    entered: Entry | None = None
    held: Held | None = None
    row: OpenRow | None = None
    raced: Wanted | None = None
    replayed: RaceReplay | None = None
    verifying: bool = False

    def copy(self) -> Debugger:
        """A copy, to come back to."""
        return attrs.evolve(
            self,
            stops=[attrs.evolve(stop) for stop in self.stops],
            displays=self.displays.copy(),
            given=self.given.copy(),
            values=self.values.copy(),
        )

    # -------------------------------------------------------------------------- stops and displays

    def add(self, stop: Stop) -> None:
        """Add the stop and number it."""
        self.given["stop"] += 1
        stop.number = self.given["stop"]
        self.stops.append(stop)

    def remove(self, gone: list[Stop]) -> None:
        """Delete these stops."""
        self.stops = [stop for stop in self.stops if stop not in gone]

    def show_after_moves(self, expression: Expression) -> None:
        """Display the expression from now on."""
        self.given["display"] += 1
        self.displays[self.given["display"]] = expression

    @contextmanager
    def without_stops(self) -> Iterator[None]:
        """A block in which nothing stops a command."""
        before, self.stops = self.stops, []
        try:
            yield
        finally:
            self.stops = before

    def verify(self, on: bool) -> None:
        """Set whether the invariants are checked after every command."""
        self.verifying = on

    # ------------------------------------------------------------------------------------- history

    def answer(self, value: Value) -> None:
        """The newest result of a call or of `print`: `$last`."""
        self.last = value

    def stay_in(self, moment: int, depth: int) -> None:
        """See `Frame`."""
        self.frame = Frame(moment, depth)

    def enter(self, entry: Entry | None, depth: int | None = None) -> None:
        """A stop at the entry of a function; `depth`: see `Frame`, None if no event happens in the
        function. None: a move, no stop has been reported where it ends."""
        self.entered = entry
        if entry is not None:
            self.frame = None if depth is None else Frame(entry.moment, depth)

    def entry_at(self, moment: int) -> Entry | None:
        """The stop at the entry of a function that was reported at the moment."""
        return self.entered if self.entered and self.entered.moment == moment else None

    def hold(self, held: Held | None) -> None:
        """See `Held`; None: nothing is held back."""
        self.held = held

    def reached(self, moment: int) -> Any:
        """The reading that was held back until this moment, or None."""
        held = self.held
        if held is None or moment < held.last:
            return None
        self.held = None
        return held.reading

    def open_row(self, row: OpenRow | None) -> None:
        """Set the row that is stepped into; None: no row."""
        self.row = row

    def race(self, wanted: Wanted, replay: RaceReplay | None = None) -> None:
        """Remember what was raced last, and the replay under way."""
        self.raced = wanted
        self.replayed = replay or self.replayed

    @contextmanager
    def keeping_the_race(self) -> Iterator[None]:
        """A block that may race; what was raced before it stays the last race."""
        before = self.raced, self.replayed
        try:
            yield
        finally:
            self.raced, self.replayed = before
