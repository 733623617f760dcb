"""The processes on the host that run a program: started, commanded, limited, and always killed.

Each process is the worker of hostasm.py and waits on a socket of its own.  While a ``Crew`` is
open, this process and the whole crew share one CPU, so that the kernel's per-CPU batches behave the
same each time; address-space randomisation is off.  Time, memory and number of processes are
limited.  Nothing of the crew remains when it is closed: each process is killed and waited for, and
if this process itself dies, the death of its parent kills each process.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import select
import signal
import socket
import struct
import sys
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from kemu.abi import calls
from kemu.conform import hostasm
from kemu.conform.act import Answer
from kemu.conform.hostasm import DATA, MEMORY, SOCKET, SYSCALL, Worker, worker
from kemu.conform.words import PROCESSES
from kemu.errors import HostUnavailable

SECONDS = 30.0
"""How long one program may take in all (seconds)."""

MEMORY_LIMIT = 1 << 30
"""How much memory one process may touch (bytes)."""

_SLICE = 0.1
"""Seconds between two checks of how much memory a process uses that has not answered yet."""

_PERSONALITY_ASK = 0xFFFFFFFF
_ADDR_NO_RANDOMIZE = 0x0040000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 1, 36, 37
_PR_SET_PTRACER = 0x59616D61

_COMMAND = struct.Struct("<QQ6QQQQ")
NUMBERS = {
    **calls.NUMBERS,
    "getpid": 39,
    "sigaltstack": 131,
    "prctl": 157,
    "sched_setaffinity": 203,
    "io_uring_setup": 425,
    "io_uring_register": 427,
}
"""The x86-64 numbers of the system calls that are used."""


class Ended(Exception):
    """A process of the crew did not answer, because it died, took too long or used too much memory;
    the message says which."""


def check_host() -> None:
    """Raise ``HostUnavailable`` unless this is Linux on x86-64."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        here = f"{platform.system()} on {platform.machine() or 'an unknown machine'}"
        raise HostUnavailable(
            f"asking the real kernel needs a Linux host on x86-64; this is {here}"
        )


@cache
def libc() -> ctypes.CDLL:
    """The C library, for the few calls that Python does not have."""
    return ctypes.CDLL(None, use_errno=True)


@attrs.define
class Member:
    """One process of the crew."""

    name: str
    pid: int
    pidfd: int
    sock: socket.socket
    space: str
    """The name of the first process that has its address space."""

    parent: str = ""
    """The name of its parent, "" for this process; a new parent after reparenting."""


