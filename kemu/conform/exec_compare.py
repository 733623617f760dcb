"""kemu conform exec FILE [ARG...]: compare how the host's kernel and kemu's start a program.

    result        started, refused with an errno, or killed by a signal
    rip, rsp      the first instruction, the stack pointer
    maps          addresses, rights, offset and name of every mapping
    auxv          the auxiliary vector, except for the words that describe this computer
    stack         every word from rsp to the end of the stack, except for 16 random bytes and
                  those words of auxv
    stat, status  the numbers of /proc that describe the layout of the program in memory

Any ELF file or script will do; it is not run.  Files that the program needs before its first
instruction (its interpreter) are read from the host.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import attrs

from kemu.conform.cast import RAM
from kemu.conform.hostexec import STAT_FIELDS, Outcome, Started, execute_on_host
from kemu.conform.hostworker import check_host
from kemu.errors import HostUnavailable, UsageError
from kemu.kernel.include.mm_types import mm_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm.filemap import load_file
from kemu.observe import procfs as numbers
from kemu.observe.space import address_space
from kemu.userland.script import Script
from kemu.views import procfs

OF_THIS_COMPUTER = frozenset({16, 26, 29, 30, 51})
"""AT_HWCAP, AT_HWCAP2, AT_HWCAP3, AT_HWCAP4, AT_MINSIGSTKSZ."""

OF_THIS_USER = frozenset({11, 12, 13, 14})
"""AT_UID, AT_EUID, AT_GID, AT_EGID: in kemu every process is root."""

AT_RANDOM = 25
MOST_BYTES = 256 << 20
_MOST_INTERPRETERS = 6


@attrs.frozen
class Differing:
    """One thing in which the two differ."""

    where: str
    host: str
    kemu: str

    def __str__(self) -> str:
        return f"{self.where}: host {self.host}, kemu {self.kemu}"


# ---------------------------------------------------------------- kemu's side


def execute_in_kemu(path: str, argv: list[str]) -> Outcome:
    """execve(``path``, ``argv``) on a fresh machine of kemu, with the files that it needs from the
    host."""
    kernel = Kernel(mem=RAM, record=False)
    kernel.activate()
    for name, data in needed_files(path).items():
        load_file(name, data)
    script = Script(kernel)
    task = script.spawn("worker")
    outcome = script.syscall(task, "execve", path, list(argv), None)
    if outcome.signal is not None:
        return Outcome(signal=signal.Signals(outcome.signal.signo).name)
    if outcome.errno:
        return Outcome(error=errno.errorcode[outcome.errno])
    if task.mm is None:
        return Outcome(signal="SIGKILL")
    return Outcome(started=_seen(kernel, script, task, task.mm))


def _seen(kernel: Kernel, script: Script, task: task_struct, mm: mm_struct) -> Started:
    lines = [line.split(maxsplit=5) for line in procfs.maps(address_space(task)).splitlines()]
    maps = tuple((" ".join(fields[:3]), fields[5] if len(fields) > 5 else "") for fields in lines)
    stat = dict(numbers.stat(kernel, task).fields)
    status = dict(
        line.split(":", 1) for line in procfs.status(numbers.status(kernel, task)).splitlines()
    )
    auxv, sp = tuple(mm.saved_auxv), task.regs.sp
    top = next(
        (int(where.split()[0].split("-")[1], 16) for where, name in maps if name == "[stack]"), sp
    )
    return Started(
        rip=task.regs.ip,
        rsp=sp,
        maps=maps,
        auxv=auxv,
        stat={name: stat[name] for name in STAT_FIELDS},
        status={name: value.strip() for name, value in status.items()},
        stack=script.load(task, sp, top - sp).data,
    )


# ---------------------------------------------------------------- files


def needed_files(path: str) -> dict[str, bytes]:
    """Path -> bytes of the program and of the files that the kernel opens for it; files that the
    host does not have are left out."""
    files: dict[str, bytes] = {}
    waiting = [path]
    while waiting and len(files) < _MOST_INTERPRETERS:
        name = waiting.pop()
        if name in files:
            continue
        try:
            data = _bytes(Path(name))
        except (OSError, ValueError):  # ValueError: a path that no host can have
            continue
        files[name] = data
        waiting += _interpreters(data)
    return files


def _bytes(path: Path) -> bytes:
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise UsageError(
            f"{path}: larger than {MOST_BYTES >> 20} MiB", hint="name a smaller program"
        )
    return path.read_bytes()


def _interpreters(data: bytes) -> list[str]:
    """The paths that the kernel would open after reading ``data``."""
    if data.startswith(b"#!"):
        line = re.split(rb"[ \t\0]+", data[2:256].split(b"\n")[0].strip(b" \t"))
        return [line[0].decode(errors="surrogateescape")] if line else []
    if not data.startswith(b"\x7fELF") or len(data) < 64:
        return []
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    places = [table + number * size for number in range(count)]
    headers = [
        struct.unpack_from("<IIQQQQ", data, place) for place in places if place + 56 <= len(data)
    ]
    return [_text(data, header[2], header[5]) for header in headers if header[0] == 3][:1]


def _text(data: bytes, offset: int, size: int) -> str:
    return data[offset : offset + min(size, 4096)].split(b"\0")[0].decode(errors="surrogateescape")


# ---------------------------------------------------------------- comparing


def compare(host: Outcome, kemu: Outcome, *, root: bool) -> Iterator[Differing]:
    """Everything in which the two differ."""
    theirs, mine = host.started, kemu.started
    if theirs is None or mine is None:
        if _word(host) != _word(kemu):
            yield Differing("result", _word(host), _word(kemu))
        return
    for name, one, other in (("rip", theirs.rip, mine.rip), ("rsp", theirs.rsp, mine.rsp)):
        if one != other:
            yield Differing(name, hex(one), hex(other))
    yield from _maps(theirs, mine)
    skipped = OF_THIS_COMPUTER if root else OF_THIS_COMPUTER | OF_THIS_USER
    yield from _auxv(theirs, mine, skipped)
    yield from _stack(theirs, mine, skipped)
    yield from _numbers("stat", theirs.stat, mine.stat)
    yield from _numbers("status", theirs.status, mine.status)


def _word(outcome: Outcome) -> str:
    return "started" if outcome.started else outcome.error or outcome.signal


def _maps(host: Started, kemu: Started) -> Iterator[Differing]:
    theirs = [f"{where} {_real(name)}".strip() for where, name in host.maps]
    mine = [f"{where} {_real(name)}".strip() for where, name in kemu.maps]
    for line in sorted({*theirs} ^ {*mine}):
        yield Differing("maps", line if line in theirs else "-", line if line in mine else "-")


def _real(name: str) -> str:
    """A path without symbolic links, because the host shows the file that a path leads to."""
    return str(Path(name).resolve()) if name.startswith("/") else name


def _auxv(host: Started, kemu: Started, skipped: frozenset[int]) -> Iterator[Differing]:
    if [kind for kind, _ in host.auxv] != [kind for kind, _ in kemu.auxv]:
        yield Differing(
            "auxv", *(" ".join(str(kind) for kind, _ in side.auxv) for side in (host, kemu))
        )
        return
    for (kind, theirs), (_, mine) in zip(host.auxv, kemu.auxv, strict=True):
        if theirs != mine and kind not in skipped:
            yield Differing(f"auxv {kind}", hex(theirs), hex(mine))


def _stack(host: Started, kemu: Started, skipped: frozenset[int]) -> Iterator[Differing]:
    """Compare the stacks word by word."""
    if len(host.stack) != len(kemu.stack):
        yield Differing("stack", f"{len(host.stack)} bytes", f"{len(kemu.stack)} bytes")
        return
    theirs, mine = _masked(host, skipped), _masked(kemu, skipped)
    for place in range(0, len(theirs), 8):
        one, other = theirs[place : place + 8], mine[place : place + 8]
        if one != other:
            yield Differing(f"stack {host.rsp + place:#x}", one[::-1].hex(), other[::-1].hex())


def _masked(side: Started, skipped: frozenset[int]) -> bytes:
    """The stack, with zeros in place of what is not compared."""
    stack = bytearray(side.stack)
    random = dict(side.auxv).get(AT_RANDOM, side.rsp) - side.rsp
    if 0 < random <= len(stack) - 16:
        stack[random : random + 16] = bytes(16)
    start = bytes(stack).find(
        b"".join(struct.pack("<QQ", kind, value) for kind, value in side.auxv)
    )
    for number, (kind, _) in enumerate(side.auxv):
        if start >= 0 and kind in skipped:
            place = start + number * 16 + 8
            stack[place : place + 8] = bytes(8)
    return bytes(stack)


def _numbers(
    what: str, host: dict[str, int] | dict[str, str], kemu: dict[str, int] | dict[str, str]
) -> Iterator[Differing]:
    for name, theirs in host.items():
        if theirs != kemu.get(name):
            yield Differing(f"{what} {name}", str(theirs), str(kemu.get(name)))


# ---------------------------------------------------------------- kemu conform exec


def main(words: list[str], out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> int:
    """``conform exec FILE [ARG...]``: the exit status, 0 if both are alike, 2 if they cannot be
    compared, 3 if they differ."""
    if not words:
        err.write(
            "conform exec FILE [ARG...]: expected a program; it is started, stopped before its "
            "first instruction, and ended\n"
        )
        return 2
    try:
        check_host()
        return _compare_aloud(words, out)
    except UsageError as error:
        err.write(f"{error.what}; {error.hint}\n")
    except HostUnavailable as error:
        err.write(f"{error}\n")
    return 2


def _compare_aloud(words: list[str], out: TextIO) -> int:
    path = Path(words[0]).resolve()
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "no such file"
        raise UsageError(f"{words[0]}: {what}", hint="name a program of this host")
    argv = [str(path), *words[1:]]
    host, kemu = execute_on_host(argv[0], argv), execute_in_kemu(argv[0], argv)
    root = os.geteuid() == 0
    found = list(compare(host, kemu, root=root))
    out.write(f"{path}: host: {_word(host)}, kemu: {_word(kemu)}\n")
    out.writelines(f"  {difference}\n" for difference in found)
    users = "" if root else ", user ids (auxv 11 to 14)"
    out.write(f"not compared: what describes this computer (auxv 16, 26, 29, 30, 51){users}\n")
    out.write(f"{len(found)} differences\n" if found else "no difference\n")
    return 3 if found else 0
