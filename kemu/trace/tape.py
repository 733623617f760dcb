"""Storing records, the barrier, the marks, undoing and redoing a log, reading RAM: in C if that was
compiled (``_fast.c``), otherwise in Python (``_plain.py``).

Both behave alike, event for event.  ``KEMU_PURE`` in the environment selects Python; ``kemu
doctor`` says which one runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from kemu.trace import _plain
from kemu.trace._plain import Pointers, Refuse


def _choose() -> tuple[ModuleType, str]:
    """The implementation to use, and why it is not the one in C ("" if it is)."""
    if os.environ.get("KEMU_PURE"):
        return _plain, "KEMU_PURE is set"
    try:
        from kemu.trace import _fast
    except ImportError as error:
        return _plain, str(error)
    if getattr(_fast, "VERSION", 0) != _plain.VERSION:
        return _plain, "_fast.c was compiled for another version; install kemu again"
    return _fast, ""


implementation, WHY_PLAIN = _choose()

direct: Callable[[list[Any] | None, list[int] | None, Refuse | None], None] = implementation.direct
emit: Callable[[Any, Any, Any, Any], None] = implementation.emit
mark: Callable[[int], None] = implementation.mark
raw: Callable[[Any, str, Any], None] = implementation.raw
bar: Callable[[type, bool], None] = implementation.bar
add: Callable[[Any, str, int], int] = implementation.add
put: Callable[[Any, Any, Any], None] = implementation.put
recorded_put: Callable[[Any, Any, Any], None] = implementation.recorded_put
changes: Callable[[list[Any], list[Any], str, int, int], int] = implementation.changes
back: Callable[[list[Any]], None] = implementation.back
forward: Callable[[list[Any]], None] = implementation.forward
load: Callable[[Any, int], int] = implementation.load
store: Callable[[Any, int, int], None] = implementation.store
last_table: Callable[[dict[int, Any], Pointers, int, int], dict[int, int] | None] = (
    implementation.last_table
)
