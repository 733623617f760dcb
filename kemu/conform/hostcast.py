"""The processes of a program on the host: the twin of cast.py.

The window is at the same address as in kemu, and the rest of the worker's memory is touched in the
same way as the stand-in's, so that no later fault count or batch of the kernel includes it.
"""

from __future__ import annotations

import contextlib
from typing import Self

from kemu.abi.uapi import PAGE_SIZE
from kemu.conform import hostasm
from kemu.conform.hostsee import Eyes, Sight
from kemu.conform.hostworker import Crew, Member
from kemu.conform.identity import Identities
from kemu.conform.program import Op, Program
from kemu.conform.words import WINDOW_BASE
from kemu.errors import UsageError

HEAP_PAGES = 2
MOST_BYTES = hostasm.DATA_SIZE - hostasm.STRUCTURES
"""The most bytes that one operation can carry."""

MOST_PAGES = 1 << 16
"""How many pages a file may get by fallocate on the host."""

_CARRYING = frozenset(
    {"pread", "pwrite", "vmread", "vmwrite", "memread", "memwrite", "splice_read"}
)


class HostCast:
    """The processes of ``program`` on the host, and how they are looked at; a context manager."""

    def __init__(self, program: Program, slot: int, seconds: float) -> None:
        for number, op in enumerate(program.ops):
            _check_bounds(op, number, program.source or program.name)
        self.program = program
        self.crew = Crew(slot, seconds)
        self.identities = Identities()
        self.files: dict[str, int] = {}
        self.made = 0
        self.kept: dict[str, tuple[int, int]] = {}
        self.rings: dict[tuple[int, int], list[int]] = {}
        self.sights: dict[str, Sight] = {}

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(self.crew)
        with contextlib.ExitStack() as undo:
            undo.callback(self._stack.close)
            self._settle()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for sight in self.sights.values():
            sight.close()
        self._stack.close()

    def _settle(self) -> None:
        """Give A its heap, and choose the window."""
        crew, first = self.crew, self.crew.members["A"]
        top = crew.heap + HEAP_PAGES * PAGE_SIZE
        crew.call(first, "brk", top)
        for page in range(HEAP_PAGES):
            crew.access(first, hostasm.WRITE, crew.heap + page * PAGE_SIZE)
        self.touch(first)
        self.base = top if self.program.window == "brk" else WINDOW_BASE
        self.eyes = Eyes(self.base)
        self._stack.callback(self.eyes.close)
        self.sights["A"] = Sight(self.eyes, first)
        self.start = self.sights["A"].counters()

    def touch(self, member: Member) -> None:
        """Touch what cast.py touches, at the start and after a fork; touching the vdso makes the
        page table for the addresses that the kernel will choose."""
        self.crew.access(member, hostasm.WRITE, self.crew.heap)
        self.crew.access(member, hostasm.WRITE, self.crew.stack_top - 8)
        self.crew.access(member, hostasm.READ, self.crew.vdso)

    def live(self) -> list[str]:
        """The processes that have not ended."""
        return sorted(self.crew.members)


def _check_bounds(op: Op, number: int, source: str) -> None:
    """Refuse operations that would be too much for the host."""
    place = f"{source}: operation {number} ({op.kind})"
    if op.kind in _CARRYING and op.get("n", 1) > MOST_BYTES:
        raise UsageError(
            f"{place}: at most {MOST_BYTES} bytes can be carried on the host", hint="make n smaller"
        )
    if (
        op.kind == "fallocate"
        and op.get("mode") != "punch"
        and op.get("foff", 0) + op.get("len", 0) > MOST_PAGES
    ):
        raise UsageError(
            f"{place}: a file can have at most {MOST_PAGES} pages on the host",
            hint="make foff and len smaller",
        )
