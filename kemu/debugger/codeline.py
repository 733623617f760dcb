"""The line of a kernel function that made the event of this moment.

The journal knows functions, not lines. So the command is run once more outside the journal
(`rehearse.py`) with the kernel's lines traced: the last line before the event is the one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from kemu.debugger.rehearse import perform

if TYPE_CHECKING:
    from kemu.experiment.session import Session

MOST_EVENTS = 20_000
"""A command is not run again for an event further from its beginning."""

TRACED = ("kemu.kernel.", "kemu.machine.")


def line_of(session: Session, number: int, function: str) -> int:
    """The line at which `function`, open when event `number` happened, was then; 0 if it cannot be
    told: in a race, and far into a long command."""
    record = session.command_of(number)
    if (
        record is None
        or record.unfinished
        or number - record.first > MOST_EVENTS
        or record.text.startswith("race")
    ):
        return 0
    with session.beside(record.first) as scratch:
        watcher = _Watcher(scratch.__len__, number - record.first)
        kept = sys.gettrace()
        sys.settrace(watcher.on_call)
        try:
            perform(session, record)
        finally:
            sys.settrace(kept)
    return next((line for name, line in watcher.lines if name == function), 0)


class _Watcher:
    """Notes the open functions and their lines (innermost first) until the event number `last` has
    happened; `count` tells how many have."""

    def __init__(self, count: Callable[[], int], last: int) -> None:
        self.count, self.last = count, last
        self.lines: list[tuple[str, int]] = []

    def on_call(
        self, frame: FrameType, _event: str, _value: Any
    ) -> Callable[[FrameType, str, Any], Any] | None:
        """Trace the lines of the kernel's functions until the event has happened."""
        ours = frame.f_globals.get("__name__", "").startswith(TRACED)
        return self.on_line if ours and self.count() < self.last else None

    def on_line(self, frame: FrameType, _event: str, _value: Any) -> Any:
        """Note where the functions are, once the event before this one has happened."""
        happened = self.count()
        if happened >= self.last:
            return None
        if happened == self.last - 1:
            self.lines = []
            inner: FrameType | None = frame
            while inner is not None:
                self.lines.append((inner.f_code.co_name, inner.f_lineno))
                inner = inner.f_back
        return self.on_line
