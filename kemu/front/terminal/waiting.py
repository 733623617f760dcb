"""A sign of life: `working ...` at a terminal where a line of a lesson takes longer than one can
believe.

What a lesson says is held back until the line is done (`TextOutput.held`), so the word is
before all of it and never in the middle.  A thread writes it; whoever is about to write or to ask
ends the wait first.
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
    """Will nothing be written before the line is done?  So it is in a lesson, and when one is
    begun."""
    return session.desk.guide is not None or text.split()[:2] == ["lesson", "start"]


class Wait:
    """Begins when it is made; `over` ends it, as often as one likes."""

    def __init__(self, stream: TextIO, seconds: float = PATIENCE) -> None:
        self.stream = stream
        self.timer = Timer(seconds, self._say)
        self.timer.daemon = True
        self.timer.start()

    def _say(self) -> None:
        self.stream.write(SIGN)
        self.stream.flush()

    def over(self) -> None:
        """Nothing is said any more; a word that is just being written is written to its end."""
        self.timer.cancel()
        self.timer.join()
