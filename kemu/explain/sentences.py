"""The reasons written on the lines of the kernel that fail.

    if not length:
        return -EINVAL, 0  #: the length is 0 -> a length above 0

A comment that opens with `#:` belongs to its statement, or to the next one if it has lines of its
own.  It says why the kernel gives up there and, after the arrow, what to do instead.  Braces hold a
name of the function or of its module, with attributes and a format:

    {vma.vm_end:#x}      as Python formats it
    {npages:pages}       a count and its noun: 1 page, 2 pages
    {vma:range}          the addresses of a mapping: 0x10000-0x14000
    {may_expand_vm}      a function: the reason that the last call of it gave, made here or deeper

Names are looked up, never computed: a sentence can read the state, and nothing else.
"""

from __future__ import annotations

import ast
import linecache
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

MARK = "#:"
ARROW = " -> "


class Sentence(NamedTuple):
    """Why the kernel gives up, and what to do instead ("": what helps against the errno)."""

    why: str
    instead: str = ""


@cache
def sentences(path: str) -> Mapping[int, Sentence]:
    """The sentences of a source file, under each line of the statement that they belong to; none
    for a file that is not there."""
    lines = linecache.getlines(path)
    marked = list(_comments(lines))
    found: dict[int, Sentence] = {}
    if not marked:
        return found
    statements = [
        node for node in ast.walk(ast.parse("".join(lines))) if isinstance(node, ast.stmt)
    ]
    for line, text in marked:
        node = max(
            (one for one in statements if one.lineno <= line <= (one.end_lineno or 0)),
            key=lambda one: one.lineno,
        )
        why, _, instead = text.partition(ARROW)
        span = range(node.lineno, (node.end_lineno or 0) + 1)
        found |= dict.fromkeys(span, Sentence(why, instead))
    return found


def _comments(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(a line of the statement, text) of each comment."""
    above: list[str] = []
    for number, line in enumerate(lines, 1):
        code, mark, text = line.partition(MARK)
        if mark and not code.strip():
            above.append(text.strip())
        elif mark or above:
            yield number, " ".join([*above, text.strip()]).strip()
            above = []


class Filler(string.Formatter):
    """Fills in the braces of a sentence from the names of a frame. `said`: the sentence that the
    newest call of a function of this name gave."""

    def __init__(self, names: Mapping[str, Any], said: Callable[[str], Sentence]) -> None:
        self.names = names
        self.said = said

    def filled(self, sentence: Sentence) -> Sentence:
        """The sentence in words. Advice from a function named in it takes precedence."""
        self.inherited = ""
        why = self.vformat(sentence.why, (), {})
        return Sentence(why, self.inherited or sentence.instead)

    def get_field(self, field_name: str, _args: Any, _kwargs: Any) -> tuple[Any, str]:
        """The value of a name with attributes."""
        name, *attributes = field_name.split(".")
        value = self.names[name]
        if isinstance(value, FunctionType):
            value, self.inherited = self.said(name)
        for attribute in attributes:
            value = getattr(value, attribute)
        return value, name

    def format_field(self, value: Any, format_spec: str) -> str:
        """The value in its format: Python's, `range`, or a noun in the plural."""
        if format_spec == "range":
            return f"{value.vm_start:#x}-{value.vm_end:#x}"
        if len(format_spec) > 1 and format_spec.isalpha():
            return f"{value} {format_spec.removesuffix('s') if value == 1 else format_spec}"
        return format(value, format_spec)
