"""When memory is short, pages of files that nobody needs go before anybody is killed (mm/vmscan.c:
try_to_free_pages)."""

import pytest

from kemu.api import Session
from kemu.kernel.include.flags import PG_dirty
from kemu.kernel.mm.reclaim import try_to_free_pages

MEM = "8M"
"""A machine with 1,265 free frames."""


@pytest.fixture
def full():
    """A process that has read a file of 8 MiB through a mapping: the page cache fills the
    machine."""
    session = Session(mem=MEM)
    session.run(
        "set verify on; mkfile /big 8M; spawn reader; mmap reader 0x10000000 8M r shared file /big"
    )
    session.run("read reader 0x10000000 8M")
    return session


def cached(session):
    """Pages of /big in the page cache, by index."""
    return session.kernel.globals["files"]["/big"].i_mapping.i_pages


def killed(session):
    return session.kernel.globals["vmstat"].OOM_KILL


def test_a_file_larger_than_memory_can_be_read(full):
    assert killed(full) == 0
    assert "reader" in full.names()
    assert 0 < len(cached(full)) < 2048


def test_anonymous_memory_takes_the_place_of_clean_file_pages(full):
    before = len(cached(full))
    full.run("spawn writer; mmap writer 0x40000000 3M rw; write writer 0x40000000 1 3M")
    assert killed(full) == 0
    assert full.value("rss(writer)") == 768
    assert len(cached(full)) < before


def test_the_pages_that_came_first_go_first(full):
    indices = sorted(cached(full))
    assert try_to_free_pages(32) >= 32
    assert min(cached(full)) > indices[31] - 1
    assert indices[-1] in cached(full)


def test_what_is_gone_is_read_again(full):
    assert 0 not in cached(full)
    reading = full.reading("read reader 0x10000000 1")
    assert reading.data.hex() == "10"
    assert reading.major == 1


def test_locked_and_dirty_pages_stay():
    session = Session(mem=MEM)
    session.run("set verify on; mkfile /big 3M; spawn p; mmap p 0x10000000 3M rw shared file /big")
    session.run("mlock p 0x10000000 16p; write p 0x10020000 1 16p; read p 0x10040000 16p")
    locked, dirty, clean = (range(*span) for span in ((0, 16), (32, 48), (64, 80)))
    assert try_to_free_pages(100_000) > 0
    left = cached(session)
    assert all(index in left for index in (*locked, *dirty))
    assert all(left[index].flags & PG_dirty for index in dirty)
    assert not any(index in left for index in clean)


def test_memory_that_was_given_up_lazily_goes_before_anybody_is_killed():
    session = Session(mem=MEM)
    session.run(
        "set verify on; spawn p; mmap p 0x10000000 2M rw; write p 0x10000000 1 2M; madvise p "
        "0x10000000 2M free"
    )
    session.run("spawn q; mmap q 0x20000000 3M rw; write q 0x20000000 1 3M")
    assert killed(session) == 0
    assert session.value("rss(p)") < 512
    assert session.value("rss(q)") == 768


def test_with_nothing_left_to_reclaim_somebody_is_killed(full):
    for name in ("one", "two"):
        full.run(f"spawn {name}; mmap {name} 0x40000000 3M rw; write {name} 0x40000000 1 3M")
    assert killed(full) == 1
