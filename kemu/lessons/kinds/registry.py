"""The kinds of step by name: one module each in this folder, found by being here.

A kind is a class with a name in `kind`; a new one needs its module and a test, nothing else.  What
a kind can be asked is in `base`.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from kemu.lessons import kinds
from kemu.lessons.kinds.base import Kind

KINDS: dict[str, type[Kind]] = {}
"""The kinds by name."""


def register(kind: type[Kind]) -> type[Kind]:
    """Make the kind known to everything that reads, takes, proves and grades lessons."""
    KINDS[kind.kind] = kind
    return kind


for _module in pkgutil.iter_modules(kinds.__path__, f"{kinds.__name__}."):
    for _member in list(vars(import_module(_module.name)).values()):
        if isinstance(_member, type) and issubclass(_member, Kind) and "kind" in vars(_member):
            register(_member)
