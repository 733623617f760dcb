"""Output of results: text for people, or JSON Lines for programs. Both are made from the same
`Result`.

Text: results on standard output, errors on standard error. JSON: `{"v": 1, "cmd": ..., "ok": ...,
"data": ..., "events": [first, last], "state": ...}`, one line per command on standard output;
everything else on standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from kemu.commands.settings import preference
from kemu.front.terminal.complaint import render as render_complaint
from kemu.language.result import Quit, Result
from kemu.readings import LessonList, LessonSteps, LessonText, Listing, Picture, Text
from kemu.views.colours import coloured
from kemu.views.style import harmless

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.front.cli.options import Options
    from kemu.front.terminal.waiting import Wait
    from kemu.views.style import Style

JSON_VERSION = 1
"""The version of the format; it changes when programs that read the lines must change."""


class Output(Protocol):
    """Shows results.  `typed` is a command that was typed during paging and must still be run."""

    typed: str

    def show(self, result: Result, session: Session, where: str) -> None:
        """Show one result; `where` (`FILE:3: `, or empty) is the place of the command."""

    def say(self, text: str) -> None:
        """Show a line for the user that is not a result."""

    def flush(self) -> None:
        """Write out what is still held back."""


def make_output(options: Options) -> Output:
    """The output that the command line asks for."""
    _tame(sys.stdout)
    _tame(sys.stderr)
    if options.json:
        return JsonOutput(sys.stdout, sys.stderr)
    return TextOutput(sys.stdout, sys.stderr)


def _tame(stream: TextIO) -> None:
    """A character that the stream cannot encode is written as an escape instead of raising."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def style_of(stream: TextIO, color: str, *, ascii_only: bool) -> Style:
    """Width, glyphs and colour for the stream."""
    from kemu.views.style import style_for

    colour = wants_color(stream, color)
    return style_for(
        stream.encoding,
        width=_width(stream),
        colour=colour,
        ascii_only=ascii_only,
        fold=stream.isatty(),
    )


