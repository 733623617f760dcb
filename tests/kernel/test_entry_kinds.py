"""Entries that are neither empty nor present: what they are, and that none is dropped silently.

The encodings are Linux's (arch/x86/include/asm/pgtable_64.h, arch/riscv/include/asm/pgtable.h; the
types of 6.18 with all kinds configured, include/linux/swap.h).  kemu makes guard markers only; the
others are planted by hand.
"""

import pytest

from kemu.errors import KernelBug
from kemu.invariants import check
from kemu.kernel.include.flags import VM_UFFD_WP
from kemu.kernel.include.mm_types import PAGE_SIZE
from kemu.kernel.include.swapops import (
    MAX_SWAPFILES,
    PTE_MARKER_GUARD,
    PTE_MARKER_POISONED,
    PTE_MARKER_UFFD_WP,
    SWP_DEVICE_READ,
    SWP_HWPOISON,
    SWP_MIGRATION_READ,
    SWP_MIGRATION_WRITE,
    SWP_PTE_MARKER,
    __swp_entry,
    __swp_offset,
    __swp_type,
    classify,
    make_pte_marker,
)
from kemu.kernel.include.system import system
from kemu.kernel.mm.fork_mm import copy_nonpresent_pte
from kemu.kernel.mm.vma import vma_lookup
from kemu.machine.geometry import RISCV_SV39
from kemu.observe.entries import entry_kind, read_entry
from kemu.observe.procfs import pagemap, smaps
from tests.kernel.scenes import Scene

MADV_DONTNEED, MADV_FREE = 4, 8
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2
PAGES = 66
"""More than a row of fork needs."""

MADE = {
    "swap": (3, 0x1234),
    "hwpoison": (SWP_HWPOISON, 0x77),
    "migration": (SWP_MIGRATION_WRITE, 0x77),
    "device": (SWP_DEVICE_READ, 0x77),
    "unknown": (SWP_PTE_MARKER, 64),
}
MARKERS = {
    "guard": PTE_MARKER_GUARD,
    "poison": PTE_MARKER_POISONED,
    "uffd-wp": PTE_MARKER_UFFD_WP,
}


@pytest.fixture
def s():
    """Pages that are written, but for the second, which is empty."""
    s = Scene()
    s.at = s.mmap(s.p, PAGES)
    for page in range(PAGES):
        if page != 1:
            s.write(s.p, s.at + page * PAGE_SIZE, 7)
    s.hole = s.at + PAGE_SIZE
    return s


def plant(s, entry):
    """Put ``entry`` into the second page's place."""
    entry_pa = s.steps(s.p, s.at).steps[-1].entry_pa + 8
    system.phys.store(entry_pa, entry)


def planted(s, task, kind):
    return classify(s.pte(task, s.hole)) == kind


# ---------------------------------------------------------------- the encodings


@pytest.mark.usefixtures("s")
def test_an_entry_is_encoded_as_on_x86_64():
    entry = __swp_entry(3, 0x1234)
    assert entry >> 59 == 3
    assert entry >> 9 & (1 << 50) - 1 == 0x1234 ^ (1 << 50) - 1
    assert not entry & 0x1FF
    assert (__swp_type(entry), __swp_offset(entry)) == (3, 0x1234)


def test_an_entry_is_encoded_as_on_riscv():
    Scene(geometry=RISCV_SV39)
    entry = __swp_entry(3, 0x1234)
    assert entry == 3 << 7 | 0x1234 << 12
    assert (__swp_type(entry), __swp_offset(entry)) == (3, 0x1234)
    assert classify(entry) == "swap"
    assert classify(entry | system.bits.read) == "unknown"


@pytest.mark.usefixtures("s")
@pytest.mark.parametrize("kind", MADE)
def test_each_kind_is_told_from_the_others(kind):
    assert classify(__swp_entry(*MADE[kind])) == kind


@pytest.mark.usefixtures("s")
@pytest.mark.parametrize("kind", MARKERS)
def test_each_marker_is_told_from_the_others(kind):
    assert classify(make_pte_marker(MARKERS[kind])) == kind


def test_the_rest_of_the_kinds(s):
    assert classify(0) == "none"
    assert classify(s.pte(s.p, s.at)) == "present"
    assert classify(__swp_entry(MAX_SWAPFILES - 1, 0)) == "swap"
    assert classify(__swp_entry(SWP_MIGRATION_READ, 1)) == "migration"
    assert classify(__swp_entry(SWP_MIGRATION_READ + 1, 1)) == "migration"


@pytest.mark.usefixtures("s")
def test_an_entry_keeps_its_kind_when_it_remembers_that_its_page_was_exclusive():
    assert classify(__swp_entry(3, 0x1234) | 1 << 3) == "swap"


@pytest.mark.usefixtures("s")
def test_bit_7_and_two_markers_at_once_are_unknown():
    assert classify(__swp_entry(3, 0x1234) | 1 << 7) == "unknown"
    assert classify(make_pte_marker(PTE_MARKER_GUARD | PTE_MARKER_POISONED)) == "unknown"
    assert classify(make_pte_marker(0)) == "unknown"


# ---------------------------------------------------------------- nothing is dropped silently

DOING = {
    "load": lambda s: s.load(s.p, s.hole),
    "store": lambda s: s.write(s.p, s.hole, 1),
    "fork": lambda s: s.fork(s.p),
    "munmap": lambda s: s.call(s.p, "munmap", s.at, PAGES * PAGE_SIZE),
    "exit": lambda s: s.exit(s.p),
    "mprotect": lambda s: s.mprotect(s.p, s.at, PAGES, "r"),
    "mincore": lambda s: s.call(s.p, "mincore", s.at, PAGES * PAGE_SIZE, s.at),
    "dontneed": lambda s: s.call(s.p, "madvise", s.at, PAGES * PAGE_SIZE, MADV_DONTNEED),
    "free": lambda s: s.call(s.p, "madvise", s.at, PAGES * PAGE_SIZE, MADV_FREE),
    "pin": lambda s: s.call(s.p, "pin", s.hole, PAGE_SIZE),
}


