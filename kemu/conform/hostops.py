"""The operations of a program, performed by processes of the host: the twin of perform.py.

    ACTIONS   operation -> the function that performs it

Bytes go to and from system calls through a buffer of the worker (``BUFFER``) that was touched
before, so that the faults counted are those of the window.
"""

from __future__ import annotations

import errno
import os
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kemu.abi.uapi import PAGE_SIZE
from kemu.conform import hostasm, words
from kemu.conform.act import MAX_RUNS, WINDOW_ABOVE, WINDOW_BELOW, Result, run_lengths
from kemu.conform.hostcast import Act, HostCast
from kemu.conform.hostfiles import SHARED_MEMORY, disk_folder
from kemu.conform.hostsee import Sight
from kemu.conform.hostworker import Answer
from kemu.conform.perform import MINCORE_PAGES, STRIPE_PAGES, STRIPES
from kemu.conform.program import Op
from kemu.errors import HostUnavailable

BUFFER = hostasm.MEMORY + hostasm.DATA
_CLONE_VM, _SIGCHLD = 0x100, 17
_UNREGISTER_BUFFERS = 1
_MAP_MANY = 0x2 | 0x20 | 0x100000
"""Private, anonymous, fixed_noreplace."""

_O_RDWR, _O_CREAT, _O_EXCL, _O_NONBLOCK, _O_CLOEXEC = 0o2, 0o100, 0o200, 0o4000, 0o2000000


Action = Callable[[Act], Result]


def perform(cast: HostCast, op: Op) -> Result:
    """Perform ``op`` and return its result."""
    return ACTIONS[op.kind](Act(cast, cast.crew.members[op.p], op))


# ---------------------------------------------------------------- results


def _relative(cast: HostCast, addr: int) -> dict[str, Any]:
    page, offset = divmod(addr - cast.base, PAGE_SIZE)
    if not -WINDOW_BELOW <= page < WINDOW_ABOVE:
        return {"page": "outside"}
    return {"page": page, "off": offset} if offset else {"page": page}


def _result(answer: Answer, *, faults: bool = True) -> Result:
    shown: Result = {"ret": answer.value}
    if -4096 < answer.value < 0:
        shown = {"err": errno.errorcode.get(-answer.value, str(-answer.value))}
    if faults:
        shown["flt"] = [answer.minor, answer.major]
    return shown


def _address_result(act: Act, answer: Answer) -> Result:
    shown = _result(answer)
    if "ret" in shown:
        shown["ret"] = _relative(act.cast, answer.value & (1 << 64) - 1)
    return shown


def _with_data(answer: Answer, data: bytes) -> Result:
    shown = _result(answer)
    if answer.value > 0:
        shown["data"] = run_lengths(data[: answer.value])[:MAX_RUNS]
    return shown


def _access(act: Act, kind: int) -> Result:
    answer = act.cast.crew.access(act.member, kind, act.place, act.op.get("byte", 0))
    faults = [answer.minor, answer.major]
    if not answer.signo:
        done: Result = {"byte": answer.value & 0xFF} if kind == hostasm.READ else {}
        return {**done, "ok": 1, "flt": faults}
    codes = words.SEGV_CODES if answer.signo == signal.SIGSEGV else words.BUS_CODES
    page, offset = divmod(answer.addr - act.cast.base, PAGE_SIZE)
    return {
        "sig": signal.Signals(answer.signo).name,
        "code": codes.get(answer.code, str(answer.code)),
        "addr": [page, offset] if -WINDOW_BELOW <= page < WINDOW_ABOVE else hex(answer.addr),
        "pf": "".join(
            letter for bit, letter in enumerate(words.PF_LETTERS) if answer.error >> bit & 1
        ),
        "flt": faults,
    }


# ---------------------------------------------------------------- address space


def _ranged(name: str, *more: Callable[[Act], int]) -> Action:
    return lambda act: _result(act.call(name, *act.range, *(argument(act) for argument in more)))


def _mmap(act: Act) -> Result:
    return _address_result(
        act, act.call("mmap", *act.range, act.prot, act.bits(words.MAP), act.fd, act.offset)
    )


