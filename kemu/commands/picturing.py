"""The section `picture` after a change: the changed page in three lines, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.readings import ThreeLines

MOST_EVENTS = 20_000
"""A command with more events changes many pages, so no picture is drawn."""


def picture_of(session: Session, _text: str, first: int, last: int) -> ThreeLines | None:
    """The pages that the events (first, last] of a command changed, or None."""
    from kemu.observe.onepage import of_command

    if not 0 < last - first <= MOST_EVENTS:
        return None
    with session.traveling():
        found = of_command(session.kernel, first, last, session.name_of)
    return found if found.pages else None
