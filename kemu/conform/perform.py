"""The operations of a program, performed by the processes of a ``Cast``.

    ACTIONS   operation -> the function that performs it

Every operation of the format stands in the table.  A result is the object that a recording holds under ``res``.
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable
from typing import Any

import attrs

from kemu.conform import words
from kemu.conform.cast import MEMORY, Cast, Process, mm_of
from kemu.conform.program import Op
from kemu.conform.words import PAGE_SIZE
from kemu.kernel.filemap import disk_super_ops, fill_page_cache, unlink_inode
from kemu.kernel.files import create_file
from kemu.kernel.mman import CLONE_VM
from kemu.kernel.shmem import shmem_ops
from kemu.kernel.signal import SIGCHLD, SIGSEGV
from kemu.kernel.system import system
from kemu.userland.script import Outcome

Result = dict[str, Any]

WINDOW_BELOW, WINDOW_ABOVE = 64, 256
"""Pages around the base within which an address is given relative to it."""

MINCORE_PAGES = 4096
"""Pages whose answer is shown at most."""

MAX_RUNS = 16
"""A run-length list of data is cut after so many entries."""


@attrs.frozen
class Act:
    """One operation on its way: who acts, and what the fields of the operation mean to him."""

    cast: Cast
    process: Process
    op: Op

    def call(self, name: str, *args: int | str) -> Outcome:
        """The system call ``name`` by the one who acts."""
        return self.cast.call(self.process, name, *args)

    @property
    def place(self) -> int:
        """The address that the operation is about."""
        return self.op.address(self.cast.window.base)

    @property
    def range(self) -> tuple[int, int]:
        """That address and the length."""
        return self.place, self.op.length()

    @property
    def prot(self) -> int:
        """Protection bits."""
        return sum(words.PROT[letter] for letter in set(self.op.fields["prot"]))

    def bits(self, table: dict[str, int]) -> int:
        """The bits of ``table`` that ``flags`` names."""
        bits = 0
        for name in self.op.get("flags", []):
            bits |= table[name]
        return bits

    @property
    def fd(self) -> int:
        """The descriptor of the operation's file, -1 for none (also for a file that was never made)."""
        if "fd" in self.op.fields:
            return int(self.op.fields["fd"])
        return self.cast.files.get(self.op.get("file", ""), -1)

    @property
    def offset(self) -> int:
        """The offset in the file, in bytes."""
        return int(self.op.get("foff_bytes", self.op.get("foff", 0) * PAGE_SIZE))

    @property
    def size(self) -> int:
        """How many bytes are transferred."""
        return int(self.op.get("n", 1))


Perform = Callable[[Act], Result]


def perform(cast: Cast, op: Op) -> Result:
    """Perform ``op`` and return its result."""
    return ACTIONS[op.kind](Act(cast, cast.processes[op.p], op))


# ---------------------------------------------------------------- results


def relative(cast: Cast, addr: int) -> dict[str, Any]:
    """An address that the kernel chose, as page and offset in the window, or as "outside"."""
    page = cast.window.page(addr)
    if not -WINDOW_BELOW <= page < WINDOW_ABOVE:
        return {"page": "outside"}
    return {"page": page, "off": addr % PAGE_SIZE} if addr % PAGE_SIZE else {"page": page}


def result(outcome: Outcome, *, faults: bool = True) -> Result:
    """What a system call returned and, unless ``faults`` is false, the faults that it took."""
    shown: Result = {"err": errno.errorcode[outcome.errno]} if outcome.errno else {"ret": outcome.value}
    if faults:
        shown["flt"] = [outcome.minor, outcome.major]
    return shown


def address_result(cast: Cast, outcome: Outcome) -> Result:
    """The same for a call that returns an address."""
    shown = result(outcome)
    if "ret" in shown:
        shown["ret"] = relative(cast, outcome.value)
    return shown


def run_lengths(data: bytes) -> list[list[int]]:
    """``data`` as [byte, count] pairs."""
    runs: list[list[int]] = []
    for byte in data:
        if runs and runs[-1][0] == byte:
            runs[-1][1] += 1
        else:
            runs.append([byte, 1])
    return runs[:MAX_RUNS]


def access_result(cast: Cast, outcome: Outcome) -> Result:
    """A load, store or fetch: done, or the signal that it raised."""
    info = outcome.signal
    if info is None:
        return {"ok": 1, "flt": [outcome.minor, outcome.major]}
    codes = words.SEGV_CODES if info.signo == SIGSEGV else words.BUS_CODES
    page, offset = divmod(info.addr - cast.window.base, PAGE_SIZE)
    return {
        "sig": signal.Signals(info.signo).name,
        "code": codes.get(info.code, str(info.code)),
        "addr": [page, offset] if -WINDOW_BELOW <= page < WINDOW_ABOVE else hex(info.addr),
        "pf": "".join(letter for bit, letter in enumerate(words.PF_LETTERS) if info.error_code >> bit & 1),
        "flt": [outcome.minor, outcome.major],
    }


