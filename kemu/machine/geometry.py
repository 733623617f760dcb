"""Page-table formats as data.

            63        47      39       30       21       12         0
    x86-64   sign      | pgd  |  pud   |  pmd   |  pte   | offset  |  4 levels of 512 8-byte entries
    Sv39     sign (38) |        pgd    |  pmd   |  pte   | offset  |  3 levels of 512 8-byte entries
    toy      one or more levels, any power-of-two page, entries of 1 to 8 bytes

A ``Geometry`` says where the index of each level lies in the address, what the bits of an entry
mean, and how the rights of the levels combine: x86 ANDs RW and US over the levels and ORs NX
("and"); RISC-V uses those of the leaf alone ("leaf").  The MMU and the kernel's ``pgtable.py`` read
these tables; neither has a format built in.

The mask of a bit that a format lacks is 0.  Sources: arch/x86/include/asm/pgtable_types.h,
arch/riscv/include/asm/pgtable-bits.h.
"""

from __future__ import annotations

import attrs

from kemu.trace._plain import Pointers


@attrs.frozen
class Level:
    """One level: its Linux name, the lowest address bit of its index, the width of the index, and
    whether an entry may be a leaf.  ``mask`` covers the index after the shift."""

    name: str
    shift: int
    bits: int
    leaf: bool = False
    mask: int = attrs.field(init=False)

    @mask.default
    def _index_mask(self) -> int:
        return (1 << self.bits) - 1

    @property
    def entries(self) -> int:
        """Entries in a table of this level."""
        return 1 << self.bits


@attrs.frozen
class EntryBits:
    """Masks of the bits in an entry (u64); 0 where the format has no such bit.

    A format has either ``nx``, which forbids execution, or ``exec_`` and ``read``, which allow
    execution and reading.  ``huge`` marks a leaf above the last level; with ``leaf_is_rwx``
    (RISC-V) an entry with any of read, write and exec_ is a leaf.  ``pat_large`` is a bit that lies
    below the frame number of a large leaf but may be set (x86: bit 12 selects a cache type).

    ``ends``: a present entry with one of these bits ends the walk, as a leaf or because it is
    malformed.  ``leads``: the same bits and ``present``; an upper entry that has only ``present``
    of these leads to a table.  ``base_shift``: the bits under ``pfn_mask``, shifted by it, are the
    address of a 4 KiB frame.  ``dirtied``: the bits that a write sets."""

    present: int
    pfn_mask: int
    pfn_shift: int
    write: int = 0
    user: int = 0
    accessed: int = 0
    dirty: int = 0
    huge: int = 0
    glob: int = 0
    nx: int = 0
    read: int = 0
    exec_: int = 0
    special: int = 0
    protnone: int = 0
    leaf_is_rwx: bool = False
    reserved: int = 0
    pat_large: int = 0
    ends: int = attrs.field(init=False)
    leads: int = attrs.field(init=False)
    base_shift: int = attrs.field(init=False)
    dirtied: int = attrs.field(init=False)

    @base_shift.default
    def _base_shift(self) -> int:
        return 12 - self.pfn_shift

    @dirtied.default
    def _dirtied(self) -> int:
        return self.accessed | self.dirty

    @ends.default
    def _ends(self) -> int:
        return self.reserved | (
            self.read | self.write | self.exec_ if self.leaf_is_rwx else self.huge
        )

    @leads.default
    def _leads(self) -> int:
        return self.present | self.ends


class Decode(dict[int, tuple[bool, bool, bool, bool]]):
    """What the bits of an entry under ``mask`` allow: (write, user, execute, read), computed on
    first use.  The bit NX is inverted here: when set, it allows execution."""

    def __init__(self, bits: EntryBits) -> None:
        self.bits = bits
        self.mask = bits.write | bits.user | bits.exec_ | bits.read | bits.nx

    def __missing__(self, have: int) -> tuple[bool, bool, bool, bool]:
        bits = self.bits
        write, user, exec_, read = (
            have & need == need for need in (bits.write, bits.user, bits.exec_ | bits.nx, bits.read)
        )
        found = self[have] = (write, user, exec_, read)
        return found