def wants_color(stream: TextIO, color: str) -> bool:
    """Whether to use colour: as asked; else by NO_COLOR, FORCE_COLOR (0 or false: no), and whether
    the stream is a terminal with colours."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "").lower()
    if forced:
        return forced not in ("0", "false", "no")
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _width(stream: TextIO) -> int:
    """The width of the terminal in columns, or 80."""
    try:
        return max(os.get_terminal_size(stream.fileno()).columns, 40)
    except (OSError, ValueError):
        return 80


APART = frozenset({"title", "right", "wrong"})
"""Roles of the lesson texts from which on everything is shown, even to a user who leaves the pager
early."""


class TextOutput:
    """Text for people. Without a `style` it is that of the stream at the moment and of the
    session's preferences: a terminal may change its width between two commands. `paged`: long
    output goes through a pager."""

    def __init__(self, out: TextIO, err: TextIO, style: Style | None = None) -> None:
        self.out = out
        self.err = err
        self.fixed = style
        self.paged = False
        self.session: Session | None = None
        self.held: list[str] = []
        """What a lesson has said so far in answer to one line."""
        self.cut: int | None = None
        """Where in it the question or the verdict begins."""
        self.wait: Wait | None = None
        """The progress message for a line that takes long; it ends before anything else is
        written."""
        self.typed = ""
        """A line typed between two pages of a lesson: a command that must still be run."""

    def style(self, session: Session) -> Style:
        """The style to draw with now."""
        if self.fixed is not None:
            return self.fixed
        wanted = partial(preference, session)
        return style_of(self.out, wanted("color"), ascii_only=wanted("characters") == "ascii")

    def show(self, result: Result, session: Session, where: str) -> None:
        """Write the result to standard output, or the error to standard error."""
        self.session = session
        style = self.style(session)
        role = getattr(result.reading, "role", "")
        if role == "title" or (role in APART and self.cut is None):
            self.cut = len(self.held)
        notes = (wrapped(note, style.width if self.out.isatty() else 0) for note in result.notes)
        parts = (
            to_text(result, style),
            *notes,
            *(
                coloured(fitted(text, style), style)
                for text in self._context(result, session, style)
            ),
        )
        self._write("\n".join(text for text in parts if text), session)
        if result.error is not None:
            self.flush()
            width = style.width if self.err.isatty() else 0
            colour = wants_color(self.err, preference(session, "color")) and style.colour
            complaint = render_complaint(result.error, where, width, style._replace(colour=colour))
            self.err.write(harmless(complaint, colour=colour) + "\n")

    def _write(self, text: str, session: Session) -> None:
        if not text:
            return
        text = harmless(text, colour=self.style(session).colour)
        if self.paged and session.desk.guide is not None:
            self.held.append(text)
            return
        self._page(text, session)

    def _page(self, text: str, session: Session) -> None:
        if self.paged and preference(session, "paging") == "on":
            from kemu.front.terminal.paging import is_long, show_paged

            if is_long(text, self.out):
                self.typed = show_paged(text, self.out) or self.typed
                return
        self.out.write(text + "\n")

    def _context(self, result: Result, session: Session, style: Style) -> Iterator[str]:
        """Show what the command changed, if the session is set to show it."""
        if session.desk.context == "off" or not result.ok or result.first == result.last:
            return
        from kemu.commands.context import shown_after
        from kemu.views.terminal import render

        for reading in shown_after(session, result.command, result.first, result.last):
            yield render(reading, style)

    def say(self, text: str) -> None:
        """Write a line among the results."""
        self._end_wait()
        text = wrapped(harmless(text), _width(self.out) if self.out.isatty() else 0)
        self.out.write(text + "\n")

    def flush(self) -> None:
        """Write out what is still held back."""
        self._end_wait()
        if self.held and self.session is not None:
            held, self.held, cut, self.cut = self.held, [], self.cut, None
            self._pages(held, len(held) if cut is None else cut, self.session)
        self.out.flush()

    def _end_wait(self) -> None:
        if self.wait is not None:
            self.wait.over()
            self.wait = None

    def _pages(self, held: list[str], cut: int, session: Session) -> None:
        """Show what a lesson said. A user who leaves the pager early still sees the question or the
        verdict, and what follows it."""
        from kemu.front.terminal.paging import is_long, show_pages

        whole = "\n".join(held)
        if preference(session, "paging") == "on" and is_long(whole, self.out):
            last = sum(text.count("\n") + 1 for text in held[cut:])
            guide = session.desk.guide
            language = guide.language if guide is not None else "en"
            typed = show_pages(whole, last, self.out, language=language)
            self.typed = typed or self.typed
        else:
            self.out.write(whole + "\n")


def wrapped(text: str, width: int) -> str:
    """The line, wrapped at the width of the terminal; unchanged without one."""
    if not width or len(text) <= width:
        return text
    from textwrap import wrap

    return "\n".join(wrap(text, width, subsequent_indent="  ", break_on_hyphens=False))


class JsonOutput:
    """Writes one JSON object per command."""

    typed = ""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err

    def show(self, result: Result, session: Session, where: str) -> None:
        """Write the object to standard output, and notes for people to standard error."""
        import json

        if not isinstance(result.reading, Quit):
            self.out.write(json.dumps(to_json(result, session.state_hash(), where)) + "\n")
        if result.notes:
            self.out.flush()
        for note in result.notes:
            self.err.write(harmless(note) + "\n")

    def say(self, text: str) -> None:
        """Write a line to standard error."""
        self.err.write(harmless(text) + "\n")

    def flush(self) -> None:
        """Write out what is still held back."""
        self.out.flush()


PLAIN_TEXT = (Text, LessonText, LessonList, LessonSteps, Listing)
"""Readings that are text for people, or code: their words have no colour."""


def to_text(result: Result, style: Style) -> str:
    """The reading of the result as text; empty if there is nothing to show."""
    if result.reading is None or isinstance(result.reading, Quit):
        return ""
    if result.form == "proc":
        from kemu.views.procfs import render as render_proc

        return render_proc(result.reading)
    from kemu.views.terminal import render

    text = render(result.reading, style)
    if isinstance(result.reading, PLAIN_TEXT):
        return fitted(text, style)
    return coloured(text if isinstance(result.reading, Picture) else fitted(text, style), style)


def fitted(text: str, style: Style) -> str:
    """The text, wrapped to the width of the terminal if there is one."""
    if not style.fold or all(len(line) <= style.width for line in text.split("\n")):
        return text
    from kemu.views.folding import folded

    return folded(text, style.width)


def to_json(result: Result, state: str, where: str = "") -> dict[str, Any]:
    """The object that docs/json.md describes; `state` is the hash of the machine after the
    command."""
    from kemu.views.json import to_data

    made: dict[str, Any] = {
        "v": JSON_VERSION,
        "cmd": result.command,
        "ok": result.ok,
        "data": to_data(result.reading),
        "events": [result.first, result.last],
        "state": state,
    }
    if result.notes:
        made["notes"] = list(result.notes)
    if result.error is not None:
        error = result.error
        made["error"] = {
            "what": error.what,
            "column": error.column - error.start,
            "length": error.length,
            "hint": error.hint,
        }
        if where:
            made["error"]["where"] = where.rstrip(": ")
    return made
