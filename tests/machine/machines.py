"""Small machines for the tests of ring 0 and ring 1: RAM, one CPU, page tables built by hand, a
journal that is put away.

Nothing here uses kemu's kernel: a table is what the test stores in RAM.
"""

from contextlib import contextmanager

from kemu.machine.cpu import new_cpu
from kemu.machine.geometry import X86_64_4LEVEL
from kemu.machine.physmem import PhysMem
from kemu.trace.barrier import record
from kemu.trace.journal import Journal

P, RW, US, A, D, PS, G, NX = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 63
"""Bits of an x86-64 entry."""

V, R, W, X, U, RG, RA, RD = (1 << n for n in range(8))
"""Bits of a RISC-V entry."""


@contextmanager
def recorded():
    """Record into a fresh journal within the block; afterwards nothing is recorded."""
    journal = Journal()
    record(journal)
    try:
        yield journal
    finally:
        record(None)
        journal.catch_up()


def machine(geometry=X86_64_4LEVEL, frames=1 << 20):
    """A CPU with an empty TLB, root table at frame 1."""
    cpu = new_cpu(0, PhysMem(frames), geometry)
    cpu.root = 1 << 12
    return cpu


def x86_entry(pfn, flags):
    """An x86-64 entry."""
    return pfn << 12 | flags


def sv39_entry(pfn, flags):
    """A RISC-V entry."""
    return pfn << 10 | flags


def build(cpu, va, entries):
    """Store ``entries`` (one a level, from the root) on the way to ``va``; table n lies where entry
    n-1 points.

    The addresses of the entries."""
    geometry = cpu.geometry
    table = cpu.root
    places = []
    for index, entry in zip(geometry.indices(va), entries, strict=False):
        places.append(table + 8 * index)
        cpu.phys.store(places[-1], entry)
        table = geometry.entry_pfn(entry) << 12
    return places


def x86_map(cpu, va, leaf, upper=P | RW | US):
    """Map ``va`` by the 4 KiB entry ``leaf``; the tables above lie in frames 2, 3, 4 (5) with the
    flags ``upper``."""
    levels = len(cpu.geometry.levels)
    return build(cpu, va, [x86_entry(2 + n, upper) for n in range(levels - 1)] + [leaf])
