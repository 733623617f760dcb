"""Expanded code, kept beside the compiled modules: ``__pycache__/bulk.cpython-311.expanded``.

Making it takes a second, loading it some milliseconds.  As with Python's own ``.pyc``: it is made
again when a source file changed, nobody needs it, and it may be deleted at any time.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterable
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from types import CodeType, FunctionType

Expanded = tuple[list[tuple[str, str, CodeType]], list[tuple[str, str, str, str]]]
"""Module, name and new code of each function that became another one; and module and name of each
global that the new code needs, with the module and name where its value is found, in the order in
which they can be made."""


def _path(module: str) -> Path:
    return Path(cache_from_source(module)).with_suffix(".expanded")


def _key(folders: Iterable[str]) -> bytes:
    """What the kept code depends on: the Python, and size and time of change of every source file
    in ``folders``."""
    found = [MAGIC_NUMBER, sys.version.encode()]
    for folder in folders:
        with os.scandir(folder) as entries:
            files = sorted(
                (entry.path, entry.stat()) for entry in entries if entry.name.endswith(".py")
            )
        found += [f"{path} {stat.st_size} {stat.st_mtime_ns}".encode() for path, stat in files]
    return source_hash(b"\n".join(found))


def load(module: str, folders: Iterable[str]) -> tuple[Expanded, ...] | None:
    """What was saved for the source file ``module``, None if there is nothing or it is out of
    date."""
    try:
        content = _path(module).read_bytes()
        key = _key(folders)
    except (OSError, NotImplementedError):  # there is none, or this Python keeps no compiled files
        return None
    if content[: len(key)] != key:
        return None
    try:
        found: tuple[Expanded, ...] = marshal.loads(content[len(key) :])  # noqa: S302 - what we wrote, as trusted as a .pyc
    except (EOFError, ValueError, TypeError):
        return None
    return found


def possible(module: str) -> bool:
    """True if ``save`` has somewhere to write."""
    if sys.dont_write_bytecode:
        return False
    try:
        folder = _path(module).parent
        folder.mkdir(parents=True, exist_ok=True)
    except (
        OSError,
        NotImplementedError,
    ):  # the folder is not ours, or this Python keeps no compiled files
        return False
    return os.access(folder, os.W_OK)


def save(module: str, folders: Iterable[str], stored: tuple[Expanded, ...]) -> None:
    """Keep ``stored``, where that is possible; whoever reads meanwhile finds the old file or the
    new one."""
    if not possible(module):
        return
    path = _path(module)
    part = path.with_suffix(f".{os.getpid()}")
    try:
        part.write_bytes(_key(folders) + marshal.dumps(stored))
        part.replace(path)
    except OSError:  # a full disk: the next process tries again
        part.unlink(missing_ok=True)


def in_place(expanded: Expanded) -> dict[FunctionType, CodeType]:
    """The new code by function, and all globals that it needs made."""
    codes, aliases = expanded
    for module, name, theirs, value in aliases:
        setattr(sys.modules[module], name, getattr(sys.modules[theirs], value))
    found = {}
    for module, qualname, code in codes:
        holder, _, name = qualname.rpartition(".")
        space = vars(getattr(sys.modules[module], holder) if holder else sys.modules[module])
        found[space[name]] = code
    return found
