"""What is where in the 2**64 addresses, by geometry (Documentation/arch/x86/x86_64/mm.rst,
Documentation/arch/riscv/vm-layout.rst).

Only regions in use are listed; the rest is a hole, or not canonical.
"""

from __future__ import annotations

from kemu.machine.geometry import GEOMETRIES, Geometry
from kemu.readings import Region

_X86_TOP = (
    (0xFFFFFE0000000000, 0xFFFFFE7FFFFFFFFF, "cpu_entry_area mapping"),
    (0xFFFFFF0000000000, 0xFFFFFF7FFFFFFFFF, "espfix stacks"),
    (0xFFFFFFEF00000000, 0xFFFFFFFEFFFFFFFF, "EFI region"),
    (0xFFFFFFFF80000000, 0xFFFFFFFF9FFFFFFF, "kernel text and data"),
    (0xFFFFFFFFA0000000, 0xFFFFFFFFFEFFFFFF, "modules"),
    (0xFFFFFFFFFF578000, 0xFFFFFFFFFF5FFFFF, "fixmap"),
    (0xFFFFFFFFFF600000, 0xFFFFFFFFFF600FFF, "vsyscall page (a user address)"),
)

NAMED = {
    "x86-64": (
        (0xFFFF800000000000, 0xFFFF87FFFFFFFFFF, "guard hole, also for hypervisors"),
        (0xFFFF880000000000, 0xFFFF887FFFFFFFFF, "LDT remap for PTI"),
        (0xFFFF888000000000, 0xFFFFC87FFFFFFFFF, "direct map of all RAM"),
        (0xFFFFC90000000000, 0xFFFFE8FFFFFFFFFF, "vmalloc and ioremap"),
        (0xFFFFEA0000000000, 0xFFFFEAFFFFFFFFFF, "vmemmap (the struct pages)"),
        (0xFFFFEC0000000000, 0xFFFFFBFFFFFFFFFF, "KASAN shadow"),
        *_X86_TOP,
    ),
    "x86-64-la57": (
        (0xFF00000000000000, 0xFF0FFFFFFFFFFFFF, "guard hole, also for hypervisors"),
        (0xFF10000000000000, 0xFF10FFFFFFFFFFFF, "LDT remap for PTI"),
        (0xFF11000000000000, 0xFF90FFFFFFFFFFFF, "direct map of all RAM"),
        (0xFFA0000000000000, 0xFFD1FFFFFFFFFFFF, "vmalloc and ioremap"),
        (0xFFD4000000000000, 0xFFD5FFFFFFFFFFFF, "vmemmap (the struct pages)"),
        (0xFFDF000000000000, 0xFFFFFBFFFFFFFFFF, "KASAN shadow"),
        *_X86_TOP,
    ),
    "sv39": (
        (0xFFFFFFC4FEA00000, 0xFFFFFFC4FEFFFFFF, "fixmap"),
        (0xFFFFFFC4FF000000, 0xFFFFFFC4FFFFFFFF, "PCI io"),
        (0xFFFFFFC500000000, 0xFFFFFFC5FFFFFFFF, "vmemmap (the struct pages)"),
        (0xFFFFFFC600000000, 0xFFFFFFD5FFFFFFFF, "vmalloc and ioremap"),
        (0xFFFFFFD600000000, 0xFFFFFFF5FFFFFFFF, "direct map of all RAM"),
        (0xFFFFFFF700000000, 0xFFFFFFFEFFFFFFFF, "KASAN shadow"),
        (0xFFFFFFFF00000000, 0xFFFFFFFF7FFFFFFF, "modules, BPF"),
        (0xFFFFFFFF80000000, 0xFFFFFFFFFFFFFFFF, "kernel text and data"),
    ),
}
"""(first, last address, what) of the kernel half, by name of the geometry."""


def kernel_regions(geometry: Geometry) -> list[Region]:
    """The user half, the addresses that are not canonical, the kernel half with its holes: all of
    2**64."""
    half = 1 << (geometry.va_bits - 1)
    regions = [
        Region(0, half, "user", "user"),
        Region(half, (1 << 64) - half, "hole", "not canonical"),
    ]
    at = (1 << 64) - half
    for first, last, what in NAMED[geometry.name]:
        if first > at:
            regions.append(Region(at, first, "hole", "hole"))
        regions.append(Region(first, last + 1, "kernel", what))
        at = last + 1
    if at < 1 << 64:
        regions.append(Region(at, 1 << 64, "hole", "hole"))
    return regions


REGIONS: dict[str, tuple[Region, ...]] = {
    name: tuple(kernel_regions(geometry)) for name, geometry in GEOMETRIES.items()
}
"""The whole address space by name of the geometry, lowest first."""
