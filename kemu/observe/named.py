"""Objects by the names that `trace` prints for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kemu.kernel.include.system import system
from kemu.observe.describe import KEY_NAMES
from kemu.observe.look import looking
from kemu.observe.names import Names
from kemu.observe.who import Directory
from kemu.trace.barrier import Table

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel


def named(kernel: Kernel, name: str, field: str, names: Names = None) -> Any:
    """The structure or table that `trace` calls `name` at this moment, and that has the field;
    None if there is none."""
    with looking(kernel):
        who = Directory(names)
        who.learn_present()
        known = [*who.parts_named(name), *(c for c in system.cpus if name == f"CPU {c.id}")]
        return next((obj for obj in known if isinstance(obj, Table) or hasattr(obj, field)), None)


def key_of(obj: Any, field: str) -> Any:
    """The field, or the key of a table, that is written so."""
    if not isinstance(obj, Table):
        return field
    words = list(KEY_NAMES.get(obj.name, ()))
    return words.index(field) if field in words else int(field) if field.isdecimal() else field


def value_of(obj: Any, field: str) -> Any:
    """The value of the field, or under the key; None without one."""
    key = key_of(obj, field)
    return obj.get(key) if isinstance(obj, Table) else getattr(obj, field, None)
