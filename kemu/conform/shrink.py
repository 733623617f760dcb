"""Find the smallest program that still differs: leave out operations, then simplify the rest, until
nothing helps.

    drop an operation (from the end, so that a child's operations go before its fork)
    let A do what a child did
    drop an optional field, drop a flag, make a length 1, use plain memory

Each attempt is one run on both sides.  Hypothesis could do this too, on the choices from which it
made the program; working on the program itself takes a tenth of the attempts and leaves fewer
operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from kemu.conform.fields import OPERATIONS
from kemu.conform.program import Program, parse_program
from kemu.errors import UsageError

SIMPLEST: dict[str, Any] = {
    "p": "A",
    "t": "A",
    "len": 1,
    "newlen": 1,
    "n": 1,
    "pages": 1,
    "prot": "rw-",
    "kind": "memfd",
}
"""Simpler values to try for a field."""

Operation = dict[str, Any]


def smallest(program: Program, differs: Callable[[Program], bool]) -> Program:
    """The smallest program found that ``differs`` as ``program`` does, without steps."""
    best = attrs.evolve(program, steps=())
    while True:
        smaller = next(filter(differs, _valid(best, _smaller(_operations(best)))), None)
        if smaller is None:
            return best
        best = smaller


def _operations(program: Program) -> list[Operation]:
    return [dict(op.fields) for op in program.ops]


def _valid(program: Program, candidates: Iterator[list[Operation]]) -> Iterator[Program]:
    """The ``candidates`` that are valid programs."""
    for ops in candidates:
        data = {
            "name": program.name,
            "ops": ops,
            **({"window": program.window} if program.window else {}),
        }
        try:
            yield parse_program(data, program.source)
        except UsageError:
            continue


def _smaller(ops: list[Operation]) -> Iterator[list[Operation]]:
    """Lists that are a little smaller or simpler than ``ops``."""
    for size in (len(ops) // 2, len(ops) // 4, 1):
        for end in range(len(ops), 0, -size) if size else ():
            yield ops[: max(0, end - size)] + ops[end:]
    for name in sorted(op["child"] for op in ops if "child" in op):
        yield [_by_first(op, name) for op in ops if op.get("child") != name]
    for number, op in enumerate(ops):
        for simpler in _simpler(op):
            yield [*ops[:number], simpler, *ops[number + 1 :]]


def _by_first(op: Operation, name: str) -> Operation:
    """The operation with ``name`` replaced by A, as the process that acts or the one acted on."""
    return {key: "A" if key in ("p", "t") and value == name else value for key, value in op.items()}


def _simpler(op: Operation) -> Iterator[Operation]:
    """Versions of the operation with one thing left out or simplified."""
    for name in op:
        if name in OPERATIONS[op["op"]].may and name not in ("file", "newpage", "id"):
            yield {key: value for key, value in op.items() if key != name}
        if name in SIMPLEST and op[name] != SIMPLEST[name]:
            yield {**op, name: SIMPLEST[name]}
        if name == "flags":
            yield from (
                {**op, "flags": [*op[name][:at], *op[name][at + 1 :]]}
                for at in range(len(op[name]))
            )
