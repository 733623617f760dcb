"""What is known about an experiment in addition to its machine, as one frozen value: to go back to
what was known, keep the value.

    timelines   1: spawn app, mmap ...       2: spawn app, write ...     shown: 2
    names       #12 app -> 3, #57 kid -> 4   each with the event from which it holds
    used        #0 init, #12 app             the current task, from that event on
    homes       #60 app on CPU 1
    marks       before = #57
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import NamedTuple

import attrs

from kemu.readings import Reading

INIT = 1
NO_TASK = 0
"""The pid of the current task where there is none: at boot, and after it has ended."""


@attrs.frozen
class Record:
    """A command that belongs to the experiment: its text, its events (first, last], and the task
    that is current after it. `unfinished`: at its end calls are still under way (a race that was
    stopped where something broke), so nothing can be changed there."""

    text: str
    first: int
    last: int
    current: int
    unfinished: bool = False


@attrs.frozen
class Timeline:
    """A sequence of commands from boot. `branched` is the event at which it left timeline `parent`
    (0: the first)."""

    number: int
    parent: int = 0
    branched: int = 0
    records: tuple[Record, ...] = ()


class Name(NamedTuple):
    """From `event` on the task has this name, in all moments in which it exists."""

    event: int
    name: str
    pid: int


class Use(NamedTuple):
    """From `event` on the task is current."""

    event: int
    pid: int


class Home(NamedTuple):
    """From `event` on the task runs on this CPU."""

    event: int
    pid: int
    cpu: int


class Wrong(NamedTuple):
    """A wrong kernel: the name of the mutant, and the functions that run other code in it."""

    name: str
    bodies: Mapping[FunctionType, CodeType]


RIGHT = Wrong("", {})


@attrs.frozen
class Knowledge:
    """See the module. `shown` is the number of the current timeline; `first` the event at which the
    command under way began, `unfinished` whether it will end inside calls; `failures` the commands
    that gave an errno or a signal, each with its reading; `notes` lines for the next result; `cpu`
    the CPU for the next command, None for the task's own; `wrong` the kernels that were planted, by
    the number in `sysctl.planted`."""

    timelines: tuple[Timeline, ...] = (Timeline(1),)
    shown: int = 1
    names: tuple[Name, ...] = ()
    used: tuple[Use, ...] = ()
    homes: tuple[Home, ...] = ()
    marks: dict[str, int] = attrs.field(factory=dict)
    failures: tuple[tuple[Record, Reading], ...] = ()
    notes: tuple[str, ...] = ()
    first: int = 0
    unfinished: bool = False
    cpu: int | None = None
    wrong: Mapping[int, Wrong] = attrs.field(factory=lambda: {0: RIGHT})

    @property
    def timeline(self) -> Timeline:
        """The current timeline."""
        return self.timelines[self.shown - 1]

    def with_timeline(self, line: Timeline) -> Knowledge:
        """A copy in which `line`, new or in place of the one with its number, is current."""
        before, after = self.timelines[: line.number - 1], self.timelines[line.number :]
        return attrs.evolve(self, timelines=(*before, line, *after), shown=line.number)

    def up_to(self, event: int) -> Knowledge:
        """A copy without names, uses, homes and marks of later moments."""
        return attrs.evolve(
            self,
            names=tuple(entry for entry in self.names if entry.event <= event),
            used=tuple(entry for entry in self.used if entry.event <= event),
            homes=tuple(entry for entry in self.homes if entry.event <= event),
            marks={name: moment for name, moment in self.marks.items() if moment <= event},
        )

    def at_boot(self) -> Knowledge:
        """A copy for a journal that begins at this moment: what holds now holds from its
        event 0 on, and there are no marks and notes."""
        return attrs.evolve(
            self,
            names=tuple(entry._replace(event=0) for entry in self.names),
            used=tuple(entry._replace(event=0) for entry in self.used),
            homes=tuple(entry._replace(event=0) for entry in self.homes),
            marks={},
            notes=(),
            first=0,
        )
