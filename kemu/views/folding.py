"""Lines that are wider than the terminal, broken between words: a terminal itself breaks them
wherever its edge is.

    cost              what a command or a range cost, beside the same with
                      eager copying
    PID  PPID  NAME  S  CPU  MM  PAGES  RSS
        MINFLT  MAJFLT

The continuation goes under the last column if that begins in the left half, otherwise a little to
the right. A line that cannot be broken stays whole, as does text meant to be copied: commands and
code, which are indented, not in columns, and have marks.
"""

from __future__ import annotations

import re

_WORD = re.compile(r" *[^ ]+")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_COLUMN = re.compile(r"(?<=[^ ])  +(?=[^ ])")
_COPIED = re.compile(r"[;\"'=(]")
STEP = 4


def folded(text: str, width: int) -> str:
    """The text with each line that is wider than `width` columns broken between words."""
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def _parts(line: str, width: int) -> list[str]:
    plain = _COLOUR.sub("", line)
    starts = [gap.end() for gap in _COLUMN.finditer(plain)]
    lead = len(plain) - len(plain.lstrip(" "))
    copied = 0 < lead < width // 2 and not starts and _COPIED.search(plain)
    if len(plain) <= width or copied:
        return [line]
    indent = starts[-1] if starts and starts[-1] <= width // 2 else min(lead + STEP, width // 2)
    parts, used = [""], 0
    for word in _WORD.findall(line):
        begins = used + _columns(word) > width and bool(parts[-1].strip())
        if begins:
            parts.append(" " * indent)
        piece = word.lstrip(" ") if begins else word
        used = (indent if begins else used) + _columns(piece)
        parts[-1] += piece
    return parts


def _columns(text: str) -> int:
    return len(_COLOUR.sub("", text))
