"""The operations of a program, performed by the processes of a ``Cast``.

    ACTIONS   operation -> the function that performs it

Every operation of the format stands in the table.  A result is the object that a recording holds
under ``res``.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from kemu.abi.uapi import CLONE_VM, PAGE_SIZE, SIGCHLD
from kemu.conform import words
from kemu.conform.act import Act, Perform, Result, access_result, address_result, result
from kemu.conform.cast import MEMORY, Cast, mm_of
from kemu.conform.program import Op
from kemu.conform.transfers import TRANSFERS
from kemu.userland.script import Outcome

MINCORE_PAGES = 4096
"""Pages whose answer is shown at most."""


def perform(cast: Cast, op: Op) -> Result:
    """Perform ``op`` and return its result."""
    return ACTIONS[op.kind](Act(cast, cast.processes[op.p], op))


# ---------------------------------------------------------------- address space


def _mmap(act: Act) -> Result:
    return address_result(
        act.cast, act.call("mmap", *act.range, act.prot, act.bits(words.MAP), act.fd, act.offset)
    )


def _mremap(act: Act) -> Result:
    op = act.op
    target = op.address(act.cast.window.base, "newpage", "newoff") if "newpage" in op.fields else 0
    outcome = act.call("mremap", *act.range, op.length("newlen"), act.bits(words.MREMAP), target)
    return address_result(act.cast, outcome)


def _ranged(name: str, *more: Callable[[Act], int]) -> Perform:
    """A call whose arguments are the range and what ``more`` takes from the operation."""
    return lambda act: result(act.call(name, *act.range, *(argument(act) for argument in more)))


def _mlock(act: Act) -> Result:
    return result(
        act.call("mlock2", *act.range, 1)
        if act.op.get("onfault")
        else act.call("mlock", *act.range)
    )


def _mincore(act: Act) -> Result:
    pages = min((act.op.length() + PAGE_SIZE - 1) // PAGE_SIZE, MINCORE_PAGES)
    outcome = act.call("mincore", *act.range, MEMORY)
    shown = result(outcome)
    if not outcome.errno:
        shown["vec"] = "".join(
            str(byte & 1) for byte in act.cast.load(act.process, MEMORY, pages).data
        )
    return shown


def _setrlimit(act: Act) -> Result:
    fields = act.op.fields
    return result(
        act.call("setrlimit", words.RLIMIT[fields["res"]], fields["soft"], fields["hard"]),
        faults=False,
    )


# -------------------------------------------------------------- the limit on the number of mappings

STRIPES = 0x300000000000
"""Where, outside the window, mappings are made until there can be no more."""

STRIPE_PAGES = 140_000


def _fillmaps(act: Act) -> Result:
    """One large PROT_NONE mapping; every second page gets other rights until that fails.  How many
    VMAs there are then."""
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
    return access_result(
        act.cast, act.cast.store(act.process, act.place, bytes([act.op.get("byte", 0)]))
    )


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


ACTIONS: dict[str, Perform] = {
    **TRANSFERS,
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
    "mlockall": lambda act: result(act.call("mlockall", act.bits(words.MCL)), faults=False),
    "munlockall": lambda act: result(act.call("munlockall"), faults=False),
    "mseal": _ranged("mseal", lambda _: 0),
    "msync": _ranged("msync", lambda act: act.bits(words.MSYNC)),
    "mincore": _mincore,
    "brk": lambda act: address_result(act.cast, act.call("brk", act.place)),
    "setrlimit": _setrlimit,
    "remap_file_pages": _ranged(
        "remap_file_pages", lambda _: 0, lambda act: int(act.op.fields["pgoff"]), lambda _: 0
    ),
    "read": _read,
    "write": _write,
    "exec": _exec,
    "fork": _fork,
    "clonevm": _clonevm,
    "exit": _exit,
    "setcpu": _setcpu,
    "fillmaps": _fillmaps,
    "trimmaps": _trimmaps,
}
"""Every operation."""
