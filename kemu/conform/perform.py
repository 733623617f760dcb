"""Perform the operations of a program, with a process of kemu or of the host.

READERS   kind of argument -> the number that the fields of an operation give
ACTIONS   operation -> the function that performs it: most from the rows of kemu/abi
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from typing import Any

from kemu.abi.calls import BY_OPERATION
from kemu.abi.row import Arg, Call
from kemu.abi.uapi import (
    CLONE_VM,
    MAP_ANONYMOUS,
    MAP_FIXED_NOREPLACE,
    MAP_PRIVATE,
    MLOCK_ONFAULT,
    O_NONBLOCK,
    PAGE_SIZE,
    PROT_READ,
    SIGCHLD,
)
from kemu.conform.act import Act, Result, access_result, address_result, result, run_lengths

Perform = Callable[[Act], Result]
MINCORE_PAGES = 4096
"""The most pages whose answer is shown."""


def perform(act: Act) -> Result:
    """Perform the operation and return its result."""
    return ACTIONS[act.op.kind](act)


# ---------------------------------------------------------------- calls that are a row


def _flags(act: Act, arg: Arg) -> int:
    """The bits for the words in the field, which may have one or several."""
    given = act.op.get(arg.key, arg.default or [])
    bits = 0
    for word in [given] if isinstance(given, str) else given:
        bits |= arg.in_recordings[word]
    return bits


def _choice(act: Act, arg: Arg) -> int:
    given = act.op.get(arg.key, arg.default)
    return arg.in_recordings[given] if isinstance(given, str) else given


def _number(act: Act, arg: Arg) -> int:
    return int(act.op.get(arg.key, arg.default))


READERS: dict[str, Callable[[Act, Arg], Any]] = {
    "addr": lambda act, arg: act.op.address(
        act.base, arg.field, "off" if arg.field == "page" else "newoff"
    ),
    "length": lambda act, arg: act.op.length(arg.field),
    "prot": lambda act, _: act.prot,
    "flags": _flags,
    "choice": _choice,
    "fd": lambda act, _: act.fd,
    "offset": lambda act, _: act.offset,
    "extent": lambda act, arg: int(act.op.get(arg.field, 0)) * PAGE_SIZE,
    "file_size": lambda act, _: int(act.op.get("size", act.op.get("pages", 0) * PAGE_SIZE)),
    "count": lambda act, _: act.size,
    "number": _number,
    "limit": _number,
    "task": lambda act, arg: act.pid(act.op.fields[arg.field]),
    "buffer": lambda act, _: act.buffer,
    "data": lambda act, _: act.buffer,
}


def _call(row: Call) -> Perform:
    """Make the row's call with the arguments that the operation gives.  Faults are counted if the
    call is about memory."""
    kinds = {arg.kind for arg in row.args}

    def act_out(act: Act) -> Result:
        values = {"size": act.size, **{arg.name: READERS[arg.kind](act, arg) for arg in row.args}}
        data = act.payload if "data" in kinds else b""
        out = act.size if "buffer" in kinds else 0
        answer = act.call(row.name, *row.passed(values), data=data, out=out)
        if row.returns == "address":
            return address_result(act, answer)
        shown = result(answer, faults="addr" in kinds)
        if out and answer.value > 0:
            shown["data"] = run_lengths(answer.data[: answer.value])
        return shown

    return act_out


# ---------------------------------------------------------------- the others


def _mlock(act: Act) -> Result:
    """mlock(2), or mlock2(2) with MLOCK_ONFAULT."""
    if not act.op.get("onfault"):
        return _call(BY_OPERATION["mlock"])(act)
    return result(act.call("mlock2", act.place, act.op.length(), MLOCK_ONFAULT))


def _mincore(act: Act) -> Result:
    pages = min((act.op.length() + PAGE_SIZE - 1) // PAGE_SIZE, MINCORE_PAGES)
    before = b"\xff" * pages
    answer = act.call("mincore", act.place, act.op.length(), act.buffer, data=before, out=pages)
    shown = result(answer)
    if "err" not in shown:
        shown["vec"] = "".join(str(byte & 1) for byte in answer.data[:pages])
    return shown


def _pread(act: Act) -> Result:
    """Read into the buffer; `sysread` reads into the window."""
    at = act.offset + act.op.get("off", 0)
    answer = act.call("pread", act.fd, act.buffer, act.size, at, out=act.size)
    shown = result(answer)
    return (
        {**shown, "data": run_lengths(answer.data[: answer.value])} if answer.value > 0 else shown
    )


def _pwrite(act: Act) -> Result:
    at = act.offset + act.op.get("off", 0)
    return result(act.call("pwrite", act.fd, act.buffer, act.size, at, data=act.payload))


def _pin(act: Act) -> Result:
    size = int(act.op.get("len", 1)) * PAGE_SIZE
    answer = act.call("pin", act.place, size)
    if answer.value >= 0:
        act.kept[act.op.get("id", "pin0")] = act.place, size
    return result(answer)


def _unpin(act: Act) -> Result:
    return result(act.call("unpin", *act.kept.pop(act.op.get("id", "pin0"), (0, 0))), faults=False)


def _splice(act: Act) -> Result:
    """Take a plain reference to the page: vmsplice it into a pipe."""
    made = act.call("pipe2", act.buffer, O_NONBLOCK, out=8)
    if made.value < 0:
        return result(made)
    ends = act.kept[act.op.get("id", "pipe0")] = struct.unpack("<ii", made.data)
    return result(act.call("vmsplice", ends[1], act.place, act.size))


def _splice_read(act: Act) -> Result:
    ends = act.kept.get(act.op.get("id", "pipe0"), (-1, -1))
    answer = act.call("read", ends[0], act.buffer, act.size, out=act.size)
    return {**result(answer), "data": run_lengths(answer.data[: max(0, answer.value)])}


def _born(flags: int) -> Perform:
    def birth(act: Act) -> Result:
        error = act.birth(flags)
        if error:
            return {"err": errno.errorcode.get(error, str(error))}
        return {"ret": act.op.fields["child"]}

    return birth


def _exit(act: Act) -> Result:
    act.finish()
    return {"ret": 0}


def _setcpu(act: Act) -> Result:
    act.move(act.op.fields["cpu"])
    return {"ret": 0}


def _file(act: Act) -> Result:
    act.make_file()
    return {"ret": 0}


# -------------------------------------------------------------- the limit on the number of mappings

STRIPES = 0x300000000000
"""Where mappings are made, outside the window, until the limit is reached."""

STRIPE_PAGES = 140_000


def _fillmaps(act: Act) -> Result:
    """Make one large PROT_NONE mapping, and change the rights of every second page until that
    fails.  The result is the number of VMAs."""
    pages = act.op.get("pages", STRIPE_PAGES)
    fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
    act.call("mmap", STRIPES, pages * PAGE_SIZE, 0, fixed, -1, 0)
    failed = None
    for page in range(1, pages, 2):
        answer = act.call("mprotect", STRIPES + page * PAGE_SIZE, PAGE_SIZE, PROT_READ)
        if answer.value < 0:
            failed = errno.errorcode[-answer.value]
            break
    return {"err": failed, "vmas": act.mappings()}


def _trimmaps(act: Act) -> Result:
    """Free ``n`` of these mappings by merging n/2 stripes into one."""
    answer = act.call("mprotect", STRIPES, (act.op.fields["n"] + 1) * PAGE_SIZE, 0)
    return {"ret": answer.value, "vmas": act.mappings()}


ACTIONS: dict[str, Perform] = {
    **{name: _call(row) for name, row in BY_OPERATION.items()},
    "mlock": _mlock,
    "mincore": _mincore,
    "pread": _pread,
    "pwrite": _pwrite,
    "read": access_result,
    "write": access_result,
    "exec": access_result,
    "fork": _born(SIGCHLD),
    "clonevm": _born(CLONE_VM | SIGCHLD),
    "exit": _exit,
    "setcpu": _setcpu,
    "file": _file,
    "pin": _pin,
    "unpin": _unpin,
    "splice": _splice,
    "splice_read": _splice_read,
    "fillmaps": _fillmaps,
    "trimmaps": _trimmaps,
}
"""Every operation."""
