"""Readings for programs: one function for all of them.

A reading becomes an object of its fields, a tuple a list, ``Pairs`` an object, bytes a string of
hex digits.  A field whose annotation names ``Address`` or ``Word`` is written ``"0x..."``: a
program in a language with 53-bit numbers would lose bits. docs/json.md lists the fields of every
reading; a test keeps it up to date.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from kemu.readings import Reading


def to_data(value: Any, annotation: str = "") -> Any:
    """``value`` as JSON values; ``annotation`` is that of the field that holds it."""
    if isinstance(value, Reading):
        return {name: to_data(getattr(value, name), kind) for name, kind in value._fields.items()}
    if isinstance(value, (tuple, list)):
        if is_object(annotation):
            return {name: to_data(item, annotation) for name, item in value}
        return [to_data(item, annotation) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool) and is_hex(annotation):
        return hex(value)
    return value


@cache
def is_hex(annotation: str) -> bool:
    """True if numbers under this annotation are addresses or words."""
    return bool(re.search(r"\b(Address|Addresses|Word)\b", annotation))


def is_object(annotation: str) -> bool:
    """True if a tuple of (name, value) under this annotation is an object."""
    return annotation in ("Pairs", "Addresses")
