"""A reading is a frozen record of named values."""

from __future__ import annotations

import pytest

from kemu import readings
from kemu.readings import Reading, VmaReading


def test_a_reading_takes_values_by_place_and_by_name():
    assert VmaReading(0x1000, 0x3000, perm="rw-p") == VmaReading(
        start=0x1000, end=0x3000, perm="rw-p", offset=0
    )
    assert VmaReading(0x1000, 0x3000, "rw-p").pages == 2


def test_a_reading_is_frozen():
    vma = VmaReading(0x1000, 0x2000, "r--p")
    with pytest.raises(AttributeError, match=r"VmaReading\.start: a reading is frozen"):
        vma.start = 0


@pytest.mark.parametrize(
    ("values", "named", "complaint"),
    [
        ((0x1000, 0x2000), {}, r"missing \['perm'\]"),
        ((0x1000, 0x2000, "r--p"), {"size": 1}, r"unknown \['size'\]"),
        ((0x1000, 0x2000, "r--p"), {"end": 1}, r"twice \['end'\]"),
        (tuple(range(8)), {}, "VmaReading"),
    ],
)
def test_a_field_too_few_or_too_many_is_refused(values, named, complaint):
    with pytest.raises(TypeError, match=complaint):
        VmaReading(*values, **named)


def test_replace_changes_one_field_and_leaves_the_old_reading_alone():
    vma = VmaReading(0x1000, 0x2000, "r--p", name="[heap]")
    assert vma.replace(perm="rw-p") == VmaReading(0x1000, 0x2000, "rw-p", name="[heap]")
    assert vma.perm == "r--p"


def test_readings_of_two_kinds_are_never_equal():
    class One(Reading):
        x: int

    class Other(Reading):
        x: int

    assert One(1) != Other(1)
    assert One(1) == One(1)
    assert len({One(1), One(1), Other(1)}) == 2
    assert repr(One(1)) == "One(x=1)"


def test_the_package_gives_out_every_reading():
    for name in readings.__all__:
        assert hasattr(readings, name)
    kinds = {
        name
        for name, thing in vars(readings).items()
        if isinstance(thing, type) and issubclass(thing, Reading)
    }
    assert kinds <= set(readings.__all__)
