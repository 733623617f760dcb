"""Each row of kemu/abi is known to all that read rows: the kernel's table, the shell, help,
completion, the library and JSON, recordings, fuzz, `real`, and the page of commands.

The numbers are those of the host's headers, the documented errnos hold for what the recordings of
the real kernel say.
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from kemu import Session
from kemu.abi.calls import BY_NAME, BY_OPERATION, BY_WORD, CALLS
from kemu.abi.row import Arg, Call, Fuzz
from kemu.abi.words import ERRNO
from kemu.commands import table
from kemu.commands.helping import page
from kemu.commands.syscalls import KINDS
from kemu.completion.expect import candidates
from kemu.conform import actions, fields, hostworker, perform, strategies
from kemu.kernel.include.linkage import SYSCALLS
from kemu.views.json import to_data
from tests.conform.recorded import random_programs, scenarios

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
LINUX_NAMES = {
    "pread": "pread64",
    "pwrite": "pwrite64",
    "sigaction": "rt_sigaction",
}
"""Where the kernel's table calls it otherwise."""

COMMANDS_PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
ROWS = pytest.mark.parametrize("row", CALLS, ids=lambda row: row.word or row.name)


@cache
def session():
    made = Session()
    made.run("spawn app; mmap app 0x10000 1p rw")
    return made


def in_the_shell(row):
    """The command and its page say what the row says."""
    made = table.find(row.word or row.name)
    return (
        made is not None
        and (made.summary, made.examples, made.words[1:]) == (row.summary, row.examples, row.also)
        and {arg.name for arg in row.args} - {"soft", "hard"}
        <= {part.name for part in (*made.arguments, *made.options)} | {"size"}
        and row.summary.lower() in " ".join(page(made)).lower()
        and all(name in " ".join(page(made)) for name in row.errnos.split())
    )


def in_completion(row):
    """The word is offered, and its flag words with what Linux calls them."""
    word = row.word or row.name
    if word not in dict(candidates(session(), word)[1]):
        return False
    made = table.find(word)
    flags = [arg for arg in row.args if arg.kind == "flags" and not row.module]
    return all(
        set(arg.words) <= {word for option in made.options for word in option.words}
        and arg.words.prefix.isupper()
        for arg in flags
    )


def in_recordings(row):
    """An operation has a shape, is performed, and each of its fields has a meaning; the host makes
    the call by its number."""
    if row.number is not None and hostworker.NUMBERS.get(row.name) != row.number:
        return False
    return not row.op or (
        row.op in perform.ACTIONS
        and row.op in fields.OPERATIONS
        and all(fields.field_of(row.op, name) for name in fields.OPERATIONS[row.op].fields - {"op"})
        and all(arg.kind in perform.READERS for arg in row.args)
    )


CONSUMERS = {
    "kernel": lambda row: row.name in SYSCALLS,
    "shell": in_the_shell,
    "completion": in_completion,
    "recordings": in_recordings,
    "fuzz": lambda row: row.fuzz is None or row.op in strategies._WEIGHTS,
    "real": lambda row: (
        (row.word or row.name) in {*actions.ACTIONS, *actions.REASONS, *actions.SILENT}
    ),
    "page": lambda row: f"\n### {row.word or row.name}\n" in COMMANDS_PAGE.read_text(),
}


def missing(row):
    """The consumers that do not know the row."""
    return [name for name, knows in CONSUMERS.items() if not knows(row)]


@ROWS
def test_a_row_is_in_every_consumer(row):
    assert missing(row) == []


def test_a_row_that_nobody_reads_is_found():
    unread = Call("nonesuch", 9999, "memory", "do nothing", (), op="nonesuch", fuzz=Fuzz(1))
    assert missing(unread) == list(CONSUMERS)
    changed = BY_NAME["munmap"]._replace(summary="take something else away", number=12)
    assert missing(changed) == ["shell", "recordings"]
    stranger = BY_NAME["munmap"]._replace(args=(Arg("addr", "no such kind"),))
    assert missing(stranger) == ["recordings"]


@ROWS
def test_the_library_and_json_make_the_call(row):
    made = Session()
    results = made.run(row.examples[0])
    calls = [result for result in results if getattr(result.reading, "call", "") == row.name]
    assert calls, row.examples[0]
    shown = json.loads(json.dumps(to_data(calls[-1].reading)))
    assert shown["call"] == row.name
    assert {"errno", "value"} <= set(shown)


def test_the_numbers_are_those_of_the_hosts_headers():
    if not HEADER.is_file():
        pytest.skip(f"{HEADER} is not on this computer (package linux-libc-dev)")
    found = dict(re.findall(r"#define __NR_(\w+) (\d+)", HEADER.read_text()))
    assert found["mmap"] == "9"
    numbers = {LINUX_NAMES.get(row.name, row.name): row.number for row in CALLS if row.number}
    known = {name: int(found[name]) for name in numbers if name in found}
    assert {name: numbers[name] for name in known} == known
    assert len(known) > 30


@ROWS
def test_the_kinds_of_arguments_are_known_to_the_shell(row):
    kinds = {arg.kind for arg in row.args} - {"flags", "choice", "number"}
    assert kinds <= set(KINDS)
    assert len({arg.name for arg in row.args}) == len(row.args)
    assert all(arg.words for arg in row.args if arg.kind in ("flags", "choice"))


def undocumented(rows, programs):
    """(operation, errno) that a recording of the real kernel has and the row does not."""
    return {
        (op.kind, step["res"]["err"])
        for program in programs
        for op, step in zip(program.ops, program.steps, strict=True)
        if op.kind in rows
        and "err" in step["res"]
        and step["res"]["err"] not in rows[op.kind].errnos.split()
    }


def test_every_errno_of_the_recordings_is_documented():
    programs = [*scenarios().values(), *random_programs()]
    assert undocumented(BY_OPERATION, programs) == set()
    silent = {"munmap": BY_NAME["munmap"]._replace(errnos="")}
    assert ("munmap", "EINVAL") in undocumented(silent, programs)


@ROWS
def test_documented_errnos_exist(row):
    assert set(row.errnos.split()) <= set(ERRNO.values())
    assert BY_WORD[row.word or row.name] is row
