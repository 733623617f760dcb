"""How the host's kernel starts a program: ptrace stops it right after execve, before its first
instruction.

The worker asks to be traced and calls execve.  If that fails, the worker continues and reports the
error; if it succeeds, the task stops with SIGTRAP; if the new program cannot be set up, the kernel
kills the task.  In no case does the program itself run.  Root is not needed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import time
from pathlib import Path

import attrs

from kemu.conform.hostasm import DATA, MEMORY
from kemu.conform.hostworker import Crew, Member, libc
from kemu.errors import HostUnavailable, UsageError

ENVIRONMENT = (b"HOME=/", b"TERM=linux")
STACK_LIMIT = 8 << 20

STAT_FIELDS = {
    "startcode": 26, "endcode": 27, "startstack": 28, "start_data": 45, "end_data": 46,
    "start_brk": 47, "arg_start": 48,
    "arg_end": 49, "env_start": 50, "env_end": 51, "majflt": 12, "vsize": 23,
}  # fmt: skip
"""Numbers of /proc/PID/stat that describe the layout of the program, by position in proc(5)."""

STATUS_FIELDS = (
    "VmPeak", "VmSize", "VmLck", "VmPin", "VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem",
    "VmData", "VmStk", "VmExe",
    "VmLib", "VmPTE", "VmSwap", "Threads",
)  # fmt: skip

_PTRACE_TRACEME, _PTRACE_GETREGS = 0, 12
_EXECVE, _PTRACE = 59, 101
_RIP, _RSP = 16, 19


@attrs.frozen
class Started:
    """A program before its first instruction.  ``maps``: (addresses, rights, offset; name) of each
    mapping; ``auxv``: (type, value) pairs; ``stack``: the bytes from ``rsp`` to the end of the
    stack."""

    rip: int
    rsp: int
    maps: tuple[tuple[str, str], ...]
    auxv: tuple[tuple[int, int], ...]
    stack: bytes
    stat: dict[str, int]
    status: dict[str, str]


@attrs.frozen
class Outcome:
    """The outcome of execve: ``started``, or the name of an ``error``, or of the ``signal`` that
    killed the task."""

    started: Started | None = None
    error: str = ""
    signal: str = ""


def execute_on_host(path: str, argv: list[str]) -> Outcome:
    """execve(``path``, ``argv``) on the host, without address-space randomisation and with a stack
    limit of 8 MiB."""
    import resource  # not on every system

    with Crew() as crew:
        member = crew.members["A"]
        if crew.randomised:
            raise HostUnavailable(
                "this host does not allow switching off address-space randomisation (usual in a "
                "container)"
            )
        _, hard = resource.prlimit(member.pid, resource.RLIMIT_STACK)
        if hard not in (-1, resource.RLIM_INFINITY) and hard < STACK_LIMIT:
            raise HostUnavailable(
                f"this host allows only {hard >> 10} kB of stack; 8 MiB are needed"
            )
        resource.prlimit(member.pid, resource.RLIMIT_STACK, (STACK_LIMIT, hard))
        traced = crew.number(member, _PTRACE, _PTRACE_TRACEME, 0, 0, 0).value
        if traced < 0:
            raise HostUnavailable(
                f"this host does not allow tracing a program: {os.strerror(-traced)}"
            )
        data, addresses = _arguments(path, argv)
        crew.start(member, _EXECVE, *addresses, data=data)
        return _await(crew, member)


def _arguments(path: str, argv: list[str]) -> tuple[bytes, tuple[int, int, int]]:
    """What execve reads: the path, both arrays and their strings; and their three addresses."""
    texts = [os.fsencode(path), *map(os.fsencode, argv), *ENVIRONMENT]
    heads = (len(argv) + 1 + len(ENVIRONMENT) + 1) * 8
    where, at = [], MEMORY + DATA + heads
    for text in texts:
        where.append(at)
        at += len(text) + 1
    if at >= MEMORY + DATA + (1 << 16):
        raise UsageError(
            "the arguments are too long for a comparison", hint="give fewer or shorter ones"
        )
    words = [*where[1 : len(argv) + 1], 0, *where[len(argv) + 1 :], 0]
    data = struct.pack(f"<{len(words)}Q", *words) + b"".join(text + b"\0" for text in texts)
    first = MEMORY + DATA
    return data, (where[0], first, first + (len(argv) + 1) * 8)


def _await(crew: Crew, member: Member) -> Outcome:
    """Wait until the call fails or the task stops or dies."""
    while time.monotonic() < crew.deadline:
        refused = crew.refusal(member)
        if refused:
            return Outcome(error=errno.errorcode.get(refused, str(refused)))
        pid, status = os.waitpid(member.pid, os.WNOHANG | os.WUNTRACED)
        if pid:
            return _stopped(member, status)
        time.sleep(0.001)
    raise HostUnavailable("the host did not start the program in time")


def _stopped(member: Member, status: int) -> Outcome:
    if os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP:
        return Outcome(started=_look(member.pid))
    number = os.WSTOPSIG(status) if os.WIFSTOPPED(status) else os.WTERMSIG(status)
    return Outcome(signal=signal.Signals(number).name)


def _look(pid: int) -> Started:
    """Read the state that the kernel gave the stopped task ``pid``."""
    registers = (ctypes.c_ulong * 27)()
    ptrace = libc().ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    if ptrace(_PTRACE_GETREGS, pid, None, ctypes.addressof(registers)) < 0:
        raise HostUnavailable("this host does not let the registers of a traced program be read")
    proc = Path(f"/proc/{pid}")
    maps = tuple(_mapping(line) for line in (proc / "maps").read_text().splitlines())
    numbers = (proc / "stat").read_text().rsplit(")", 1)[1].split()
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    return Started(
        rip=registers[_RIP],
        rsp=registers[_RSP],
        maps=maps,
        auxv=tuple(struct.iter_unpack("<QQ", (proc / "auxv").read_bytes())),
        stack=_stack(proc, registers[_RSP], maps),
        stat={name: int(numbers[place - 3]) for name, place in STAT_FIELDS.items()},
        status={name: status[name].strip() for name in STATUS_FIELDS if name in status},
    )


def _mapping(line: str) -> tuple[str, str]:
    """A line of maps, without device and inode."""
    fields = line.split(maxsplit=5)
    return " ".join(fields[:3]), fields[5] if len(fields) > 5 else ""


def _stack(proc: Path, rsp: int, maps: tuple[tuple[str, str], ...]) -> bytes:
    top = next(
        (int(where.split()[0].split("-")[1], 16) for where, name in maps if name == "[stack]"), rsp
    )
    with (proc / "mem").open("rb", buffering=0) as memory:
        memory.seek(rsp)
        return memory.read(top - rsp)
