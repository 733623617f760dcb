"""The cost of a command or a range, compared with eager copying at fork."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import readings
from kemu.commands.moments import RANGE, range_of
from kemu.language.spec import FREE, command

if TYPE_CHECKING:
    from kemu.experiment.session import Session


_START = "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; write app 0x11000 7; "


@command(
    "cost",
    arguments=RANGE,
    effect=FREE,
    summary="what a command or a range cost, compared with eager copying",
    more="Counts faults, frames, page tables, bytes copied, TLB flushes and entries written. "
    "The second column is the cost if fork copied every anonymous page at once. Without a "
    "range, counts the last command.",
    examples=(
        _START + "mark before; fork app as kid; write kid 0x10000 8; cost before",
        _START + "cost",
    ),
)
def cost(session: Session, first: int | None, last: int | None) -> readings.Cost:
    """The cost of the range."""
    from kemu.explain.cost import cost as count

    first, last = range_of(session, first, last, longest=None)
    with session.traveling():
        return count(session.kernel, first, last, session.name_of)
