"""What is taken away in rows leaves the state that the loop leaves: random lives of processes with
large mappings, with rows and without."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kemu.abi.uapi import (
    MADV_DONTNEED,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_PRIVATE,
    MAP_SHARED,
    O_RDWR,
)
from kemu.kernel.fs.files import create_file
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm.rows import Row, bulk
from kemu.userland.script import Script
from tests.properties.operations import runnable

PAGE = 4096
BASE, FILE_BASE = 0x200000000000, 0x300000000000
RW = 3


def _access(script, task, start, count, *, write):
    for address in range(start, start + count * PAGE, PAGE):
        if task.exit_state:
            return
        if write:
            script.store(task, address, b"w")
        else:
            script.load(task, address, 1)


def _map_file(script, task, at, _count):
    fd = script.syscall(task, "open", "/data", O_RDWR).value
    flags = (MAP_SHARED if at % 2 else MAP_PRIVATE) | MAP_FIXED
    script.syscall(task, "mmap", FILE_BASE, 300 * PAGE, RW, flags, fd, 0)


def _truncate(script, task, at, _count):
    fd = script.syscall(task, "open", "/data", O_RDWR).value
    script.syscall(task, "ftruncate", fd, at // 2 * PAGE)


ACTIONS = {
    "write": lambda s, t, at, n: _access(s, t, BASE + at * PAGE, n, write=True),
    "read": lambda s, t, at, n: _access(s, t, BASE + at * PAGE, n, write=False),
    "read_file": lambda s, t, at, n: _access(s, t, FILE_BASE + at * PAGE, n, write=False),
    "write_file": lambda s, t, at, n: _access(s, t, FILE_BASE + at * PAGE, n, write=True),
    "map_file": _map_file,
    "truncate": _truncate,
    "fork": lambda s, t, _at, _n: len(runnable()) < 4 and s.syscall(t, "fork"),
    "exit": lambda s, t, _at, _n: len(runnable()) > 1 and s.syscall(t, "exit_group", 0),
    "dontneed": lambda s, t, at, n: s.syscall(
        t, "madvise", BASE + at * PAGE, n * PAGE, MADV_DONTNEED
    ),
    "munmap": lambda s, t, at, n: s.syscall(t, "munmap", BASE + at * PAGE, n * PAGE),
}

action = st.tuples(
    st.sampled_from([*sorted(ACTIONS), "write"]),
    st.integers(0, 5),
    st.integers(0, 600),
    st.integers(1, 300),
)


def life(actions, *, as_rows):
    """The state after each of the actions, the number of events, and what was done as rows (of four
    entries or more); with whole-row events or without."""
    bulk.enabled, bulk.min_entries = as_rows, 4
    try:
        kernel = Kernel(mem=32 << 20)
        script = Script(kernel)
        script.spawn("p")
        create_file("/data", "disk", bytes(range(1, 256)) * 16 * 300)
        flags = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS
        script.syscall(runnable()[0], "mmap", BASE, 900 * PAGE, RW, flags, -1, 0)
        states = [kernel.state_hash()]
        for name, who, at, count in actions:
            if tasks := runnable():
                ACTIONS[name](script, tasks[who % len(tasks)], at, count)
                states.append(kernel.state_hash())
        journal, end = kernel.journal, len(kernel.journal)
        for number in (0, end // 3, end):
            journal.seek(number)
        assert kernel.state_hash() == states[-1]
        log = zip(journal.log[::4], journal.log[1::4], strict=True)
        return states, end, {what for obj, what in log if type(obj) is Row}
    finally:
        bulk.enabled, bulk.min_entries = True, 64


@settings(max_examples=15, deadline=None)
@given(st.lists(action, min_size=2, max_size=10))
@example([("write", 0, 0, 300), ("fork", 0, 0, 1), ("write", 1, 40, 100), ("exit", 1, 0, 1)])
@example([("write", 0, 0, 200), ("dontneed", 0, 50, 100), ("munmap", 0, 0, 300)])
@example([("map_file", 0, 1, 1), ("read_file", 0, 0, 200), ("truncate", 0, 100, 1)])
@example([("map_file", 0, 1, 1), ("write_file", 0, 0, 90), ("fork", 0, 0, 1), ("exit", 0, 0, 1)])
def test_what_is_done_in_rows_equals_the_loop(actions):
    rows, row_events, done = life(actions, as_rows=True)
    loops, loop_events, none = life(actions, as_rows=False)
    assert rows == loops
    assert not none
    assert row_events < loop_events or not done


def test_each_kind_of_row_was_compared():
    write, fork, leave = ("write", 0, 0, 300), ("fork", 0, 0, 1), ("exit", 1, 0, 1)
    _, _, done = life([write, fork, ("write", 1, 40, 100), leave], as_rows=True)
    assert done == {"copied", "zapped", "put"}
