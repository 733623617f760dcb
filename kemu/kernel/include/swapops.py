"""Entries that are neither empty nor present (include/linux/swap.h, include/linux/swapops.h).

    63      59 58                    9 8         0
    | type     | inverted offset      | 0 .. flags |        x86-64; bits 8, 7 and 0 are clear

    type 0..23    a page in the swap area of that number; the offset is its slot
    type 24       a frame taken out of use by memory failure (hwpoison); the offset is the frame
    type 25..27   a page that is being migrated; the offset is the frame
    type 28..30   a page in a device's memory
    type 31       a marker: nothing is mapped, the offset is PTE_MARKER_*

The hardware sees an entry that is not present.  What the kernel sees is ``classify(pte)``.  An
entry of a kind that the code does not handle is a ``KernelBug`` (``no_handler``): taken for an
empty one, it would lose whatever it refers to.
"""

from __future__ import annotations

from typing import Literal

from kemu.errors import KernelBug
from kemu.kernel.arch.pgtable import pte_none, pte_present
from kemu.kernel.include.mm_types import U64
from kemu.kernel.include.system import system

SWP_TYPE_BITS = 5
SWP_OFFSET_SHIFT = 9 + SWP_TYPE_BITS
MAX_SWAPFILES = 24
SWP_HWPOISON = MAX_SWAPFILES
SWP_MIGRATION_READ, SWP_MIGRATION_READ_EXCLUSIVE, SWP_MIGRATION_WRITE = 25, 26, 27
SWP_DEVICE_WRITE, SWP_DEVICE_READ, SWP_DEVICE_EXCLUSIVE = 28, 29, 30
SWP_PTE_MARKER = 31
PTE_MARKER_UFFD_WP, PTE_MARKER_POISONED, PTE_MARKER_GUARD = 1, 2, 4

Kind = Literal[
    "none", "present", "guard", "uffd-wp", "poison", "swap", "hwpoison", "migration", "device",
    "unknown"
]  # fmt: skip
"""The kinds of entries.  ``guard``, ``uffd-wp`` and ``poison`` are markers."""

KIND_OF_TYPE: dict[int, Kind] = {
    SWP_HWPOISON: "hwpoison",
    SWP_MIGRATION_READ: "migration",
    SWP_MIGRATION_READ_EXCLUSIVE: "migration",
    SWP_MIGRATION_WRITE: "migration",
    SWP_DEVICE_WRITE: "device",
    SWP_DEVICE_READ: "device",
    SWP_DEVICE_EXCLUSIVE: "device",
}
KIND_OF_MARKER: dict[int, Kind] = {
    PTE_MARKER_UFFD_WP: "uffd-wp",
    PTE_MARKER_POISONED: "poison",
    PTE_MARKER_GUARD: "guard",
}


def __swp_entry(type: int, offset: int) -> int:
    """The entry of ``type`` (SWP_*, or the number of a swap area) with ``offset`` (a slot, a frame
    or PTE_MARKER_*)."""
    if system.bits.leaf_is_rwx:
        return type << 7 | offset << 12
    inverted = ((~offset & U64) << SWP_OFFSET_SHIFT & U64) >> SWP_TYPE_BITS
    return inverted | type << (64 - SWP_TYPE_BITS)


def __swp_type(pte: int) -> int:
    """The type of an entry that is neither empty nor present."""
    return pte >> 7 & 31 if system.bits.leaf_is_rwx else pte >> (64 - SWP_TYPE_BITS)


def __swp_offset(pte: int) -> int:
    """Its offset."""
    if system.bits.leaf_is_rwx:
        return pte >> 12
    return (~pte << SWP_TYPE_BITS & U64) >> SWP_OFFSET_SHIFT


def make_pte_marker(marker: int) -> int:
    """The entry that carries ``marker`` (PTE_MARKER_*)."""
    return __swp_entry(SWP_PTE_MARKER, marker)


def classify(pte: int) -> Kind:
    """The kind of the entry (Linux has a predicate for each kind: ``is_migration_entry``,
    ``is_hwpoison_entry``, ``is_pte_marker_entry`` ...)."""
    bits = system.bits
    if pte_none(pte):
        return "none"
    if pte_present(pte):
        return "present"
    if pte & (bits.read | bits.write | bits.exec_ if bits.leaf_is_rwx else bits.huge):
        return "unknown"
    if __swp_type(pte) != SWP_PTE_MARKER:
        return KIND_OF_TYPE.get(__swp_type(pte), "swap")
    marker = __swp_offset(pte)
    return KIND_OF_MARKER.get(marker, "unknown") if pte == make_pte_marker(marker) else "unknown"


def is_guard_pte_marker(pte: int) -> bool:
    """True if the entry is a guard marker: every access to its page is a SIGSEGV."""
    return classify(pte) == "guard"


def no_handler(pte: int) -> KernelBug:
    """The error to raise for an entry of a kind that is not handled."""
    return KernelBug(f"the entry {pte:#x} is of a kind that is not handled here: {classify(pte)}")


def only_marker(pte: int) -> None:
    """Raise ``KernelBug`` unless the entry, which is not present, is empty or a marker
    (``pte_none_mostly``)."""
    if classify(pte) not in {"none", "guard", "uffd-wp", "poison"}:
        raise no_handler(pte)
