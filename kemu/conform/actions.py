"""How each command of the shell is expressed in a program for a real kernel: the tables of
`translate.py`.

    ACTIONS   command -> the operations that it becomes
    REASONS   command -> why it cannot be expressed
    SILENT    commands that change nothing in a program

A program reads and writes single bytes: a larger access becomes one byte in each page that it
touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from kemu.abi import uapi
from kemu.abi.calls import BY_OPERATION, BY_WORD
from kemu.abi.row import Arg, Call
from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.abi.words import CLONE_FLAGS, OPEN_FLAGS, RECORDED_MAP
from kemu.conform import words
from kemu.conform.translate import (
    Asked,
    Op,
    Tables,
    Translation,
    Translator,
    Unexpressed,
    length,
    translate,
)

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

Action = Callable[[Translator, Asked], list[Op]]
MOST_BYTES = 4096
MOST_PAGES = 16
"""The most pages of one access that are repeated."""

RET = 0xC3
"""The instruction that a fetch must find on a real CPU, which executes it."""


def named(table: Mapping[str, int], value: int, what: str) -> str:
    """The word of `table` for a number."""
    found = next((word for word, number in table.items() if number == value), None)
    if found is None:
        raise Unexpressed(f"a program has no word for this {what}")
    return found


def bits(table: Mapping[str, int], value: int, what: str) -> list[str]:
    """The words of `table` for the bits of a number."""
    found = [word for word, bit in table.items() if bit & value == bit and bit.bit_count() == 1]
    if sum(table[word] for word in found) != value:
        raise Unexpressed(f"a program has no word for some of this {what}")
    return found


def prot(value: int) -> str:
    """Letters for PROT_* bits."""
    letters = {letter: bit for letter, bit in words.PROT.items() if bit}
    return "".join(bits(letters, value, "protection")) or "-"


# ---------------------------------------------------------------------------------------- processes


def _spawn(at: Translator, asked: Asked) -> list[Op]:
    if at.letters:
        raise Unexpressed("a program has one family of processes")
    at.christen(at.newborn(asked.record))
    return []


def _fork(at: Translator, asked: Asked) -> list[Op]:
    parent = at.letter(asked.task)
    return [{"op": "fork", "p": parent, "child": at.christen(at.newborn(asked.record))}]


def _clone(at: Translator, asked: Asked) -> list[Op]:
    if tuple(asked.values["flags"]) != (CLONE_FLAGS["vm"],):
        raise Unexpressed("a program has clone with vm alone")
    return [{**_fork(at, asked)[0], "op": "clonevm"}]


def _exit(at: Translator, asked: Asked) -> list[Op]:
    return [{"op": "exit", "p": at.letter(asked.task)}]


def _setcpu(at: Translator, asked: Asked) -> list[Op]:
    if asked.values["cpu"] > 1:
        raise Unexpressed("a program has the CPUs 0 and 1")
    return [{"op": "setcpu", "p": at.letter(asked.task), "cpu": asked.values["cpu"]}]


# -------------------------------------------------------------------------------- the address space


def _mmap(at: Translator, asked: Asked) -> list[Op]:
    values, who = asked.values, at.letter(asked.task)
    flags = 0
    for flag in values["flags"]:
        flags |= flag
    file = _mapped_file(at, asked)
    where = _place_of_mmap(at, asked)
    kind = flags & 0xF or uapi.MAP_PRIVATE
    rest = flags & ~0xF | (0 if file else uapi.MAP_ANONYMOUS)
    named_flags = [
        named(RECORDED_MAP, kind, "kind of mapping"),
        *bits(RECORDED_MAP, rest, "mapping"),
    ]
    return [
        {
            "op": "mmap",
            "p": who,
            **where,
            **length(values["length"]),
            "prot": prot(values["prot"]),
            "flags": named_flags,
            **file,
        }
    ]


def _place_of_mmap(at: Translator, asked: Asked) -> Op:
    """The address to ask for: the requested one, unless the kernel put the mapping elsewhere."""
    wanted, found = asked.values["addr"], at.mapped(asked)
    if found is not None and (wanted is None or wanted // PAGE * PAGE != found[0]):
        return {"page": at.choose(*found)}
    return {"page": None} if wanted is None else at.place(asked.task, wanted)


def _mapped_file(at: Translator, asked: Asked) -> Op:
    file, fd, offset = asked.values["file"], asked.values["fd"], asked.values["offset"] or 0
    if file is not None:
        found, offset = {"file": at.opened(file.path, "rw")}, file.offset
    elif fd is not None:
        found = at.file(asked)
    else:
        return {}
    return {**found, **_offset(offset)}


def _offset(offset: int) -> Op:
    return {"foff_bytes": offset} if offset % PAGE else {"foff": offset // PAGE}


def _flags(_at: Translator, _asked: Asked, arg: Arg, given: tuple[int, ...]) -> Op:
    """One word where the recording takes one, else a list."""
    value = reduce(or_, given, 0)
    if isinstance(arg.default, str):
        return {arg.key: named(arg.in_recordings, value, arg.key)}
    return {arg.key: bits(arg.in_recordings, value, "flag")}


def _place(at: Translator, asked: Asked, arg: Arg, addr: int) -> Op:
    """The other task, if the call is about its memory."""
    who = asked.values.get("other") or asked.task
    return at.place(who, addr, arg.key, "off" if arg.key == "page" else "newoff")


def _whole_pages(_at: Translator, _asked: Asked, arg: Arg, size: int) -> Op:
    if size % PAGE:
        raise Unexpressed(f"a program counts this {arg.name} in pages")
    return {arg.key: size // PAGE}


SAYINGS: dict[str, Callable[[Translator, Asked, Arg, Any], Op]] = {
    "addr": _place,
    "length": lambda _at, _asked, arg, value: length(value, arg.key),
    "prot": lambda _at, _asked, arg, value: {arg.key: prot(value)},
    "flags": _flags,
    "choice": lambda _at, _asked, arg, value: {arg.key: named(arg.in_recordings, value, arg.name)},
    "fd": lambda at, asked, _arg, _value: at.file(asked),
    "offset": lambda _at, _asked, _arg, value: _offset(value),
    "extent": _whole_pages,
    "file_size": lambda _at, _asked, _arg, value: {"size": value},
    "count": lambda _at, _asked, arg, value: {arg.key: _transfer(value)},
    "number": lambda _at, _asked, arg, value: {arg.key: value},
    "limit": lambda _at, _asked, arg, value: {
        arg.key: uapi.RLIM_INFINITY if value is None else value
    },
    "task": lambda at, _asked, arg, value: {arg.key: at.letter(value)},
    "data": lambda _at, _asked, _arg, value: {"n": _transfer(len(value)), "byte": value[0]},
}
"""Kind of argument -> what a recording says for its value."""


def _call(row: Call) -> Action:
    """The action of a command that is the row's system call."""

    def act(at: Translator, asked: Asked) -> list[Op]:
        op: Op = {"op": row.op, "p": at.letter(asked.task)}
        for arg in row.args:
            if arg.option and asked.values[arg.name] is None:
                continue
            if arg.kind == "buffer":
                raise Unexpressed("a program reads into a buffer of its own")
            op |= SAYINGS[arg.kind](at, asked, arg, asked.values[arg.name])
        return [op]

    return act


