"""An operation in progress, performed by kemu (kemuops.py) or by the host's kernel (hostops.py).

    {"op": "mmap", "p": "A", "page": 16, ...}  ->  Act  ->  a system call  ->  Answer  ->  {"ret":
    {"page": 16}, "flt": [0, 0]}

Addresses are relative to the program's window; one that is far outside is only called "outside".
"""

from __future__ import annotations

import errno
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import attrs

from kemu.abi.uapi import MAX_ERRNO, PAGE_SIZE, SIGSEGV
from kemu.conform import words
from kemu.conform.program import Op

Result = dict[str, Any]
"""The object under ``res`` in a recording."""

WINDOW_BELOW, WINDOW_ABOVE = 64, 256
"""Pages around the base; an address within them is given relative to the base."""

MAX_RUNS = 16
"""The most entries that a run-length list of data has."""

Ends = tuple[int, int]
"""Address and size of a pin, or the descriptors of the two ends of a pipe."""


@attrs.frozen
class Answer:
    """``value``: what the call returned (a negative errno if it failed), or the byte that was read;
    ``signo``: 0 if there was no signal; ``minor``, ``major``: faults during this operation only;
    ``data``: the bytes that were requested."""

    value: int
    signo: int = 0
    code: int = 0
    addr: int = 0
    error: int = 0
    minor: int = 0
    major: int = 0
    data: bytes = b""


class Act(ABC):
    """The process that acts, and what the fields of the operation mean to it."""

    def __init__(
        self, op: Op, base: int, buffer: int, files: Mapping[str, int], kept: dict[str, Ends]
    ) -> None:
        """`base`: the address of the window; `buffer`: memory of the process for the bytes of
        system calls, touched in advance, so that only faults in the window are counted; `files`:
        descriptors by file; `kept`: pins and pipes by id."""
        self.op = op
        self.base = base
        self.buffer = buffer
        self.files = files
        self.kept = kept

    @abstractmethod
    def call(self, name: str, *arguments: int, data: bytes = b"", out: int = 0) -> Answer:
        """The system call ``name`` with kemu's arguments.  ``data`` is put into the buffer before
        the call; up to ``out`` bytes of the buffer come back after it."""

    @abstractmethod
    def access(self) -> Answer:
        """Read, write or execute one byte."""

    @abstractmethod
    def pid(self, name: str) -> int:
        """The pid of a process of the program."""

    @abstractmethod
    def birth(self, flags: int) -> int:
        """Make the process ``child`` by clone(``flags``): 0 or an errno."""

    @abstractmethod
    def finish(self) -> None:
        """End the process."""

    @abstractmethod
    def move(self, cpu: int) -> None:
        """Let the process run on the program's CPU number ``cpu``."""

    @abstractmethod
    def make_file(self) -> None:
        """Make a file whose page i is filled with 0x10 * (k + 1) + i, and leave it open without a
        name.  A disk file is synced, so its pages are clean."""

    @abstractmethod
    def mappings(self) -> int:
        """How many mappings the process has, not counting the vsyscall page."""

    @property
    def place(self) -> int:
        """The address that the operation is about."""
        return self.op.address(self.base)

    @property
    def prot(self) -> int:
        """Protection bits."""
        return sum(words.PROT[letter] for letter in set(self.op.fields["prot"]))

    @property
    def fd(self) -> int:
        """The descriptor of the operation's file; -1 if there is none or it was never made."""
        if "fd" in self.op.fields:
            return int(self.op.fields["fd"])
        return self.files.get(self.op.get("file", ""), -1)

    @property
    def offset(self) -> int:
        """The offset in the file, in bytes."""
        return int(self.op.get("foff_bytes", self.op.get("foff", 0) * PAGE_SIZE))

    @property
    def size(self) -> int:
        """How many bytes are transferred."""
        return int(self.op.get("n", 1))

    @property
    def payload(self) -> bytes:
        """The bytes that the operation writes."""
        return bytes([self.op.get("byte", 0)]) * self.size


def result(answer: Answer, *, faults: bool = True) -> Result:
    """What a system call returned and, if ``faults`` is true, the faults that it took."""
    shown: Result = {"ret": answer.value}
    if -MAX_ERRNO <= answer.value < 0:
        shown = {"err": errno.errorcode.get(-answer.value, str(-answer.value))}
    if faults:
        shown["flt"] = [answer.minor, answer.major]
    return shown


def address_result(act: Act, answer: Answer) -> Result:
    """The same for a call that returns an address: page and offset in the window, or "outside"."""
    shown = result(answer)
    if "ret" in shown:
        page, offset = divmod((answer.value & (1 << 64) - 1) - act.base, PAGE_SIZE)
        shown["ret"] = {"page": page, "off": offset} if offset else {"page": page}
        if not -WINDOW_BELOW <= page < WINDOW_ABOVE:
            shown["ret"] = {"page": "outside"}
    return shown


def access_result(act: Act) -> Result:
    """Read, write or execute one byte: the result, or the signal that this raised."""
    answer = act.access()
    faults = [answer.minor, answer.major]
    if not answer.signo:
        done: Result = {"byte": answer.value & 0xFF} if act.op.kind == "read" else {}
        return {**done, "ok": 1, "flt": faults}
    codes = words.SEGV_CODES if answer.signo == SIGSEGV else words.BUS_CODES
    page, offset = divmod(answer.addr - act.base, PAGE_SIZE)
    return {
        "sig": signal.Signals(answer.signo).name,
        "code": codes.get(answer.code, str(answer.code)),
        "addr": [page, offset] if -WINDOW_BELOW <= page < WINDOW_ABOVE else hex(answer.addr),
        "pf": "".join(
            letter for bit, letter in enumerate(words.PF_LETTERS) if answer.error >> bit & 1
        ),
        "flt": faults,
    }


def run_lengths(data: bytes) -> list[list[int]]:
    """``data`` as [byte, count] pairs."""
    runs: list[list[int]] = []
    for byte in data:
        if runs and runs[-1][0] == byte:
            runs[-1][1] += 1
        else:
            runs.append([byte, 1])
    return runs[:MAX_RUNS]