def _mremap(act: Act) -> Result:
    target = act.op.address(act.cast.base, "newpage", "newoff") if "newpage" in act.op.fields else 0
    return _address_result(
        act, act.call("mremap", *act.range, act.op.length("newlen"), act.bits(words.MREMAP), target)
    )


def _mlock(act: Act) -> Result:
    return _result(
        act.call("mlock2", *act.range, 1)
        if act.op.get("onfault")
        else act.call("mlock", *act.range)
    )


def _mincore(act: Act) -> Result:
    pages = min((act.op.length() + PAGE_SIZE - 1) // PAGE_SIZE, MINCORE_PAGES)
    answer = act.call("mincore", *act.range, BUFFER, data=b"\xff" * pages, out=pages)
    shown = _result(answer)
    if "err" not in shown:
        shown["vec"] = "".join(str(byte & 1) for byte in answer.data[:pages])
    return shown


def _setrlimit(act: Act) -> Result:
    fields = act.op.fields
    limits = struct.pack("<QQ", fields["soft"] & (1 << 64) - 1, fields["hard"] & (1 << 64) - 1)
    return _result(
        act.call("setrlimit", words.RLIMIT[fields["res"]], BUFFER, data=limits), faults=False
    )


# ---------------------------------------------------------------- processes


def _fork(act: Act) -> Result:
    return _born(act, _SIGCHLD)


def _clonevm(act: Act) -> Result:
    return _born(act, _CLONE_VM | _SIGCHLD, hostasm.CHILD_STACK)


def _born(act: Act, flags: int, stack: int = 0) -> Result:
    cast, name = act.cast, act.op.fields["child"]
    error, child = cast.crew.fork(act.member, name, flags, stack)
    if child is None:
        return {"err": errno.errorcode.get(error, str(error))}
    if flags & _CLONE_VM:
        cast.identities.share(act.member.name, name)
    else:
        cast.identities.fork(name)
    cast.sights[name] = Sight(cast.eyes, child)
    cast.touch(act.member)
    cast.touch(child)
    return {"ret": name}


def _exit(act: Act) -> Result:
    act.cast.crew.finish(act.member)
    act.cast.sights.pop(act.member.name).close()
    return {"ret": 0}


def _setcpu(act: Act) -> Result:
    cpus, wanted = act.cast.crew.cpus, act.op.fields["cpu"]
    if wanted >= len(cpus):
        raise HostUnavailable(
            f"this host gives kemu only {len(cpus)} CPU, and setcpu needs another one"
        )
    mask = (1 << cpus[wanted]).to_bytes(128, "little")
    return _result(act.must("sched_setaffinity", 0, len(mask), BUFFER, data=mask), faults=False)


# ---------------------------------------------------------------- files


def _file(act: Act) -> Result:
    """Make a file, fill its pages, leave it open; a disk file is synced."""
    op, cast = act.op, act.cast
    name, kind, mode = op.fields["id"], op.get("kind", "memfd"), op.get("mode", "rw")
    path = ""
    if kind == "memfd":
        fd = act.must(
            "memfd_create", BUFFER, 1 | (2 if op.get("seals") else 0), data=name.encode() + b"\0"
        ).value
    else:
        path = f"{SHARED_MEMORY if kind == 'tmpfs' else disk_folder()}/kemu-{os.getpid()}-{act.member.pid}-{cast.made}"
        fd = act.must(
            "open",
            BUFFER,
            _O_RDWR | _O_CREAT | _O_EXCL | _O_CLOEXEC,
            0o600,
            data=path.encode() + b"\0",
        ).value
    try:
        _fill(
            act,
            fd,
            op.get("k", len(cast.eyes.files.names)),
            op.get("bytes", op.get("pages", 0) * PAGE_SIZE),
        )
        if mode != "rw":
            again = f"/proc/self/fd/{fd}\0".encode()
            other = act.must(
                "open", BUFFER, words.OPEN_MODE[mode] | _O_CLOEXEC, 0, data=again
            ).value
            act.must("close", fd)
            fd = other
    finally:
        if path:
            Path(path).unlink()
    stat = Path(f"/proc/{act.member.pid}/fd/{fd}").stat()
    device = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}"
    cast.eyes.files.names[cast.eyes.files.number(device, stat.st_ino)] = name
    cast.eyes.files.made.append(name)
    cast.files[name] = fd
    cast.made += 1
    return {"ret": 0}


