"""The fields of a row: a system call, and each of its arguments.

    Call("msync", 26, "memory", "write a mapped file back", ...,
         args=(ADDR, LENGTH, flags(MSYNC_FLAGS)),
         errnos="EBUSY EINVAL ENOMEM", fuzz=Fuzz(1, "files"))

The kind of an argument decides how the shell reads it (commands/syscalls.py), its form and number
in a recording (conform/fields.py, operands.py), what fuzz draws (conform/strategies.py), and how it
is passed to a real kernel (conform/actions.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kemu.abi.words import FADVISE, MADVISE, RLIMITS, WHENCE, Words

NEEDED = ...
"""The default of a required argument."""

MOST_PAGES = 1 << 16
"""Largest range of one `mincore` or `pin`, in pages."""

S32 = (-(2**31), 2**31 - 1)


class Arg(NamedTuple):
    """One argument.

    `kind`: addr, length (bytes of a range), prot, flags, choice, fd, offset (bytes in a file),
    extent (bytes in a file, whole pages in a recording), file_size, count (bytes moved), number,
    limit, task (another one), buffer (where the kernel stores; the task's stack unless given),
    data (bytes that the task stores on its stack first), path, title.

    `option`: given as `name VALUE` after the arguments.  `field`: its name in a recording.
    `words`: word -> number, of flags or of a choice; `recorded`: those of a recording, if they
    differ.  `what` and `bounds` describe a number or a choice.  `most`: the largest number of
    pages.  `size`: of a buffer, in bytes or as the name of another argument.  `draw`: what fuzz
    chooses from, in the form of a recording."""

    name: str
    kind: str
    default: Any = NEEDED
    field: str = ""
    words: Mapping[str, int] | None = None
    recorded: Mapping[str, int] | None = None
    what: str = ""
    bounds: tuple[int, int] = S32
    option: bool = False
    most: int = 0
    size: int | str = 0
    draw: tuple[Any, ...] = ()

    @property
    def key(self) -> str:
        """The name of its field in a recording."""
        return self.field or self.name

    @property
    def samples(self) -> tuple[int, ...]:
        """Possible values: those of its words, and the default of an optional argument."""
        left_out = {"flags": (0,), "number": (self.default,)}.get(self.kind, ())
        return (*left_out, *(self.words or {}).values())

    @property
    def in_recordings(self) -> Mapping[str, int]:
        """Word -> number, in a recording."""
        return self.recorded or self.words or {}


class Fuzz(NamedTuple):
    """How often fuzz tries the call, and in which themes (conform/strategies.py, THEMES)."""

    weight: int
    themes: str = ""


class Call(NamedTuple):
    """One system call, or the equivalent in kemu.

    `name`: from the kernel's table.  `number`: on x86-64, None if Linux has no such call.
    `word`: the command, and `also` its aliases.  `args`: in the order of the shell;  `order`: in
    the kernel's order, by name, with constants, where that differs.  `host`: the order of the real
    call, if kemu's has fewer arguments: `{a b}` is the address of a structure of these 64-bit
    words.  `returns`: count, address, fd, pid or status.  `fills`: the argument at which the kernel
    stores bytes.  `errnos`: those that its man page documents and kemu can return.  `op`: the
    operation of a recording, "" for none; `unreal`: why an experiment with it cannot be repeated
    on a real kernel.  `module`: the module of its command, if that is not generated from the row.
    `remarks`: value of a choice -> what it does not do here, said after the call.
    """

    name: str
    number: int | None
    group: str
    summary: str
    examples: tuple[str, ...]
    args: tuple[Arg, ...] = ()
    more: str = ""
    linux: str = ""
    word: str = ""
    also: tuple[str, ...] = ()
    order: str = ""
    host: str = ""
    returns: str = "status"
    fills: str = ""
    errnos: str = ""
    op: str = ""
    unreal: str = ""
    fuzz: Fuzz | None = None
    module: str = ""
    remarks: Mapping[int, str] = MappingProxyType({})

    def passed(self, values: Mapping[str, Any]) -> list[Any]:
        """The arguments in the kernel's order, from their values by name."""
        order = self.order.split() or [arg.name for arg in self.args]
        return [int(word) if word.isdecimal() else values[word] for word in order]


ADDR = Arg("addr", "addr", field="page")
LENGTH = Arg("length", "length", field="len")
FD = Arg("fd", "fd", field="file")
OFFSET = Arg("offset", "offset", 0, field="foff")
SIZE = Arg("size", "count", field="n")
OTHER = Arg("other", "task", field="t")
DATA = Arg("data", "data", field="byte")
PATH = Arg("path", "path")
INTO = Arg("into", "buffer", None, option=True, size="size")


def flags(words: Words, *, draw: tuple[Any, ...] = ()) -> Arg:
    """Flag words after the arguments; by default none."""
    return Arg("flags", "flags", (), words=words, draw=draw)


def prot(draw: tuple[str, ...]) -> Arg:
    """Protection."""
    return Arg("prot", "prot", draw=draw)


ADVICE = Arg("advice", "choice", words=MADVISE, what="advice such as dontneed, or its number")
FILE_ADVICE = ADVICE._replace(words=FADVISE)
RESOURCE = Arg(
    "resource", "choice", field="res", words=RLIMITS, bounds=(0, 2**31 - 1),
    what="a resource such as as, data, stack, memlock",
)  # fmt: skip
SEEK = Arg("whence", "choice", 0, words=WHENCE, what="set, cur, end, data or hole, or its number")
