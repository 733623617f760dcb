"""What exists at a moment: everything that can be reached from the kernel's globals.

A structure that is not linked yet, or not any more, does not exist. Frames always do: each has its
struct page, and they are not followed.
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
"""Types whose values are not followed; of RAM only the table of frames counts."""


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