# ---------------------------------------------------------------- address space


def _mmap(act: Act) -> Result:
    return address_result(act.cast, act.call("mmap", *act.range, act.prot, act.bits(words.MAP), act.fd, act.offset))


def _mremap(act: Act) -> Result:
    op = act.op
    target = op.address(act.cast.window.base, "newpage", "newoff") if "newpage" in op.fields else 0
    outcome = act.call("mremap", *act.range, op.length("newlen"), act.bits(words.MREMAP), target)
    return address_result(act.cast, outcome)


def _ranged(name: str, *more: Callable[[Act], int]) -> Perform:
    """A call whose arguments are the range and what ``more`` takes from the operation."""
    return lambda act: result(act.call(name, *act.range, *(argument(act) for argument in more)))


def _mlock(act: Act) -> Result:
    return result(act.call("mlock2", *act.range, 1) if act.op.get("onfault") else act.call("mlock", *act.range))


def _mincore(act: Act) -> Result:
    pages = min((act.op.length() + PAGE_SIZE - 1) // PAGE_SIZE, MINCORE_PAGES)
    outcome = act.call("mincore", *act.range, MEMORY)
    shown = result(outcome)
    if not outcome.errno:
        shown["vec"] = "".join(str(byte & 1) for byte in act.cast.load(act.process, MEMORY, pages).data)
    return shown


def _setrlimit(act: Act) -> Result:
    fields = act.op.fields
    return result(act.call("setrlimit", words.RLIMIT[fields["res"]], fields["soft"], fields["hard"]), faults=False)


# ---------------------------------------------------------------- the limit on the number of mappings

STRIPES = 0x300000000000
"""Where, outside the window, mappings are made until there can be no more."""

STRIPE_PAGES = 140_000


def _fillmaps(act: Act) -> Result:
    """One large PROT_NONE mapping; every second page gets other rights until that fails.  How many VMAs there are then."""
    pages = act.op.get("pages", STRIPE_PAGES)
    fixed = words.MAP["private"] | words.MAP["anon"] | words.MAP["fixed_noreplace"]
    act.cast.must(act.process, "mmap", STRIPES, pages * PAGE_SIZE, 0, fixed, -1, 0)
    failed = None
    for page in range(1, pages, 2):
        outcome = act.call("mprotect", STRIPES + page * PAGE_SIZE, PAGE_SIZE, words.PROT["r"])
        if outcome.errno:
            failed = errno.errorcode[outcome.errno]
            break
    return {"err": failed, "vmas": _vmas(act)}


def _trimmaps(act: Act) -> Result:
    """Give ``n`` of these mappings back: n/2 stripes become one."""
    outcome = act.call("mprotect", STRIPES, (act.op.fields["n"] + 1) * PAGE_SIZE, 0)
    return {"ret": -outcome.errno if outcome.errno else outcome.value, "vmas": _vmas(act)}


def _vmas(act: Act) -> int:
    """Lines of /proc/PID/maps, the one for vsyscall not counted."""
    return mm_of(act.process).map_count


# ---------------------------------------------------------------- accesses


def _read(act: Act) -> Result:
    outcome = act.cast.load(act.process, act.place, 1)
    shown = access_result(act.cast, outcome)
    return {"byte": outcome.data[0], **shown} if outcome.signal is None else shown


def _write(act: Act) -> Result:
    return access_result(act.cast, act.cast.store(act.process, act.place, bytes([act.op.get("byte", 0)])))


def _exec(act: Act) -> Result:
    return access_result(act.cast, act.cast.fetch(act.process, act.place))


# ---------------------------------------------------------------- processes


def _fork(act: Act) -> Result:
    return _born(act, act.call("fork"))


def _clonevm(act: Act) -> Result:
    return _born(act, act.call("clone", CLONE_VM | SIGCHLD))


def _born(act: Act, outcome: Outcome) -> Result:
    if outcome.errno:
        return result(outcome, faults=False)
    name = act.op.fields["child"]
    act.cast.born(act.process, name, outcome.value)
    return {"ret": name}


def _exit(act: Act) -> Result:
    act.call("exit_group", 0)
    return {"ret": 0}


def _setcpu(act: Act) -> Result:
    act.process.cpu = act.op.fields["cpu"]
    return {"ret": 0}


# ---------------------------------------------------------------- files


def _with_data(act: Act, outcome: Outcome, *, show: bool = True) -> Result:
    """A call's result and, if any came into the buffer, the bytes."""
    shown = result(outcome)
    if show and outcome.value:
        shown["data"] = run_lengths(act.cast.load(act.process, MEMORY, outcome.value).data)
    return shown


def _pread(act: Act) -> Result:
    return _with_data(act, act.call("pread", act.fd, MEMORY, act.size, act.offset + act.op.get("off", 0)))


def _pwrite(act: Act) -> Result:
    act.cast.store(act.process, MEMORY, bytes([act.op.get("byte", 0)]) * act.size)
    return result(act.call("pwrite", act.fd, MEMORY, act.size, act.offset + act.op.get("off", 0)))


def _window_io(name: str) -> Perform:
    """read(2) into the window or write(2) from it."""
    return lambda act: result(act.call(name, act.fd, act.place, act.size, act.offset))


def _on_file(name: str, *arguments: Callable[[Op], int]) -> Perform:
    """A call on a file whose faults are not counted."""

    def run(act: Act) -> Result:
        return result(act.call(name, act.fd, *(argument(act.op) for argument in arguments)), faults=False)

    return run


def _other(name: str, *, write: bool) -> Perform:
    """A transfer between a private buffer and the memory of process ``t``; ``name`` takes pid, buffer, address, size."""

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
    return result(act.call("unpin", *act.cast.pins.pop(act.op.get("id", "pin0"), (0, 0))), faults=False)


def _splice(act: Act) -> Result:
    pipe = act.cast.pipes[act.op.get("id", "pipe0")] = act.cast.must(act.process, "pipe")
    return result(act.call("vmsplice", pipe, act.place, act.size))


def _splice_read(act: Act) -> Result:
    outcome = act.call("read", act.cast.pipes.get(act.op.get("id", "pipe0"), -1), MEMORY, act.size)
    return {**_with_data(act, outcome), "data": run_lengths(act.cast.load(act.process, MEMORY, outcome.value).data)}


def _file(act: Act) -> Result:
    """Make a file whose pages are filled with bytes of their own, and leave it open, without a name.  A disk file is clean: it
    was synced."""
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
    return b"".join(bytes([(0x10 * (k + 1) + page) & 0xFF]) * PAGE_SIZE for page in range(pages))[:size]


def _pages(field: str) -> Callable[[Op], int]:
    return lambda op: int(op.get(field, 0)) * PAGE_SIZE


def _new_size(op: Op) -> int:
    return int(op.get("size", op.get("pages", 0) * PAGE_SIZE))


ACTIONS: dict[str, Perform] = {
    "mmap": _mmap,
    "munmap": _ranged("munmap"),
    "mprotect": _ranged("mprotect", lambda act: act.prot),
    "pkey_mprotect": _ranged("pkey_mprotect", lambda act: act.prot, lambda act: int(act.op.get("pkey", -1))),
    "mremap": _mremap,
    "madvise": _ranged("madvise", lambda act: words.MADV[act.op.fields["advice"]]),
    "mlock": _mlock,
    "munlock": _ranged("munlock"),
    "mlockall": lambda act: result(act.call("mlockall", act.bits(words.MCL)), faults=False),
    "munlockall": lambda act: result(act.call("munlockall"), faults=False),
    "mseal": _ranged("mseal", lambda _: 0),
    "msync": _ranged("msync", lambda act: act.bits(words.MSYNC)),
    "mincore": _mincore,
    "brk": lambda act: address_result(act.cast, act.call("brk", act.place)),
    "setrlimit": _setrlimit,
    "remap_file_pages": _ranged("remap_file_pages", lambda _: 0, lambda act: int(act.op.fields["pgoff"]), lambda _: 0),
    "read": _read,
    "write": _write,
    "exec": _exec,
    "fork": _fork,
    "clonevm": _clonevm,
    "exit": _exit,
    "setcpu": _setcpu,
    "file": _file,
    "close": _on_file("close"),
    "ftruncate": _on_file("ftruncate", _new_size),
    "fallocate": _on_file("fallocate", lambda op: words.FALLOCATE[op.get("mode", "punch")], _pages("foff"), _pages("len")),
    "fsync": _on_file("fsync"),
    "fadvise": _on_file("fadvise64", _pages("foff"), _pages("len"), lambda op: words.FADVISE[op.fields["advice"]]),
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
    "fillmaps": _fillmaps,
    "trimmaps": _trimmaps,
}
"""Every operation."""
