"""The words of an expression: numbers, strings, names, operators, each with its column.

    0x10000  0b101  4_096  64K 2M 1G  3p  'text'  child.heap  $pid $last $1
    + - * / % & | ^ << >> ~ ( ) , == != < <= > >=

`3p` is three pages. Numbers are ASCII; any other character that looks like a digit is an error.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kemu.abi.uapi import PAGE_SIZE
from kemu.errors import UsageError
from kemu.language.tokens import unescape

WIDEST = 128
"""Bits. No number in an expression may be wider than this; an address has at most 64."""

SUFFIXES = {
    "": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30,
    "p": PAGE_SIZE,
}  # fmt: skip
KEYWORDS = frozenset({"and", "or", "not"})

_WORD = re.compile(
    r"""(?P<number>[0-9]\w*)
      | (?P<name>[A-Za-z_]\w*(?:\.\w+)*)
      | (?P<variable>\$\w+)
      | (?P<operator>\*\*|//|<<|>>|==|!=|<=|>=|&&|\|\||[-+*/%&|^~(),<>=!])
    """,
    re.VERBOSE | re.ASCII,
)
_NUMBER = re.compile(
    r"(?P<digits>0[xX][0-9a-fA-F_]+|0[bB][01_]+|[0-9][0-9_]*)(?P<suffix>[A-Za-z]*)\Z", re.ASCII
)
_INSTEAD = {
    "=": "==",
    "!": "not",
    "&&": "and",
    "||": "or",
    "//": "/",
    "**": "* (there is no power)",
}


class Word(NamedTuple):
    """`kind` is number, string, name, variable, operator, keyword or end; `value` is the number or
    the text."""

    kind: str
    value: int | str
    column: int
    length: int


class BadNumber(UsageError):
    """A word cannot be read as a number; the argument's type can say better what is wrong."""


class Source(NamedTuple):
    """The place of an expression: `text[start:end]` of a line, so that errors can point into the
    line."""

    text: str
    start: int
    end: int

    def error(self, what: str, column: int, length: int, hint: str = "") -> UsageError:
        """A mistake of the user at `column` of the line."""
        return UsageError(what, text=self.text, column=column, length=max(length, 1), hint=hint)


def words(source: Source) -> list[Word]:
    """All words of the expression, followed by one of kind `end`."""
    found: list[Word] = []
    at = source.start
    while at < source.end:
        if source.text[at].isspace():
            at += 1
            continue
        word = _string(source, at) if source.text[at] in "\"'" else _word(source, at)
        found.append(word)
        at += word.length
    found.append(Word("end", "", source.end, 1))
    return found


def _word(source: Source, at: int) -> Word:
    match = _WORD.match(source.text, at, source.end)
    if match is None:
        raise source.error(
            f"expression: unexpected {source.text[at]!r}", at, 1, "see: help expressions"
        )
    text = match[0]
    kind = match.lastgroup or ""
    if kind == "number":
        return Word(kind, number(source, at, text), at, len(text))
    if kind == "operator" and text in _INSTEAD:
        raise source.error(
            f"expression: '{text}' is not an operator", at, len(text), f"write {_INSTEAD[text]}"
        )
    if kind == "name" and text in KEYWORDS:
        kind = "keyword"
    return Word(kind, text, at, len(text))


def _string(source: Source, at: int) -> Word:
    text, quote, end = source.text, source.text[at], at + 1
    while end < source.end and text[end] != quote:
        end += 2 if text[end] == "\\" else 1
    if end >= source.end:
        raise source.error("the string is never closed", at, 1, f"add {quote}")
    return Word("string", unescape(text, at, end + 1), at, end + 1 - at)


def number(source: Source, at: int, text: str) -> int:
    """The value of `text`, at column `at`; bytes for a size."""
    match = _NUMBER.match(text)
    if match is None or match["suffix"] not in SUFFIXES:
        raise _bad_number(source, at, text, "a number may end in K M G (bytes) and p (pages)")
    digits = match["digits"].replace("_", "")
    base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
    if len(digits) > WIDEST + 2 or not (base == 10 or digits[2:]):
        raise _bad_number(source, at, text, f"write digits, at most {WIDEST} bits")
    value = int(digits, base) * SUFFIXES[match["suffix"]]
    if value.bit_length() > WIDEST:
        raise _bad_number(source, at, text, f"at most {WIDEST} bits; an address has 64")
    return value


def _bad_number(source: Source, at: int, text: str, hint: str) -> BadNumber:
    what = f"cannot read the number '{shorten(text)}'"
    return BadNumber(what, text=source.text, column=at, length=len(text), hint=hint)


def shorten(text: str) -> str:
    """A text that fits into one line of an error."""
    return text if len(text) <= 24 else text[:21] + "..."
