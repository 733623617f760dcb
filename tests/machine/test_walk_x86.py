"""The x86-64 walk: rights ANDed over the levels, error codes, Accessed and Dirty, large leaves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.machine import mmu
from kemu.machine.geometry import X86_64_4LEVEL, X86_64_5LEVEL
from kemu.machine.mmu import FETCH, READ, WRITE, GeneralProtection, PageFault, page_walk, translate
from tests.machine import reference_walk
from tests.machine.machines import NX, PS, RW, US, A, D, G, P, build, machine, x86_entry, x86_map

VA = 0x7F12_3456_7ABC
KERNEL_VA = 0xFFFF_C900_0001_2340
GEOMETRIES = pytest.mark.parametrize(
    "geometry", [X86_64_4LEVEL, X86_64_5LEVEL], ids=lambda g: g.name
)


def user(cpu, kind, va=VA):
    return translate(cpu, va, kind, True)


def kernel(cpu, kind, va=VA):
    return translate(cpu, va, kind, False)


@GEOMETRIES
def test_a_user_page_translates_for_each_kind_of_access(geometry):
    cpu = machine(geometry)
    x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    for kind in (READ, WRITE, FETCH):
        assert user(cpu, kind) == 0x99ABC


@GEOMETRIES
def test_the_walk_names_every_entry_on_its_way(geometry):
    cpu = machine(geometry)
    places = x86_map(cpu, VA, x86_entry(0x99, P | US))
    steps, stopped = mmu.walk(cpu.phys, geometry, cpu.root, VA)
    assert stopped == ""
    assert [s.entry_pa for s in steps] == places
    assert [geometry.levels[s.level].name for s in steps] == [
        level.name for level in geometry.levels
    ]
    assert steps[-1].entry == x86_entry(0x99, P | US)


@GEOMETRIES
@pytest.mark.parametrize("missing", range(4))
def test_a_missing_entry_of_any_level_is_a_fault_without_the_protection_bit(geometry, missing):
    cpu = machine(geometry)
    places = x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    cpu.phys.store(places[missing], cpu.phys.load(places[missing]) & ~P)
    assert user(cpu, READ) == PageFault(VA, 0b00100)
    assert user(cpu, WRITE) == PageFault(VA, 0b00110)
    assert user(cpu, FETCH) == PageFault(VA, 0b10100)
    assert kernel(cpu, WRITE) == PageFault(VA, 0b00010)
    steps, stopped = mmu.walk(cpu.phys, geometry, cpu.root, VA)
    assert (len(steps), stopped) == (missing + 1, "not present")


@GEOMETRIES
@pytest.mark.parametrize("level", range(4))
def test_one_read_only_level_forbids_writing(geometry, level):
    cpu = machine(geometry)
    places = x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    cpu.phys.store(places[level], cpu.phys.load(places[level]) & ~RW)
    assert user(cpu, READ) == 0x99ABC
    assert user(cpu, WRITE) == PageFault(VA, 0b00111)


@pytest.mark.parametrize("level", range(4))
def test_one_supervisor_level_forbids_user_mode(level):
    cpu = machine()
    places = x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    cpu.phys.store(places[level], cpu.phys.load(places[level]) & ~US)
    assert user(cpu, READ) == PageFault(VA, 0b00101)
    assert kernel(cpu, READ) == 0x99ABC


@pytest.mark.parametrize("level", range(4))
def test_one_no_execute_level_forbids_fetching(level):
    cpu = machine()
    places = x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    cpu.phys.store(places[level], cpu.phys.load(places[level]) | NX)
    assert user(cpu, READ) == 0x99ABC
    assert user(cpu, FETCH) == PageFault(VA, 0b10101)


def test_write_protection_binds_the_kernel_too():
    """CR0.WP is on: copy-on-write works for copy_to_user as well."""
    cpu = machine()
    x86_map(cpu, KERNEL_VA, x86_entry(0x99, P), upper=P | RW)
    assert kernel(cpu, READ, KERNEL_VA) == 0x99340
    assert kernel(cpu, WRITE, KERNEL_VA) == PageFault(KERNEL_VA, 0b00011)


def test_smap_keeps_the_kernel_from_user_pages_until_ac_is_set():
    cpu = machine()
    x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    assert kernel(cpu, READ) == PageFault(VA, 0b00001)
    assert kernel(cpu, WRITE) == PageFault(VA, 0b00011)
    cpu.ac = True
    assert kernel(cpu, READ) == 0x99ABC
    assert kernel(cpu, WRITE) == 0x99ABC
    cpu.ac = False
    assert kernel(cpu, READ) == PageFault(VA, 0b00001)  # the TLB entry does not open the door


def test_smep_keeps_the_kernel_from_executing_user_pages_even_with_ac():
    cpu = machine()
    x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    cpu.ac = True
    assert kernel(cpu, FETCH) == PageFault(VA, 0b10001)


def test_the_kernel_executes_its_own_pages_and_the_user_does_not():
    cpu = machine()
    x86_map(cpu, KERNEL_VA, x86_entry(0x99, P | G), upper=P | RW)
    assert kernel(cpu, FETCH, KERNEL_VA) == 0x99340
    assert user(cpu, FETCH, KERNEL_VA) == PageFault(KERNEL_VA, 0b10101)


def test_accessed_is_set_at_every_level_and_dirty_at_the_leaf_of_a_write():
    cpu = machine()
    places = x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    user(cpu, READ)
    assert [cpu.phys.load(place) & (A | D) for place in places] == [A, A, A, A]
    user(cpu, WRITE)
    assert [cpu.phys.load(place) & (A | D) for place in places] == [A, A, A, A | D]


@pytest.mark.parametrize("kind", [READ, WRITE, FETCH])
def test_a_refused_access_changes_no_entry(kind):
    cpu = machine()
    places = x86_map(cpu, VA, x86_entry(0x99, P | NX), upper=P)
    before = [cpu.phys.load(place) for place in places]
    assert isinstance(user(cpu, kind), PageFault)
    assert [cpu.phys.load(place) for place in places] == before
    assert cpu.tlb.entries() == []


@pytest.mark.parametrize(("level", "size"), [(2, 1 << 21), (1, 1 << 30)], ids=["2M", "1G"])
def test_a_large_leaf_maps_all_of_its_range(level, size):
    cpu = machine()
    va = 0x7F00_0000_0000 & ~(size - 1)
    places = build(
        cpu,
        va,
        [x86_entry(2 + n, P | RW | US) for n in range(level)]
        + [x86_entry(5 * size >> 12, P | RW | US | PS)],
    )
    for offset in (0, 0x1234, size - 1):
        assert user(cpu, READ, va + offset) == 5 * size + offset
    user(cpu, WRITE, va + size - 8)
    assert cpu.phys.load(places[-1]) & (A | D) == A | D
    assert len(mmu.walk(cpu.phys, cpu.geometry, cpu.root, va).steps) == level + 1


@pytest.mark.parametrize(("level", "bit"), [(2, 13), (2, 20), (1, 13), (1, 29)])
def test_a_large_leaf_with_frame_bits_inside_is_a_reserved_bit_fault(level, bit):
    cpu = machine()
    build(
        cpu,
        VA,
        [x86_entry(2 + n, P | RW | US) for n in range(level)] + [P | RW | US | PS | 1 << bit],
    )
    assert user(cpu, READ) == PageFault(VA, 0b01101)
    assert user(cpu, WRITE) == PageFault(VA, 0b01111)


def test_bit_12_of_a_large_leaf_selects_a_cache_type_and_is_no_address():
    cpu = machine()
    build(
        cpu,
        VA,
        [x86_entry(2 + n, P | RW | US) for n in range(2)] + [0x40_0000 | 1 << 12 | P | US | PS],
    )
    assert user(cpu, READ) == 0x40_0000 + VA % (1 << 21)


@pytest.mark.parametrize(
    ("geometry", "level"), [(X86_64_4LEVEL, 0), (X86_64_5LEVEL, 0), (X86_64_5LEVEL, 1)]
)
def test_the_levels_above_1g_have_no_large_leaves(geometry, level):
    cpu = machine(geometry)
    build(cpu, VA, [x86_entry(2 + n, P | RW | US) for n in range(level)] + [P | RW | US | PS])
    assert user(cpu, READ) == PageFault(VA, 0b01101)


def test_bit_7_of_a_small_page_is_pat_and_changes_nothing():
    cpu = machine()
    x86_map(cpu, VA, x86_entry(0x99, P | US | PS))
    assert user(cpu, READ) == 0x99ABC


@GEOMETRIES
def test_an_address_in_the_hole_is_a_general_protection_fault(geometry):
    cpu = machine(geometry)
    hole = 1 << (geometry.va_bits - 1)
    for kind in (READ, WRITE, FETCH):
        assert user(cpu, kind, hole) == GeneralProtection(hole)


def test_a_prot_none_entry_counts_as_not_present():
    """Linux keeps bit 8 in it and clears P; the CPU looks at P only."""
    cpu = machine()
    x86_map(cpu, VA, x86_entry(0x99, G | A | NX))
    assert user(cpu, READ) == PageFault(VA, 0b00100)


@pytest.mark.parametrize(("code", "scause"), [(4, 13), (6, 15), (7, 15), (0x14, 12), (0x15, 12)])
def test_a_fault_has_riscvs_number_too(code, scause):
    assert PageFault(0, code).scause == scause


entries = st.builds(
    lambda bits, drop: (P | RW | US | sum(set(bits))) & ~sum(set(drop)),
    st.lists(st.sampled_from([A, D, G]), max_size=3),
    st.lists(st.sampled_from([P, RW, US]), max_size=1),
)


@st.composite
def tables(draw):
    """(levels, entries from the root): the tables lie in frames 2 to 5; now and then NX or a large
    leaf stands above."""
    levels = draw(st.sampled_from([4, 5]))
    made = []
    for n in range(levels):
        extra = draw(st.sampled_from([0, 0, 0, NX, PS, PS | 1 << 12]))
        frame = (
            draw(st.sampled_from([0x200, 0x40000, 0x123]))
            if extra & PS or n == levels - 1
            else 2 + n
        )
        made.append(draw(entries) | extra | frame << 12)
    return levels, made


@given(
    tables(),
    st.sampled_from([READ, WRITE, FETCH]),
    st.booleans(),
    st.booleans(),
    st.integers(0, (1 << 47) - 1),
)
def test_any_tables_give_what_the_manual_says(made, kind, user_mode, ac, va):
    levels, words = made
    cpu = machine(X86_64_4LEVEL if levels == 4 else X86_64_5LEVEL)
    cpu.ac = ac
    places = build(cpu, va, words)
    before = dict(zip(places, words, strict=True))
    outcome, value, sets = reference_walk.x86(
        before, cpu.root, va, kind, user=user_mode, ac=ac, levels=levels
    )
    got = page_walk(cpu, va, kind, user_mode)
    assert got == (value if outcome == "ok" else PageFault(va, value))
    assert {place: cpu.phys.load(place) for place in places} == {
        at: was | sets.get(at, 0) for at, was in before.items()
    }
    cached = cpu.tlb.lookup(va >> 12, cpu.pcid)
    assert (cached is not None) == (outcome == "ok")
    if outcome == "ok":
        assert translate(cpu, va, kind, user_mode) == value
