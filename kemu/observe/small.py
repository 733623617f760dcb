"""The small machine of OSTEP's chapter on multi-level tables, for exercises that are done by hand.

    address  14..10 directory index  9..5 table index  4..0 offset  15 bits, pages of 32 bytes
    entry    7 valid  6..0 frame     one byte, so a table fills one frame
    RAM      128 frames of 32 bytes

Its contents follow from a number alone: the same number, the same machine. Everything is walked by
kemu's own MMU. It has no kernel, no rights and no journal.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

import attrs

from kemu.machine import mmu
from kemu.machine.geometry import toy
from kemu.machine.physmem import Frame, PhysMem

PAGE, FRAMES, ENTRIES, VALID, INVALID = 32, 128, 32, 0x80, 0x7F
GEOMETRY = toy("ostep", PAGE, (5, 5), 1, valid_bit=7, pfn_bits=7)
TABLES, PAGES_PER_TABLE = 4, 6


@attrs.frozen
class SmallMachine:
    """RAM with one address space; ``root`` is the frame of its directory, ``mapped`` the numbers of
    its pages."""

    phys: PhysMem
    root: int
    mapped: tuple[int, ...]

    def walk(self, address: int) -> mmu.Walk:
        """The walk of a 15-bit address; changes nothing."""
        return mmu.walk(self.phys, GEOMETRY, self.root * PAGE, address)

    def read(self, address: int) -> int | None:
        """The byte at a virtual address; None where nothing is mapped."""
        steps, stopped = self.walk(address)
        return None if stopped else self.phys.read(mmu.physical(GEOMETRY, steps[-1], address), 1)[0]

    def frame(self, number: int) -> bytes:
        """The 32 bytes of a frame."""
        return self.phys.read(number % FRAMES * PAGE, PAGE)


@lru_cache(maxsize=8)
def small_machine(number: int) -> SmallMachine:
    """The machine of that number: ``TABLES`` tables with ``PAGES_PER_TABLE`` pages each, data bytes
    below 0x1f."""
    random = Random(number)
    frames = random.sample(range(FRAMES), 1 + TABLES + TABLES * PAGES_PER_TABLE)
    root, tables, pages = frames[0], frames[1 : 1 + TABLES], frames[1 + TABLES :]
    content = {frame: bytes(random.randrange(1, 0x1F) for _ in range(PAGE)) for frame in pages}
    places = random.sample(range(ENTRIES), TABLES)
    content[root] = _table(dict(zip(places, tables, strict=True)))
    mapped: list[int] = []
    for place, table in zip(places, tables, strict=True):
        below = random.sample(range(ENTRIES), PAGES_PER_TABLE)
        content[table] = _table({index: pages.pop() for index in below})
        mapped += [place << 5 | index for index in below]
    return SmallMachine(_ram(content), root, tuple(mapped))


def _table(entries: dict[int, int]) -> bytes:
    return bytes(
        VALID | entries[index] if index in entries else INVALID for index in range(ENTRIES)
    )


def _ram(content: dict[int, bytes]) -> PhysMem:
    """RAM with these frames of 32 bytes; it is made whole, so no event is written."""
    data = b"".join(content.get(frame, bytes(PAGE)) for frame in range(FRAMES))
    words = {i // 8: int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)}
    phys = PhysMem(1)
    phys.frames.update({0: Frame(0, {index: word for index, word in words.items() if word})})
    return phys