@pytest.mark.parametrize("doing", DOING)
@pytest.mark.parametrize("kind", MADE)
def test_what_no_code_handles_is_named(s, kind, doing):
    plant(s, __swp_entry(*MADE[kind]))
    with pytest.raises(KernelBug, match=f"not handled here: {kind}"):
        DOING[doing](s)


def test_fork_of_a_table_too_small_for_a_row_names_it_too():
    s = Scene()
    s.at = s.mmap(s.p, 2)
    s.write(s.p, s.at, 7)
    plant(s, __swp_entry(3, 5))
    with pytest.raises(KernelBug, match="swap"):
        s.fork(s.p)


def test_an_access_to_a_marker_that_no_code_makes_is_named(s):
    plant(s, make_pte_marker(PTE_MARKER_POISONED))
    with pytest.raises(KernelBug, match="poison"):
        s.load(s.p, s.hole)


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind != "unknown"])
def test_mremap_moves_every_kind(s, kind):
    entry = __swp_entry(*MADE[kind])
    plant(s, entry)
    size, to = PAGES * PAGE_SIZE, s.at - (1 << 30)
    s.ok(s.p, "mremap", s.at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to)
    assert s.pte(s.p, to + PAGE_SIZE) == entry


def test_mremap_names_an_unknown_kind(s):
    plant(s, __swp_entry(*MADE["unknown"]))
    size, to = PAGES * PAGE_SIZE, s.at - (1 << 30)
    with pytest.raises(KernelBug, match="unknown"):
        s.call(s.p, "mremap", s.at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to)


# ---------------------------------------------------------------- markers


@pytest.mark.parametrize(("kind", "there"), [("guard", True), ("poison", True), ("uffd-wp", False)])
@pytest.mark.parametrize("pages", [PAGES, 2])
def test_fork_copies_guards_and_poison(s, kind, there, pages):
    s.ok(s.p, "munmap", s.at + pages * PAGE_SIZE, (PAGES - pages + 1) * PAGE_SIZE)
    plant(s, make_pte_marker(MARKERS[kind]))
    child = s.fork(s.p)
    assert planted(s, child, kind) == there
    assert planted(s, s.p, kind)
    assert s.pfn(child, s.at) == s.pfn(s.p, s.at)


def test_fork_copies_the_marker_of_userfaultfd_where_the_child_is_watched(s):
    vma, entry = vma_lookup(s.p.mm, s.at), make_pte_marker(PTE_MARKER_UFFD_WP)
    ptep = s.steps(s.p, s.at).steps[-1].entry_pa + 8
    copy_nonpresent_pte(vma, ptep, s.hole, entry)
    assert system.phys.load(ptep) == 0
    vma.vm_flags |= VM_UFFD_WP
    copy_nonpresent_pte(vma, ptep, s.hole, entry)
    assert system.phys.load(ptep) == entry


@pytest.mark.parametrize(
    ("kind", "stays"), [("guard", True), ("poison", False), ("uffd-wp", False)]
)
def test_madv_dontneed_keeps_guards_only(s, kind, stays):
    plant(s, make_pte_marker(MARKERS[kind]))
    s.ok(s.p, "madvise", s.at, PAGES * PAGE_SIZE, MADV_DONTNEED)
    assert planted(s, s.p, kind) == stays
    assert s.anon(s.p) == 0


@pytest.mark.parametrize("kind", MARKERS)
def test_munmap_takes_every_marker_away(s, kind):
    plant(s, make_pte_marker(MARKERS[kind]))
    s.ok(s.p, "munmap", s.at, PAGES * PAGE_SIZE)
    assert check(s.kernel) == []


@pytest.mark.parametrize(("kind", "stays"), [("guard", True), ("poison", False), ("uffd-wp", True)])
def test_madv_free_clears_poison_only(s, kind, stays):
    plant(s, make_pte_marker(MARKERS[kind]))
    s.ok(s.p, "madvise", s.at, PAGES * PAGE_SIZE, MADV_FREE)
    assert planted(s, s.p, kind) == stays


@pytest.mark.parametrize("kind", MARKERS)
def test_mprotect_and_mincore_pass_markers_by(s, kind):
    plant(s, make_pte_marker(MARKERS[kind]))
    s.ok(s.p, "mincore", s.at, PAGES * PAGE_SIZE, s.at)
    assert s.read(s.p, s.at, 3) == 0x01_00_01
    s.mprotect(s.p, s.at, PAGES, "r")
    assert planted(s, s.p, kind)


# ---------------------------------------------------------------- looking


@pytest.mark.parametrize("kind", MADE)
def test_whoever_looks_is_told_the_kind(s, kind):
    entry = __swp_entry(*MADE[kind])
    plant(s, entry)
    reading = read_entry(3, 0x1000, entry)
    assert (entry_kind(3, entry), reading.kind, reading.pfn) == (kind, kind, None)
    seen = pagemap(s.kernel, s.p, s.hole, s.hole + PAGE_SIZE).pages
    assert [page.letters for page in seen] == ["S"]
    assert [str(found) for found in check(s.kernel)] == [
        f"p {s.hole:#x}: an entry of kind {kind}, but no code makes one"
    ]


def test_smaps_counts_what_is_swapped_out(s):
    def swapped():
        return sum(entry.counts.swap for entry in smaps(s.kernel, s.p).entries)

    assert swapped() == 0
    plant(s, __swp_entry(3, 5))
    assert swapped() == PAGE_SIZE
