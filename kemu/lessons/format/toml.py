"""TOML written: of the values that a lesson may hold.  The standard library only reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def written(table: Mapping[str, Any]) -> str:
    """The lines of a table, one key each."""
    return "".join(f"{key(name)} = {value(item)}\n" for name, item in table.items())


def key(name: str) -> str:
    """A key, quoted where it must be."""
    return name if _BARE.match(name) else quoted(name)


def value(item: Any) -> str:
    """A value on one line; a text of several lines on several."""
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, (int, float)):
        return str(item)
    if isinstance(item, str):
        return _lines(item) if "\n" in item else quoted(item)
    if isinstance(item, Mapping):
        return (
            "{ "
            + ", ".join(f"{key(name)} = {_inline(inner)}" for name, inner in item.items())
            + " }"
        )
    return "[" + ", ".join(_inline(inner) for inner in item) + "]"


def _inline(item: Any) -> str:
    """A value inside another: texts on one line."""
    return quoted(item) if isinstance(item, str) else value(item)


def quoted(text: str) -> str:
    """A text between quotes."""
    made = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_escaped(char) for char in made) + '"'


def _lines(text: str) -> str:
    made = text.replace("\\", "\\\\").replace('"""', '""\\"')
    if made.endswith('"'):
        made = made[:-1] + '\\"'
    return '"""\n' + "".join(char if char == "\n" else _escaped(char) for char in made) + '"""'


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or f"\\u{ord(char):04x}"
