"""RAM behaves like one long array of bytes, and costs only what is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.errors import KernelBug
from kemu.machine.physmem import FRAME_SIZE, PhysMem

FRAMES = 4

stores = st.lists(
    st.tuples(st.integers(0, FRAMES * FRAME_SIZE - 64), st.binary(min_size=0, max_size=64)),
    max_size=20,
)


def test_a_word_that_was_never_written_reads_as_zero():
    ram = PhysMem(FRAMES)
    assert ram.load(0x1008) == 0
    assert ram.read(0x0FFC, 8) == bytes(8)
    assert not ram.frames


def test_a_word_is_stored_little_endian_where_its_address_says():
    ram = PhysMem(FRAMES)
    ram.store(0x1008, 0x1122334455667788)
    assert ram.load(0x1008) == 0x1122334455667788
    assert ram.read(0x1008, 8) == bytes.fromhex("8877665544332211")
    assert ram.read(0x100B, 2) == bytes.fromhex("5544")


def test_a_store_of_zero_takes_the_word_away():
    ram = PhysMem(FRAMES)
    ram.store(0x1008, 7)
    ram.store(0x1008, 0)
    assert dict(ram.frames[1]) == {}
    assert ram.load(0x1008) == 0


def test_the_size_is_that_of_all_frames():
    assert PhysMem(3).size == 3 * 4096


def test_a_machine_of_a_tebibyte_costs_nothing_until_it_is_written():
    ram = PhysMem(1 << 28)
    ram.store((1 << 40) - 8, 5)
    assert list(ram.frames) == [(1 << 28) - 1]
    assert ram.load((1 << 40) - 8) == 5


@pytest.mark.parametrize("pa", [FRAMES * FRAME_SIZE, 1 << 52])
def test_a_store_beyond_ram_is_a_bug_of_the_emulated_kernel(pa):
    with pytest.raises(KernelBug, match=f"{pa >> 12:#x}"):
        PhysMem(FRAMES).store(pa, 1)


def test_a_load_beyond_ram_reads_zero_like_an_empty_bus():
    assert PhysMem(FRAMES).load(FRAMES * FRAME_SIZE) == 0


def test_clear_page_forgets_the_frame():
    ram = PhysMem(FRAMES)
    ram.store(0x2000, 1)
    ram.clear_page(2)
    assert ram.load(0x2000) == 0
    assert not ram.frames


def test_copy_page_gives_two_frames_that_do_not_share_their_future():
    ram = PhysMem(FRAMES)
    ram.write(0x1010, b"old")
    ram.copy_page(2, 1)
    ram.write(0x1010, b"new")
    assert ram.read(0x2010, 3) == b"old"
    assert ram.frames[2].pfn == 2


def test_a_copy_of_an_unwritten_frame_is_unwritten_again():
    ram = PhysMem(FRAMES)
    ram.store(0x2000, 1)
    ram.copy_page(2, 3)
    assert not ram.frames


def test_set_page_replaces_all_of_a_frame():
    ram = PhysMem(FRAMES)
    ram.write(0x1FF8, b"tail")
    ram.set_page(1, b"head" + bytes(60) + b"x")
    assert ram.get_page(1) == (b"head" + bytes(60) + b"x").ljust(4096, b"\0")
    ram.set_page(1, bytes(4096))
    assert not ram.frames


@given(stores)
def test_writes_of_any_place_and_length_equal_those_of_a_bytearray(writes):
    ram = PhysMem(FRAMES)
    model = bytearray(FRAMES * FRAME_SIZE)
    for pa, data in writes:
        ram.write(pa, data)
        model[pa : pa + len(data)] = data
    for pfn in range(FRAMES):
        assert ram.get_page(pfn) == model[pfn * FRAME_SIZE : (pfn + 1) * FRAME_SIZE]
    for pa, data in writes:
        assert ram.read(pa, len(data)) == model[pa : pa + len(data)]


@given(stores, st.permutations(range(FRAMES)))
def test_copied_pages_equal_their_originals_and_only_written_words_exist(writes, order):
    ram = PhysMem(2 * FRAMES)
    for pa, data in writes:
        ram.write(pa, data)
    for pfn in order:
        ram.copy_page(FRAMES + pfn, pfn)
        assert ram.get_page(FRAMES + pfn) == ram.get_page(pfn)
    words = sum(len(frame) for frame in ram.frames.values())
    assert words <= 2 * sum((len(data) + 14) // 8 for _, data in writes)
    assert all(word for frame in ram.frames.values() for word in frame.values())
