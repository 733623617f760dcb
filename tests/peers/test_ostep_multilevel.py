"""OSTEP's multi-level translator, every field of every translation, through kemu's MMU.

32-byte pages, one-byte entries, 5 + 5 + 5 bits of address; the page directory and the page tables
fill one frame each.
"""

import pytest

from kemu.machine import mmu
from kemu.machine.cpu import new_cpu
from kemu.machine.geometry import toy
from kemu.machine.mmu import READ, PageFault, translate
from kemu.machine.physmem import PhysMem
from tests.peers.peerdata import ids, load, rows

FILE = load("ostep-multilevel")
COLUMNS = FILE["columns"]
GEOMETRY = toy("ostep-multilevel", 32, (5, 5), 1, valid_bit=7, pfn_bits=7)


def cpu_of(case):
    """A CPU whose RAM is the run's memory dump; the directory starts at ``pdbr`` frames of 32
    bytes."""
    phys = PhysMem(1)
    for frame, content in case["frames"].items():
        phys.write(int(frame) * 32, bytes.fromhex(content))
    cpu = new_cpu(0, phys, GEOMETRY)
    cpu.root = case["pdbr"] * 32
    return cpu


def test_the_geometry_is_the_one_that_the_runs_used():
    given = FILE["geometry"]
    assert GEOMETRY.page_size == given["page_size"]
    assert GEOMETRY.va_bits == given["va_bits"]
    assert [level.bits for level in GEOMETRY.levels] == [
        given["pd_index_bits"],
        given["pt_index_bits"],
    ]
    assert GEOMETRY.bits.present == 1 << given["valid_bit"]
    assert 1 << given["pa_bits"] == 128 * given["page_size"]


def test_all_translations_are_here():
    outcomes = [row["outcome"] for case in FILE["cases"] for row in rows(case, COLUMNS)]
    assert len(outcomes) == 330
    assert [outcomes.count(kind) for kind in ("ok", "pte_fault", "pde_fault")] == [175, 109, 46]


@pytest.mark.parametrize("case", FILE["cases"], ids=ids)
def test_every_step_of_every_walk(case):
    cpu = cpu_of(case)
    for want in rows(case, COLUMNS):
        steps, stopped = mmu.walk(cpu.phys, GEOMETRY, cpu.root, want["va"])
        check_directory(case, steps[0], want)
        if want["outcome"] == "pde_fault":
            assert (len(steps), stopped) == (1, "not present")
            continue
        check_table(steps[1], want)
        assert stopped == ("not present" if want["outcome"] == "pte_fault" else "")


def check_directory(case, step, want):
    assert step.entry_pa == case["pdbr"] * 32 + want["pde_index"]
    assert GEOMETRY.indices(want["va"])[0] == want["pde_index"]
    assert step.entry == want["pde"]
    assert step.entry >> 7 == want["pde_valid"]
    assert GEOMETRY.entry_pfn(step.entry) == want["pt_pfn"]


def check_table(step, want):
    assert step.entry_pa == want["pt_pfn"] * 32 + want["pte_index"]
    assert GEOMETRY.indices(want["va"])[1] == want["pte_index"]
    assert step.entry == want["pte"]
    assert step.entry >> 7 == want["pte_valid"]
    assert GEOMETRY.entry_pfn(step.entry) == want["pfn"]


@pytest.mark.parametrize("case", FILE["cases"], ids=ids)
def test_every_address_and_every_loaded_byte(case):
    cpu = cpu_of(case)
    for want in rows(case, COLUMNS):
        got = translate(cpu, want["va"], READ, True)
        if want["outcome"] == "ok":
            assert got == want["pa"]
            assert cpu.phys.read(got, 1) == bytes([want["value"]])
            assert translate(cpu, want["va"], READ, True) == got  # now from the TLB
        else:
            assert got == PageFault(want["va"], mmu.PF_USER)


def test_a_walk_changes_no_byte_of_a_format_without_accessed_bits():
    case = FILE["cases"][0]
    cpu = cpu_of(case)
    before = cpu.phys.get_page(0)
    for want in rows(case, COLUMNS):
        translate(cpu, want["va"], READ, True)
    assert cpu.phys.get_page(0) == before
