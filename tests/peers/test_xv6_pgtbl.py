"""xv6's page-table lab: real Sv39 tables of the first process, rebuilt word by word and walked by
kemu's MMU."""

import pytest

from kemu.machine import mmu
from kemu.machine.cpu import new_cpu
from kemu.machine.geometry import RISCV_SV39
from kemu.machine.mmu import FETCH, READ, WRITE, PageFault, translate
from kemu.machine.physmem import PhysMem
from tests.peers.peerdata import load

FILE = load("xv6-pgtbl")
PHYSTOP = 0x8800_0000
LETTERS = {"V": 1, "R": 2, "W": 4, "X": 8, "U": 16}

dumps = pytest.mark.parametrize("dump", FILE["vmprint"], ids=lambda dump: str(dump["year"]))


def entries(dump):
    """(va, depth, entry address, entry, pa) of every line: its table is the one that the line above
    it led to."""
    tables = {1: int(dump["root"], 16)}
    indices = {}
    for depth, index, pte, pa, *_ in dump["entries"]:
        indices[depth] = index
        va = sum(indices[d] << RISCV_SV39.levels[d - 1].shift for d in range(1, depth + 1))
        yield va, depth, tables[depth] + 8 * index, pte, pa
        tables[depth + 1] = pa


def cpu_of(dump):
    cpu = new_cpu(0, PhysMem(PHYSTOP >> 12), RISCV_SV39)
    cpu.root = int(dump["root"], 16)
    for _, _, place, pte, _ in entries(dump):
        cpu.phys.store(place, pte)
    return cpu


@dumps
def test_every_entry_decodes_to_the_printed_address_and_flags(dump):
    for _, _, pte, pa, flags, flag_bits, line_pa in dump["entries"]:
        assert RISCV_SV39.entry_pfn(pte) << 12 == pa == line_pa
        assert pte & 0x3FF == flag_bits == sum(LETTERS[letter] for letter in flags)


@dumps
def test_the_walk_visits_the_printed_entries(dump):
    cpu = cpu_of(dump)
    printed = list(entries(dump))
    for va, depth, place, pte, pa in printed:
        steps, stopped = mmu.walk(cpu.phys, RISCV_SV39, cpu.root, va)
        assert stopped == ("" if any(v == va and d == 3 for v, d, *_ in printed) else "not present")
        assert (steps[depth - 1].entry_pa, steps[depth - 1].entry) == (place, pte)
        if depth == 3:
            assert mmu.physical(RISCV_SV39, steps[-1], va + 0x123) == pa + 0x123


@dumps
def test_user_mode_may_do_what_the_letters_say(dump):
    for (va, depth, _, _, pa), line in zip(list(entries(dump)), dump["entries"], strict=True):
        if depth < 3:
            continue
        flags = line[4]
        for kind, letter in ((READ, "R"), (WRITE, "W"), (FETCH, "X")):
            got = translate(cpu_of(dump), va, kind, True)
            if "U" in flags and letter in flags:
                assert got == pa
            else:
                assert isinstance(got, PageFault)


@dumps
def test_the_supervisor_runs_the_trampoline_and_reads_the_trapframe(dump):
    cpu = cpu_of(dump)
    leaves = {
        va: (pa, line[4])
        for (va, _, _, _, pa), line in zip(entries(dump), dump["entries"], strict=True)
        if line[0] == 3
    }
    for va, (pa, flags) in leaves.items():
        want = pa if "U" not in flags and "R" in flags else PageFault(va, mmu.PF_PROT)
        assert translate(cpu, va, READ, False) == want
    assert translate(cpu, 0x3F_FFFF_F000, FETCH, False) == leaves[0x3F_FFFF_F000][0]


@dumps
def test_the_stack_guard_is_mapped_but_not_for_the_user(dump):
    assert translate(cpu_of(dump), 0x1000, READ, True) == PageFault(
        0x1000, mmu.PF_PROT | mmu.PF_USER
    )


def test_the_addresses_of_the_2025_grader_are_indices_of_the_levels():
    """It labels each line by the address that the entry maps, once sign-extended and once not."""
    lines = FILE["grader_2025_lines"]
    for depth in (1, 2, 3):
        shift = RISCV_SV39.levels[depth - 1].shift
        for text in lines[f"depth{depth}"]:
            va = int(text.split()[0], 16)
            assert va % (1 << shift) == 0
            assert RISCV_SV39.canonical(va)
            assert RISCV_SV39.indices(va)[depth:] == (0,) * (3 - depth)
    assert [RISCV_SV39.indices(int(text.split()[0], 16))[0] for text in lines["depth1"]] == [0, 255]


@pytest.mark.parametrize(("va", "index", "offset"), FILE["worked_translations"])
def test_worked_splits(va, index, offset):
    assert RISCV_SV39.indices(va) == tuple(index)
    assert va % RISCV_SV39.page_size == offset


def test_all_addresses_of_a_superpage_share_one_entry():
    facts = FILE["superpages_2025"]
    cpu = new_cpu(0, PhysMem(1 << 15), RISCV_SV39)
    cpu.root = 0x1000
    cpu.phys.store(0x1000, 2 << 10 | 1)
    cpu.phys.store(0x2000 + 8, (facts["superpage_bytes"] >> 12) << 10 | 0b10111)
    base = facts["superpage_bytes"]
    walks = [mmu.walk(cpu.phys, RISCV_SV39, cpu.root, base + page * 4096) for page in range(512)]
    assert {(w.steps[-1].entry_pa, w.stopped) for w in walks} == {(0x2008, "")}
    for page in range(512):
        assert translate(cpu, base + page * 4096, WRITE, True) == base + page * 4096
    assert translate(cpu, base - 4096, READ, True) == PageFault(base - 4096, mmu.PF_USER)


def test_accessed_bits_name_the_touched_pages():
    facts = FILE["pgaccess"]
    cpu = new_cpu(0, PhysMem(1 << 15), RISCV_SV39)
    cpu.root = 0x1000
    cpu.phys.store(0x1000, 2 << 10 | 1)
    cpu.phys.store(0x2000, 3 << 10 | 1)
    for page in range(facts["pages"]):
        cpu.phys.store(0x3000 + 8 * page, (100 + page) << 10 | 0b10111)
    for page in facts["touched_page_indices"]:
        translate(cpu, page * 4096, READ, True)
    accessed = sum(
        1 << page for page in range(facts["pages"]) if cpu.phys.load(0x3000 + 8 * page) & 1 << 6
    )
    assert accessed == int(facts["expected_mask"], 16)
