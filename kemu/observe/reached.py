"""What exists at a moment: all that the kernel's globals lead to.

A structure that nobody has linked yet, or that nothing leads to any more, is not there.  Frames
are: each has its struct page, and the way does not go through them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import attrs

from kemu.kernel.include.mm_types import maple_tree, page
from kemu.kernel.include.system import system
from kemu.machine.physmem import PhysMem

COLLECTIONS = (tuple, list, frozenset)
PLAIN = (int, str, bytes, float, type(None), page, PhysMem)
"""What leads nowhere; of RAM it is the table of frames alone that counts as a thing."""


def reached() -> frozenset[int]:
    """The ``id`` of every structure and every table that exists now."""
    found = {id(system.phys.frames)}
    waiting: list[Any] = [value for name, value in system.values().items() if name != "mem_map"]
    while waiting:
        obj = waiting.pop()
        if isinstance(obj, PLAIN) or id(obj) in found:
            continue
        if not isinstance(obj, COLLECTIONS):
            found.add(id(obj))
        waiting.extend(_parts(obj))
    return frozenset(found)


def _parts(obj: Any) -> Iterable[Any]:
    if isinstance(obj, COLLECTIONS):
        return obj
    if isinstance(obj, maple_tree):
        return [obj.mm, *obj]
    if isinstance(obj, dict):
        return obj.values()
    return [getattr(obj, name) for name in _fields(obj.__class__)]


@cache
def _fields(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(cls)) if attrs.has(cls) else ()
