"""Entries that are neither empty nor present: markers (include/linux/swapops.h).

    63      59 58                    9 8      0
    | type 31 | inverted offset       |  0    |        x86-64: type PTE_MARKER, the offset holds the marker's bits

The hardware sees an entry that is not present.  A guard marker makes every access to its page a
SIGSEGV.
"""

from __future__ import annotations

from kemu.kernel.arch.pgtable import pte_none, pte_present
from kemu.kernel.include.mm_types import U64
from kemu.kernel.include.system import system

SWP_TYPE_BITS = 5
SWP_OFFSET_SHIFT = 9 + SWP_TYPE_BITS
SWP_PTE_MARKER = 31
PTE_MARKER_GUARD = 4


def make_pte_marker(marker: int) -> int:
    """The entry that carries ``marker`` (PTE_MARKER_*)."""
    if system.bits.leaf_is_rwx:
        return SWP_PTE_MARKER << 7 | marker << 12
    inverted = ((~marker & U64) << SWP_OFFSET_SHIFT & U64) >> SWP_TYPE_BITS
    return inverted | SWP_PTE_MARKER << (64 - SWP_TYPE_BITS)


def is_guard_pte_marker(pte: int) -> bool:
    """True if the entry is a guard marker."""
    return not pte_present(pte) and not pte_none(pte) and pte == make_pte_marker(PTE_MARKER_GUARD)
