"""A journal as lines of JSON, for another process to read: the state at its beginning, its events,
and the calls that made them.

    {"mem": ..., "geometry": ..., "first": 244, "functions": [...], "globals": {...}}
    [0, "kemu.kernel.include.mm_types:page", {"pfn": 274, "next": null, ...}]   an object
    [31, "kemu.trace.barrier:Table", {"name": "tasks"}, [[1, {"#": 5}], ...]]   one with keys
    [5, "mm", {"#": 31}, null]                                                  an event
    [976, 12]  [980, -13]              entering function 12 and leaving it, at slot of the log

Objects are numbered as in the journal (``trace/identity.py``), so a part cut out of a journal uses
the same numbers as the whole. A structure that came later is written as it was made, since its
making was not recorded: going back to before its first event shows it.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import attrs

from kemu.errors import KernelBug, UsageError
from kemu.kernel.init import syscalls  # noqa: F401 - loads every module that a journal names
from kemu.kernel.init.boot import Kernel
from kemu.machine.geometry import GEOMETRIES
from kemu.trace.barrier import sealed
from kemu.trace.frames import FUNCTIONS
from kemu.trace.identity import Numbers
from kemu.trace.journal import SLOTS, Journal
from kemu.trace.tape import raw

PACKAGES = ("kemu.kernel.", "kemu.machine.", "kemu.trace.")
"""The modules of the classes and constants that a journal may name."""

SEQUENCES: dict[str, Any] = {
    "tuple": tuple,
    "list": list,
    "deque": deque,
    "frozenset": frozenset,
}
AGAIN = "write the journal again: the file is damaged or was cut off"
_PLAIN = (bool, int, str, float, type(None))


def write(kernel: Kernel, first: int = 0, last: int | None = None) -> Iterator[str]:
    """The lines for the events (first, last] of the kernel's journal. The moment shown stays."""
    journal, now = kernel.journal, kernel.journal.cursor
    last = len(journal) if last is None else last
    kernel.activate()
    writer = _Writer(journal.index.numbered(journal.log).objects)
    log = journal.log[first * SLOTS : last * SLOTS]
    marks = [
        [at - first * SLOTS, fid]
        for at, fid in zip(journal.marks[::2], journal.marks[1::2], strict=True)
        if first * SLOTS <= at <= last * SLOTS
    ]
    journal.seek(first)
    try:
        with sealed():
            held = {name: writer.value(value) for name, value in kernel.globals.items()}
            events = [
                [writer.number(obj), *map(writer.value, rest)]
                for obj, *rest in zip(*(log[slot::SLOTS] for slot in range(SLOTS)), strict=True)
            ]
            objects = list(writer.objects())
    finally:
        journal.seek(now)
    head = {
        "mem": kernel.globals["phys"].size,
        "geometry": kernel.globals["geometry"].name,
        "first": first,
        "functions": [f"{function.module}:{function.name}" for function in FUNCTIONS],
        "globals": held,
        "lines": [len(objects), len(events), len(marks)],
    }
    for part in ([head], objects, events, marks):
        yield from (json.dumps(line) for line in part)
        yield ""


class _Writer:
    """Values as JSON, and the objects that they refer to. ``known`` are numbered already."""

    def __init__(self, known: list[Any]) -> None:
        self.numbers = Numbers(known)
        self.met = Numbers()
        self.waiting: deque[Any] = deque()
        self.constants = _constants()

    def number(self, obj: Any) -> int:
        """The number of an object, which must then be written too."""
        if self.met.known(obj) is None:
            self.met.of(obj)
            self.waiting.append(obj)
        return self.numbers.of(obj)

    def value(self, value: Any) -> Any:
        """A value; what is not an object is written in place."""
        if isinstance(value, _PLAIN):
            return value
        if id(value) in self.constants:
            return {"is": self.constants[id(value)]}
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        kind = type(value)
        if kind is dict:
            return {"dict": [[self.value(key), self.value(part)] for key, part in value.items()]}
        if kind in SEQUENCES.values() or isinstance(value, tuple):
            name = kind.__name__ if kind.__name__ in SEQUENCES else _name(kind)
            return {name: [self.value(part) for part in value]}
        return {"#": self.number(value)}

    def objects(self) -> Iterator[list[Any]]:
        """A line for each object that was met, and for those it refers to."""
        while self.waiting:
            obj = self.waiting.popleft()
            held = {name: self.value(getattr(obj, name)) for name in _slots(obj)}
            line = [self.numbers.of(obj), _name(type(obj)), held]
            if isinstance(obj, dict):
                line.append([[self.value(key), self.value(obj[key])] for key in sorted(obj)])
            yield line


