"""`{expr}` in a text: finding it, and replacing it by its value.

    "reads {n} pages at {hex(a)}"     "{{" and "}}" are the braces themselves

A brace inside quotes of the expression closes nothing.  In prose, fences that name a
language (```c) are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kemu.errors import UsageError
from kemu.language.expr import Value
from kemu.lessons.format.names import compiled, plain

_STOP = re.compile(r"\{\{|\}\}|\{|\}")
_FENCED = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,})[ \t]*\w[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)")


class Hole(NamedTuple):
    """An expression in a text: text[start:end] with its braces."""

    start: int
    end: int
    expression: str


def holes(text: str) -> Iterator[Hole | tuple[int, int, None]]:
    """The expressions, and (start, end, None) for each doubled brace, in order.  Raises UsageError
    for a brace alone."""
    at = 0
    while (found := _STOP.search(text, at)) is not None:
        if found[0] in ("{{", "}}"):
            yield (found.start(), found.end(), None)
            at = found.end()
            continue
        end = _closing(text, found.end()) if found[0] == "{" else -1
        if end < 0:
            other = "}" if found[0] == "{" else "{"
            hint = f"a brace itself is {found[0] * 2}"
            raise UsageError(
                f"text: '{found[0]}' without '{other}'",
                text=_around(text, found.start()),
                hint=hint,
            )
        yield Hole(found.start(), end, text[found.end() : end - 1])
        at = end


def _closing(text: str, at: int) -> int:
    """The index after the closing brace; -1 without one."""
    quote = ""
    for index in range(at, len(text)):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "}":
            return index + 1
        elif char in "{\n":
            return -1
    return -1


def _around(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : end if end >= 0 else len(text)][:72]


def rendered(text: str, value: Callable[[str], Value]) -> str:
    """The text with each expression replaced by what `value` gives for it.  Raises UsageError."""
    parts, at = [], 0
    for start, end, expression in holes(text):
        parts.append(text[at:start])
        parts.append(text[start] if expression is None else plain(value(expression)))
        at = end
    return "".join([*parts, text[at:]])


def rendered_prose(text: str, value: Callable[[str], Value]) -> str:
    """As `rendered`, but fences that name a language stay as they are."""
    parts, at = [], 0
    for fence in _FENCED.finditer(text):
        parts += [rendered(text[at : fence.start()], value), fence[0]]
        at = fence.end()
    return "".join([*parts, rendered(text[at:], value)])


def expressions_of(text: str, *, prose: bool = False) -> Iterator[str]:
    """The expressions of a text.  Raises UsageError for a brace alone."""
    plain_text = _FENCED.sub("", text) if prose else text
    for _, _, expression in holes(plain_text):
        if expression is not None:
            compiled(expression)
            yield expression
