"""The shape of every operation of a recorded program: which fields it has and what they may
hold.

    OPERATIONS  operation -> fields that it must have and fields that it may have
    FIELDS      field -> what it may hold; ``(operation, field)`` where the meaning depends on
                the operation

This is data with one function, ``complaint``, from whose answer program.py makes an error message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from kemu.abi.calls import BY_OPERATION
from kemu.abi.row import NEEDED, Call
from kemu.conform import words


@attrs.frozen
class Field:
    """What a field may hold, in words and as a test."""

    want: str
    fits: Callable[[Any], bool]


@attrs.frozen
class Operation:
    """``needs``: fields that it must have, ``a|b`` for either; ``may``: optional fields."""

    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        """Every field that the operation may have, including ``op``, ``p`` and ``noobs``."""
        needed = [name for alternatives in self.needs for name in alternatives.split("|")]
        return frozenset({"op", "p", "noobs", *needed, *self.may})


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_hex(value: Any) -> bool:
    if not isinstance(value, str) or not value.startswith("0x") or len(value) > 18:
        return False
    return all(c in "0123456789abcdefABCDEF" for c in value[2:]) and len(value) > 2


def _number(low: int, high: int, what: str) -> Field:
    return Field(f"{what} from {low} to {high}", lambda v: _is_int(v) and low <= v <= high)


def _one_of(names: Iterable[str]) -> Field:
    known = tuple(names)
    return Field("one of " + ", ".join(known), lambda v: isinstance(v, str) and v in known)


def _some_of(names: Iterable[str]) -> Field:
    known = frozenset(names)
    return Field(
        "a list of " + ", ".join(names),
        lambda v: (
            isinstance(v, list) and all(isinstance(word, str) and word in known for word in v)
        ),
    )


def _word(what: str) -> Field:
    return Field(
        f"{what}, 1 to 32 letters",
        lambda v: isinstance(v, str) and 0 < len(v) <= 32 and v.isprintable(),
    )


def _is_size(value: Any) -> bool:
    return (_is_int(value) and -(2**52) <= value < 2**52) or _is_hex(value)


S64 = _number(-(2**63), 2**64 - 1, "a number")
BYTES = Field(
    "a number of bytes, or one in hex such as '0x1000'",
    lambda v: (_is_int(v) and abs(v) < 2**64) or _is_hex(v),
)
PLACE = Field(
    "a page number, null, or an address in hex such as '0x1000'", lambda v: v is None or _is_size(v)
)
SIZE = Field("a number of pages, or a number of bytes in hex such as '0x1000'", _is_size)
COUNT = _number(0, 1 << 20, "a number of bytes")
FILE_PAGES = _number(0, 1 << 14, "a number of pages")
PAGE_INDEX = _number(-(2**51), 2**51, "a page number")
LETTERS = Field(
    f"letters of '{''.join(words.PROT)}'",
    lambda v: isinstance(v, str) and len(v) <= 16 and all(c in words.PROT for c in v),
)
PROCESS = _one_of(words.PROCESSES)
YES_NO = Field("true or false", lambda v: isinstance(v, bool))

FIELDS: dict[str | tuple[str, str], Field] = {
    "p": PROCESS, "t": PROCESS, "child": _one_of(words.PROCESSES[1:]), "noobs": YES_NO,
    "page": PLACE, "newpage": PLACE, "addr": BYTES, "off": S64, "newoff": S64,
    "len": SIZE, "newlen": SIZE, "bytes": BYTES, "prot": LETTERS,
    "file": _word("the id of a file"), "fd": S64, "foff": PAGE_INDEX, "foff_bytes": S64,
    "n": COUNT, "byte": _number(0, 255, "a byte"), "onfault": YES_NO, "cpu": _number(0, 1, "a CPU"),
    "size": S64, "pages": FILE_PAGES, "id": _word("a name"), "kind": _one_of(words.FILE_KINDS),
    "sparse": YES_NO, "seals": YES_NO, "k": _number(0, 255, "a number"),
    ("file", "mode"): _one_of(words.OPEN_MODE),
    ("file", "bytes"): _number(0, 1 << 26, "a number of bytes"),
    ("ftruncate", "pages"): PAGE_INDEX,
    **dict.fromkeys((
        (kind, "n") for kind in (
            "pread", "pwrite", "vmread", "vmwrite", "memread", "memwrite", "splice", "splice_read"
        )
    ), _number(0, 1 << 14, "a number of bytes")),
    ("pin", "len"): _number(0, 1 << 14, "a number of pages"),
    ("fillmaps", "pages"): _number(1, 140_000, "a number of pages"),
    ("trimmaps", "n"): _number(0, 140_000, "a number of mappings"),
}  # fmt: skip


_SHAPES: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("addr", "page"): ("page|addr", ("off",)),
    ("addr", "newpage"): ("newpage", ("newoff",)),
    ("length", "len"): ("len|bytes", ()),
    ("fd", "file"): ("file|fd", ()),
    ("offset", "foff"): ("foff|foff_bytes", ()),
    ("file_size", ""): ("pages|size", ()),
    ("count", "n"): ("", ("n",)),
    ("buffer", ""): ("", ("n",)),
    ("data", "byte"): ("", ("n", "byte")),
}
"""For an argument, by kind and field: its field, or alternatives joined by |, and the fields that
may go with it.  Any other argument has a field of its own."""


def _operation(row: Call) -> Operation:
    """The operation that is the row's call.  If the row has its own words or numbers for a field,
    what the field may hold is entered in FIELDS."""
    needs: list[str] = []
    may: list[str] = []
    for arg in row.args:
        field, beside = _SHAPES.get((arg.kind, arg.field), (arg.key, ()))
        if field and arg.default is NEEDED:
            needs.append(field)
        elif field:
            may += field.split("|")
        may += beside
        known = arg.in_recordings
        if arg.kind == "choice" or isinstance(arg.default, str):
            FIELDS[row.op, field] = _one_of(known)
        elif arg.kind == "flags":
            FIELDS[row.op, field] = _some_of(known)
        elif arg.kind in ("number", "limit", "extent"):
            FIELDS[row.op, field] = PAGE_INDEX if arg.kind == "extent" else S64
    return Operation(tuple(needs), tuple(may))


_AT = ("page|addr",)
_FILE = ("file|fd",)

OPERATIONS: dict[str, Operation] = {
    **{name: _operation(row) for name, row in BY_OPERATION.items()},
    "mlock": Operation((*_AT, "len|bytes"), ("off", "onfault")),
    "mincore": Operation((*_AT, "len|bytes"), ("off",)),
    "brk": Operation(_AT, ("off",)),
    "read": Operation(_AT, ("off",)),
    "write": Operation(_AT, ("off", "byte")),
    "exec": Operation(_AT, ("off",)),
    "fork": Operation(("child",)),
    "clonevm": Operation(("child",)),
    "setcpu": Operation(("cpu",)),
    "file": Operation(("id", "pages|bytes"), ("kind", "mode", "sparse", "seals", "k")),
    "pread": Operation((*_FILE, "foff"), ("off", "n")),
    "pwrite": Operation((*_FILE, "foff"), ("off", "n", "byte")),
    "pin": Operation(_AT, ("off", "len", "id")),
    "unpin": Operation((), ("id",)),
    "splice": Operation(_AT, ("off", "n", "id")),
    "splice_read": Operation((), ("n", "id")),
    "fillmaps": Operation((), ("pages",)),
    "trimmaps": Operation(("n",)),
}
"""Every operation of the format (README of the recordings)."""


def field_of(operation: str, name: str) -> Field:
    """What the field ``name`` of ``operation`` may hold."""
    return FIELDS.get((operation, name)) or FIELDS[name]


def complaint(op: dict[str, Any]) -> tuple[str, str] | None:
    """(field, what is wrong with it) for the first wrong field of ``op``, whose operation is
    known; None if all are right."""
    shape = OPERATIONS[op["op"]]
    for alternatives in shape.needs:
        if not any(name in op for name in alternatives.split("|")):
            return alternatives.replace("|", " or "), "is missing"
    for name, value in op.items():
        if name not in shape.fields:
            return name, f"is unknown; {op['op']} has {', '.join(sorted(shape.fields - {'op'}))}"
        if name != "op":
            field = field_of(op["op"], name)
            if not field.fits(value):
                return name, f"must be {field.want}, not {_short(value)}"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
