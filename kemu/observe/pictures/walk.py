"""A walk as a picture: the address cut into the fields of the format, and each level; for every
format, including a toy's.

`walk` asks the machine of the experiment. `toy_walk` asks the MMU alone: RAM, a format and a root
are all it needs, so an exercise of a textbook is drawn like the real thing. `TEXTBOOK` is such an
exercise, for a first lesson: two-level tables on 32-byte pages, so small that all of it can be
checked by hand.

    14      10 9       5 4       0
    | l2      | l1      | offset  |       an entry is one byte: v pfn pfn pfn pfn pfn pfn pfn
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.machine import mmu
from kemu.machine.geometry import Geometry, toy
from kemu.machine.physmem import Frame, PhysMem
from kemu.observe import translation
from kemu.observe.names import Names, entry_bits, entry_legend, entry_letters
from kemu.readings import AddressField, EntryReading, Translation, WalkGraph

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

TEXTBOOK = toy("textbook", 32, (5, 5), 1, valid_bit=7, pfn_bits=7)
"""15-bit addresses, 32-byte pages, two levels of 32 entries of one byte: valid bit and frame."""


def walk(kernel: Kernel, task: task_struct, addr: int, names: Names = None) -> WalkGraph:
    """The walk of ``addr`` through the task's tables. ``UsageError`` for what is not an address, or
    a task without tables."""
    found = translation.walk(kernel, task, addr, names)
    kernel.activate()
    return WalkGraph(
        system.geometry.title,
        system.geometry.page_shift,
        fields(system.geometry, addr, found.page_size),
        16,
        found,
    )


def fields(geometry: Geometry, addr: int, page_size: int = 0) -> tuple[AddressField, ...]:
    """The address cut as the format says, highest bits first; ``sign`` are the bits above that must
    all be equal. In a huge page (``page_size`` bytes) the indices of the levels below belong to the
    offset."""
    shift = (page_size or geometry.page_size).bit_length() - 1
    cut = [
        (level.name, level.shift + level.bits - 1, level.shift)
        for level in geometry.levels
        if level.shift >= shift
    ]
    if geometry.sign_extended and geometry.va_bits < 64:
        cut.insert(0, ("sign", 63, geometry.va_bits))
    elif addr >> geometry.va_bits:
        cut.insert(0, ("too high", addr.bit_length() - 1, geometry.va_bits))
    cut.append(("offset", shift - 1, 0))
    return tuple(
        AddressField(name, high, low, addr >> low & (1 << high - low + 1) - 1)
        for name, high, low in cut
        if high >= low
    )


# ---------------------------------------------------------------- toys


def toy_walk(phys: PhysMem, geometry: Geometry, root: int, addr: int) -> WalkGraph:
    """The walk of ``addr`` (any number) by the MMU alone, from the root table at physical address
    ``root``."""
    canonical = geometry.canonical(addr)
    steps, stopped = mmu.walk(phys, geometry, root, addr) if canonical else ([], "not canonical")
    whole = bool(steps) and not stopped
    shift = geometry.levels[steps[-1].level].shift if whole else geometry.page_shift
    physical = mmu.physical(geometry, steps[-1], addr) if whole else None
    found = Translation(
        pid=0,
        name="the MMU alone",
        address=addr,
        canonical=canonical,
        root=root,
        geometry=geometry.name,
        indices=tuple(
            (level.name, index)
            for level, index in zip(geometry.levels, geometry.indices(addr), strict=True)
        ),
        offset=addr & ((1 << shift) - 1),
        legend=entry_legend(geometry.bits),
        steps=tuple(_entry(geometry, step) for step in steps),
        stopped=stopped,
        page_size=1 << shift,
        physical=physical,
        byte=phys.read(physical, 1)[0] if physical is not None and physical < phys.size else None,
    )
    cut = fields(geometry, addr, found.page_size)
    return WalkGraph(geometry.title, geometry.page_shift, cut, 2 * geometry.entry_bytes, found)


def _entry(geometry: Geometry, step: mmu.Step) -> EntryReading:
    bits, last = geometry.bits, len(geometry.levels) - 1
    present = bool(step.entry & bits.present)
    kind = (
        ("page" if step.level == last or mmu.is_leaf(bits, step.entry) else "table")
        if present
        else "none"
    )
    level = geometry.levels[step.level]
    return EntryReading(
        level=level.name,
        index=step.entry_pa % (level.entries * geometry.entry_bytes) // geometry.entry_bytes,
        entry_address=step.entry_pa,
        value=step.entry,
        kind=kind,
        letters=entry_letters(bits, step.entry),
        bits=entry_bits(bits, step.entry),
        pfn=geometry.entry_pfn(step.entry) if present else None,
    )


def textbook(addr: int) -> WalkGraph:
    """The walk of ``addr`` in the machine of `TEXTBOOK`. ``UsageError`` for an address that it does
    not have."""
    if not TEXTBOOK.canonical(addr):
        raise UsageError(
            f"{addr:#x} is not an address of the toy",
            hint=f"its addresses have {TEXTBOOK.va_bits} bits: 0 to 0x7fff",
        )
    return toy_walk(textbook_ram(), TEXTBOOK, 0x20, addr)


def textbook_ram() -> PhysMem:
    """128 frames of 32 bytes. Frame 1 is the root; its entries 0, 1 and 31 lead to tables in frames
    2, 3 and 4, and those to the pages: code in 0x10 and 0x11, data in 0x20, a stack in 0x7f. Each
    page is filled with its frame number."""
    content = bytearray(4096)
    entries = {
        (1, 0): 2,
        (1, 1): 3,
        (1, 31): 4,
        (2, 0): 0x10,
        (2, 1): 0x11,
        (3, 4): 0x20,
        (4, 31): 0x7F,
    }
    for (table, index), pfn in entries.items():
        content[table * 32 + index] = 0x80 | pfn
    for pfn in (0x10, 0x11, 0x20, 0x7F):
        content[pfn * 32 : (pfn + 1) * 32] = bytes([pfn] * 32)
    words = {at // 8: int.from_bytes(content[at : at + 8], "little") for at in range(0, 4096, 8)}
    ram = PhysMem(1)
    ram.frames.update({0: Frame(0, {index: word for index, word in words.items() if word})})
    return ram
