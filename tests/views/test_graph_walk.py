"""A walk as a picture: the fields of the address make it up again, for every format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.api import Session
from kemu.errors import UsageError
from kemu.machine.geometry import GEOMETRIES, toy
from kemu.machine.physmem import Frame, PhysMem
from kemu.observe.pictures.walk import TEXTBOOK, fields, textbook, toy_walk
from kemu.views.pictures import draw as graph
from kemu.views.pictures import walk as graph_walk
from kemu.views.style import PLAIN

FLAT = toy("flat", 4096, (4,), 4, valid_bit=31, pfn_bits=31)
TOYS = (TEXTBOOK, FLAT, toy("three", 16, (2, 3, 4), 2, valid_bit=15, pfn_bits=12))


@pytest.mark.parametrize(
    "geometry", [*GEOMETRIES.values(), *TOYS], ids=lambda geometry: geometry.name
)
@given(st.integers(0, 2**64 - 1))
def test_the_fields_make_up_the_address_again(geometry, addr):
    cut = fields(geometry, addr)
    assert sum(field.value << field.low for field in cut) == addr
    assert all(0 <= field.value < 1 << (field.high - field.low + 1) for field in cut)
    assert [one.low for one in cut[:-1]] == [other.high + 1 for other in cut[1:]]


def test_the_offset_of_a_huge_page_takes_the_bits_of_the_levels_below():
    kemu = Session()
    picture = kemu.reading("graph walk init 0xffff888000112345").subject
    assert [(field.name, field.high, field.low) for field in picture.fields][-2:] == [
        ("pmd", 29, 21),
        ("offset", 20, 0),
    ]
    assert picture.fields[-1].value == 0x112345 == picture.walk.physical


def test_the_textbook_machine_can_be_checked_by_hand():
    found = textbook(0x0485).walk
    assert [(step.level, step.index, step.value) for step in found.steps] == [
        ("l2", 1, 0x83),
        ("l1", 4, 0xA0),
    ]
    assert (found.physical, found.byte) == (0x405, 0x20)
    assert textbook(0x7FFF).walk.byte == 0x7F
    assert textbook(0x0841).walk.stopped == "not present"
    with pytest.raises(UsageError, match="not an address of the toy"):
        textbook(0x8000)


def test_drawing_the_toy_leaves_no_trace_in_the_machine():
    kemu = Session()
    before = kemu.state_hash(), kemu.end
    kemu.run("graph walk 0x485 toy")
    assert (kemu.state_hash(), kemu.end) == before


def test_any_toy_can_be_drawn():
    ram = PhysMem(16)
    ram.frames.update({1: Frame(1, {0: 0x80000002 << 32})})
    picture = toy_walk(ram, FLAT, 0x1000, 0x1ABC)
    assert picture.walk.physical == 0x2ABC
    assert [f"{field.name} {field.high}-{field.low}" for field in picture.fields] == [
        "pte 15-12",
        "offset 11-0",
    ]
    lines = graph_walk.terminal(picture, PLAIN)
    assert "pte  frame 0x1  [1]  0x80000002 P  to page 0x2" in lines
    assert "0x80000002" in graph.dot_text.source(("", graph_walk.diagram(picture)))


def test_an_address_that_is_too_long_is_not_walked():
    picture = toy_walk(PhysMem(1), TEXTBOOK, 0x20, 0x12345)
    assert picture.walk.stopped == "not canonical"
    assert picture.fields[0].name == "too high"
    assert (
        "STOP before the first table: not canonical: it has too many bits"
        in graph_walk.terminal(picture, PLAIN)
    )


@pytest.mark.parametrize(("geometry", "raises"), [("x86-64", "#GP"), ("sv39", "a page fault")])
def test_an_address_that_is_not_canonical_says_what_the_cpu_does(geometry, raises):
    kemu = Session(geometry=geometry)
    assert f"now   any access raises {raises}" in kemu.text("graph walk init 0x800000000000")
