"""The Sv39 walk: only the leaf's rights count, and some combinations of bits are reserved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.machine import mmu
from kemu.machine.geometry import RISCV_SV39
from kemu.machine.mmu import FETCH, READ, WRITE, PageFault, page_walk, translate
from tests.machine import reference_walk
from tests.machine.machines import RA, RD, RG, R, U, V, W, X, build, machine, sv39_entry

VA = 0xABC123


def sv39_map(cpu, va, leaf):
    return build(cpu, va, [sv39_entry(2, V), sv39_entry(3, V), leaf])


def cpu_with(leaf):
    cpu = machine(RISCV_SV39)
    sv39_map(cpu, VA, leaf)
    return cpu


@pytest.mark.parametrize(
    ("rights", "may"),
    [(R, "r"), (R | W, "rw"), (X, "x"), (R | X, "rx"), (R | W | X, "rwx")],
)
def test_the_leaf_alone_decides(rights, may):
    cpu = cpu_with(sv39_entry(0x99, V | U | rights))
    for kind, letter, code in ((READ, "r", 0b00101), (WRITE, "w", 0b00111), (FETCH, "x", 0b10101)):
        assert translate(cpu, VA, kind, True) == (0x99123 if letter in may else PageFault(VA, code))


@pytest.mark.parametrize("level", [0, 1])
def test_rights_of_a_pointer_entry_would_make_it_a_leaf(level):
    """There is no AND over levels, because an entry with rights ends the walk."""
    cpu = machine(RISCV_SV39)
    size = 1 << RISCV_SV39.levels[level].shift
    build(cpu, 0, [sv39_entry(2, V)] * level + [sv39_entry(size >> 12, V | R | U)])
    assert translate(cpu, 0x123, READ, True) == size + 0x123
    assert len(mmu.walk(cpu.phys, RISCV_SV39, cpu.root, 0).steps) == level + 1


@pytest.mark.parametrize("rights", [W, W | X])
def test_write_without_read_is_reserved(rights):
    cpu = cpu_with(sv39_entry(0x99, V | U | rights))
    assert translate(cpu, VA, WRITE, True) == PageFault(VA, 0b01111)
    assert mmu.walk(cpu.phys, RISCV_SV39, cpu.root, VA).stopped == "reserved bit"


@pytest.mark.parametrize(("level", "frame"), [(1, 1), (1, 511), (0, 512), (0, 1)])
def test_a_superpage_that_is_not_aligned_is_refused(level, frame):
    cpu = machine(RISCV_SV39)
    build(cpu, VA, [sv39_entry(2, V)] * level + [sv39_entry(frame, V | R | U)])
    assert translate(cpu, VA, READ, True) == PageFault(VA, 0b01101)


def test_a_pointer_at_the_last_level_leads_nowhere():
    cpu = cpu_with(sv39_entry(0x99, V))
    assert translate(cpu, VA, READ, True) == PageFault(VA, 0b00100)


@pytest.mark.parametrize("bit", [54, 60])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_reserved_high_bits_are_refused_at_every_level(bit, level):
    cpu = machine(RISCV_SV39)
    entries = [sv39_entry(2, V), sv39_entry(3, V), sv39_entry(0x99, V | R | U)]
    entries[level] |= 1 << bit
    build(cpu, VA, entries)
    assert translate(cpu, VA, READ, True) == PageFault(VA, 0b01101)


def test_the_supervisor_needs_sum_for_user_pages_and_never_fetches_from_them():
    cpu = cpu_with(sv39_entry(0x99, V | U | R | W | X))
    assert translate(cpu, VA, READ, False) == PageFault(VA, 0b00001)
    cpu.ac = True
    assert translate(cpu, VA, READ, False) == 0x99123
    assert translate(cpu, VA, WRITE, False) == 0x99123
    assert translate(cpu, VA, FETCH, False) == PageFault(VA, 0b10001)


def test_a_page_without_u_belongs_to_the_supervisor():
    cpu = cpu_with(sv39_entry(0x99, V | R | X))
    assert translate(cpu, VA, READ, True) == PageFault(VA, 0b00101)
    assert translate(cpu, VA, FETCH, False) == 0x99123


def test_accessed_and_dirty_are_set_in_the_leaf_only():
    cpu = cpu_with(sv39_entry(0x99, V | R | W | U))
    places = sv39_map(cpu, VA, sv39_entry(0x99, V | R | W | U))
    translate(cpu, VA, READ, True)
    assert [cpu.phys.load(p) & (RA | RD) for p in places] == [0, 0, RA]
    translate(cpu, VA, WRITE, True)
    assert [cpu.phys.load(p) & (RA | RD) for p in places] == [0, 0, RA | RD]


@pytest.mark.parametrize("va", [1 << 38, (1 << 64) - (1 << 38) - 1, 1 << 63])
def test_an_address_that_is_not_sign_extended_is_an_ordinary_page_fault(va):
    """RISC-V has no general-protection fault."""
    cpu = machine(RISCV_SV39)
    assert translate(cpu, va, WRITE, True) == PageFault(va, 0b00110)
    assert translate(cpu, va, WRITE, True).scause == 15


entry = st.builds(
    lambda bits, frame, high: sum(set(bits)) | frame << 10 | high,
    st.lists(st.sampled_from([V, V, V, R, W, X, U, RG, RA, RD]), min_size=2, max_size=8),
    st.sampled_from([0x200, 0x40000, 0x123, 0x99]),
    st.sampled_from([0, 0, 0, 0, 1 << 54, 1 << 60]),
)


@st.composite
def tables(draw):
    """Entries from the root; the tables lie in frames 2 and 3, and either upper entry may be a
    superpage instead."""
    depth = draw(st.sampled_from([1, 2, 3, 3, 3]))
    return [sv39_entry(2 + n, V) for n in range(depth - 1)] + [draw(entry)]


@given(
    tables(),
    st.sampled_from([READ, WRITE, FETCH]),
    st.booleans(),
    st.booleans(),
    st.integers(0, (1 << 38) - 1),
)
def test_any_tables_give_what_the_specification_says(words, kind, user_mode, sum_, va):
    cpu = machine(RISCV_SV39)
    cpu.ac = sum_
    places = build(cpu, va, words)
    before = dict(zip(places, words, strict=True))
    outcome, value, sets = reference_walk.sv39(
        before, cpu.root, va, kind, user=user_mode, sum_=sum_
    )
    got = page_walk(cpu, va, kind, user_mode)
    assert got == (value if outcome == "ok" else PageFault(va, value))
    assert {place: cpu.phys.load(place) for place in places} == {
        at: was | sets.get(at, 0) for at, was in before.items()
    }
