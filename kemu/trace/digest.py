"""A fingerprint of all recorded state: the same state gives the same digest, in every process and
on every run.

The traversal starts at a root object and follows every field.  Each structure is numbered when it
is first met, so that identity and sharing count but memory addresses do not; dictionaries are read
in sorted order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from kemu.trace.identity import Numbers

Expand = Callable[[Any], "Iterator[tuple[str, Any]] | None"]


class _Dump:
    """One traversal: the numbers assigned, and the objects still to be described."""

    def __init__(self, expand: Expand) -> None:
        import hashlib  # loads a C library that a short command never needs

        self.expand = expand
        self.numbers = Numbers()
        self.waiting: deque[Any] = deque()
        self.hash = hashlib.sha256()

    def value(self, value: Any) -> str:
        """How a field's value is written; a structure is written as its number."""
        if value is None or isinstance(value, (int, str, bytes, float)):
            return repr(value)
        if isinstance(value, (tuple, list)):
            return "(" + ",".join(self.value(v) for v in value) + ")"
        if isinstance(value, frozenset):
            return "{" + ",".join(sorted(self.value(v) for v in value)) + "}"
        if self.numbers.known(value) is None:
            self.waiting.append(value)
        return f"#{self.numbers.of(value)}"

    def run(self, root: Any) -> str:
        self.value(root)
        while self.waiting:
            obj = self.waiting.popleft()
            self.hash.update(f"{type(obj).__name__}\n".encode())
            for name, value in self.fields(obj):
                self.hash.update(f"{name}={self.value(value)}\n".encode())
        return self.hash.hexdigest()

    def fields(self, obj: Any) -> Iterator[tuple[str, Any]]:
        """The parts of an object, with their names."""
        special = self.expand(obj)
        if special is not None:
            yield from special
        elif isinstance(obj, dict):
            for key in sorted(obj):
                yield repr(key), obj[key]
        elif attrs.has(type(obj)):
            for field in attrs.fields(type(obj)):
                yield field.name, getattr(obj, field.name)


def digest(root: Any, expand: Expand) -> str:
    """SHA-256 (hex) of everything that can be reached from ``root``.  ``expand(obj)`` returns the
    parts of an object that is neither a structure nor a dictionary, or None for the usual ones."""
    return _Dump(expand).run(root)
