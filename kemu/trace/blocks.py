"""Net effects: jump far through the journal without the changes that cancel each other.

    events     x 0->1   y 5->6  x 1->2  z 3->4  x 2->0  z 4->7  a block of the log
    net                 y 5->6          z 3->7                  a shorter log with the same two ends

A kernel overwrites most of what it writes: a lock is taken and released, a counter goes up and
down, a list head points here and there.  The net effect of a block contains each cell once, with
its first old and last new value; a cell that ends where it started is left out.  The net effect has
the form of a log, so the same loop applies it, in both directions.

Only changes of *cells* are merged: the fields of structures and the keys of tables, declared by
``_cell = True`` on their class.  Any other change (a copied row, a tree that is changed by
position) depends on what came before it: it is kept as it is, and nothing is merged across it.

Eight blocks form one block of the next level, and so on: the further the jump, the larger the
blocks.  They are built as jumps cross them, a few on each jump, so that no single jump pays for all
of them.

A block is used only if a jump crosses all of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kemu.interrupts import uninterruptible

BLOCK = 1 << 15
"""Events in a block of the lowest level."""

FAN = 8
"""Blocks of one level in a block of the next."""

A_JUMP = 2
"""Blocks of the lowest level (or half as many of a higher one) that one jump may build; each takes
about ten milliseconds."""


@uninterruptible
def net(log: list[Any]) -> list[Any]:
    """The net effect of a part of a log (four slots per event), in the same form."""
    objects = log[::4]
    plain = {cls for cls in set(map(type, objects)) if getattr(cls, "_cell", False)}
    made: list[Any] = []
    cells: dict[tuple[int, Any], list[Any]] = {}
    for obj, field, old, new in zip(objects, log[1::4], log[2::4], log[3::4], strict=True):
        if obj.__class__ not in plain:
            _add(made, cells)
            made += (obj, field, old, new)
            continue
        cell = cells.get((id(obj), field))
        if cell is None:
            cells[id(obj), field] = [obj, field, old, new]
        else:
            cell[3] = new
    _add(made, cells)
    return made


def _add(made: list[Any], cells: dict[tuple[int, Any], list[Any]]) -> None:
    """Write out the changes of the cells so far, and start again without any."""
    for cell in cells.values():
        if cell[2] is not cell[3]:
            made += cell
    cells.clear()


class Part(NamedTuple):
    """The events (first, last] of a jump; with a `level` of 0 or more, one block of that level."""

    first: int
    last: int
    level: int = -1


@uninterruptible
class Blocks:
    """The net effects of one log's blocks that have been built so far, by level and number."""

    def __init__(self, size: int = BLOCK) -> None:
        self.size = size
        self.made: dict[tuple[int, int], list[Any]] = {}

    def parts(self, log: list[Any], first: int, last: int) -> list[Part]:
        """(first, last] cut into the largest blocks whose net effect is known, and the events
        between these, in order.  Builds up to ``A_JUMP`` missing blocks."""
        self._make(log, first, last)
        found = []
        while first < last:
            level = self._largest(first, last)
            end = (
                first + self.size * FAN**level
                if level >= 0
                else min((first // self.size + 1) * self.size, last)
            )
            found.append(Part(first, end, level))
            first = end
        return found

    def of(self, log: list[Any], part: Part) -> list[Any]:
        """The log to apply for a part."""
        if part.level >= 0:
            return self.made[part.level, part.first // (self.size * FAN**part.level)]
        return log[part.first * 4 : part.last * 4]

    def _largest(self, first: int, last: int) -> int:
        """The level of the largest block that begins at ``first`` and does not end after ``last``;
        -1 if there is none."""
        level, size = -1, self.size
        while (
            first % size == 0 and first + size <= last and (level + 1, first // size) in self.made
        ):
            level, size = level + 1, size * FAN
        return level

    def _make(self, log: list[Any], first: int, last: int) -> None:
        budget, level, size = A_JUMP, 0, self.size
        while size <= last - first:
            cost = 2 if level else 1
            for number in range(-(-first // size), last // size):
                if cost > budget:
                    return
                if (level, number) not in self.made and (
                    found := self._block(log, level, number)
                ) is not None:
                    self.made[level, number] = found
                    budget -= cost
            level, size = level + 1, size * FAN

    def _block(self, log: list[Any], level: int, number: int) -> list[Any] | None:
        """The net effect of a block; None if those of the level below are not complete yet."""
        if not level:
            return net(log[number * self.size * 4 : (number + 1) * self.size * 4])
        below = [self.made.get((level - 1, n)) for n in range(number * FAN, (number + 1) * FAN)]
        return (
            net([slot for part in below if part is not None for slot in part])
            if all(p is not None for p in below)
            else None
        )

    def forget_after(self, event: int) -> None:
        """Events after ``event`` are gone."""
        for level, number in [
            key for key in self.made if (key[1] + 1) * self.size * FAN ** key[0] > event
        ]:
            del self.made[level, number]
