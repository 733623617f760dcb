"""How `print` and `display` write a number: gdb's letters after a slash.

    print/x 12288      0x3000
    print/t pte(app, 0x10000) & 0xfff
    display/d app.brk

The letter may be joined to the command (`print/x 3p`) or stand apart (`print /x 3p`). Without a
letter a number is shown in both bases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.language.expr import Expression, Value, format_value
from kemu.language.kinds import ExpressionKind, compiled
from kemu.language.tokens import Line, Token

if TYPE_CHECKING:
    from kemu.experiment.session import Session

_U64 = (1 << 64) - 1


def _bits(value: int) -> str:
    """Binary digits in groups of eight."""
    digits = f"{abs(value):b}"
    digits = digits.zfill((len(digits) + 7) // 8 * 8)
    groups = "_".join(digits[at : at + 8] for at in range(0, len(digits), 8))
    return f"{'-' * (value < 0)}0b{groups}"


def _character(value: int) -> str:
    byte = value & 0xFF
    return f"{byte} '{chr(byte)}'" if 32 <= byte < 127 else f"{byte} '\\x{byte:02x}'"


def _signed(value: int) -> str:
    """As a signed 64-bit number, if it fits in 64 bits."""
    return str(value - (1 << 64) if 1 << 63 <= value <= _U64 else value)


FORMATS: dict[str, tuple[str, Callable[[int], str]]] = {
    "x": ("in base 16", hex),
    "d": ("in base 10, signed", _signed),
    "u": ("in base 10, unsigned", lambda value: str(value & _U64)),
    "o": ("in base 8", lambda value: oct(value).replace("0o", "0")),
    "t": ("in base 2", _bits),
    "b": ("in base 2", _bits),
    "z": ("in base 16, all 64 bits", lambda value: f"0x{value & _U64:016x}"),
    "c": ("as a character", _character),
    "p": (
        "in pages",
        lambda value: f"{value >> 12}p" + (f" + {value & 4095:#x}" if value & 4095 else ""),
    ),
}
"""Letter -> what it means, and how a number is written."""


def write(value: Value, form: str) -> str:
    """The value in the format of the letter; anything but a number is written as usual."""
    if not form or not isinstance(value, int) or isinstance(value, bool):
        return format_value(value)
    return FORMATS[form][1](value)


class FormattedKind(ExpressionKind):
    """The rest of the command as an expression, optionally preceded by a format."""

    name = "EXPR"
    what = "an expression, after /x, /d, /t ... if you want it in one base (see: help formats)"

    def convert(self, token: Token, line: Line, session: Session) -> Expression:
        """The compiled expression, with its format."""
        if not token.text.startswith("/"):
            return super().convert(token, line, session)
        form = token.text[1:].partition(" ")[0]
        end = token.column + 1 + len(form)
        if form not in FORMATS:
            raise UsageError(
                f"format: no '/{form[:20]}'",
                text=line.text,
                column=token.column,
                length=1 + len(form),
                hint=f"known are {' '.join('/' + letter for letter in FORMATS)} (see: help "
                "formats)",
            )
        return compiled(line.text, end, token.end)._replace(form=form)


FORMATTED = FormattedKind()
