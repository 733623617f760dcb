"""Hypothesis strategies for what processes do: each operation is (name of a method of ``World``,
arguments by name).

    @given(programs())
    def test_something(program):
        world = play(program)
        ...

Needs Hypothesis: ``pip install 'kemu[fuzz]'``.
"""

from __future__ import annotations

from typing import Any

from kemu.errors import UsageError
from kemu.testing.moves import ADVICE, EXTRA
from kemu.testing.stage import PAGES
from kemu.testing.world import World

try:
    from hypothesis import settings
    from hypothesis import strategies as st
except ImportError as error:
    raise UsageError(
        "kemu.testing: Hypothesis is not installed", hint="pip install 'kemu[fuzz]'"
    ) from error

Operation = tuple[str, dict[str, Any]]

processes = st.integers(0, 4)
pages = st.integers(0, PAGES - 1)
counts = st.integers(1, PAGES)
rights = st.sampled_from(["rw", "rw", "rw", "r", "", "w", "x", "rx", "rwx"])
values = st.integers(1, (1 << 64) - 1)
cpus = st.integers(0, 1)
words = st.sampled_from([0, 0, 1, 2, 255, 511])
kinds = st.sampled_from(
    [
        "private",
        "private",
        "shared",
        "private file",
        "shared file",
        "private memory",
        "shared memory",
    ]
)
extras = st.sampled_from(["", "", "", *EXTRA])
yes_or_no = st.booleans()

RULES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "write": {"who": processes, "page": pages, "value": values, "cpu": cpus, "word": words},
    "read": {"who": processes, "page": pages, "cpu": cpus, "word": words},
    "fetch": {"who": processes, "page": pages, "cpu": cpus},
    "heap": {"who": processes, "page": pages, "value": values},
    "pread": {"who": processes, "page": pages, "source": pages, "memory": yes_or_no},
    "pwrite": {"who": processes, "page": pages, "to": pages, "memory": yes_or_no},
    "process_vm": {
        "who": processes,
        "page": pages,
        "other": processes,
        "there": pages,
        "write": yes_or_no,
    },
    "memory": {"who": processes, "other": processes, "page": pages, "write": yes_or_no},
    "pin": {"who": processes, "page": pages},
    "unpin": {"who": processes, "page": pages},
    "splice": {"who": processes, "page": pages},
    "drain": {"who": processes},
    "mmap": {
        "who": processes,
        "first": pages,
        "count": counts,
        "rights": rights,
        "kind": kinds,
        "extra": extras,
    },
    "munmap": {"who": processes, "first": pages, "count": counts},
    "mprotect": {"who": processes, "first": pages, "count": counts, "rights": rights},
    "mremap": {"who": processes, "first": pages, "count": counts, "to": pages, "leave": yes_or_no},
    "resize": {"who": processes, "first": pages, "old": counts, "new": counts},
    "brk": {"who": processes, "pages": counts},
    "madvise": {
        "who": processes,
        "first": pages,
        "count": counts,
        "advice": st.sampled_from(sorted(ADVICE)),
    },
    "populate": {"who": processes, "first": pages, "count": counts, "write": yes_or_no},
    "mlock": {
        "who": processes,
        "first": pages,
        "count": counts,
        "lock": yes_or_no,
        "onfault": yes_or_no,
    },
    "mlockall": {"who": processes, "flags": st.integers(0, 3)},
    "mseal": {"who": processes, "first": pages, "count": st.just(1)},
    "look": {
        "who": processes,
        "first": pages,
        "count": counts,
        "what": st.sampled_from(["mincore", "msync"]),
    },
    "ftruncate": {"who": processes, "pages": st.integers(0, PAGES), "memory": yes_or_no},
    "punch": {"who": processes, "first": pages, "count": counts, "memory": yes_or_no},
    "sync": {"who": processes, "advice": st.integers(0, 5)},
    "remap": {"who": processes, "page": pages, "to": pages},
    "reopen": {"who": processes},
    "limit": {"who": processes, "pages": st.none() | counts},
    "fork": {"who": processes},
    "clone": {"who": processes},
    "thread": {"who": processes},
    "vfork": {"who": processes},
    "exec": {"who": processes},
    "exit": {"who": processes},
    "leave": {"who": processes},
    "kill": {"who": processes, "other": processes, "thread": yes_or_no, "deadly": yes_or_no},
    "wait": {"who": processes},
    "whoami": {"who": processes},
    "kthread": {"cpu": cpus},
}
"""Every operation of a ``World`` with a strategy for each of its arguments."""

FREQUENT = ("write", "write", "write", "read", "read", "mmap", "mmap", "fork")
"""The operations that happen more often than the others."""

settings.register_profile("kemu-ci", deadline=None, max_examples=60, stateful_step_count=30)
settings.register_profile("kemu-deep", deadline=None, max_examples=3000, stateful_step_count=60)


def profile(name: str) -> settings:
    """``settings`` for a property or a state machine: "ci" (60 examples) or "deep" (3000)."""
    return settings.get_profile(f"kemu-{name}")


def operations() -> st.SearchStrategy[Operation]:
    """One operation on a world; loads and stores are the most frequent."""
    return st.sampled_from([*FREQUENT, *RULES]).flatmap(
        lambda name: st.tuples(st.just(name), st.fixed_dictionaries(RULES[name]))
    )


def programs(longest: int = 30) -> st.SearchStrategy[list[Operation]]:
    """Programs of at most ``longest`` operations."""
    return st.lists(operations(), min_size=1, max_size=longest)


def play(program: list[Operation], **options: Any) -> World:
    """A new world (``options`` are those of ``World``) on which the program was run; process 0
    starts with memory."""
    world = World(**options)
    world.mmap(0, 0, PAGES)
    for name, arguments in program:
        getattr(world, name)(**arguments)
    return world
