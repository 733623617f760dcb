"""Operations performed by processes of the host.

buffer       | structures | data |      both are written before a call; the data is read back
STAND_INS    what is one call in kemu and several in Linux: pins, /proc/PID/mem
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import attrs

from kemu.abi.calls import BY_NAME
from kemu.abi.uapi import (
    CLONE_VM,
    EINVAL,
    MFD_ALLOW_SEALING,
    MFD_CLOEXEC,
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_RDWR,
    PAGE_SIZE,
)
from kemu.conform import hostasm, words
from kemu.conform.act import Act, Answer
from kemu.conform.hostcast import HostCast
from kemu.conform.hostfiles import SHARED_MEMORY, disk_folder
from kemu.conform.hostsee import Sight
from kemu.conform.program import Op
from kemu.errors import HostUnavailable

STRUCTURES = hostasm.MEMORY + hostasm.DATA
BUFFER = STRUCTURES + hostasm.STRUCTURES
_UNREGISTER_BUFFERS = 1


class HostAct(Act):
    """An operation of a process of `cast`."""

    def __init__(self, cast: HostCast, op: Op) -> None:
        super().__init__(op, cast.base, BUFFER, cast.files, cast.kept)
        self.cast = cast
        self.member = cast.crew.members[op.p]

    def call(self, name: str, *arguments: int, data: bytes = b"", out: int = 0) -> Answer:
        """The call, with the host's arguments."""
        if name in STAND_INS:
            return STAND_INS[name](self, *arguments, data=data, out=out)
        row = BY_NAME.get(name)
        if row is None or not row.host:
            return self.raw(name, *arguments, data=data, out=out)
        values = dict(
            zip(row.order.split() or [arg.name for arg in row.args], arguments, strict=True)
        )
        passed, structures = [], b""
        for structure, word in re.findall(r"\{(.*?)\}|(\S+)", row.host):
            if structure:
                passed.append(STRUCTURES + len(structures))
                fields = [values[field] & (1 << 64) - 1 for field in structure.split()]
                structures += struct.pack(f"<{len(fields)}Q", *fields)
            else:
                passed.append(int(word) if word.isdecimal() else values[word])
        return self.raw(name, *passed, structures=structures, data=data, out=out)

    def raw(
        self, name: str, *arguments: int, structures: bytes = b"", data: bytes = b"", out: int = 0
    ) -> Answer:
        """The call, with exactly these arguments."""
        before = structures.ljust(hostasm.STRUCTURES, b"\0") + data if data else structures
        answer = self.cast.crew.call(
            self.member, name, *arguments, data=before, out=out and hostasm.STRUCTURES + out
        )
        return attrs.evolve(answer, data=answer.data[hostasm.STRUCTURES :])

    def must(self, name: str, *arguments: int, data: bytes = b"", out: int = 0) -> Answer:
        """A call without which the operation cannot be performed here."""
        answer = self.raw(name, *arguments, data=data, out=out)
        if answer.value < 0:
            raise HostUnavailable(
                f"this host refuses {name}, which {self.op.kind} needs: "
                f"{os.strerror(-answer.value)}"
            )
        return answer

    def access(self) -> Answer:
        """Read, write or execute one byte."""
        kinds = {"read": hostasm.READ, "write": hostasm.WRITE, "exec": hostasm.EXEC}
        return self.cast.crew.access(
            self.member, kinds[self.op.kind], self.place, self.op.get("byte", 0)
        )

    def pid(self, name: str) -> int:
        """The pid on the host."""
        return self.cast.crew.members[name].pid

    def birth(self, flags: int) -> int:
        """clone(2); both processes then touch the memory that they will need."""
        cast, member, name = self.cast, self.member, self.op.fields["child"]
        stack = hostasm.CHILD_STACK if flags & CLONE_VM else 0
        error, child = cast.crew.fork(member, name, flags, stack)
        if child is None:
            return error
        if flags & CLONE_VM:
            cast.identities.share(member.name, name)
        else:
            cast.identities.fork(name)
        cast.sights[name] = Sight(cast.eyes, child)
        cast.touch(member)
        cast.touch(child)
        return 0

    def finish(self) -> None:
        """exit_group(2), and wait for it."""
        member = self.member
        self.cast.crew.finish(member)
        self.cast.sights.pop(member.name).close()

    def move(self, cpu: int) -> None:
        """sched_setaffinity(2)."""
        cpus = self.cast.crew.cpus
        if cpu >= len(cpus):
            raise HostUnavailable(
                f"this host gives kemu only {len(cpus)} CPU, but setcpu needs another one"
            )
        mask = (1 << cpus[cpu]).to_bytes(128, "little")
        self.must("sched_setaffinity", 0, len(mask), BUFFER, data=mask)

    def mappings(self) -> int:
        """The number of lines in /proc/PID/maps, not counting the vsyscall page."""
        lines = Path(f"/proc/{self.member.pid}/maps").read_text().splitlines()
        return sum("[vsyscall]" not in line for line in lines)

    def make_file(self) -> None:
        """Make it with memfd_create(2), or under a name that is removed at once."""
        op, cast, pid = self.op, self.cast, self.member.pid
        name, kind, mode = op.fields["id"], op.get("kind", "memfd"), op.get("mode", "rw")
        path = ""
        if kind == "memfd":
            seals = MFD_CLOEXEC | (MFD_ALLOW_SEALING if op.get("seals") else 0)
            fd = self.must("memfd_create", BUFFER, seals, data=name.encode() + b"\0").value
        else:
            folder = SHARED_MEMORY if kind == "tmpfs" else disk_folder()
            path = f"{folder}/kemu-{os.getpid()}-{pid}-{cast.made}"
            flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
            fd = self.must("open", BUFFER, flags, 0o600, data=path.encode() + b"\0").value
        try:
            self.fill(fd)
            if mode != "rw":
                again = f"/proc/self/fd/{fd}\0".encode()
                flags = words.OPEN_MODE[mode] | O_CLOEXEC
                other = self.must("open", BUFFER, flags, 0, data=again).value
                self.must("close", fd)
                fd = other
        finally:
            if path:
                Path(path).unlink()
        stat = Path(f"/proc/{pid}/fd/{fd}").stat()
        device = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}"
        cast.eyes.files.names[cast.eyes.files.number(device, stat.st_ino)] = name
        cast.eyes.files.made.append(name)
        cast.files[name] = fd
        cast.made += 1

    def fill(self, fd: int) -> None:
        """The contents of the file that is being made."""
        op = self.op
        k = op.get("k", len(self.cast.eyes.files.names))
        size = op.get("bytes", op.get("pages", 0) * PAGE_SIZE)
        if op.get("sparse"):
            self.must("ftruncate", fd, size)
        else:
            for start in range(0, size, PAGE_SIZE):
                byte = (0x10 * (k + 1) + start // PAGE_SIZE) & 0xFF
                data = bytes([byte]) * min(PAGE_SIZE, size - start)
                self.must("pwrite", fd, BUFFER, len(data), start, data=data)
        if op.get("kind") == "disk":
            self.must("fsync", fd)


# ---------------------------------------------------------------- what Linux does by several calls


def _proc_mem(name: str) -> Callable[..., Answer]:
    """pread(2) or pwrite(2) on /proc/PID/mem."""

    def transfer(
        act: HostAct, pid: int, buffer: int, addr: int, size: int, *, data: bytes, out: int
    ) -> Answer:
        opened = act.raw("open", BUFFER, O_RDWR, 0, data=f"/proc/{pid}/mem\0".encode())
        if opened.value < 0:
            return opened
        answer = act.raw(name, opened.value, buffer, size, addr, data=data, out=out)
        act.raw("close", opened.value)
        return answer

    return transfer


def _pin(act: HostAct, addr: int, size: int, **_: object) -> Answer:
    """Register a buffer with io_uring."""
    ring = act.must("io_uring_setup", 4, BUFFER, data=bytes(120)).value
    vector = struct.pack("<QQ", addr, size)
    answer = act.raw("io_uring_register", ring, 0, BUFFER, 1, data=vector)
    if answer.value < 0:
        act.raw("close", ring)
    else:
        act.cast.rings.setdefault((addr, size), []).append(ring)
    return answer


def _unpin(act: HostAct, addr: int, size: int, **_: object) -> Answer:
    """Unregister the buffer: close(2) alone would release the pages only some time later."""
    rings = act.cast.rings.get((addr, size))
    if not rings:
        return Answer(-EINVAL)
    ring = rings.pop()
    act.raw("io_uring_register", ring, _UNREGISTER_BUFFERS, 0, 0)
    return act.raw("close", ring)


STAND_INS: dict[str, Callable[..., Answer]] = {
    "memread": _proc_mem("pread"),
    "memwrite": _proc_mem("pwrite"),
    "pin": _pin,
    "unpin": _unpin,
}
