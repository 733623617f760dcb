"""Perform operations with processes of kemu."""

from __future__ import annotations

from kemu.abi.uapi import CLONE_VM, PAGE_SIZE
from kemu.conform import words
from kemu.conform.act import Act, Answer
from kemu.conform.cast import MEMORY, Cast, mm_of
from kemu.conform.program import Op
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import disk_super_ops, fill_page_cache, unlink_inode
from kemu.kernel.mm.shmem import shmem_ops
from kemu.userland.performer import Outcome


class KemuAct(Act):
    """An operation of a process of `cast`."""

    def __init__(self, cast: Cast, op: Op) -> None:
        super().__init__(op, cast.window.base, MEMORY, cast.files, cast.kept)
        self.cast = cast
        self.process = cast.processes[op.p]

    def call(self, name: str, *arguments: int, data: bytes = b"", out: int = 0) -> Answer:
        """Make the system call; a value above 0 is the number of bytes in ``out``."""
        if data:
            self.cast.store(self.process, MEMORY, data)
        done = self.cast.call(self.process, name, *arguments)
        size = 0 if done.errno else min(out, done.value or out)
        after = self.cast.load(self.process, MEMORY, size).data if size else b""
        return Answer(-done.errno or done.value, minor=done.minor, major=done.major, data=after)

    def access(self) -> Answer:
        """Read or write one byte, or fetch it as an instruction."""
        if self.op.kind == "read":
            done = self.cast.load(self.process, self.place, 1)
        elif self.op.kind == "write":
            done = self.cast.store(self.process, self.place, bytes([self.op.get("byte", 0)]))
        else:
            done = self.cast.fetch(self.process, self.place)
        info = done.signal
        signal = (info.signo, info.code, info.addr, info.error_code) if info else (0, 0, 0, 0)
        return Answer(done.data[0] if done.data else 0, *signal, done.minor, done.major)

    def pid(self, name: str) -> int:
        """The pid of the task."""
        return self.cast.processes[name].task.pid

    def birth(self, flags: int) -> int:
        """fork(2), or clone(2) with CLONE_VM."""
        made: Outcome = (
            self.cast.call(self.process, "clone", flags)
            if flags & CLONE_VM
            else self.cast.call(self.process, "fork")
        )
        if not made.errno:
            self.cast.born(self.process, self.op.fields["child"], made.value)
        return made.errno

    def finish(self) -> None:
        """exit_group(2)."""
        self.call("exit_group", 0)

    def move(self, cpu: int) -> None:
        """Takes effect from the next operation on."""
        self.process.cpu = cpu

    def mappings(self) -> int:
        """VMAs."""
        return mm_of(self.process).map_count

    def make_file(self) -> None:
        """Fill the page cache directly."""
        op, cast, process = self.op, self.cast, self.process
        name, kind, mode = op.fields["id"], op.get("kind", "memfd"), op.get("mode", "rw")
        size = op.get("bytes", op.get("pages", 0) * PAGE_SIZE)
        data = b"" if op.get("sparse") else _content(op.get("k", len(cast.names.known)), size)
        if kind == "memfd":
            fd = cast.must(process, "memfd_create", name)
        else:
            create_file(f"/{name}", kind, data if kind == "disk" else b"")
            fd = cast.must(process, "open", f"/{name}", words.OPEN_MODE["rw"])
        node = cast.inode(process, fd)
        fill_page_cache(node, data, dirty=kind != "disk")
        node.i_size = size
        if mode != "rw":
            system.files.put(f"/{name}", node)
            again = cast.must(process, "open", f"/{name}", words.OPEN_MODE[mode])
            cast.must(process, "close", fd)
            fd = again
        if kind != "memfd":
            on_disk = kind == "disk"
            node.s_op, node.noreserve = (disk_super_ops if on_disk else shmem_ops), not on_disk
            unlink_inode(node)
        if system.files.get(f"/{name}") is not None:
            system.files.put(f"/{name}", None)
        cast.files[name] = fd
        cast.names.known[node.i_ino] = name


def _content(k: int, size: int) -> bytes:
    """The bytes of the k-th file."""
    pages = (size + PAGE_SIZE - 1) // PAGE_SIZE
    return b"".join(bytes([(0x10 * (k + 1) + page) & 0xFF]) * PAGE_SIZE for page in range(pages))[
        :size
    ]
