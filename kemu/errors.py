"""Whose fault it is: the user's, kemu's, or the host's.

An error *inside* the emulated machine is never an exception but a value (a ``PageFault``,
``-ENOMEM``, a signal). A Python exception is an error outside of it, and its class says whose.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class KemuError(Exception):
    """Base of all exceptions that kemu raises on purpose."""


class UsageError(KemuError):
    """The user asked for something that cannot be done.

    ``what`` is one line; ``text`` is the line that the user wrote and ``column``/``length`` (in
    characters, from 0) the place in it; ``hint`` says what to do next. Code that does not have the
    line names the command's argument that is wrong (``about``; of several values the one at
    ``index``), and ``kemu.language.place`` finds the place. All but ``what`` may be absent.
    """

    def __init__(
        self,
        what: str,
        *,
        text: str = "",
        column: int = 0,
        length: int = 1,
        hint: str = "",
        about: str = "",
        index: int = 0,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.text = text
        self.column = column
        self.length = length
        self.hint = hint
        self.about = about
        self.index = index


@contextmanager
def blaming(argument: str, index: int = 0) -> Iterator[None]:
    """A UsageError in the block that names no argument is about this argument of the command (of
    several values, the one at `index`)."""
    try:
        yield
    except UsageError as error:
        if not error.about:
            error.about, error.index = argument, index
        raise


class KernelBug(KemuError):
    """A bug in kemu: the emulated kernel reached a state that its code declares impossible
    (``BUG_ON``)."""


class InvariantViolation(KemuError):
    """A named invariant does not hold; the message names it, both values and the place."""


class HostUnavailable(KemuError):
    """The host lacks what the user asked for: a program, a file, a kernel of the right kind."""
