"""Films: what the report plays. The machine is moved once through the range, and each event is
noted with what it changed.

    events, calls   in words, as `trace` and `calls` have them
    before          for each event the one that wrote the same thing before: the chain that
                    `why` shows
    start, changes  the state (report_state.py)

A film holds what the other commands say, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kemu.explain.reason import rule_of
from kemu.kernel.include.mm_types import page
from kemu.kernel.include.system import system
from kemu.kernel.mm.rows import Row
from kemu.machine.physmem import Frame
from kemu.observe.calls import calls
from kemu.observe.entries import user_end
from kemu.observe.events import directory_at, events, is_shown
from kemu.observe.look import travelling
from kemu.observe.names import Names, entry_legend
from kemu.observe.report_state import States
from kemu.readings import CallReading, CallTree
from kemu.readings.report import CallRow, Film, Machine, Op, Played, Pools

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

BEGINNINGS = (None, 0, -1)
"""Old values that mean that an event began the life of what it wrote; earlier events are not
followed."""

Key = tuple[Any, ...]


class Script(NamedTuple):
    """What only the session knows: a title, the commands with their answers,
    the names of moments, and the steps of a lesson."""

    title: str
    commands: tuple[Played, ...]
    marks: tuple[tuple[str, int], ...] = ()
    notes: tuple[tuple[int, str, str], ...] = ()
    part: str = ""


def film(kernel: Kernel, first: int, last: int, script: Script, names: Names = None) -> Film:
    """The film of the events ``first`` + 1 to ``last``.  ``UsageError`` outside the journal."""
    named = events(kernel, first, last, names, low=True).events
    tree = calls(kernel, first, last, names)
    start, changes, pools = _states(kernel, first, last, names)
    with travelling(kernel) as journal:
        before = tuple(_chains(journal, first, last, script.commands))
        rules = tuple(rule_of(event, *journal.event(event.number)[2:]) for event in named)
    return Film(
        title=script.title,
        first=first,
        last=last,
        machine=_machine(kernel),
        events=named,
        shown=tuple(map(is_shown, named)),
        before=before,
        rules=rules,
        calls=tuple(_flat(tree)),
        commands=script.commands,
        marks=script.marks,
        pools=pools,
        start=start,
        changes=changes,
        notes=script.notes,
        part=script.part,
    )


def _machine(kernel: Kernel) -> Machine:
    kernel.activate()
    geometry = system.geometry
    return Machine(
        geometry=geometry.title,
        levels=tuple((level.name, level.shift, level.entries) for level in geometry.levels),
        va_bits=geometry.va_bits,
        user_end=user_end(),
        pfn_shift=system.bits.pfn_shift,
        legend=entry_legend(system.bits),
        frames=system.phys.nr_frames,
        zero=system.zero_pfn,
    )


def _states(
    kernel: Kernel, first: int, last: int, names: Names
) -> tuple[tuple[Op, ...], tuple[tuple[Op, ...], ...], Pools]:
    """The state at ``first``, and what each event changed."""
    with travelling(kernel) as journal:
        states = States(directory_at(journal, first, last, names), names)
        start = tuple(states.begin())
        changes = []
        for number in range(first + 1, last + 1):
            journal.seek(number)
            changes.append(tuple(states.after(*journal.event(number))))
        return start, tuple(changes), states.pools()


def _flat(tree: CallTree) -> Iterator[CallRow]:
    """The calls in the order in which they were entered."""
    stack: list[tuple[int, Any]] = [(0, node) for node in reversed(tree.roots)]
    while stack:
        depth, node = stack.pop()
        if isinstance(node, CallReading):
            yield CallRow(depth, node.function, node.path, node.first, node.last)
            stack += [(depth + 1, child) for child in reversed(node.children)]


# ---------------------------------------------------------------- who wrote the same thing before


def _chains(journal: Any, first: int, last: int, commands: tuple[Played, ...]) -> Iterator[int]:
    """For each event the one before it that wrote the same thing, in the same life of the thing, or
    0. An event that wrote many things at once (a copied row or page) has no one event before it; it
    ends the chains that lead to it."""
    newest: dict[Key, int] = {}
    command = _command_finder(commands)
    journal.seek(first)
    for number in range(first + 1, last + 1):
        obj, field, old, new = journal.event(number)
        keys = list(_keys(obj, field, old, new))
        found = newest.get(keys[0], 0) if len(keys) == 1 else 0
        yield 0 if _is_beginning(old) and command(found) != command(number) else found
        newest.update(dict.fromkeys(keys, number))
        journal.seek(number)


def _is_beginning(old: Any) -> bool:
    return old is None or (isinstance(old, int) and old in BEGINNINGS)


def _command_finder(commands: tuple[Played, ...]) -> Callable[[int], Played | None]:
    owners = [played for played in commands if played.last > played.first]

    def command(number: int) -> Played | None:
        return next((played for played in owners if played.first < number <= played.last), None)

    return command


def _keys(obj: Any, field: Any, old: Any, new: Any) -> Iterator[Key]:
    """The things that the event wrote; none where it stored what was there."""
    if isinstance(obj, Row):
        for change in obj.changes():
            yield from _keys(*change)
    elif obj is system.phys.frames:
        words = (old or {}, new or {})
        yield from (
            ("word", field, i)
            for i in words[0].keys() | words[1].keys()
            if words[0].get(i, 0) != words[1].get(i, 0)
        )
    elif old is not new and old != new:
        yield (
            ("word", obj.pfn, field)
            if isinstance(obj, Frame) and not isinstance(obj, page)
            else (id(obj), field)
        )
