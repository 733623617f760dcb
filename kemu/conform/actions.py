"""What each command of the shell is in a program for a real kernel: the table behind
`translate.py`.

    ACTIONS   command -> the operations that it stands for
    REASONS   command -> why there are none
    SILENT    commands that change nothing a program knows

A program reads and writes single bytes: a larger access becomes one in each page that it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kemu.abi import uapi
from kemu.abi import words as abi_words
from kemu.abi.uapi import PAGE_SIZE as PAGE
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
"""Pages of one access that are repeated."""

RET = 0xC3
"""The instruction that a fetch on a real CPU must find, for it is executed."""


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
    if tuple(asked.values["flags"]) != (abi_words.CLONE_FLAGS["vm"],):
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
    named_flags = [named(words.MAP, kind, "kind of mapping"), *bits(words.MAP, rest, "mapping")]
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
    """Where the mapping is asked for: where it was asked for, unless the kernel put it
    elsewhere."""
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
    return {**found, **({"foff_bytes": offset} if offset % PAGE else {"foff": offset // PAGE})}


def _mremap(at: Translator, asked: Asked) -> list[Op]:
    values = asked.values
    op = {
        "op": "mremap", "p": at.letter(asked.task), **at.place(asked.task, values["addr"]), **length(values["old"]),
        **length(values["new"], "newlen"), "flags": bits(words.MREMAP, sum(set(values["flags"])), "flag"),
    }  # fmt: skip
    if values["to"] is not None:
        op |= at.place(asked.task, values["to"], "newpage", "newoff")
    return [op]


def _ranged(name: str, more: Callable[[Asked], Op] = lambda _: {}) -> Action:
    """A command about a range, and what `more` takes from its arguments."""
    return lambda at, asked: [
        {"op": name, "p": at.letter(asked.task), **at.range(asked), **more(asked)}
    ]


def _advice(asked: Asked) -> Op:
    return {"advice": named(words.MADV, asked.values["advice"], "advice")}


def _flags(table: Mapping[str, int]) -> Callable[[Asked], Op]:
    return lambda asked: {"flags": bits(table, sum(set(asked.values["flags"])), "flag")}


def _mlockall(at: Translator, asked: Asked) -> list[Op]:
    return [{"op": "mlockall", "p": at.letter(asked.task), **_flags(words.MCL)(asked)}]


def _munlockall(at: Translator, asked: Asked) -> list[Op]:
    return [{"op": "munlockall", "p": at.letter(asked.task)}]


def _setrlimit(at: Translator, asked: Asked) -> list[Op]:
    values = asked.values
    soft, hard = values["soft"], uapi.RLIM_INFINITY if values["hard"] is None else values["hard"]
    resource = named(words.RLIMIT, values["resource"], "limit")
    return [
        {"op": "setrlimit", "p": at.letter(asked.task), "res": resource, "soft": soft, "hard": hard}
    ]


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
        raise Unexpressed(f"a real CPU would run what lies there (write {RET}b first: a return)")
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
    if flags & abi_words.OPEN_FLAGS["creat"]:
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


def _on_file(name: str, more: Callable[[Any], Op] = lambda _: {}) -> Action:
    """A command about an open file, and what `more` takes from its arguments."""
    return lambda at, asked: [
        {"op": name, "p": at.letter(asked.task), **at.file(asked), **more(asked.values)}
    ]


def _pages(size: int, what: str) -> int:
    if size % PAGE:
        raise Unexpressed(f"a program counts this {what} in pages")
    return size // PAGE


def _fallocate(values: dict[str, Any]) -> Op:
    mode = named(words.FALLOCATE, sum(set(values["flags"])), "mode")
    return {
        "mode": mode,
        "foff": _pages(values["offset"], "offset"),
        "len": _pages(values["length"], "length"),
    }


def _fadvise(values: dict[str, Any]) -> Op:
    places = {"foff": _pages(values["offset"], "offset"), "len": _pages(values["length"], "length")}
    return {"advice": named(words.FADVISE, values["advice"], "advice"), **places}


def _io(name: str) -> Action:
    """A transfer between a file and the window."""

    def act(at: Translator, asked: Asked) -> list[Op]:
        values = asked.values
        where = at.place(asked.task, values["addr"])
        size, offset = _transfer(values["size"]), _pages(values["offset"], "offset")
        return [
            {
                "op": name,
                "p": at.letter(asked.task),
                **at.file(asked),
                **where,
                "n": size,
                "foff": offset,
            }
        ]

    return act


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


def _other(name: str, at: Translator, asked: Asked) -> list[Op]:
    """A transfer to or from another process, through a private buffer."""
    values, other = asked.values, asked.values["other"]
    op = {
        "op": name,
        "p": at.letter(asked.task),
        "t": at.letter(other),
        **at.place(other, values["addr"]),
    }
    if "data" in values:
        return [{**op, "n": _transfer(len(values["data"])), "byte": values["data"][0]}]
    if values["into"] is not None:
        raise Unexpressed("a program reads into a buffer of its own")
    return [{**op, "n": _transfer(values["size"])}]


ACTIONS: dict[str, Action] = {
    "spawn": _spawn,
    "fork": _fork,
    "clone": _clone,
    "exit": _exit,
    "setcpu": _setcpu,
    "mmap": _mmap,
    "munmap": _ranged("munmap"),
    "mprotect": _ranged("mprotect", lambda asked: {"prot": prot(asked.values["prot"])}),
    "pkey_mprotect": _ranged(
        "pkey_mprotect", lambda a: {"prot": prot(a.values["prot"]), "pkey": a.values["pkey"]}
    ),
    "mremap": _mremap,
    "madvise": _ranged("madvise", _advice),
    "msync": _ranged("msync", _flags(words.MSYNC)),
    "mincore": _ranged("mincore"),
    "mseal": _ranged("mseal"),
    "remap_file_pages": _ranged("remap_file_pages", lambda asked: {"pgoff": asked.values["pgoff"]}),
    "mlock": _ranged("mlock"),
    "mlock2": _ranged("mlock", lambda asked: {"onfault": bool(asked.values["flags"])}),
    "munlock": _ranged("munlock"),
    "mlockall": _mlockall,
    "munlockall": _munlockall,
    "setrlimit": _setrlimit,
    "pin": _pin,
    "unpin": _unpin,
    "read": _read,
    "write": _write,
    "fetch": _fetch,
    "mkfile": _mkfile,
    "open": _open,
    "memfd_create": _memfd,
    "close": _on_file("close"),
    "ftruncate": _on_file("ftruncate", lambda values: {"size": values["size"]}),
    "fallocate": _on_file("fallocate", _fallocate),
    "fsync": _on_file("fsync"),
    "fadvise": _on_file("fadvise", _fadvise),
    "pread": _io("sysread"),
    "pwrite": _io("syswrite"),
    "pipe": _pipe,
    "vmsplice": _vmsplice,
    "pipe_read": _pipe_read,
    "process_vm_readv": partial(_other, "vmread"),
    "process_vm_writev": partial(_other, "vmwrite"),
    "memread": partial(_other, "memread"),
    "memwrite": partial(_other, "memwrite"),
}

SILENT = frozenset({"use", "wait", "signal"})
"""In a program every child is reaped at once and every process survives a bad access; one that died
here is ended there."""

REASONS = {
    "brk": "the heap of a program on the host lies elsewhere",
    "exec": "it would replace the process that makes the calls (see: kemu conform exec)",
    "vfork": "the parent would wait, and with it the experiment",
    "kill": "a program sends no signals; whoever died of one is ended",
    "tgkill": "a program sends no signals; whoever died of one is ended",
    "load": "a program makes its own files: use mkfile",
    "schedule": "the host's own scheduler decides",
    **dict.fromkeys(
        ("lseek", "read_fd", "write_fd"),
        "a program reads and writes at a place that it names: use pread, pwrite",
    ),
    "pipe2": "a program has no word for the flags of a pipe",
}
"""Why a command has no operation."""


def translation_of(session: Session) -> Translation:
    """The experiment up to this moment as a program."""
    return translate(session, Tables(ACTIONS, REASONS, SILENT))
