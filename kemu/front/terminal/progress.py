"""A progress bar for long runs: one line on standard error, shown only at a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self, TextIO

WIDTH = 30
EVERY = 0.1
"""Seconds between two drawings."""


class Progress:
    """A bar for `total` steps on `out`; draws nothing unless that is a terminal. A context
    manager."""

    def __init__(self, out: TextIO, total: int) -> None:
        self.out = out
        self.total = total
        self.done = 0
        self.shown = False
        self.on = out.isatty()
        self.next = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def step(self) -> None:
        """Count one more step as done."""
        self.done += 1
        now = time.monotonic()
        if self.on and now >= self.next:
            self.next = now + EVERY
            filled = WIDTH * self.done // max(self.total, 1)
            self.out.write(f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {self.done}/{self.total} ")
            self.out.flush()
            self.shown = True

    def clear(self) -> None:
        """Erase the bar, so that a line can be written in its place."""
        if self.shown:
            self.out.write("\r\x1b[K")
            self.out.flush()
            self.shown, self.next = False, 0.0
