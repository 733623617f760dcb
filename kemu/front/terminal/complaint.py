"""An error as the user sees it: what, the line with a caret under the place, what next.

    error: length: expected bytes or pages, got '3q'
      mmap app 3q rw anon
               ^^
      write 3p for three pages, or 12288 (see: help sizes)

A long line is shown around the place only; control characters are shown as one column each; wide
characters (CJK) take two columns, so the caret is still under the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.views.style import PLAIN, Style

if TYPE_CHECKING:
    from kemu.language.result import Complaint

WINDOW = 72
"""Maximum number of characters shown of the line."""

LONGEST_MARK = 40


def render(complaint: Complaint, where: str = "", width: int = 0, style: Style = PLAIN) -> str:
    """The lines of the error; `where` (such as `FILE:3: `) goes before the message.

    With a `width`, that of a terminal, longer lines are wrapped between words; without one they
    stay whole. Colour only highlights the word error and the caret."""
    lines = _wrapped(f"error: {where}{_clean(complaint.what)}", "", width)
    lines[0] = style.paint("error:", "error") + lines[0].removeprefix("error:")
    if complaint.text:
        line, mark = _place(complaint)
        caret = mark.lstrip(" ")
        lines += [line, mark[: len(mark) - len(caret)] + style.paint(caret, "error")]
    if complaint.hint:
        lines += _wrapped(_clean(complaint.hint), "  ", width)
    return "\n".join(lines)


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    if not width or len(indent) + len(text) <= width:
        return [indent + text]
    from textwrap import wrap

    more = indent + "  "
    return wrap(text, width, initial_indent=indent, subsequent_indent=more, break_on_hyphens=False)


def _place(complaint: Complaint) -> list[str]:
    column = min(complaint.column, len(complaint.text))
    start = max(0, column - WINDOW // 2) if len(complaint.text) > WINDOW else 0
    shown = complaint.text[start : start + WINDOW]
    before = "..." if start else ""
    after = "..." if start + WINDOW < len(complaint.text) else ""
    marked = complaint.text[column : column + complaint.length][: min(LONGEST_MARK, WINDOW)]
    indent = len(before) + _columns(complaint.text[start:column])
    mark = "^" * max(1, _columns(marked))
    return [f"  {before}{_clean(shown)}{after}".rstrip(), f"  {' ' * indent}{mark}"]


def _clean(text: str) -> str:
    """The text with control characters (and invalid characters) as spaces or `?`, one column
    each."""
    return "".join(" " if char.isspace() else char if char.isprintable() else "?" for char in text)


def _columns(text: str) -> int:
    """The width of the text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )
