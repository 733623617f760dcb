"""Hypothesis strategies for what processes do: each operation is (name of a method of ``World``, arguments).

    @given(programs())
    def test_something(program):
        world = play(program)
        ...

Needs Hypothesis: ``pip install 'kemu[fuzz]'``.
"""

from __future__ import annotations

from typing import Any

from kemu.errors import UsageError
from kemu.testing.world import PAGES, World

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise UsageError("kemu.testing: Hypothesis is not installed", hint="pip install 'kemu[fuzz]'") from error

Operation = tuple[Any, ...]

processes = st.integers(0, 3)
pages = st.integers(0, PAGES - 1)
counts = st.integers(1, PAGES)
rights = st.sampled_from(["rw", "rw", "rw", "r", "", "w", "x", "rx", "rwx"])
values = st.integers(1, (1 << 64) - 1)
cpus = st.integers(0, 1)
words = st.integers(0, 1)
kinds = st.sampled_from(["private", "private", "shared", "private file", "shared file"])


def operations() -> st.SearchStrategy[Operation]:
    """One operation on a world; loads and stores are the most frequent."""
    write = st.tuples(st.just("write"), processes, pages, values, cpus, words)
    read = st.tuples(st.just("read"), processes, pages, cpus)
    return st.one_of(
        write,
        write,
        read,
        st.tuples(st.just("mmap"), processes, pages, counts, rights, kinds),
        st.tuples(st.just("munmap"), processes, pages, counts),
        st.tuples(st.just("mprotect"), processes, pages, counts, rights),
        st.tuples(st.just("dontneed"), processes, pages, counts),
        st.tuples(st.just("mremap"), processes, pages, counts, pages),
        st.tuples(st.just("pread"), processes, pages, pages),
        st.tuples(st.just("pwrite"), processes, pages, pages),
        st.tuples(st.just("pin"), processes, pages),
        st.tuples(st.just("fork"), processes),
        st.tuples(st.just("clone"), processes),
        st.tuples(st.just("exit"), processes),
        st.tuples(st.just("kthread"), cpus),
    )


def programs(longest: int = 30) -> st.SearchStrategy[list[Operation]]:
    """Programs of at most ``longest`` operations."""
    return st.lists(operations(), min_size=1, max_size=longest)


def play(program: list[Operation], **options: Any) -> World:
    """A new world (``options`` are those of ``World``) on which the program was run; process 0 has memory to begin with."""
    world = World(**options)
    world.mmap(0, 0, PAGES)
    for name, *arguments in program:
        getattr(world, name)(*arguments)
    return world
