"""Geometries are data: where an index lies, which addresses exist, which toy formats make sense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.machine.geometry import (
    GEOMETRIES,
    RISCV_SV39,
    X86_64_4LEVEL,
    X86_64_5LEVEL,
    toy,
)

u64 = st.integers(0, (1 << 64) - 1)


@pytest.mark.parametrize(
    ("va", "indices"),
    [
        (0, (0, 0, 0, 0)),
        (0x1000, (0, 0, 0, 1)),
        (0x7FFF_FFFF_F000, (255, 511, 511, 511)),
        (0x0000_5555_5555_4000, (170, 341, 170, 340)),
        (0xFFFF_8880_0000_0000, (273, 0, 0, 0)),
        (0xFFFF_FFFF_8100_0000, (511, 510, 8, 0)),
    ],
)
def test_x86_addresses_split_into_9_9_9_9_12(va, indices):
    assert X86_64_4LEVEL.indices(va) == indices
    assert X86_64_5LEVEL.indices(va)[1:] == indices
    assert X86_64_5LEVEL.indices(va)[0] == (511 if va >> 63 else 0)


@given(u64)
def test_the_indices_and_the_offset_make_up_the_address(va):
    for geometry in GEOMETRIES.values():
        rebuilt = va & (geometry.page_size - 1)
        for index, level in zip(geometry.indices(va), geometry.levels, strict=True):
            assert 0 <= index < level.entries == 512
            rebuilt |= index << level.shift
        assert rebuilt == va & ((1 << geometry.va_bits) - 1)


@pytest.mark.parametrize(
    ("geometry", "lowest_hole", "lowest_high"),
    [
        (X86_64_4LEVEL, 0x0000_8000_0000_0000, 0xFFFF_8000_0000_0000),
        (X86_64_5LEVEL, 0x0100_0000_0000_0000, 0xFF00_0000_0000_0000),
        (RISCV_SV39, 0x0000_0040_0000_0000, 0xFFFF_FFC0_0000_0000),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else hex(value),
)
def test_an_address_is_canonical_below_and_above_the_hole(geometry, lowest_hole, lowest_high):
    assert geometry.canonical(0)
    assert geometry.canonical(lowest_hole - 1)
    assert not geometry.canonical(lowest_hole)
    assert not geometry.canonical(lowest_high - 1)
    assert geometry.canonical(lowest_high)
    assert geometry.canonical((1 << 64) - 1)


@given(u64)
def test_canonical_means_that_sign_extension_changes_nothing(va):
    for geometry in GEOMETRIES.values():
        low = va & ((1 << geometry.va_bits) - 1)
        high = ((1 << 64) - (1 << geometry.va_bits)) if low >> (geometry.va_bits - 1) else 0
        assert geometry.canonical(va) == (va == low | high)


@pytest.mark.parametrize("va", [-1, 1 << 64, -(1 << 63), 1 << 70])
def test_numbers_that_are_no_address_are_not_canonical(va):
    assert not any(geometry.canonical(va) for geometry in GEOMETRIES.values())


def test_levels_have_the_names_and_leaves_of_linux():
    assert [(x.name, x.leaf) for x in X86_64_4LEVEL.levels] == [
        ("pgd", False),
        ("pud", True),
        ("pmd", True),
        ("pte", True),
    ]
    assert [x.name for x in X86_64_5LEVEL.levels] == ["pgd", "p4d", "pud", "pmd", "pte"]
    assert [(x.name, x.leaf) for x in RISCV_SV39.levels] == [
        ("pgd", True),
        ("pmd", True),
        ("pte", True),
    ]


def test_a_flat_toy_has_one_level_and_no_address_above_its_pages():
    flat = toy("flat", 4096, (2,), 4, valid_bit=31, pfn_bits=31)
    assert [(x.name, x.shift, x.entries) for x in flat.levels] == [("pte", 12, 4)]
    assert flat.indices(0x3229) == (3,)
    assert flat.va_bits == 14
    assert flat.canonical(0x3FFF)
    assert not flat.canonical(0x4000)
    assert not flat.canonical(-1)


def test_a_toy_of_several_levels_names_them_downwards():
    small = toy("small", 32, (5, 5), 1, valid_bit=7, pfn_bits=7)
    assert [(x.name, x.shift) for x in small.levels] == [("l2", 10), ("l1", 5)]
    assert small.indices(0x611C) == (24, 8)
    assert small.entry_pfn(0xB5) == 53


@given(
    st.integers(0, 16),
    st.lists(st.integers(0, 8), min_size=1, max_size=5),
    st.integers(1, 8),
    st.data(),
)
def test_any_power_of_two_and_any_widths_make_a_toy_whose_fields_fit(
    page_shift, widths, entry_bytes, data
):
    valid_bit = data.draw(st.integers(0, 8 * entry_bytes - 1))
    pfn_bits = data.draw(st.integers(0, valid_bit))
    made = toy(
        "t", 1 << page_shift, tuple(widths), entry_bytes, valid_bit=valid_bit, pfn_bits=pfn_bits
    )
    assert made.va_bits == page_shift + sum(widths)
    assert made.levels[-1].shift == page_shift == made.page_shift
    for upper, lower in zip(made.levels, made.levels[1:], strict=False):
        assert upper.shift == lower.shift + lower.bits
    assert not made.bits.present & made.bits.pfn_mask


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"page_size": 0}, "page size 0"),
        ({"page_size": -32}, "page size -32"),
        ({"page_size": 3000}, "page size 3000: expected a power of two"),
        ({"entry_bytes": 0}, "entries of 0 bytes: expected 1 to 8"),
        ({"entry_bytes": 9}, "entries of 9 bytes"),
        ({"index_bits": ()}, "at least one level"),
        ({"index_bits": (5, -1)}, "index width"),
        ({"index_bits": (30, 30)}, "65 bits: expected at most 64"),
        ({"valid_bit": 8}, "valid bit 8"),
        ({"valid_bit": 6}, "valid bit 6 above 7 frame bits"),
        ({"pfn_bits": -1}, "frame bits"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_toy_that_does_not_fit_says_which_number_is_wrong(wrong, says):
    right = {"page_size": 32, "index_bits": (5,), "entry_bytes": 1, "valid_bit": 7, "pfn_bits": 7}
    toy("right", **right)
    with pytest.raises(ValueError, match=says):
        toy("wrong", **right | wrong)
