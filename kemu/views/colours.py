"""Colour by meaning, put over text that is finished: wrapping and columns never see it.

    writable    W of an entry, w of a mapping             yellow
    copy        COPY, copied: a write makes a copy        magenta
    reuse       REUSE, reused: a write needs no copy      green
    stale       STALE: the TLB has what the tables lost   red
    error       an errno, a signal                        red
    new         the value after an arrow                  green
    address     0x...                                     cyan

Every meaning has its word or letter as well, so nothing is lost without colour.
"""

from __future__ import annotations

import re

from kemu.views.style import Style

LEGEND = {
    "writable": "W of an entry, w of a mapping: may be written",
    "copy": "COPY, copied: a write makes a copy",
    "reuse": "REUSE, reused: a write needs no copy",
    "stale": "STALE: a TLB has what the tables no longer say",
    "error": "an errno or a signal",
    "new": "the value after an arrow",
    "address": "an address or another number in base 16",
    "changed": "the star of what differs",
}
"""Role -> what it marks; the roles are those of `style.ROLES`."""

_MEANING = re.compile(
    r"""(?P<escape>\x1b\[[0-9;]*m[^\x1b]*\x1b\[0m)
      | (?P<error>-E[A-Z0-9]{2,}\b|\bSIG[A-Z]{2,}\b)
      | (?P<stale>\bSTALE\b)
      | (?P<copy>\bCOPY\b|\bcopied\b)
      | (?P<reuse>\bREUSE\b|\breused\b)
      | (?P<bits>\b[P-][W-][RU-][A-][D-][H-][G-][S-][N-]|\br[w-][x-][ps]\b)
      | (?P<new>(?<=->[ ])[^\s()]+)
      | (?P<address>\b0x[0-9a-f]+)
    """,
    re.VERBOSE,
)


def coloured(text: str, style: Style) -> str:
    """The text with its meaning in colour; unchanged without colour, and never other letters."""
    if not style.colour:
        return text

    def paint(match: re.Match[str]) -> str:
        role, found = match.lastgroup or "", match[0]
        if role == "escape":
            return found
        if role == "bits":
            return re.sub("[Ww]", lambda letter: style.paint(letter[0], "writable"), found)
        return style.paint(found, role)

    return _MEANING.sub(paint, text)