def _mlock2(at: Translator, asked: Asked) -> list[Op]:
    op = _call(BY_OPERATION["mlock"])(at, asked)[0]
    return [{**op, "onfault": bool(asked.values["flags"])}]


def _pin(at: Translator, asked: Asked) -> list[Op]:
    values = asked.values
    if values["length"] % PAGE:
        raise Unexpressed("a program pins whole pages")
    name = at.pins[asked.task.pid, values["addr"]] = f"pin{len(at.pins)}"
    pages = values["length"] // PAGE
    return [
        {
            "op": "pin",
            "p": at.letter(asked.task),
            **at.place(asked.task, values["addr"]),
            "len": pages,
            "id": name,
        }
    ]


def _unpin(at: Translator, asked: Asked) -> list[Op]:
    name = at.pins.get((asked.task.pid, asked.values["addr"]))
    if name is None:
        raise Unexpressed("a program takes whole pins back")
    return [{"op": "unpin", "p": at.letter(asked.task), "id": name}]


# ----------------------------------------------------------------------------------------- accesses


def _pieces(addr: int, size: int) -> list[int]:
    """The first address of the access in each page that it touches."""
    end = addr + max(size, 1)
    starts = [addr, *range((addr // PAGE + 1) * PAGE, end, PAGE)]
    if len(starts) > MOST_PAGES:
        raise Unexpressed(f"an access of more than {MOST_PAGES} pages")
    return starts


def _read(at: Translator, asked: Asked) -> list[Op]:
    who, addr = at.letter(asked.task), asked.values["addr"]
    return [
        {"op": "read", "p": who, **at.place(asked.task, piece)}
        for piece in _pieces(addr, asked.values["size"])
    ]


def _write(at: Translator, asked: Asked) -> list[Op]:
    who, addr, data = at.letter(asked.task), asked.values["addr"], asked.values["data"]
    pieces = _pieces(addr, asked.values["count"] or len(data))
    bytes_ = [data[(piece - addr) % len(data)] for piece in pieces]
    return [
        {"op": "write", "p": who, **at.place(asked.task, piece), "byte": byte}
        for piece, byte in zip(pieces, bytes_, strict=True)
    ]


def _fetch(at: Translator, asked: Asked) -> list[Op]:
    from kemu.observe.translation import walk

    addr = asked.values["addr"]
    with at.session.at(asked.record.last):
        found = walk(at.session.kernel, asked.task, addr, at.session.name_of)
    can = found.byte is not None and not dict(found.faults).get("fetch")
    if can and found.byte != RET:
        raise Unexpressed(f"a real CPU would execute what is there (first write {RET}b, a return)")
    return [{"op": "exec", "p": at.letter(asked.task), **at.place(asked.task, addr)}]


# -------------------------------------------------------------------------------------------- files


def _mkfile(at: Translator, asked: Asked) -> list[Op]:
    values = asked.values
    number = at.session.files_made() if values["seed"] is None else values["seed"]
    kind = values["kind"][-1] if values["kind"] else "disk"
    op = {"op": "file", "p": "A", "kind": kind, "bytes": values["size"], "k": number & 0xFF}
    at.waiting[values["path"]] = {**op, "sparse": True} if values["form"] else op
    return []


def _open(at: Translator, asked: Asked) -> list[Op]:
    flags = 0
    for flag in asked.values["flags"]:
        flags |= flag
    if flags & OPEN_FLAGS["creat"]:
        raise Unexpressed("make the file with mkfile")
    at.letter(asked.task)
    at.opened(asked.values["path"], named(words.OPEN_MODE, flags & 3, "way to open"))
    return []


def _memfd(at: Translator, asked: Asked) -> list[Op]:
    who, before = at.letter(asked.task), _nodes(asked.task)
    with at.session.at(asked.record.last):
        new = _nodes(asked.task) - before
    if len(new) != 1:
        raise Unexpressed("the file could not be made")
    name = f"f{len(at.files)}"
    at.files[new.pop()] = (name, "rw")
    return [{"op": "file", "p": who, "id": name, "kind": "memfd", "pages": 0}]


def _nodes(task: Task) -> set[int]:
    """The numbers of the inodes that the task has open."""
    return (
        {file.f_inode.i_ino for file in task.files.fd.values()} if task.files is not None else set()
    )


def _transfer(size: int) -> int:
    if size > MOST_BYTES:
        raise Unexpressed(f"more than {MOST_BYTES} bytes at once")
    return size


def _pipe(at: Translator, asked: Asked) -> list[Op]:
    at.letter(asked.task)
    before = set(asked.task.files.fd) if asked.task.files is not None else set()
    with at.session.at(asked.record.last):
        new = set(asked.task.files.fd) - before if asked.task.files is not None else set()
    for fd in new:
        at.pipes[asked.task.pid, fd] = ""
    return []


def _vmsplice(at: Translator, asked: Asked) -> list[Op]:
    key = asked.task.pid, asked.values["fd"]
    if at.pipes.get(key) != "":
        raise Unexpressed("in a program each splice has a pipe of its own")
    name = at.pipes[key] = f"pipe{len(at.pipes)}"
    where, size = at.place(asked.task, asked.values["addr"]), _transfer(asked.values["size"])
    return [{"op": "splice", "p": at.letter(asked.task), **where, "n": size, "id": name}]


def _pipe_read(at: Translator, asked: Asked) -> list[Op]:
    name = at.pipes.get((asked.task.pid, asked.values["fd"]))
    if not name:
        raise Unexpressed("nothing was spliced into it by this process")
    return [
        {
            "op": "splice_read",
            "p": at.letter(asked.task),
            "n": _transfer(asked.values["size"]),
            "id": name,
        }
    ]


ACTIONS: dict[str, Action] = {
    **{word: _call(row) for word, row in BY_WORD.items() if row.op and not row.unreal},
    "spawn": _spawn,
    "fork": _fork,
    "clone": _clone,
    "exit": _exit,
    "setcpu": _setcpu,
    "mmap": _mmap,
    "mlock2": _mlock2,
    "pin": _pin,
    "unpin": _unpin,
    "read": _read,
    "write": _write,
    "fetch": _fetch,
    "mkfile": _mkfile,
    "open": _open,
    "memfd_create": _memfd,
    "pipe": _pipe,
    "vmsplice": _vmsplice,
    "pipe_read": _pipe_read,
}

SILENT = frozenset({"use", "wait", "signal"})
"""In a program every child is reaped at once, and every process survives a bad access; if a task
died here, the program ends its process."""

REASONS = {
    **{word: row.unreal for word, row in BY_WORD.items() if row.unreal},
    "load": "a program makes its own files: use mkfile",
    "schedule": "the host's own scheduler decides",
}
"""Why a command has no operations."""


def translation_of(session: Session) -> Translation:
    """The experiment up to this moment as a program."""
    return translate(session, Tables(ACTIONS, REASONS, SILENT))
