"""OSTEP's linear translator: flat tables of 4-byte entries with pages from 8 bytes to 1 MiB.

The original keeps its table beside the memory; here it lies in RAM behind the last frame that can
be mapped.
"""

import re

import pytest

from kemu.machine import mmu
from kemu.machine.cpu import new_cpu
from kemu.machine.geometry import toy
from kemu.machine.mmu import READ, GeneralProtection, PageFault, translate
from kemu.machine.physmem import PhysMem
from tests.peers.peerdata import ids, load, rows

FILE = load("ostep-linear")
COLUMNS = FILE["columns"]
DEFAULTS = {"P": "4k", "a": "16k", "p": "64k"}
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}


def sizes(case):
    """(page, address space, memory) of a run in bytes."""
    given = DEFAULTS | dict(re.findall(r"-([Pap]) (\w+)", case["args"]))
    return tuple(
        int(given[key].rstrip("km")) * UNITS[given[key].lstrip("0123456789")] for key in "Pap"
    )


def flat(page, space):
    """The geometry of a run: as many index bits as the address has above the page's offset.

    A space smaller than a page has a negative number of them, as OSTEP finds out too."""
    return toy(
        "ostep-linear",
        page,
        (space.bit_length() - page.bit_length(),),
        4,
        valid_bit=31,
        pfn_bits=31,
    )


def cpu_of(case):
    page, space, memory = sizes(case)
    cpu = new_cpu(0, PhysMem((memory >> 12) + 64), flat(page, space))
    cpu.root = -(-memory // 4096) * 4096
    for index, pfn in case["valid"]:
        cpu.phys.write(cpu.root + 4 * index, (1 << 31 | pfn).to_bytes(4, "little"))
    return cpu


def test_all_translations_are_here():
    outcomes = [row["outcome"] for case in FILE["cases"] for row in rows(case, COLUMNS)]
    assert (len(FILE["cases"]), len(FILE["errors"]), len(outcomes)) == (26, 4, 105)
    assert [outcomes.count(kind) for kind in ("ok", "invalid")] == [40, 65]


@pytest.mark.parametrize("case", FILE["cases"], ids=ids)
def test_the_table_has_the_size_that_the_chapter_asks_for(case):
    page, space, memory = sizes(case)
    level = flat(page, space).levels[0]
    assert level.entries == space // page == case["n_entries"]
    assert len(case["valid"]) == case["n_valid"]
    assert all(pfn < memory // page for _, pfn in case["valid"])


@pytest.mark.parametrize("case", FILE["cases"], ids=ids)
def test_every_translation(case):
    cpu = cpu_of(case)
    for want in rows(case, COLUMNS):
        assert cpu.geometry.indices(want["va"]) == (want["vpn"],)
        steps, stopped = mmu.walk(cpu.phys, cpu.geometry, cpu.root, want["va"])
        assert steps[0].entry_pa == cpu.root + 4 * want["vpn"]
        assert (steps[0].entry >> 31, stopped) == (
            (1, "") if want["outcome"] == "ok" else (0, "not present")
        )
        got = translate(cpu, want["va"], READ, True)
        assert got == (
            want["pa"] if want["outcome"] == "ok" else PageFault(want["va"], mmu.PF_USER)
        )


@pytest.mark.parametrize("case", FILE["cases"], ids=ids)
def test_every_entry_of_the_table_maps_its_page_or_none(case):
    cpu = cpu_of(case)
    page = cpu.geometry.page_size
    valid = dict(case["valid"])
    for index in range(0, case["n_entries"], max(1, case["n_entries"] // 128)):
        got = translate(cpu, index * page + 1, READ, True)
        assert got == (
            valid[index] * page + 1 if index in valid else PageFault(index * page + 1, mmu.PF_USER)
        )


def error(name):
    return next(case for case in FILE["errors"] if case["args"].startswith(name))


def test_a_page_size_that_is_no_power_of_two_is_refused():
    page, space, _ = sizes(error("-P 3000"))
    with pytest.raises(ValueError, match="page size 3000: expected a power of two"):
        flat(page, space)


def test_an_address_space_smaller_than_a_page_is_refused():
    page, space, _ = sizes(error("-P 4k -a 2k"))
    with pytest.raises(ValueError, match="index width"):
        flat(page, space)


def test_an_address_just_above_the_space_is_no_address():
    """The original stops with an index error there, after it has translated the last byte of the
    space."""
    case = error("-P 4k -a 16k -p 64k -A")
    page, space, memory = sizes(case)
    *_, last, above = (int(va) for va in case["args"].rsplit(" ", 1)[1].split(","))
    assert (last, above) == (space - 1, space)
    cpu = new_cpu(0, PhysMem((memory >> 12) + 1), flat(page, space))
    cpu.root = memory
    pa = int(re.search(r"--> (\w+)", case["message"])[1], 16)
    cpu.phys.write(cpu.root + 4 * 3, (1 << 31 | pa // page).to_bytes(4, "little"))
    assert translate(cpu, last, READ, True) == pa
    assert translate(cpu, above, READ, True) == GeneralProtection(above)


def test_memory_smaller_than_the_address_space_is_a_rule_of_the_simulator_only():
    """OSTEP wants every page to fit; an MMU does not care, and kemu follows the MMU."""
    page, space, memory = sizes(error("-P 4k -a 64k -p 32k"))
    assert memory < space
    assert flat(page, space).levels[0].entries == 16
