"""All rows: by the command, by the kernel's name, by the operation of a recording."""

from __future__ import annotations

from kemu.abi import files, memory, others, tasks
from kemu.abi.row import Call

CALLS: tuple[Call, ...] = (*tasks.CALLS, *memory.CALLS, *others.CALLS, *files.CALLS)
BY_WORD = {row.word or row.name: row for row in CALLS}
BY_NAME = {row.name: row for row in CALLS}
BY_OPERATION = {row.op: row for row in CALLS if row.op}
NUMBERS = {row.name: row.number for row in CALLS if row.number is not None}
"""x86-64 numbers of the calls, under the names of the kernel's table."""
