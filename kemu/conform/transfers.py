"""Operations that move bytes or pages between a process and something else: files, other processes,
devices, pipes.

    TRANSFERS   operation -> the function that performs it

Bytes go through a buffer of the process's own (``MEMORY``), outside of the program's window.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.abi.uapi import PAGE_SIZE
from kemu.conform import words
from kemu.conform.act import Act, Perform, Result, result, run_lengths
from kemu.conform.cast import MEMORY
from kemu.conform.program import Op
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import disk_super_ops, fill_page_cache, unlink_inode
from kemu.kernel.mm.shmem import shmem_ops
from kemu.userland.script import Outcome


def _with_data(act: Act, outcome: Outcome, *, show: bool = True) -> Result:
    """A call's result and, if any came into the buffer, the bytes."""
    shown = result(outcome)
    if show and outcome.value:
        shown["data"] = run_lengths(act.cast.load(act.process, MEMORY, outcome.value).data)
    return shown


def _pread(act: Act) -> Result:
    return _with_data(
        act, act.call("pread", act.fd, MEMORY, act.size, act.offset + act.op.get("off", 0))
    )


def _pwrite(act: Act) -> Result:
    act.cast.store(act.process, MEMORY, bytes([act.op.get("byte", 0)]) * act.size)
    return result(act.call("pwrite", act.fd, MEMORY, act.size, act.offset + act.op.get("off", 0)))


def _window_io(name: str) -> Perform:
    """read(2) into the window or write(2) from it."""
    return lambda act: result(act.call(name, act.fd, act.place, act.size, act.offset))


def _on_file(name: str, *arguments: Callable[[Op], int]) -> Perform:
    """A call on a file whose faults are not counted."""

    def run(act: Act) -> Result:
        return result(
            act.call(name, act.fd, *(argument(act.op) for argument in arguments)), faults=False
        )

    return run


def _other(name: str, *, write: bool) -> Perform:
    """A transfer between a private buffer and the memory of process ``t``; ``name`` takes pid,
    buffer, address, size."""

    def run(act: Act) -> Result:
        pid = act.cast.processes[act.op.fields["t"]].task.pid
        if write:
            act.cast.store(act.process, MEMORY, bytes([act.op.get("byte", 0)]) * act.size)
        return _with_data(act, act.call(name, pid, MEMORY, act.place, act.size), show=not write)

    return run


def _pin(act: Act) -> Result:
    size = int(act.op.get("len", 1)) * PAGE_SIZE
    outcome = act.call("pin", act.place, size)
    if not outcome.errno:
        act.cast.pins[act.op.get("id", "pin0")] = act.place, size
    return result(outcome)


def _unpin(act: Act) -> Result:
    return result(
        act.call("unpin", *act.cast.pins.pop(act.op.get("id", "pin0"), (0, 0))), faults=False
    )


def _splice(act: Act) -> Result:
    pipe = act.cast.pipes[act.op.get("id", "pipe0")] = act.cast.must(act.process, "pipe")
    return result(act.call("vmsplice", pipe, act.place, act.size))


def _splice_read(act: Act) -> Result:
    outcome = act.call("read", act.cast.pipes.get(act.op.get("id", "pipe0"), -1), MEMORY, act.size)
    return {
        **_with_data(act, outcome),
        "data": run_lengths(act.cast.load(act.process, MEMORY, outcome.value).data),
    }


def _file(act: Act) -> Result:
    """Make a file whose pages are filled with bytes of their own, and leave it open, without a
    name.  A disk file is clean: it was synced."""
    op, cast = act.op, act.cast
    name, kind, mode = op.fields["id"], op.get("kind", "memfd"), op.get("mode", "rw")
    size = op.get("bytes", op.get("pages", 0) * PAGE_SIZE)
    data = b"" if op.get("sparse") else _content(op.get("k", len(cast.names.known)), size)
    if kind == "memfd":
        fd = cast.must(act.process, "memfd_create", name)
    else:
        create_file(f"/{name}", kind, data if kind == "disk" else b"")
        fd = cast.must(act.process, "open", f"/{name}", words.OPEN_MODE["rw"])
    node = cast.inode(act.process, fd)
    fill_page_cache(node, data, dirty=kind != "disk")
    node.i_size = size
    if mode != "rw":
        system.files.put(f"/{name}", node)
        again = cast.must(act.process, "open", f"/{name}", words.OPEN_MODE[mode])
        cast.must(act.process, "close", fd)
        fd = again
    if kind != "memfd":
        node.s_op, node.noreserve = (disk_super_ops, False) if kind == "disk" else (shmem_ops, True)
        unlink_inode(node)
    if system.files.get(f"/{name}") is not None:
        system.files.put(f"/{name}", None)
    cast.files[name] = fd
    cast.names.known[node.i_ino] = name
    return {"ret": 0}


def _content(k: int, size: int) -> bytes:
    """The bytes of the k-th file: page i is filled with 0x10 * (k + 1) + i."""
    pages = (size + PAGE_SIZE - 1) // PAGE_SIZE
    return b"".join(bytes([(0x10 * (k + 1) + page) & 0xFF]) * PAGE_SIZE for page in range(pages))[
        :size
    ]


def _pages(field: str) -> Callable[[Op], int]:
    return lambda op: int(op.get(field, 0)) * PAGE_SIZE


def _new_size(op: Op) -> int:
    return int(op.get("size", op.get("pages", 0) * PAGE_SIZE))


TRANSFERS: dict[str, Perform] = {
    "file": _file,
    "close": _on_file("close"),
    "ftruncate": _on_file("ftruncate", _new_size),
    "fallocate": _on_file(
        "fallocate",
        lambda op: words.FALLOCATE[op.get("mode", "punch")],
        _pages("foff"),
        _pages("len"),
    ),
    "fsync": _on_file("fsync"),
    "fadvise": _on_file(
        "fadvise64", _pages("foff"), _pages("len"), lambda op: words.FADVISE[op.fields["advice"]]
    ),
    "pread": _pread,
    "pwrite": _pwrite,
    "sysread": _window_io("pread"),
    "syswrite": _window_io("pwrite"),
    "vmread": _other("process_vm_readv", write=False),
    "vmwrite": _other("process_vm_writev", write=True),
    "memread": _other("memread", write=False),
    "memwrite": _other("memwrite", write=True),
    "pin": _pin,
    "unpin": _unpin,
    "splice": _splice,
    "splice_read": _splice_read,
}
"""These operations."""
