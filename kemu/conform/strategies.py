"""Hypothesis strategies for programs: what `conform fuzz` tries, and what tests may draw from.

    wishes (independent, each small)  --settle-->  operations (valid: processes live, files exist)

A wish says what to do with numbers that need not fit ("process 3 writes to mapping number 5").
``settle`` turns a list of wishes into a valid program.  Any part of the list can be left out and
the rest is still a program, so a difference can be shrunk to the smallest program that shows it.

This module needs Hypothesis; import it only where it is used (fuzz.py says how to install it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st

from kemu.abi.calls import BY_OPERATION
from kemu.abi.memory import PROTS
from kemu.abi.row import Arg
from kemu.conform import words
from kemu.conform.program import Program, parse_program

PAGES = 12
"""The number of pages that programs use: few, so that mappings meet."""

MOST_PROCESSES = 4
MOST_FILES = 3
LONGEST = 40
PARTS = 5
"""The number of lists of wishes in a program: a single list would usually be too short."""

Wish = tuple[str, dict[str, Any]]
Draw = Callable[[st.SearchStrategy[Any]], Any]

_ROWS = {name: row for name, row in BY_OPERATION.items() if row.fuzz is not None}
_WEIGHTS = {
    **{name: row.fuzz.weight for name, row in _ROWS.items() if row.fuzz is not None},
    "write": 22, "read": 10, "fork": 7, "file": 6, "exit": 2, "clonevm": 1, "exec": 1, "setcpu": 1,
    "pread": 1, "pwrite": 1,
}  # fmt: skip

_ALWAYS = ("mmap", "write", "read", "fork", "munmap")
THEMES = {
    "all": tuple(_WEIGHTS),
    "rights": ("exit",),
    "moves": ("exit",),
    "ranges": (),
    "files": ("file", "pread", "pwrite"),
    "io": ("file",),
    "locks": ("setcpu", "exit"),
    "others": ("clonevm", "exit"),
    "pins": ("exit", "setcpu"),
    "heap": (),
}
"""What a program is about: the fewer kinds of operations it has, the more often they interact.  A
row names its themes; ``_ALWAYS`` is part of each."""

_SHARING = ("private",) * 6 + ("shared",) * 3 + ("droppable", "shared_validate")
_PLACING: tuple[list[str], ...] = (["fixed"],) * 5 + (["fixed_noreplace"],) * 3 + ([],)
_EXTRA: tuple[list[str], ...] = (
    ([],) * 9
    + (["populate"],) * 2
    + (["noreserve"], ["locked"], ["growsdown"], ["stack"], ["nonblock"], ["sync"], ["denywrite"])
)

_ODD_BYTES = (0, 1, 4095, 4097, 8191, "0x7ffffffff000", "0xfffffffffffff000")
"""The last two extend over the worker's own stack and vdso: only calls that stop at the first hole
may use them."""

_MREMAP = next(arg for arg in BY_OPERATION["mremap"].args if arg.kind == "flags")
_SMALL = st.integers(0, 7)
_BYTE = st.integers(1, 255)
_SIZES = st.sampled_from((1, 4, 4096, 5000))


def _fields(draw: Draw, kind: str) -> dict[str, Any]:
    """The numbers of one wish."""
    row = _ROWS.get(kind)
    fields = {arg.field for arg in row.args} if row is not None else {"page"}
    wish: dict[str, Any] = {"who": draw(_SMALL)}
    if {"page", "len"} <= fields and kind not in ("pin", "unpin"):
        wish["page"] = draw(st.integers(0, PAGES - 1))
        wish["len"] = draw(st.integers(1, 4))
        wish["snap"] = draw(st.booleans()) if kind != "mmap" else False
        if draw(st.integers(0, 40)) == 40:
            wish["bytes"] = draw(
                st.sampled_from(_ODD_BYTES[:5] if kind == "madvise" else _ODD_BYTES)
            )
        if draw(st.integers(0, 60)) == 60:
            wish["off"] = draw(st.sampled_from((1, 8, 2048)))
    elif "page" in fields and kind not in _WITHOUT_PLACE:
        wish["page"] = draw(st.integers(0, PAGES - 1))
        wish["snap"] = draw(st.integers(0, 3)) > 0
        wish["off"] = draw(
            st.sampled_from(
                (0, 0, 0, 1, 100, 4095) if kind in ("read", "write") else (0, 0, 1, 4000)
            )
        )
    if kind in _MORE:
        return {**wish, **_MORE[kind](draw)}
    for arg in row.args if row is not None else ():
        wish |= _argument(draw, arg)
    return wish


_WITHOUT_PLACE = frozenset({
    "fork", "file", "exit", "clonevm", "setcpu", "pread", "pwrite", "unpin",
})  # fmt: skip


def _argument(draw: Draw, arg: Arg) -> dict[str, Any]:
    """The fields for an argument of a call, except addresses and lengths."""
    if arg.kind == "fd":
        return {"file": draw(_SMALL)}
    if arg.kind == "task":
        return {"t": draw(_SMALL)}
    if arg.kind in ("count", "data"):
        return {"n": draw(_SIZES)} | ({"byte": draw(_BYTE)} if arg.kind == "data" else {})
    if arg.kind == "offset":
        return {"foff": draw(_FOFF)}
    chosen = arg.draw or tuple(arg.in_recordings)
    if arg.kind in ("addr", "length", "buffer") or not chosen:
        return {}
    return {arg.key: draw(st.sampled_from(chosen))}


def _mmap(draw: Draw) -> dict[str, Any]:
    kind = draw(st.sampled_from(("anon", "anon", "anon", "file", "file")))
    sharing = draw(st.sampled_from(_SHARING))
    flags = [
        sharing,
        *(["anon"] if kind == "anon" else []),
        *draw(st.sampled_from(_PLACING)),
        *draw(st.sampled_from(_EXTRA)),
    ]
    return {
        "prot": draw(st.sampled_from(PROTS)),
        "flags": flags,
        "file": draw(_SMALL),
        "foff": draw(st.integers(0, 3)),
    }


def _mremap(draw: Draw) -> dict[str, Any]:
    wish = {"newlen": draw(st.integers(1, 6)), "flags": draw(st.sampled_from(_MREMAP.draw))}
    wish["newpage"] = draw(st.integers(0, PAGES - 1))
    if draw(st.integers(0, 15)) == 15:
        wish["len"] = 0
    return wish


def _file(draw: Draw) -> dict[str, Any]:
    wish: dict[str, Any] = {"kind": draw(st.sampled_from(("memfd", "tmpfs", "disk")))}
    if draw(st.integers(0, 4)) == 4:
        return {**wish, "bytes": draw(st.sampled_from((100, 4097, 9000)))}
    mode = {"mode": "ro"} if draw(st.integers(0, 9)) == 9 else {}
    return {**wish, **mode, "pages": draw(st.integers(1, 6))}


def _ftruncate(draw: Draw) -> dict[str, Any]:
    if draw(st.integers(0, 2)) == 2:
        return {"file": draw(_SMALL), "size": draw(st.sampled_from((0, 1, 100, 4097, 10000)))}
    return {"file": draw(_SMALL), "pages": draw(st.integers(0, 8))}


def _drawn(**strategies: st.SearchStrategy[Any]) -> Callable[[Draw], dict[str, Any]]:
    return lambda draw: {name: draw(strategy) for name, strategy in strategies.items()}


_FOFF = st.integers(0, 4)
_MORE: dict[str, Callable[[Draw], dict[str, Any]]] = {
    "mmap": _mmap,
    "mremap": _mremap,
    "file": _file,
    "ftruncate": _ftruncate,
    "write": _drawn(byte=_BYTE),
    "mlock": _drawn(onfault=st.booleans()),
    "setcpu": _drawn(cpu=st.integers(0, 1)),
    "pread": _drawn(file=_SMALL, foff=_FOFF, off=st.sampled_from((0, 10)), n=_SIZES),
    "pwrite": _drawn(file=_SMALL, foff=_FOFF, off=st.sampled_from((0, 10)), n=_SIZES, byte=_BYTE),
    "pin": _drawn(len=st.integers(1, 3)),
    "unpin": _drawn(),
    "splice": _drawn(n=st.just(1)),
    "splice_read": _drawn(),
}
"""The operations that need more than their row says."""


def _kinds(theme: str) -> tuple[str, ...]:
    """The kinds of operations of a theme, each repeated according to its weight."""
    wanted = {*THEMES[theme], *_ALWAYS}
    wanted |= {name for name, row in _ROWS.items() if row.fuzz and theme in row.fuzz.themes.split()}
    return tuple(kind for kind, weight in _WEIGHTS.items() if kind in wanted for _ in range(weight))


KINDS = tuple(map(_kinds, THEMES))


@st.composite
def wishes(draw: Draw, kinds: tuple[str, ...]) -> Wish:
    """One wish."""
    kind = draw(st.sampled_from(kinds))
    return kind, _fields(draw, kind)


@st.composite
def programs(draw: Draw) -> Program:
    """A valid program without steps."""
    kinds = draw(st.sampled_from(KINDS))
    part = st.lists(wishes(kinds), max_size=LONGEST // PARTS)
    many = [("file", _fields(draw, "file"))] if "file" in kinds else []
    many += [wish for _ in range(PARTS) for wish in draw(part)]
    heap = "brk" in kinds and draw(st.integers(0, 9)) > (8 if "file" in kinds else 2)
    data: dict[str, Any] = {"name": "fuzz", "ops": settle(many, heap=heap)}
    if heap:
        data["window"] = "brk"
    return parse_program(data, "fuzz")


# ---------------------------------------------------------------- from wishes to operations


@attrs.define
class _World:
    """The state of the program so far: which processes live, which files exist, where something was
    mapped."""

    heap: bool
    alive: list[str] = attrs.Factory(lambda: ["A"])
    born: int = 1
    files: list[str] = attrs.Factory(list)
    mapped: list[tuple[int, int]] = attrs.Factory(list)
    closed: int = 0
    pipes: int = 0
    pins: int = 0
    ops: list[dict[str, Any]] = attrs.Factory(list)


def settle(many: list[Wish], *, heap: bool = False) -> list[dict[str, Any]]:
    """Operations that are valid in this order; a wish that has no meaning where it comes is left
    out."""
    world = _World(heap)
    for kind, wish in many:
        special = _SPECIAL.get(kind)
        op = {key: value for key, value in wish.items() if key not in ("who", "snap")}
        op.update(op=kind, p=world.alive[wish["who"] % len(world.alive)])
        if wish.get("snap") and world.mapped:
            start, length = world.mapped[wish["page"] % len(world.mapped)]
            op["page"] = start + wish["page"] % length
        if _has_what_it_needs(world, op) and (special is None or special(world, op)):
            if op.get("off") == 0:
                del op["off"]
            world.ops.append(op)
    return world.ops


def _has_what_it_needs(world: _World, op: dict[str, Any]) -> bool:
    """Fill in the names of the file and the target; False if there is no file."""
    if "t" in op:
        op["t"] = world.alive[op["t"] % len(world.alive)]
    if "file" in op and "anon" not in op.get("flags", ()):
        if not world.files:
            return False
        op["file"] = world.files[op["file"] % len(world.files)]
    return True


def _settle_mmap(world: _World, op: dict[str, Any]) -> bool:
    if "anon" in op["flags"]:
        del op["file"], op["foff"]
    world.mapped.append((op["page"], op["len"]))
    return True


def _settle_mremap(world: _World, op: dict[str, Any]) -> bool:
    if "fixed" in op["flags"] or "dontunmap" in op["flags"]:
        world.mapped.append((op["newpage"], op["newlen"]))
    else:
        del op["newpage"]
    return True


def _settle_file(world: _World, op: dict[str, Any]) -> bool:
    if len(world.files) + world.closed == MOST_FILES or "A" not in world.alive:
        return False
    op["p"] = "A"
    op["id"] = f"f{len(world.files) + world.closed}"
    world.files.append(op["id"])
    return True


def _settle_close(world: _World, op: dict[str, Any]) -> bool:
    """A closed file is not named again: its descriptor may by then be another file's."""
    world.files.remove(op["file"])
    world.closed += 1
    return True


