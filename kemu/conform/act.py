"""One operation on its way: who acts, what its fields mean to him, and how what came of it is
written in a recording.

    {"op": "mmap", "p": "A", "page": 16, ...}  ->  Act  ->  a system call  ->  Outcome  ->  {"ret":
    {"page": 16}, "flt": [0, 0]}

Addresses are given relative to the program's window; what lies far outside is only said to be
outside.
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kemu.abi.uapi import PAGE_SIZE, SIGSEGV
from kemu.conform import words
from kemu.conform.cast import Cast, Process
from kemu.conform.operands import Operands
from kemu.conform.program import Op
from kemu.userland.script import Outcome

Result = dict[str, Any]

WINDOW_BELOW, WINDOW_ABOVE = 64, 256
"""Pages around the base within which an address is given relative to it."""

MAX_RUNS = 16
"""A run-length list of data is cut after so many entries."""


@attrs.frozen
class Act(Operands):
    """One operation on its way: who acts, and what the fields of the operation mean to him."""

    cast: Cast
    process: Process
    op: Op

    def call(self, name: str, *args: int | str) -> Outcome:
        """The system call ``name`` by the one who acts."""
        return self.cast.call(self.process, name, *args)

    def where(self) -> tuple[int, Mapping[str, int]]:
        """The window and the files of the cast."""
        return self.cast.window.base, self.cast.files


Perform = Callable[[Act], Result]
"""Performs one operation; gives the object that a recording holds under ``res``."""


def relative(cast: Cast, addr: int) -> dict[str, Any]:
    """An address that the kernel chose, as page and offset in the window, or as "outside"."""
    page = cast.window.page(addr)
    if not -WINDOW_BELOW <= page < WINDOW_ABOVE:
        return {"page": "outside"}
    return {"page": page, "off": addr % PAGE_SIZE} if addr % PAGE_SIZE else {"page": page}


def result(outcome: Outcome, *, faults: bool = True) -> Result:
    """What a system call returned and, unless ``faults`` is false, the faults that it took."""
    shown: Result = (
        {"err": errno.errorcode[outcome.errno]} if outcome.errno else {"ret": outcome.value}
    )
    if faults:
        shown["flt"] = [outcome.minor, outcome.major]
    return shown


def address_result(cast: Cast, outcome: Outcome) -> Result:
    """The same for a call that returns an address."""
    shown = result(outcome)
    if "ret" in shown:
        shown["ret"] = relative(cast, outcome.value)
    return shown


def run_lengths(data: bytes) -> list[list[int]]:
    """``data`` as [byte, count] pairs."""
    runs: list[list[int]] = []
    for byte in data:
        if runs and runs[-1][0] == byte:
            runs[-1][1] += 1
        else:
            runs.append([byte, 1])
    return runs[:MAX_RUNS]


def access_result(cast: Cast, outcome: Outcome) -> Result:
    """A load, store or fetch: done, or the signal that it raised."""
    info = outcome.signal
    if info is None:
        return {"ok": 1, "flt": [outcome.minor, outcome.major]}
    codes = words.SEGV_CODES if info.signo == SIGSEGV else words.BUS_CODES
    page, offset = divmod(info.addr - cast.window.base, PAGE_SIZE)
    return {
        "sig": signal.Signals(info.signo).name,
        "code": codes.get(info.code, str(info.code)),
        "addr": [page, offset] if -WINDOW_BELOW <= page < WINDOW_ABOVE else hex(info.addr),
        "pf": "".join(
            letter for bit, letter in enumerate(words.PF_LETTERS) if info.error_code >> bit & 1
        ),
        "flt": [outcome.minor, outcome.major],
    }