def _fill(act: Act, fd: int, k: int, size: int) -> None:
    """Page i of the k-th file is filled with 0x10 * (k + 1) + i."""
    if act.op.get("sparse"):
        act.must("ftruncate", fd, size)
    else:
        for page in range((size + PAGE_SIZE - 1) // PAGE_SIZE):
            count = min(PAGE_SIZE, size - page * PAGE_SIZE)
            act.must(
                "pwrite",
                fd,
                BUFFER,
                count,
                page * PAGE_SIZE,
                data=bytes([(0x10 * (k + 1) + page) & 0xFF]) * count,
            )
    if act.op.get("kind") == "disk":
        act.must("fsync", fd)


def _on_file(name: str, *arguments: Callable[[Op], int]) -> Action:
    return lambda act: _result(
        act.call(name, act.fd, *(argument(act.op) for argument in arguments)), faults=False
    )


def _pages(field: str) -> Callable[[Op], int]:
    return lambda op: int(op.get(field, 0)) * PAGE_SIZE


def _new_size(op: Op) -> int:
    return int(op.get("size", op.get("pages", 0) * PAGE_SIZE))


def _pread(act: Act) -> Result:
    answer = act.call(
        "pread", act.fd, BUFFER, act.size, act.offset + act.op.get("off", 0), out=act.size
    )
    return _with_data(answer, answer.data)


def _pwrite(act: Act) -> Result:
    return _result(
        act.call(
            "pwrite", act.fd, BUFFER, act.size, act.offset + act.op.get("off", 0), data=act.payload
        )
    )


def _window_io(name: str) -> Action:
    return lambda act: _result(act.call(name, act.fd, act.place, act.size, act.offset))


# ------------------------------------------------------------- other processes' memory, pins, pipes


def _vm(name: str) -> Action:
    """process_vm_readv or _writev; the local side is the buffer, behind the two descriptions of the
    ranges."""

    def run(act: Act) -> Result:
        other = act.cast.crew.members[act.op.fields["t"]]
        ranges = struct.pack("<QQQQ", BUFFER + 512, act.size, act.place, act.size).ljust(512, b"\0")
        writes = name == "process_vm_writev"
        answer = act.call(
            name, other.pid, BUFFER, 1, BUFFER + 16, 1, 0,
            data=ranges + (act.payload if writes else b""), out=0 if writes else 512 + act.size,
        )  # fmt: skip
        return _result(answer) if writes else _with_data(answer, answer.data[512:])

    return run


def _proc_mem(*, writes: bool) -> Action:
    def run(act: Act) -> Result:
        other = act.cast.crew.members[act.op.fields["t"]]
        fd = act.call("open", BUFFER, _O_RDWR, 0, data=f"/proc/{other.pid}/mem\0".encode()).value
        if fd < 0:
            return {"err": errno.errorcode.get(-fd, str(-fd))}
        if writes:
            shown = _result(act.call("pwrite", fd, BUFFER, act.size, act.place, data=act.payload))
        else:
            answer = act.call("pread", fd, BUFFER, act.size, act.place, out=act.size)
            shown = _with_data(answer, answer.data)
        act.call("close", fd)
        return shown

    return run


def _pin(act: Act) -> Result:
    """A long-term pin: a buffer registered with io_uring."""
    ring = act.must("io_uring_setup", 4, BUFFER, data=bytes(120)).value
    length = act.op.get("len", 1) * PAGE_SIZE
    shown = _result(
        act.call(
            "io_uring_register", ring, 0, BUFFER, 1, data=struct.pack("<QQ", act.place, length)
        )
    )
    if "err" in shown:
        act.call("close", ring)
    else:
        act.cast.extra[act.op.get("id", "pin0")] = (ring,)
    return shown


def _unpin(act: Act) -> Result:
    name = act.op.get("id", "pin0")
    if name not in act.cast.extra:
        return {"err": "EINVAL"}
    (ring,) = act.cast.extra.pop(name)
    act.call(
        "io_uring_register", ring, _UNREGISTER_BUFFERS, 0, 0
    )  # close alone gives the pages back only some time later
    return _result(act.call("close", ring), faults=False)


def _splice(act: Act) -> Result:
    """A plain reference to the page: vmsplice it into a pipe."""
    ends = struct.unpack_from("<ii", act.must("pipe2", BUFFER, _O_NONBLOCK, out=8).data)
    act.cast.extra[act.op.get("id", "pipe0")] = ends
    return _result(
        act.call("vmsplice", ends[1], BUFFER, 1, 0, data=struct.pack("<QQ", act.place, act.size))
    )


def _splice_read(act: Act) -> Result:
    ends = act.cast.extra.get(act.op.get("id", "pipe0"), (-1, -1))
    answer = act.call("read", ends[0], BUFFER, act.size, out=act.size)
    return {**_result(answer), "data": run_lengths(answer.data[: max(0, answer.value)])}


# ---------------------------------------------------------------- as many mappings as there can be


def _fillmaps(act: Act) -> Result:
    """Far from the window: one mapping, split at every second page until the kernel refuses."""
    pages, refused = act.op.get("pages", STRIPE_PAGES), None
    act.call("mmap", STRIPES, pages * PAGE_SIZE, 0, _MAP_MANY, -1, 0)
    for page in range(1, pages, 2):
        answer = act.call("mprotect", STRIPES + page * PAGE_SIZE, PAGE_SIZE, 1)
        if answer.value < 0:
            refused = errno.errorcode.get(-answer.value, str(-answer.value))
            break
    return {"err": refused, "vmas": _mappings(act)}


def _trimmaps(act: Act) -> Result:
    """Let the first n of them become one again."""
    answer = act.call("mprotect", STRIPES, (act.op.fields["n"] + 1) * PAGE_SIZE, 0)
    return {"ret": answer.value, "vmas": _mappings(act)}


def _mappings(act: Act) -> int:
    """How many mappings the process has; the vsyscall page is none."""
    lines = Path(f"/proc/{act.member.pid}/maps").read_text().splitlines()
    return sum("[vsyscall]" not in line for line in lines)


ACTIONS: dict[str, Action] = {
    "fillmaps": _fillmaps,
    "trimmaps": _trimmaps,
    "mmap": _mmap,
    "munmap": _ranged("munmap"),
    "mprotect": _ranged("mprotect", lambda act: act.prot),
    "pkey_mprotect": _ranged(
        "pkey_mprotect", lambda act: act.prot, lambda act: int(act.op.get("pkey", -1))
    ),
    "mremap": _mremap,
    "madvise": _ranged("madvise", lambda act: words.MADV[act.op.fields["advice"]]),
    "mlock": _mlock,
    "munlock": _ranged("munlock"),
    "mlockall": lambda act: _result(act.call("mlockall", act.bits(words.MCL)), faults=False),
    "munlockall": lambda act: _result(act.call("munlockall"), faults=False),
    "mseal": _ranged("mseal", lambda _: 0),
    "msync": _ranged("msync", lambda act: act.bits(words.MSYNC)),
    "mincore": _mincore,
    "brk": lambda act: _address_result(act, act.call("brk", act.place)),
    "setrlimit": _setrlimit,
    "remap_file_pages": _ranged(
        "remap_file_pages", lambda _: 0, lambda act: int(act.op.fields["pgoff"]), lambda _: 0
    ),
    "read": lambda act: _access(act, hostasm.READ),
    "write": lambda act: _access(act, hostasm.WRITE),
    "exec": lambda act: _access(act, hostasm.EXEC),
    "fork": _fork,
    "clonevm": _clonevm,
    "exit": _exit,
    "setcpu": _setcpu,
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
        "fadvise", _pages("foff"), _pages("len"), lambda op: words.FADVISE[op.fields["advice"]]
    ),
    "pread": _pread,
    "pwrite": _pwrite,
    "sysread": _window_io("pread"),
    "syswrite": _window_io("pwrite"),
    "vmread": _vm("process_vm_readv"),
    "vmwrite": _vm("process_vm_writev"),
    "memread": _proc_mem(writes=False),
    "memwrite": _proc_mem(writes=True),
    "pin": _pin,
    "unpin": _unpin,
    "splice": _splice,
    "splice_read": _splice_read,
}
