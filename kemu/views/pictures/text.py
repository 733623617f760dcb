"""Building blocks of drawings for the terminal: columns, boxes, cut texts.

Everything is measured in columns: a letter of East Asian width takes two, a combining mark none,
and what would not print (a newline in a file's name, say) is spelled as an escape before it is
measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from unicodedata import combining, east_asian_width

from kemu.views.style import Style


def plain(text: str) -> str:
    r"""``text`` with each character that does not print as its escape: ``\n``, ``\x1b``,
    ``\u202e``, ``\udc80``."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def columns(text: str) -> int:
    """How many columns the text takes on a terminal."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int, style: Style) -> str:
    """At most ``width`` columns of ``text``; what is cut off is marked."""
    if columns(text) <= width:
        return text
    more = style.glyphs.more
    while text and columns(text) + columns(more) > width:
        text = text[:-1]
    return (text + more)[:width]


def left(text: str, width: int, style: Style) -> str:
    """``text`` cut or filled to ``width`` columns, at the left."""
    shown = cut(text, width, style)
    return shown + " " * (width - columns(shown))


def right(text: str, width: int, style: Style) -> str:
    """``text`` cut or filled to ``width`` columns, at the right."""
    shown = cut(text, width, style)
    return " " * (width - columns(shown)) + shown


def box(lines: Sequence[str], width: int, style: Style) -> list[str]:
    """The lines in a frame of ``width`` columns."""
    g = style.glyphs
    top = g.corners[0] + g.rule * (width - 2) + g.corners[1]
    bottom = g.corners[2] + g.rule * (width - 2) + g.corners[3]
    return [top, *(f"{g.pipe} {left(line, width - 4, style)} {g.pipe}" for line in lines), bottom]


def tidy(lines: Iterable[str], style: Style) -> str:
    """The lines as one text, without trailing blanks, none wider than the style."""
    return "\n".join(cut(line.rstrip(), style.width, style) for line in lines)


def hanging(first: str, texts: Iterable[str], style: Style, between: str = ", ") -> list[str]:
    """``first`` followed by the texts, in lines that fit; the next lines begin under the first
    text."""
    lines, indent = [first], " " * columns(first)
    texts = list(texts)
    for number, text in enumerate(texts):
        word = text + (between if number < len(texts) - 1 else "")
        if columns(lines[-1] + word.rstrip()) > style.width and lines[-1] != indent:
            lines.append(indent)
        lines[-1] += word
    return [line.rstrip() for line in lines]