def read(lines: Iterable[str]) -> Kernel:
    """A kernel with that journal, at its beginning. Raises UsageError for lines that are damaged or
    missing, KernelBug for what `write` does not write."""
    head, objects, events, marks = _parts(lines)
    geometry = GEOMETRIES[head["geometry"]]
    kernel = Kernel(mem=head["mem"], geometry=geometry, nr_cpus=1)
    reader = _Reader(objects)
    journal = Journal()
    for number, *rest in events:
        journal.log += (reader.objects[number], *map(reader.value, rest))
    fids = {f"{function.module}:{function.name}": function.fid for function in FUNCTIONS}
    for at, fid in marks:
        name = head["functions"][max(fid, ~fid)]
        if name not in fids:
            raise KernelBug(f"the journal names {name[:80]}, which is not in this version of kemu")
        journal.fresh_marks += (at, fids[name] if fid >= 0 else ~fids[name])
    kernel.replace({name: reader.value(value) for name, value in head["globals"].items()}, journal)
    return kernel


def _parts(lines: Iterable[str]) -> tuple[dict[str, Any], list[Any], list[Any], list[Any]]:
    """The head, and the lines of the three parts after it; each part ends with an empty line."""
    parts: list[list[Any]] = [[]]
    for at, line in enumerate(lines, 1):
        try:
            if line.strip():
                parts[-1].append(json.loads(line))
            else:
                parts.append([])
        except ValueError as error:
            raise UsageError(f"journal: line {at} is not JSON", hint=AGAIN) from error
    first, *others = parts if parts[-1] else parts[:-1] or parts
    head: dict[str, Any] = first[0] if first and isinstance(first[0], dict) else {}
    if len(first) != 1 or [len(part) for part in others] != head.get("lines"):
        raise UsageError("journal: lines are missing, or there are too many", hint=AGAIN)
    objects, events, marks = others
    return head, objects, events, marks


class _Reader:
    """The objects of the lines, by number."""

    def __init__(self, lines: list[Any]) -> None:
        self.objects: dict[int, Any] = {}
        for number, name, *_ in lines:
            cls = _named(name)
            self.objects[number] = cls.__new__(cls)
        for number, _, held, *keys in lines:
            obj = self.objects[number]
            for name, value in held.items():
                raw(obj, name, self.value(value))
            for key, value in keys[0] if keys else ():
                dict.__setitem__(obj, self.value(key), self.value(value))

    def value(self, value: Any) -> Any:
        """What `_Writer.value` wrote."""
        if not isinstance(value, dict):
            return value
        ((what, given),) = value.items()
        if what == "#":
            return self.objects[given]
        if what == "is":
            return _named(given)
        if what == "bytes":
            return bytes.fromhex(given)
        if what == "dict":
            return {self.value(key): self.value(part) for key, part in given}
        parts = [self.value(part) for part in given]
        return SEQUENCES[what](parts) if what in SEQUENCES else _named(what)._make(parts)


def _slots(obj: Any) -> list[str]:
    """The names of what an object holds, but for keys."""
    names = [name for cls in type(obj).__mro__ for name in vars(cls).get("__slots__", ())]
    found = [*names, *getattr(obj, "__dict__", ())]
    return [name for name in found if not name.startswith("__") and hasattr(obj, name)]


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _named(name: str) -> Any:
    """The class or constant of that name. Raises KernelBug for one that no journal holds."""
    module, _, attribute = name.partition(":")
    if not module.startswith(PACKAGES) or not hasattr(sys.modules.get(module), attribute):
        raise KernelBug(f"the journal names {name[:80]}, which is not in this version of kemu")
    return getattr(sys.modules[module], attribute)


def _constants() -> dict[int, str]:
    """The functions and the frozen structures at module level, such as ``generic_file_vm_ops``, by
    address: they are named, not written."""
    return {
        id(value): f"{name}:{attribute}"
        for name, module in sorted(sys.modules.items())
        if name.startswith(PACKAGES)
        for attribute, value in vars(module).items()
        if isinstance(value, FunctionType)
        or (attrs.has(type(value)) and not hasattr(value, "_restore"))
    }
