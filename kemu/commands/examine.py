"""x: memory in gdb's formats.

x/8xg app 0x10000     eight giant words (8 bytes) in base 16
x/2db 0x10000         two bytes of the current task in base 10
x/s 0x10000           the text that begins there
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import Argument, command, maybe, one
from kemu.language.tokens import Line, Token
from kemu.readings import Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.language.spec import Candidate

SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}
FORMS = "xduotacs"
MOST = 4096
"""Largest number of units shown."""
LONGEST_TEXT = 200
ROW = 16
"""Bytes in a line."""


class Format(NamedTuple):
    """How many units, in which form, of which size in bytes."""

    units: int = 1
    form: str = "x"
    size: int = 4


class FormatKind:
    """`/8xg`: a number, a letter for the form, a letter for the size, each optional."""

    name = "FORMAT"
    what = "a format such as /8xg: a number, a form (x d u o t a c s), a size (b h w g)"
    _SHAPE = re.compile(rf"/(\d{{0,5}})([{FORMS}]?)([bhwg]?)\Z", re.ASCII)
    _TURNED = re.compile(rf"/(\d{{0,5}})([bhwg])([{FORMS}])\Z", re.ASCII)

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Opens with a slash."""
        return not token.quoted and token.text.startswith("/")

    def convert(self, token: Token, line: Line, session: Session) -> Format:
        """The format."""
        plain, turned = self._SHAPE.match(token.text), self._TURNED.match(token.text)
        match = plain or turned
        if match is None:
            raise UsageError(
                f"expected {self.what}, got '{token.text[:20]}'", hint="for example x/8xg 0x10000"
            )
        form, size = (match[2], match[3]) if plain else (match[3], match[2])
        count = int(match[1] or 1)
        if not 1 <= count <= MOST:
            raise UsageError(f"{count} units cannot be shown", hint=f"from 1 to {MOST}")
        default = "b" if form in ("c", "s") else "g" if form == "a" else "w"
        return Format(count, form or "x", SIZES[size or default])

    def complete(self, session: Session) -> Iterable[Candidate]:
        """The usual ones."""
        return [("/8xg", "eight words of 8 bytes"), ("/16xb", "16 bytes"), ("/s", "a text")]


_START = 'spawn app; mmap app 0x10000 1p rw; write app 0x10000 "hello"; '
_FORMAT: Argument = maybe("form", FormatKind(), Format())


@command(
    "x",
    arguments=(_FORMAT, maybe("task", kinds.TASK), one("addr", kinds.ADDRESS)),
    summary="memory in gdb's formats, without touching it",
    more="x/8xg ADDR shows eight words of 8 bytes in base 16. The forms are x d u o t (2) a "
    "(address) c (character) s (text); the sizes b (1 byte) h (2) w (4) g (8). Causes no faults, "
    "as dump.",
    examples=(_START + "x /8xb app 0x10000", _START + "x /s app 0x10000; x/2xg 0x10000"),
    linux="x of gdb(1)",
)
def x(session: Session, form: Format, task: Task, addr: int) -> Text:
    """The units from the address on."""
    from kemu.observe import translation

    count, letter, size = form
    wanted = LONGEST_TEXT if letter == "s" else count * size
    room = min(wanted, 2**64 - addr)
    found = translation.dump(session.kernel, task, addr, room, session.name_of)
    data = b""
    for _, chunk in found.chunks:
        if chunk is None:
            break
        data += chunk
    if not data:
        raise UsageError(
            f"addr: cannot access memory at {addr:#x}: nothing is mapped there",
            hint="walk shows which tables exist; read touches the page",
            about="addr",
        )
    if letter == "s":
        text = data.split(b"\0")[0]
        shown = "".join(chr(b) if 32 <= b < 127 else f"\\x{b:02x}" for b in text)
        return Text((f'{addr:#x}:  "{shown}"',))
    units = [
        int.from_bytes(data[at : at + size], "little")
        for at in range(0, len(data) - size + 1, size)
    ]
    each = ROW // size
    lines = [
        f"{addr + at * size:#x}:  "
        + "  ".join(_unit(value, letter, size) for value in units[at : at + each])
        for at in range(0, len(units), each)
    ]
    missing = addr + len(data)
    end = () if len(data) >= room else (f"{missing:#x}:  nothing is mapped there",)
    return Text((*lines, *end))


def _unit(value: int, form: str, size: int) -> str:
    """One unit in its form."""
    if form == "d":
        return str(value - (1 << size * 8) if value >> (size * 8 - 1) else value)
    if form == "c":
        return f"{value} '{chr(value)}'" if 32 <= value < 127 else f"{value} '\\x{value:02x}'"
    bases = {"x": f"0x{value:0{size * 2}x}", "u": str(value), "o": f"0{value:o}"}
    return {**bases, "t": f"{value:0{size * 8}b}", "a": hex(value)}[form]
