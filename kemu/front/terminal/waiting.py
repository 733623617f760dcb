"""A progress message: `working ...` at a terminal while a line of a lesson takes long.

Lesson output is held back until the line is done (`TextOutput.held`), so the message comes before
all of it. A thread writes it; callers that are about to write or to ask end the wait first.
"""

from __future__ import annotations

from threading import Timer
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from kemu.experiment.session import Session

PATIENCE = 1.0
"""Seconds."""

SIGN = "working ...\n"


def is_held(session: Session, text: str) -> bool:
    """Whether output is held back until the line is done: in a lesson, and when one starts."""
    return session.desk.guide is not None or text.split()[:2] == ["lesson", "start"]


class Wait:
    """Starts when constructed; `over` ends it and may be called repeatedly."""

    def __init__(self, stream: TextIO, seconds: float = PATIENCE) -> None:
        self.stream = stream
        self.timer = Timer(seconds, self._say)
        self.timer.daemon = True
        self.timer.start()

    def _say(self) -> None:
        self.stream.write(SIGN)
        self.stream.flush()

    def over(self) -> None:
        """End the wait; a message that is being written is finished first."""
        self.timer.cancel()
        self.timer.join()
