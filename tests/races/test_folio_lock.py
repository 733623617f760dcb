"""PG_locked is a lock: of two CPUs that want the same page of a file, one waits.

Two holders cannot hide: the second one unlocks a page that is not locked, and the kernel stops.
"""

import pytest

from kemu.errors import KernelBug
from kemu.invariants import check
from kemu.kernel.include.flags import PG_locked
from kemu.kernel.include.pagemap import folio_lock, folio_trylock, folio_unlock
from kemu.kernel.include.system import system
from kemu.kernel.mm import filemap, shmem
from kemu.kernel.mm.page_alloc import alloc_page, folio_put
from tests.races.raced import explored, session

WRITES = ("write a 0x10000 1", "write b 0x10000 2")
TWO_WRITERS = {
    "a file on disk": "mkfile /data 2p; spawn a; mmap a 0x10000 2p rw file /data shared",
    "a file of memory": "mkfile /data 2p tmpfs; spawn a; mmap a 0x10000 2p rw file /data shared",
    "shared anonymous memory": "spawn a; mmap a 0x10000 2p rw shared",
}


def names(reading):
    return {outcome.name for outcome in reading.outcomes}


@pytest.fixture
def page():
    session()
    made = alloc_page()
    yield made
    if made.flags & PG_locked:
        folio_unlock(made)
    folio_put(made)


@pytest.mark.parametrize("memory", TWO_WRITERS)
def test_two_writers_of_a_shared_page_never_hold_it_both(memory):
    made = session(TWO_WRITERS[memory] + "; fork a as b")
    reading = explored(*WRITES, on=made, bound=2)
    assert (reading.bad, reading.complete) == (0, True)
    wrong = explored(*WRITES, on=made, bound=1, mutant="folio_lock_does_not_wait")
    assert "the kernel stops" in names(wrong)
    assert any("is not locked" in text for o in wrong.outcomes for text in o.detail)


@pytest.mark.parametrize("memory", TWO_WRITERS)
def test_a_fault_that_forgets_to_unlock_is_noticed_at_rest_or_by_who_waits_for_ever(memory):
    made = session(TWO_WRITERS[memory] + "; fork a as b")
    wrong = explored(*WRITES, on=made, bound=0, mutant="fault_forgets_unlock")
    assert wrong.bad == wrong.schedules
    assert names(wrong) == {"deadlock"}
    alone = explored(WRITES[0], "read b 0x11000", on=made, bound=0, mutant="fault_forgets_unlock")
    assert names(alone) == {"no_lock_is_held_at_rest"}


def test_the_lock_can_be_taken_away_and_the_page_is_mapped_beyond_the_end_of_its_file():
    assert explored("truncate-fault").bad == 0
    assert "nothing_lies_behind_the_end" in names(explored("truncate-fault", lock="folio_lock"))


def test_alone_on_the_machine_a_page_that_is_held_will_never_be_released(page):
    folio_lock(page)
    assert not folio_trylock(page)
    with pytest.raises(KernelBug, match="deadlock: folio_lock of page"):
        folio_lock(page)


@pytest.mark.parametrize("kind", ["disk", "tmpfs"])
def test_a_page_that_another_cpu_brought_in_while_memory_was_reclaimed_is_taken(kind, monkeypatch):
    """-EEXIST of the page cache: the second page is given back, and nothing is counted twice."""
    made = session(f"set tmpfs 4p; mkfile /data 2p {kind} sparse; spawn a")
    node, module = system.files["/data"], {"disk": filemap, "tmpfs": shmem}[kind]
    alloc, left = module.alloc_page, [1]

    def slow(*gfp):
        if left.pop() if left else 0:
            monkeypatch.setattr(module, "alloc_page", alloc)
            bring_in()
        return alloc(*gfp)

    def bring_in():
        if kind == "disk":
            assert filemap.read_folio(node, 0)
        else:
            found = shmem.shmem_get_folio_gfp(node, 0)
            folio_unlock(found)
            folio_put(found)

    monkeypatch.setattr(module, "alloc_page", slow)
    bring_in()
    assert (list(node.i_mapping.i_pages), node.i_mapping.nrpages) == ([0], 1)
    assert check(made.kernel) == []


def test_whoever_unlocks_must_hold_it(page):
    with pytest.raises(KernelBug, match="is not locked"):
        folio_unlock(page)


def test_a_page_that_is_held_is_not_freed(page):
    folio_lock(page)
    with pytest.raises(KernelBug, match=r"freed with .* locked"):
        folio_put(page)
    page._refcount = 1


@pytest.mark.parametrize(
    "race",
    [
        ("write a 0x10000 1", "fsync b 3"),
        ("write a 0x10000 1", "ftruncate b 3 0"),
        ("read a 0x10000", "ftruncate b 3 1"),
        ("write a 0x10000 1", "madvise b 0x10000 2p pageout"),
        ("pwrite a 3 0x20000 8", "write b 0x10000 2"),
        ("write a 0x10000 1", "fadvise b 3 dontneed 0 2p"),
        ("fallocate a 3 0 1p punch_hole keep_size", "write b 0x10000 1"),
    ],
)
@pytest.mark.parametrize("kind", ["disk", "tmpfs"])
def test_all_that_lock_a_page_of_a_file_get_along(race, kind):
    made = session(
        f"mkfile /data 2p {kind}; spawn a; open a /data rdwr; mmap a 0x20000 1p rw; "
        "write a 0x20000 7; mmap a 0x10000 2p rw file /data shared; fork a as b"
    )
    assert explored(*race, on=made, bound=2).bad == 0
    assert not any(found.flags & PG_locked for found in system.mem_map.values())
