"""A large page in a user's tables: no walk of the kernel reads the memory that it maps as a table.

Nothing maps large pages yet, so a leaf is planted by hand where a table is expected, and each walk
must stop there with a ``KernelBug``.  Those that only look show it as what it is.
"""

import pytest

from kemu.abi.uapi import EFAULT
from kemu.conform.observation import entries
from kemu.errors import KernelBug
from kemu.kernel.include.flags import FAULT_FLAG_WRITE
from kemu.kernel.include.mm_types import PAGE_SIZE
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.fault import handle_mm_fault
from kemu.kernel.mm.gup import mapped_entry
from kemu.kernel.mm.rmap import page_vma_mapped, rmap_walk
from kemu.kernel.mm.vma import vma_lookup
from kemu.kernel.mm.zap import free_pgd_range, pmds_in, tlb_gather_mmu
from kemu.machine.geometry import RISCV_SV39, X86_64_4LEVEL, X86_64_5LEVEL
from kemu.observe.entries import entry_kind, leaves, tables
from tests.kernel.scenes import PRIVATE, Scene

GEOMETRIES = [X86_64_4LEVEL, X86_64_5LEVEL, RISCV_SV39]
MAP_FIXED = 0x10
START, LARGE = 0x1000_0000, 2 << 20
SIZE = 2 * LARGE
MADVICE = {"dontneed": 4, "free": 8, "cold": 20, "pageout": 21, "guard": 102, "unguard": 103}


@pytest.fixture(params=GEOMETRIES, ids=lambda geometry: geometry.name)
def s(request):
    """4 MiB of private anonymous memory: pages in the first 2 MiB, a leaf for all of the second."""
    s = Scene(geometry=request.param)
    s.mmap(s.p, SIZE // PAGE_SIZE, flags=PRIVATE | MAP_FIXED, addr=START)
    s.write(s.p, START, 7)
    s.write(s.p, START + LARGE, 7)
    s.anon_page = pfn_to_page(s.pfn(s.p, START + LARGE))
    s.pmd = s.steps(s.p, START + LARGE).steps[-2].entry_pa
    bits = system.bits
    system.phys.store(
        s.pmd,
        0x800 << bits.pfn_shift | bits.present | bits.user | bits.read | bits.write | bits.huge,
    )
    return s


def call(name, *args):
    return lambda s: s.call(s.p, name, START, SIZE, *args)


WALKS = {
    "fault": lambda s: handle_mm_fault(vma_lookup(s.p.mm, START), START + LARGE, FAULT_FLAG_WRITE),
    "fork": lambda s: s.fork(s.p),
    "munmap": call("munmap"),
    "exit": lambda s: s.exit(s.p),
    "mprotect": call("mprotect", 1),
    "mremap": lambda s: s.call(s.p, "mremap", START, SIZE, SIZE, 3, START + (1 << 29)),
    "mremap onto it": lambda s: s.call(
        s.p, "mremap", START, PAGE_SIZE, PAGE_SIZE, 3, START + LARGE
    ),
    "mincore": call("mincore", START),
    "mlock": call("mlock"),
    "pin": lambda s: s.call(s.p, "pin", START + LARGE, PAGE_SIZE),
    "gup_fast": lambda s: mapped_entry(s.p.mm, START + LARGE),
    "rmap": lambda s: list(rmap_walk(s.anon_page)),
    "page_vma_mapped": lambda s: page_vma_mapped(s.p.mm, START + LARGE, s.anon_page),
    "free_pgtables": lambda s: free_pgd_range(tlb_gather_mmu(s.p.mm), START, START + SIZE, 0, 0),
    **{f"madvise {name}": call("madvise", advice) for name, advice in MADVICE.items()},
}


@pytest.mark.parametrize("walk", WALKS)
def test_no_walk_reads_a_large_leaf_as_a_table(s, walk):
    with pytest.raises(KernelBug, match="maps a large page, where a table is expected"):
        WALKS[walk](s)


def test_a_leaf_one_level_higher_is_not_read_as_a_table_either(s):
    step = s.steps(s.p, START).steps[-3]
    system.phys.store(step.entry_pa, system.phys.load(s.pmd))
    with pytest.raises(KernelBug, match="maps a large page"):
        list(pmds_in(s.p.mm, START, START + SIZE))
    with pytest.raises(KernelBug, match="maps a large page"):
        s.fork(s.p)


def test_an_upper_entry_that_is_not_present_is_malformed(s):
    system.phys.store(s.pmd, 0x800 << system.bits.pfn_shift)
    with pytest.raises(KernelBug, match="is malformed, where a table is expected"):
        mapped_entry(s.p.mm, START + LARGE)


def test_the_hardware_reads_and_writes_through_the_leaf(s):
    s.write(s.p, START + LARGE + PAGE_SIZE, 0x1234)
    assert system.phys.load(0x801 << 12) == 0x1234
    assert s.read(s.p, START + LARGE + PAGE_SIZE) == 0x1234


def test_whoever_looks_sees_a_large_page(s):
    mm = s.p.mm
    level = len(system.geometry.levels) - 2
    found = [leaf for leaf in leaves(mm.pgd, START, START + SIZE) if leaf.entry_pa == s.pmd]
    assert [(leaf.va, leaf.level) for leaf in found] == [(START + LARGE, level)]
    assert entry_kind(level, found[0].entry) == "huge"
    assert 0x800 not in {table.pfn for table in tables(mm.pgd)}
    assert [address for address, _ in entries(mm, START, START + SIZE)] == [START]
    assert vma_lookup(mm, START).vm_end == START + SIZE


def test_a_pin_of_the_kernels_half_never_reaches_its_large_pages(s):
    assert s.call(s.p, "pin", 0xFFFFFFFF81000000, PAGE_SIZE).errno == EFAULT
