"""Random operations on a kernel, as data: each is (name, arguments of small integers), meaningful
on any state."""

import hashlib

from hypothesis import strategies as st

from kemu.abi.uapi import MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, MAP_SHARED
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.trace.frames import FUNCTIONS
from kemu.userland.script import Script

BASE = 0x200000000000
PAGE = 4096
PAGES = 12

who = st.integers(0, 5)
page = st.integers(0, PAGES - 1)
length = st.integers(1, 6)
prot = st.sampled_from([0, 1, 3, 3, 3, 5, 7])

operation = st.one_of(
    st.tuples(st.just("spawn")),
    st.tuples(st.just("mmap"), who, page, length, prot, st.booleans()),
    st.tuples(st.just("mmap_anywhere"), who, length, prot),
    st.tuples(st.just("munmap"), who, page, length),
    st.tuples(st.just("mprotect"), who, page, length, prot),
    st.tuples(st.just("brk"), who, st.integers(0, 8)),
    st.tuples(st.just("load"), who, page),
    st.tuples(st.just("load"), who, page),
    st.tuples(st.just("store"), who, page),
    st.tuples(st.just("store"), who, page),
    st.tuples(st.just("store"), who, page),
    st.tuples(st.just("fetch"), who, page),
    st.tuples(st.just("fork"), who),
    st.tuples(st.just("fork"), who),
    st.tuples(st.just("vfork"), who),
    st.tuples(st.just("thread"), who),
    st.tuples(st.just("exit"), who),
    st.tuples(st.just("wait"), who),
    st.tuples(st.just("kill"), who, who),
    st.tuples(st.just("handle"), who),
    st.tuples(st.just("kthread")),
    st.tuples(st.just("other_cpu"), who, page),
)
programs = st.lists(operation, min_size=1, max_size=25)


def runnable():
    """The user tasks that can execute, by pid."""
    return [
        t for pid, t in sorted(system.tasks.items()) if pid > 2 and not t.exit_state and not t.state
    ]


def perform(script, op, number):
    """Do one operation on the task that its first argument picks; nothing if there is none."""
    name, *args = op
    if name == "spawn":
        script.spawn(f"p{number}")
        return
    if name == "kthread":
        script.schedule(system.tasks[2])
        return
    tasks = runnable()
    if not tasks:
        return
    task = tasks[args[0] % len(tasks)]
    CALLS[name](script, task, tasks, *args[1:])


def _mmap(script, task, _, *arguments):
    at, n, rights, shared = arguments
    flags = MAP_ANONYMOUS | MAP_FIXED | (MAP_SHARED if shared else MAP_PRIVATE)
    script.syscall(task, "mmap", BASE + at * PAGE, n * PAGE, rights, flags)


CALLS = {
    "mmap": _mmap,
    "mmap_anywhere": lambda s, t, _, n, p: s.syscall(
        t, "mmap", 0, n * PAGE, p, MAP_ANONYMOUS | MAP_PRIVATE
    ),
    "munmap": lambda s, t, _, at, n: s.syscall(t, "munmap", BASE + at * PAGE, n * PAGE),
    "mprotect": lambda s, t, _, at, n, p: s.syscall(t, "mprotect", BASE + at * PAGE, n * PAGE, p),
    "brk": lambda s, t, _, n: s.syscall(t, "brk", 0x1000000 + n * 2048),
    "load": lambda s, t, _, at: s.load(t, BASE + at * PAGE, 8),
    "store": lambda s, t, _, at: s.store(t, BASE + at * PAGE + 5, bytes([at + 1, t.pid & 255])),
    "fetch": lambda s, t, _, at: s.fetch(t, BASE + at * PAGE),
    "fork": lambda s, t, ts: s.syscall(t, "fork") if len(ts) < 6 else None,
    "vfork": lambda s, t, ts: s.syscall(t, "vfork") if len(ts) < 6 else None,
    "thread": lambda s, t, ts: s.syscall(t, "clone", 0x10F00) if len(ts) < 6 else None,
    "exit": lambda s, t, _: s.syscall(t, "exit", 3),
    "wait": lambda s, t, _: s.syscall(t, "wait4", -1, 0, 1),
    "kill": lambda s, t, ts, whom: s.syscall(t, "kill", ts[whom % len(ts)].pid, 15),
    "handle": lambda s, t, _: s.syscall(t, "sigaction", 11, "handle"),
    "other_cpu": lambda s, t, _, at: s.store(t, BASE + at * PAGE, b"c", cpu=1),
}


def run(program, **options):
    """A kernel on which the program was run, and the (event number, state hash) after each
    operation."""
    kernel = Kernel(**options)
    script = Script(kernel)
    script.spawn("first")
    moments = []
    for number, op in enumerate(program):
        perform(script, op, number)
        moments.append((len(kernel.journal), kernel.state_hash()))
    return kernel, moments


def journal_digest(journal):
    """The events by kind, field and plain values, and the marks: the same for the same history."""
    digest = hashlib.sha256()
    for number in range(1, len(journal) + 1):
        obj, field, old, new = journal.event(number)
        digest.update(f"{type(obj).__name__} {field} {_plain(old)} {_plain(new)}\n".encode())
    for i in range(0, len(journal.marks), 2):
        fid = journal.marks[i + 1]
        digest.update(f"{journal.marks[i]} {FUNCTIONS[fid].name if fid >= 0 else -1}\n".encode())
    return digest.hexdigest()


def _plain(value):
    return value if isinstance(value, int | str | bool | None) else type(value).__name__
