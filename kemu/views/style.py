"""How text looks: width, glyphs, colour, and the few shapes that every drawing consists of.

Glyphs come from one table chosen once, by what the output can encode.  Colour is one of the 16 ANSI
names and never the only signal: a changed value also carries ``*``, a bit has its letter, a failure
its word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple


class Glyphs(NamedTuple):
    """The characters that differ between terminals."""

    branch: str
    last: str
    bar: str
    rule: str
    more: str
    pipe: str
    right: str
    left: str
    down: str
    corners: str
    """Of a box: top left, top right, bottom left, bottom right."""
    tees: str
    """Where a line leaves another: to the right, left, down, up; and a crossing."""
    knee: str
    """The end of a mirrored branch."""


UNICODE = Glyphs("├─ ", "└─ ", "│  ", "─", "…", "│", "►", "◄", "▼", "┌┐└┘", "├┤┬┴┼", "┘")
ASCII = Glyphs("|- ", "`- ", "|  ", "-", "...", "|", ">", "<", "v", "++++", "+++++", "'")


class Style(NamedTuple):
    """``width`` in columns; ``colour``: ANSI sequences may be written; ``fold``: the output is a
    terminal, which would break longer lines anywhere."""

    width: int = 80
    glyphs: Glyphs = ASCII
    colour: bool = False
    fold: bool = False

    def paint(self, text: str, role: str) -> str:
        """``text`` in the colour of ``role`` (a key of ROLES); pad before
        painting."""
        return f"\x1b[{ROLES[role]}m{text}\x1b[0m" if self.colour and text else text


ROLES = {
    "changed": "1;33",
    "error": "1;31",
    "kernel": "36",
    "name": "1",
    "writable": "1;33",
    "copy": "1;35",
    "reuse": "32",
    "stale": "1;31",
    "new": "32",
    "address": "36",
}
"""ANSI attributes: 1 bold, 31 red, 32 green, 33 yellow, 35 magenta, 36 cyan."""

PLAIN = Style()

_CONTROL = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    r"\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"  # direction, other line ends
)
_OWN = "\x1b\\[(?:0|" + "|".join(sorted(set(ROLES.values()))) + ")m"
_HARMFUL = {True: re.compile(f"{_OWN}|({_CONTROL})"), False: re.compile(f"({_CONTROL})")}


def harmless(text: str, *, colour: bool = False) -> str:
    """``text`` with each character that could control a terminal as its escape: what a file, a
    lesson or memory holds is shown and not obeyed.  With ``colour`` the sequences of ``paint``
    stay."""
    return _HARMFUL[colour].sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[1]
    if character is None:
        return found[0]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def style_for(
    encoding: str | None,
    *,
    width: int = 80,
    colour: bool = False,
    ascii_only: bool = False,
    fold: bool = False,
) -> Style:
    """The style for an output that encodes text as ``encoding``."""
    return Style(width, ASCII if ascii_only or not can_encode(encoding) else UNICODE, colour, fold)


def can_encode(encoding: str | None) -> bool:
    """True if every glyph of the wide table can be written."""
    try:
        "".join(UNICODE).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def table(header: str, rows: Iterable[Sequence[object]], indent: str = "") -> list[str]:
    """Rows under a header.  In ``header`` each word names a column; a ``<`` before it aligns the
    column left."""
    names = header.split()
    left = [name.startswith("<") for name in names]
    cells = [
        [name.lstrip("<").replace("_", " ") for name in names],
        *[[str(cell) for cell in row] for row in rows],
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    lines = []
    for row in cells:
        padded = [
            c.ljust(w) if is_left else c.rjust(w)
            for c, w, is_left in zip(row, widths, left, strict=True)
        ]
        lines.append((indent + "  ".join(padded)).rstrip())
    return lines


def facts(pairs: Iterable[tuple[str, str]], style: Style, indent: str = "  ") -> list[str]:
    """``name  text`` lines with the texts aligned and wrapped; a pair with an empty text is left
    out."""
    shown = [(name, text) for name, text in pairs if text]
    margin = max((len(name) for name, _ in shown), default=0) + 2
    lines = []
    for name, text in shown:
        room = max(style.width - len(indent) - margin, 20)
        first, *rest = wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"{indent}{name.ljust(margin)}{first}".replace(TIE, " "))
        lines += [" " * (len(indent) + margin) + line.replace(TIE, " ") for line in rest]
    return lines


def paragraph(text: str, style: Style) -> list[str]:
    """``text`` wrapped to the width."""
    return [line.replace(TIE, " ") for line in wrap(text, style.width)]


TIE = "\N{NO-BREAK SPACE}"
"""A blank at which ``facts`` does not break lines."""


def numbered(pairs: Iterable[tuple[str, object]]) -> str:
    """``name value, name value``; a name stays on the line of its value."""
    return ", ".join(f"{name}{TIE}{value}" for name, value in pairs)


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 page``, ``2 pages``."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def kib(size: int) -> str:
    """A number of bytes in the largest unit that divides it: ``4 KiB``, ``64 MiB``."""
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size and not size & ((1 << shift) - 1):
            return f"{size >> shift} {unit}"
    return f"{size} bytes"


def printable(data: bytes) -> str:
    """``data`` as text between quotes, what cannot be printed as a dot."""
    return '"' + "".join(chr(b) if 32 <= b < 127 else "." for b in data) + '"'