@attrs.frozen
class Geometry:
    """A page-table format.  ``levels`` from the root to the last; ``entry_bytes`` 1..8; addresses
    have ``va_bits``.

    ``sign_extended``: the address bits above ``va_bits`` must equal the highest bit below them
    (else the address is not canonical); without it they must be zero.  ``combine`` is "and" or
    "leaf".  ``noncanonical_page_fault``: an address that is not canonical raises a page fault
    (RISC-V), not a general-protection fault (x86).  An entry is always valid by a set bit, never by
    a clear one.

    Values that every walk needs are computed in advance: ``offset_mask`` covers the offset in a
    page, ``low_half`` is the highest address of the lower half, ``large_shifts`` are the shifts of
    the levels with large leaves.  ``careful``: tables are not frames of 512 words, or a last-level
    entry can be present without being a leaf.  ``pointers`` is for all levels but the last: shift
    and mask of each index; two masks; the shift of the frame number.  An entry whose bits under the
    first mask are exactly those of the second points to a table, restricts nothing, and has no bits
    above its frame number; the kernel makes no other entries there.  ``last`` is for the last
    level: shift and mask of its index, the bits present and NX."""

    name: str
    title: str
    va_bits: int
    page_shift: int
    entry_bytes: int
    levels: tuple[Level, ...]
    bits: EntryBits
    combine: str = "and"
    sign_extended: bool = True
    noncanonical_page_fault: bool = False
    offset_mask: int = attrs.field(init=False, eq=False)
    low_half: int = attrs.field(init=False, eq=False)
    pointers: Pointers = attrs.field(init=False, eq=False, repr=False)
    last: tuple[int, int, int, int] = attrs.field(init=False, eq=False, repr=False)
    large_shifts: tuple[int, ...] = attrs.field(init=False, eq=False, repr=False)
    careful: bool = attrs.field(init=False, eq=False, repr=False)
    decode: Decode = attrs.field(init=False, eq=False, repr=False)

    @offset_mask.default
    def _offset_mask(self) -> int:
        return (1 << self.page_shift) - 1

    @low_half.default
    def _low_half(self) -> int:
        return (1 << self.va_bits >> 1) - 1

    @pointers.default
    def _pointers(self) -> Pointers:
        bits, fields = self.bits, tuple((level.shift, level.mask) for level in self.levels[:-1])
        rights = (
            0
            if self.combine == "leaf"
            else bits.write | bits.user | bits.read | bits.exec_ | bits.accessed
        )
        above = ~(bits.pfn_mask | (1 << bits.pfn_shift) - 1) & (1 << 64) - 1
        return (
            fields,
            bits.present | rights | bits.ends | above,
            bits.present | rights,
            bits.pfn_shift,
        )

    @last.default
    def _last(self) -> tuple[int, int, int, int]:
        return self.page_shift, self.levels[-1].mask, self.bits.present, self.bits.nx

    @large_shifts.default
    def _large_shifts(self) -> tuple[int, ...]:
        return tuple(level.shift for level in self.levels if level.leaf)

    @careful.default
    def _careful(self) -> bool:
        frames = self.page_shift == 12 and self.entry_bytes == 8 and self.levels[-1].shift == 12
        return bool(
            not frames
            or self.bits.reserved
            or self.bits.leaf_is_rwx
            or self.bits.present >> self.bits.pfn_shift
        )

    @decode.default
    def _decode(self) -> Decode:
        return Decode(self.bits)

    @property
    def page_size(self) -> int:
        """Bytes of a page."""
        return 1 << self.page_shift

    def indices(self, va: int) -> tuple[int, ...]:
        """The index of ``va`` in each level's table, from the root."""
        return tuple((va >> level.shift) & (level.entries - 1) for level in self.levels)

    def canonical(self, va: int) -> bool:
        """True if ``va`` (u64) is an address that the hardware accepts."""
        if not self.sign_extended:
            return va >> self.va_bits == 0
        high = va >> (self.va_bits - 1)
        return high == 0 or high == (1 << (65 - self.va_bits)) - 1

    def entry_pfn(self, entry: int) -> int:
        """The frame number in an entry."""
        return (entry & self.bits.pfn_mask) >> self.bits.pfn_shift


X86_BITS = EntryBits(
    present=1 << 0,
    write=1 << 1,
    user=1 << 2,
    accessed=1 << 5,
    dirty=1 << 6,
    huge=1 << 7,
    glob=1 << 8,
    protnone=1 << 8,
    special=1 << 9,
    nx=1 << 63,
    pfn_mask=((1 << 52) - 1) & ~0xFFF,
    pfn_shift=12,
    reserved=0,
    pat_large=1 << 12,
)

