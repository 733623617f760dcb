"""The small machine of exercises: its tables are read with plain arithmetic and compared with
kemu's MMU."""

from __future__ import annotations

import pytest

from kemu.observe.small import PAGE, PAGES_PER_TABLE, TABLES, small_machine


def by_hand(machine, address):
    """The byte at an address, from the bytes of RAM alone; None where nothing is mapped."""
    directory = machine.frame(machine.root)[address >> 10]
    if not directory & 0x80:
        return None
    entry = machine.frame(directory & 0x7F)[address >> 5 & 31]
    return machine.frame(entry & 0x7F)[address & 31] if entry & 0x80 else None


@pytest.mark.parametrize("number", range(12))
def test_every_address_reads_what_the_tables_say(number):
    machine = small_machine(number)
    assert [machine.read(a) for a in range(1 << 15)] == [
        by_hand(machine, a) for a in range(1 << 15)
    ]


@pytest.mark.parametrize("number", range(12))
def test_the_mapped_pages_are_those_with_bytes(number):
    machine = small_machine(number)
    assert len(set(machine.mapped)) == TABLES * PAGES_PER_TABLE
    assert all(machine.read(page * PAGE) is not None for page in machine.mapped)


def test_the_same_number_is_the_same_machine_and_another_is_another():
    assert small_machine(3).frame(7) == small_machine(3).frame(7)
    assert len({small_machine(number).root for number in range(12)}) > 6