class Crew:
    """The processes of one program; a context manager.  ``slot`` selects the CPU that is the
    program's CPU 0."""

    def __init__(self, slot: int = 0, seconds: float = SECONDS) -> None:
        check_host()
        self.members: dict[str, Member] = {}
        self.deadline = time.monotonic() + seconds
        self._every: list[Member] = []
        self._ours: list[socket.socket] = []
        self._affinity = os.sched_getaffinity(0)
        allowed = sorted(self._affinity)
        self.cpus = allowed[slot % len(allowed) :] + allowed[: slot % len(allowed)]
        self._reaper = ctypes.c_int(0)
        self.randomised = False

    def __enter__(self) -> Self:
        os.sched_setaffinity(0, self.cpus[:1])
        libc().prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(self._reaper))
        libc().prctl(_PR_SET_CHILD_SUBREAPER, 1)
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---------------------------------------------------------------- beginning

    def _start(self) -> None:
        """Start process A and set it up: signals, break, limits."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in PROCESSES]
        self._ours = [ours for ours, _ in pairs]
        try:
            pid, self.randomised = _spawn([theirs.fileno() for _, theirs in pairs])
        finally:
            for _, theirs in pairs:
                theirs.close()
        import resource  # not on every system

        first = self._join(Member("A", pid, os.pidfd_open(pid), self._ours[0], "A"))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        self._bind(first, signal.SIGKILL)
        self._signals(first)
        self.call(first, "prctl", _PR_SET_PTRACER, -1)
        self.heap = self.call(first, "brk", 0).value
        self.stack_top = _ends(pid, "[stack]")[1]
        self.vdso = _ends(pid, "[vdso]")[0]

    def _join(self, member: Member) -> Member:
        """Add ``member`` to the crew.  It dies with its parent, so that nothing remains if this
        process is killed."""
        self.members[member.name] = member
        self._every.append(member)
        return member

    def _bind(self, member: Member, signo: int) -> None:
        """Let ``member`` get ``signo`` when its parent dies (0: no signal)."""
        self.call(member, "prctl", _PR_SET_PDEATHSIG, signo)

    def _signals(self, member: Member) -> None:
        """Catch the signals that an access can raise, and have children reaped at once."""
        program: Worker = worker()
        self.signal_stack(member)
        flags = (
            0x4 | 0x04000000 | 0x08000000 | 0x40000000
        )  # SA_SIGINFO, SA_RESTORER, SA_ONSTACK, SA_NODEFER
        action = struct.pack("<QQQQ", program.handler, flags, program.restorer, 0)
        for signo in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP):
            self.call(member, "sigaction", signo, MEMORY + DATA, 0, 8, data=action)
        ignore = struct.pack(
            "<QQQQ", 1, 0x2 | 0x04000000, program.restorer, 0
        )  # SIG_IGN, SA_NOCLDWAIT
        self.call(member, "sigaction", signal.SIGCHLD, MEMORY + DATA, 0, 8, data=ignore)

    def signal_stack(self, member: Member) -> None:
        """Give ``member`` its signal stack (a task made with CLONE_VM begins without one)."""
        stack = struct.pack("<QQQ", hostasm.SIGNAL_STACK, 0, hostasm.SIGNAL_STACK_SIZE)
        self.call(member, "sigaltstack", MEMORY + DATA, 0, data=stack)

    # ---------------------------------------------------------------- commands

    def call(
        self, member: Member, name: str, *arguments: int, data: bytes = b"", out: int = 0
    ) -> Answer:
        """Make the system call ``name``; ``data`` is put at MEMORY + DATA before it, and ``out``
        bytes from there come back."""
        self._send(member, SYSCALL, NUMBERS[name], arguments, data, out=out)
        return self._receive(member, member)

    def number(self, member: Member, number: int, *arguments: int, data: bytes = b"") -> Answer:
        """Make the system call with this ``number``."""
        self._send(member, SYSCALL, number, arguments, data)
        return self._receive(member, member)

    def start(self, member: Member, number: int, *arguments: int, data: bytes = b"") -> None:
        """Start a system call that may not return."""
        self._send(member, SYSCALL, number, arguments, data)

    def refusal(self, member: Member) -> int:
        """The errno of the call made by ``start``, if it has returned; else 0."""
        return (
            -_answer(member.sock.recv(1 << 18)).value if _readable(member.sock.fileno(), 0.0) else 0
        )

    def access(self, member: Member, kind: int, addr: int, byte: int = 0) -> Answer:
        """Read, write or execute one byte."""
        self._send(member, kind, 0, (addr, byte))
        return self._receive(member, member)

    def fork(
        self, parent: Member, name: str, flags: int, stack: int = 0
    ) -> tuple[int, Member | None]:
        """clone(``flags``): (0, the child) or (errno, None).  If the child shares its memory, only
        the child answers."""
        shares = bool(flags & 0x100)
        number = PROCESSES.index(name)
        self._send(
            parent, SYSCALL, NUMBERS["clone"], (flags, stack), child=SOCKET + number, quiet=shares
        )
        if shares:
            return 0, self._born_sharing(parent, name, number)
        value = self._receive(parent, parent).value
        if value < 0:
            return -value, None
        child = self._join(
            Member(name, value, os.pidfd_open(value), self._ours[number], name, parent.name)
        )
        self._receive(child, child)
        self._bind(child, signal.SIGKILL)
        return 0, child

    def _born_sharing(self, parent: Member, name: str, number: int) -> Member:
        stand_in = attrs.evolve(parent, sock=self._ours[number])
        self._receive(stand_in, parent)
        self._send(stand_in, SYSCALL, NUMBERS["getpid"], ())
        pid = self._receive(stand_in, parent).value
        child = self._join(
            Member(name, pid, os.pidfd_open(pid), self._ours[number], parent.space, parent.name)
        )
        self._bind(child, signal.SIGKILL)
        self.signal_stack(child)
        return child

    def finish(self, member: Member) -> None:
        """exit_group(0), and wait until the process is dead; this process adopts its children."""
        children = [other for other in self.members.values() if other.parent == member.name]
        for child in children:
            self._bind(child, 0)
        self._send(member, SYSCALL, NUMBERS["exit_group"], (0,))
        if not _readable(member.pidfd, max(0.0, self.deadline - time.monotonic())):
            raise Ended(f"process {member.name} did not end in time")
        del self.members[member.name]
        for child in children:
            child.parent = ""
            self._bind(child, signal.SIGKILL)

    def _send(
        self,
        member: Member,
        kind: int,
        number: int,
        arguments: tuple[int, ...],
        data: bytes = b"",
        *,
        out: int = 0,
        child: int = 0,
        quiet: bool = False,
    ) -> None:
        words = [value & (1 << 64) - 1 for value in arguments] + [0] * (6 - len(arguments))
        head = _COMMAND.pack(
            kind, number, *words, DATA + out if out else hostasm.COMMAND, child, quiet
        )
        member.sock.send(head.ljust(DATA - hostasm.COMMAND, b"\0") + data if data else head)

    def _receive(self, member: Member, living: Member) -> Answer:
        """The answer on the socket of ``member``.  ``Ended`` if ``living`` dies or grows too large
        before it, or if time runs out."""
        poll = select.poll()
        poll.register(member.sock, select.POLLIN)
        poll.register(living.pidfd, select.POLLIN)
        while not (ready := {fd for fd, _ in poll.poll(_SLICE * 1000)}):
            _check_size(living)
            if time.monotonic() > self.deadline:
                raise Ended(f"process {living.name} did not answer in time")
        if member.sock.fileno() not in ready:
            raise Ended(f"process {living.name} died")
        return _answer(member.sock.recv(1 << 18))

    # ---------------------------------------------------------------- end

    def close(self) -> None:
        """Kill and reap all processes, and let this process use its CPUs again."""
        for member in self._every:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                signal.pidfd_send_signal(member.pidfd, signal.SIGKILL)
        for sock in self._ours:
            sock.close()
        for member in self._every:
            _readable(member.pidfd, 10.0)
            os.close(member.pidfd)
            with contextlib.suppress(
                ChildProcessError
            ):  # another process of the worker has waited for it
                os.waitpid(member.pid, 0)
        self._every = []
        self.members = {}
        libc().prctl(_PR_SET_CHILD_SUBREAPER, self._reaper.value)
        os.sched_setaffinity(0, self._affinity)


def _answer(packet: bytes) -> Answer:
    """A reply, decoded."""
    (value,) = struct.unpack_from("<q", packet, hostasm.RET)
    signo, code, addr, error = struct.unpack_from("<QqQQ", packet, hostasm.SIGNO)
    before = struct.unpack_from("<qq", packet, hostasm.BEFORE + 64)
    after = struct.unpack_from("<qq", packet, hostasm.AFTER + 64)
    return Answer(
        value, signo, code, addr, error, after[0] - before[0], after[1] - before[1], packet[DATA:]
    )


def _readable(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _check_size(member: Member) -> None:
    """Raise ``Ended`` if the process has touched too much memory."""
    with contextlib.suppress(OSError):  # it has just died, which the next question to it says
        resident = int(Path(f"/proc/{member.pid}/statm").read_text().split()[1]) * mmap.PAGESIZE
        if resident > MEMORY_LIMIT:
            raise Ended(f"process {member.name} uses more than {MEMORY_LIMIT >> 20} MiB")


def _ends(pid: int, name: str) -> tuple[int, int]:
    """Where the mapping ``name`` of a fresh process begins and ends; (0, 0) if it has none."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith(name):
            start, end = line.split()[0].split("-")
            return int(start, 16), int(end, 16)
    return 0, 0


@cache
def _image() -> str:
    """A path to the worker's file, which is kept in memory as long as this process lives."""
    fd = os.memfd_create("kemu-worker", os.MFD_CLOEXEC)
    os.write(fd, worker().image)
    return f"/proc/self/fd/{fd}"


def _spawn(sockets: list[int]) -> tuple[int, bool]:
    """Start the worker with these sockets as SOCKET, SOCKET + 1 ...: its pid, and whether its
    address space is randomised (some containers do not allow switching that off)."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in range(3)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, SOCKET + number) for number, fd in enumerate(sockets)]
    usual = libc().personality(_PERSONALITY_ASK)
    randomised = libc().personality(usual | _ADDR_NO_RANDOMIZE) < 0
    try:
        return os.posix_spawn(_image(), ["kemu-worker"], {}, file_actions=actions), randomised
    except OSError as error:
        raise HostUnavailable(
            f"this host does not let kemu start its worker: {error.strerror}"
        ) from None
    finally:
        libc().personality(usual)
        os.close(null)