RISCV_BITS = EntryBits(
    present=1 << 0,
    read=1 << 1,
    write=1 << 2,
    exec_=1 << 3,
    user=1 << 4,
    glob=1 << 5,
    protnone=1 << 5,
    accessed=1 << 6,
    dirty=1 << 7,
    special=1 << 8,
    pfn_mask=((1 << 44) - 1) << 10,
    pfn_shift=10,
    leaf_is_rwx=True,
    reserved=0x7F << 54,
)

X86_64_4LEVEL = Geometry(
    name="x86-64",
    title="x86-64, 4 levels",
    va_bits=48,
    page_shift=12,
    entry_bytes=8,
    levels=(
        Level("pgd", 39, 9),
        Level("pud", 30, 9, True),
        Level("pmd", 21, 9, True),
        Level("pte", 12, 9, True),
    ),
    bits=X86_BITS,
)

X86_64_5LEVEL = Geometry(
    name="x86-64-la57",
    title="x86-64, 5 levels",
    va_bits=57,
    page_shift=12,
    entry_bytes=8,
    levels=(
        Level("pgd", 48, 9),
        Level("p4d", 39, 9),
        Level("pud", 30, 9, True),
        Level("pmd", 21, 9, True),
        Level("pte", 12, 9, True),
    ),
    bits=X86_BITS,
)

RISCV_SV39 = Geometry(
    name="sv39",
    title="RISC-V Sv39, 3 levels",
    va_bits=39,
    page_shift=12,
    entry_bytes=8,
    levels=(Level("pgd", 30, 9, True), Level("pmd", 21, 9, True), Level("pte", 12, 9, True)),
    bits=RISCV_BITS,
    combine="leaf",
    noncanonical_page_fault=True,
)

GEOMETRIES = {g.name: g for g in (X86_64_4LEVEL, X86_64_5LEVEL, RISCV_SV39)}
"""The formats that run a kernel, by name."""


def toy(
    name: str,
    page_size: int,
    index_bits: tuple[int, ...],
    entry_bytes: int,
    *,
    valid_bit: int,
    pfn_bits: int,
) -> Geometry:
    """A format for the MMU alone: ``index_bits`` of each level from the root, entries of
    ``entry_bytes`` bytes with one valid bit and the frame number in the low ``pfn_bits`` bits.

    ``ValueError`` if a size is not a power of two or a field does not fit."""
    _check_toy(page_size, index_bits, entry_bytes, valid_bit, pfn_bits)
    page_shift = page_size.bit_length() - 1
    names = (
        ("pte",) if len(index_bits) == 1 else tuple(f"l{n}" for n in range(len(index_bits), 0, -1))
    )
    levels = []
    for n, width in enumerate(index_bits):
        levels.append(Level(names[n], page_shift + sum(index_bits[n + 1 :]), width))
    bits = EntryBits(present=1 << valid_bit, pfn_mask=(1 << pfn_bits) - 1, pfn_shift=0)
    return Geometry(
        name=name,
        title=f"{len(index_bits)}-level toy tables of {page_size}-byte pages",
        va_bits=page_shift + sum(index_bits),
        page_shift=page_shift,
        entry_bytes=entry_bytes,
        levels=tuple(levels),
        bits=bits,
        sign_extended=False,
    )


def _check_toy(
    page_size: int, index_bits: tuple[int, ...], entry_bytes: int, valid_bit: int, pfn_bits: int
) -> None:
    """Raise ``ValueError``, worded for the user, unless the numbers of the format fit together."""
    if page_size < 1 or page_size & (page_size - 1):
        raise ValueError(f"page size {page_size}: expected a power of two")
    if not 1 <= entry_bytes <= 8:
        raise ValueError(f"entries of {entry_bytes} bytes: expected 1 to 8")
    if not index_bits or min(index_bits) < 0:
        raise ValueError("expected the index width of at least one level")
    if page_size.bit_length() - 1 + sum(index_bits) > 64:
        raise ValueError(
            f"page offset and indices take {page_size.bit_length() - 1 + sum(index_bits)} bits: "
            "expected at most 64"
        )
    if not 0 <= pfn_bits <= valid_bit < 8 * entry_bytes:
        raise ValueError(
            f"a valid bit {valid_bit} above {pfn_bits} frame bits does not fit in {entry_bytes} "
            "bytes"
        )
