"""Toy tables of every page size and entry width, filled with random bytes: the MMU finds what plain
arithmetic finds."""

import random

import pytest

from kemu.machine.cpu import new_cpu
from kemu.machine.geometry import toy
from kemu.machine.mmu import FETCH, PF_INSTR, PF_USER, PF_WRITE, READ, WRITE, PageFault, translate
from kemu.machine.physmem import PhysMem

RAM = 1 << 12
KIND_BITS = {READ: 0, WRITE: PF_WRITE, FETCH: PF_INSTR}


def by_hand(ram, geometry, root, va):
    """The address that the tables in the bytes ``ram`` give for ``va``; None if an entry on the way
    is not valid."""
    table, size = root, geometry.entry_bytes
    for index in geometry.indices(va):
        place = table + index * size
        entry = int.from_bytes(ram[place : place + size].ljust(size, b"\0"), "little")
        if not entry & geometry.bits.present:
            return None
        table = geometry.entry_pfn(entry) * geometry.page_size
    return table + va % geometry.page_size


@pytest.mark.parametrize("entry_bytes", range(1, 9))
@pytest.mark.parametrize("page_size", [1, 2, 4, 8, 32, 512, 4096, 1 << 20])
def test_any_page_size_with_any_entries(page_size, entry_bytes):
    rng = random.Random(page_size * 9 + entry_bytes)
    outcomes = set()
    for _ in range(20):
        widths = tuple(rng.randrange(5) for _ in range(rng.randint(1, 4)))
        valid_bit = rng.randrange(8 * entry_bytes)
        geometry = toy(
            "t",
            page_size,
            widths,
            entry_bytes,
            valid_bit=valid_bit,
            pfn_bits=rng.randint(0, valid_bit),
        )
        ram = rng.randbytes(RAM)
        cpu = new_cpu(0, PhysMem(RAM >> 12), geometry)
        cpu.phys.write(0, ram)
        cpu.root = rng.randrange(RAM) // page_size * page_size
        for _ in range(10):
            va, kind = (
                rng.getrandbits(geometry.va_bits) if geometry.va_bits else 0,
                rng.choice(list(KIND_BITS)),
            )
            want = by_hand(ram, geometry, cpu.root, va)
            assert translate(cpu, va, kind, True) == (
                PageFault(va, PF_USER | KIND_BITS[kind]) if want is None else want
            )
            outcomes.add(want is None)
    assert outcomes == {True, False}