def _settle_birth(world: _World, op: dict[str, Any]) -> bool:
    if world.born == MOST_PROCESSES:
        return False
    op["child"] = words.PROCESSES[world.born]
    world.born += 1
    world.alive.append(op["child"])
    return True


def _settle_exit(world: _World, op: dict[str, Any]) -> bool:
    if len(world.alive) == 1:
        return False
    world.alive.remove(op["p"])
    return True


def _settle_exec(world: _World, op: dict[str, Any]) -> bool:
    """Execute code only where a RET has just been written, in a fresh mapping."""
    where = {"p": op["p"], "page": op["page"]}
    fresh = {"op": "mmap", **where, "len": 1, "prot": "rwx", "flags": ["private", "anon", "fixed"]}
    world.ops += [fresh, {"op": "write", **where, "byte": 0xC3}]
    world.mapped.append((op["page"], 1))
    op["off"] = 0
    return True


def _settle_pin(world: _World, op: dict[str, Any]) -> bool:
    op["id"] = f"pin{world.pins}"
    world.pins += 1
    return world.pins <= 3


def _settle_splice(world: _World, op: dict[str, Any]) -> bool:
    op["id"] = f"pipe{world.pipes}"
    world.pipes += 1
    return world.pipes <= 3


def _settle_brk(world: _World, op: dict[str, Any]) -> bool:
    if not world.heap:
        return False
    world.mapped.append((0, max(1, op["page"])))
    return True


def _settle_end_of(what: str) -> Callable[[_World, dict[str, Any]], bool]:
    """``unpin`` or ``splice_read`` of the program's first pin or pipe, which may have failed."""

    def settle_end(world: _World, op: dict[str, Any]) -> bool:
        op["id"] = f"{what}0"
        begun = next((other for other in world.ops if other.get("id") == op["id"]), None)
        return begun is not None and begun["p"] == op["p"]

    return settle_end


_SPECIAL: dict[str, Callable[[_World, dict[str, Any]], bool]] = {
    "mmap": _settle_mmap,
    "mremap": _settle_mremap,
    "file": _settle_file,
    "close": _settle_close,
    "fork": _settle_birth,
    "clonevm": _settle_birth,
    "exit": _settle_exit,
    "exec": _settle_exec,
    "pin": _settle_pin,
    "splice": _settle_splice,
    "unpin": _settle_end_of("pin"),
    "splice_read": _settle_end_of("pipe"),
    "brk": _settle_brk,
}
