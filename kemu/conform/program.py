"""A recorded program: operations, and what the real kernel showed after each.

    {"name": ..., "ops": [{"op": "mmap", "p": "A", ...}, ...], "steps": [{"res": ..., "live": ...,
    "obs": ...}, ...]}

The recording says what *changed*: a process that looks as it did one step earlier is left out of
``obs``.  ``expand`` turns that into the full picture after each step.

Recordings come from outside: everything is checked before anything is run, and a mistake is a
``UsageError`` that names the file, the operation or step, the field, and what to do.  A step stays
plain JSON, because it is written as it is read.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from kemu.abi.uapi import PAGE_SIZE
from kemu.conform.fields import OPERATIONS, complaint
from kemu.conform.steps import Step, check_step
from kemu.errors import UsageError

MAX_OPS = 10_000
MAX_BYTES = 256 << 20
"""The largest file of recordings, unpacked."""

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_PROGRAM_KEYS = frozenset({"name", "ops", "steps", "seed", "q", "window", "noobs", "tags"})
U64 = (1 << 64) - 1


@attrs.frozen
class Op:
    """One operation of process ``p``; ``fields`` as in the recording, checked."""

    kind: str
    p: str
    fields: Mapping[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """The field ``name``, or ``default``."""
        return self.fields.get(name, default)

    def address(self, base: int, key: str = "page", offset: str = "off") -> int:
        """The address that the field ``key`` gives, in a window at ``base`` (u64)."""
        if key == "page" and "addr" in self.fields:
            return _number(self.fields["addr"]) & U64
        value: int | str | None = self.fields.get(key)
        if value is None:
            return 0
        if isinstance(value, str):
            return int(value, 16)
        return (base + value * PAGE_SIZE + int(self.fields.get(offset, 0))) & U64

    def length(self, key: str = "len") -> int:
        """The length in bytes that ``key`` gives (u64); ``bytes`` overrides ``len``."""
        if key == "len" and "bytes" in self.fields:
            return _number(self.fields["bytes"]) & U64
        value: int | str = self.fields[key]
        return int(value, 16) if isinstance(value, str) else (value * PAGE_SIZE) & U64

    def __str__(self) -> str:
        rest = {name: value for name, value in self.fields.items() if name not in ("op", "p")}
        return " ".join(
            [f"{self.p}.{self.kind}", *(f"{name}={_plain(value)}" for name, value in rest.items())]
        )


def _number(value: int | str) -> int:
    return int(value, 16) if isinstance(value, str) else value


def _plain(value: Any) -> str:
    return "|".join(value) if isinstance(value, list) else str(value)


@attrs.frozen
class Program:
    """``steps`` is empty if nothing was recorded yet.  ``source`` says where the program was read
    from; ``observed`` is False for a program that was recorded without observations (``noobs``)."""

    name: str
    ops: tuple[Op, ...]
    steps: tuple[Step, ...] = ()
    window: str = ""
    observed: bool = True
    question: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""

    def first(self, kind: str, **fields: Any) -> int:
        """The number of the first operation ``kind`` with these ``fields``, or the number of
        operations."""
        for number, op in enumerate(self.ops):
            if op.kind == kind and all(op.get(name) == value for name, value in fields.items()):
                return number
        return len(self.ops)


def expand(steps: tuple[Step, ...]) -> Iterator[dict[str, Any]]:
    """For each step, the full observation of each live process that was ever observed: name ->
    observation."""
    now: dict[str, Any] = {}
    for step in steps:
        changed = step["obs"]
        now = {
            name: changed.get(name, now.get(name))
            for name in step["live"]
            if name in changed or name in now
        }
        yield now


# ---------------------------------------------------------------- parsing


def parse_program(data: Any, source: str) -> Program:
    """The program that the JSON value ``data`` describes, read from ``source``."""
    if not isinstance(data, dict):
        raise _bad(
            source,
            "a recorded program is a JSON object",
            "write {'name': ..., 'ops': [...], 'steps': [...]}",
        )
    _check_head(data, source)
    ops = tuple(_parse_op(op, number, source) for number, op in enumerate(data["ops"]))
    _check_processes(ops, source)
    steps = data.get("steps", [])
    if steps and len(steps) != len(ops):
        raise _bad(
            source,
            f"{len(ops)} operations but {len(steps)} steps",
            "each operation has one: record the program again",
        )
    for number, step in enumerate(steps):
        check_step(step, f"{source}: step {number}")
    return Program(
        name=data["name"],
        ops=ops,
        steps=tuple(steps),
        window=data.get("window", ""),
        observed=not data.get("noobs", False),
        question=data.get("q", ""),
        tags=tuple(data.get("tags", ())),
        source=source,
    )


def _bad(source: str, what: str, hint: str) -> UsageError:
    return UsageError(f"{source}: {what}", hint=hint)


def _check_head(data: dict[str, Any], source: str) -> None:
    for key, kind in (("name", str), ("ops", list)):
        if not isinstance(data.get(key), kind):
            raise _bad(
                source, f"field '{key}' must be a {kind.__name__}", f"give the program its '{key}'"
            )
    for key, optional in (
        ("steps", list),
        ("q", str),
        ("noobs", bool),
        ("tags", list),
        ("window", str),
    ):
        if not isinstance(data.get(key, optional()), optional):
            raise _bad(
                source,
                f"field '{key}' must be a {optional.__name__}",
                f"correct '{key}' or leave it out",
            )
    unknown = sorted(set(data) - _PROGRAM_KEYS)
    if unknown:
        raise _bad(
            source,
            f"unknown field '{unknown[0]}'",
            f"a program has {', '.join(sorted(_PROGRAM_KEYS))}",
        )
    if data.get("window", "brk") != "brk":
        raise _bad(source, "field 'window' can only be 'brk'", "leave it out for the usual window")
    if not all(isinstance(tag, str) for tag in data.get("tags", ())):
        raise _bad(source, "field 'tags' must be a list of words", "correct 'tags' or leave it out")
    if len(data["ops"]) > MAX_OPS:
        raise _bad(
            source,
            f"{len(data['ops'])} operations, at most {MAX_OPS} can be run",
            "split the program",
        )


def _parse_op(data: Any, number: int, source: str) -> Op:
    place = f"operation {number}"
    if not isinstance(data, dict) or not isinstance(data.get("op"), str):
        raise _bad(
            source,
            f"{place} must be an object with a field 'op'",
            "name the operation, such as 'mmap'",
        )
    kind = data["op"]
    if kind not in OPERATIONS:
        raise _bad(
            source, f"{place}: unknown operation '{kind}'", f"known are {', '.join(OPERATIONS)}"
        )
    wrong = complaint(data)
    if wrong is not None:
        raise _bad(source, f"{place} ({kind}): field '{wrong[0]}' {wrong[1]}", "correct the field")
    return Op(kind=kind, p=data.get("p", "A"), fields=data)


def _check_processes(ops: tuple[Op, ...], source: str) -> None:
    """Check that every process that acts is A or was made before, and that no name is used
    twice."""
    known = {"A"}
    for number, op in enumerate(ops):
        for name in (op.p, op.get("t", "A")):
            if name not in known:
                raise _bad(
                    source,
                    f"operation {number} ({op.kind}): no process '{name}' yet",
                    "fork it first",
                )
        child = op.get("child")
        if child in known:
            raise _bad(
                source,
                f"operation {number} ({op.kind}): the name '{child}' is taken",
                "give each child a new name",
            )
        if child is not None:
            known.add(child)


# ---------------------------------------------------------------- files


def recordings(path: Path) -> list[Path]:
    """The files of recordings at ``path``: the file itself, or those in the folder, in order of
    name."""
    if path.is_dir():
        found = sorted(
            file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file()
        )
        if not found:
            raise _bad(
                str(path),
                "no recordings in this folder",
                f"recordings end in {', '.join(SUFFIXES)}",
            )
        return found
    return [path]


def load_programs(path: Path) -> list[Program]:
    """The programs in the file ``path``: one, or one per line in a ``.jsonl``; either may be
    compressed with gzip."""
    text = _text(path)
    if ".jsonl" not in path.name:
        return [parse_program(_json(text, str(path)), str(path))]
    lines = [
        (number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()
    ]
    return [
        parse_program(_json(line, f"{path}:{number}"), f"{path}:{number}") for number, line in lines
    ]


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if path.name.endswith(".gz"):
            with gzip.open(path) as stream:
                raw = stream.read(MAX_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise _bad(
            str(path),
            "the gzip data is damaged or incomplete",
            "make it again, or name it without .gz",
        ) from None
    except OSError as error:
        raise _bad(
            str(path), error.strerror or "cannot be read", "name a file or folder that can be read"
        ) from None
    if len(raw) > MAX_BYTES:
        raise _bad(str(path), f"more than {MAX_BYTES >> 20} MiB of recordings", "split the file")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise _bad(
            str(path), f"byte {error.start} is not UTF-8", "recordings are JSON in UTF-8"
        ) from None


def _json(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _bad(
            source, f"{where}: not JSON: {error.msg}", "a recording is one JSON object"
        ) from None
    except (ValueError, RecursionError) as error:
        raise _bad(source, f"not usable JSON: {error}", "a recording is one JSON object") from None
