"""What a command gives back: data, never text. Every front end renders the same `Result`."""

from __future__ import annotations

from typing import Any

import attrs

from kemu.errors import UsageError

OK, FAILED, USAGE, UNSATISFIED, BAD_LESSON, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
"""Exit codes of the process, and the statuses of a result."""


@attrs.frozen
class Complaint:
    """A mistake of the user: what is wrong, the line with the place (characters, from 0), and what
    to do next.

    `start` is the column of the line at which the command begins."""

    what: str
    text: str
    column: int
    length: int
    hint: str
    start: int = 0

    @classmethod
    def of(cls, error: UsageError, start: int = 0) -> Complaint:
        """The report of the error that the exception carries."""
        return cls(error.what, error.text, error.column, error.length, error.hint, start)


@attrs.frozen
class Result:
    """One command that ran, or was refused.

    `reading` is what it found or did (None: nothing to show), `form` how to draw it if there is a
    choice, `status` an exit code. It caused the events (first, last]; `now` is the event at which
    the session is afterwards. `notes` are lines about the session, such as the start of a timeline;
    `error` is set if the command failed."""

    command: str
    reading: Any = None
    form: str = ""
    status: int = OK
    first: int = 0
    last: int = 0
    now: int = 0
    notes: tuple[str, ...] = ()
    error: Complaint | None = None

    @classmethod
    def failure(cls, command: str, error: Complaint, now: int, notes: tuple[str, ...]) -> Result:
        """The result of a command that was refused."""
        return cls(command, None, "", FAILED, now, now, now, notes, error)

    @property
    def ok(self) -> bool:
        """Did the command do its work? A simulated errno is a result, so it counts as ok."""
        return self.error is None


@attrs.frozen
class Shown:
    """What a command returns if its reading can be drawn in more than one way (`form` "proc" is the
    kernel's text), or if the reading says that a check failed (`status`)."""

    reading: Any
    form: str = ""
    status: int = attrs.field(default=OK, kw_only=True)


@attrs.frozen
class Quit:
    """The reading of `quit`, which ends the front end."""
