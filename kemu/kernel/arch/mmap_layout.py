"""Where the parts of a program go, and how far randomisation moves them (arch/x86/mm/mmap.c,
mm/util.c).

    0   program (ET_EXEC)   PIE, heap ...    ... <- mappings   | gap |   stack   STACK_TOP
                            ELF_ET_DYN_BASE          mmap_base

    what            moved by, with PF_RANDOMIZE
    stack           0..0x3fffff pages (16 GiB), then 0..8191 bytes twice
    mmap_base       0..2^28-1 pages (1 TiB)       so do interpreter, vdso and static-pie programs
    PIE             0..2^28-1 pages
    heap            0..1 GiB above its place

Without PF_RANDOMIZE nothing moves.
"""

from __future__ import annotations

from kemu.kernel.arch.random import get_random_u64
from kemu.kernel.arch.uaccess import default_map_window
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_MASK,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    mm_struct,
)
from kemu.kernel.include.sched_types import PF_RANDOMIZE
from kemu.kernel.include.system import current, system
from kemu.trace.frames import linux

STACK_RND_MASK = 0x3FFFFF
"""Pages by which a stack can move."""

mmap64_rnd_bits = 28
SZ_128M = 128 << 20
SZ_1G = 1 << 30


def stack_top() -> int:
    """STACK_TOP: the end of an unmoved stack."""
    return default_map_window()


def elf_et_dyn_base() -> int:
    """ELF_ET_DYN_BASE: where a PIE program goes, two thirds up."""
    return default_map_window() // 3 * 2


def randomizing() -> bool:
    """True if a new program's addresses are randomised (``randomize_va_space``)."""
    return system.sysctl.randomize_seed is not None


# ---------------------------------------------------------------- randomisation


@linux("arch/x86/mm/mmap.c")
def arch_rnd(rndbits: int) -> int:
    """A random number of pages below 2**rndbits, in bytes; 0 for a task that is not randomised."""
    if not current().flags & PF_RANDOMIZE:
        return 0
    return (get_random_u64() & ((1 << rndbits) - 1)) << PAGE_SHIFT


@linux("arch/x86/mm/mmap.c")
def arch_mmap_rnd() -> int:
    """The distance by which the area for mappings, or a PIE program, moves, in bytes."""
    return arch_rnd(mmap64_rnd_bits)


@linux("mm/util.c")
def randomize_stack_top(top: int) -> int:
    """``top``, moved down by a random number of pages."""
    pages = get_random_u64() & STACK_RND_MASK if current().flags & PF_RANDOMIZE else 0
    return PAGE_ALIGN(top) - (pages << PAGE_SHIFT)


def arch_align_stack(sp: int) -> int:
    """``sp`` moved down by less than 8 KiB, at a multiple of 16 (arch/x86/kernel/process.c)."""
    if randomizing():
        sp -= get_random_u64() % 8192
    return sp & ~0xF & U64


@linux("mm/util.c")
def randomize_page(start: int, range: int) -> int:
    """A random page address in [start, start + range)."""
    aligned = PAGE_ALIGN(start)
    pages = min(range - (aligned - start), U64 - aligned) >> PAGE_SHIFT
    return aligned + (get_random_u64() % pages << PAGE_SHIFT) if pages > 0 else aligned


def arch_randomize_brk(mm: mm_struct) -> int:
    """A place for the heap within 1 GiB above ``mm.brk`` (arch/x86/kernel/process.c)."""
    return randomize_page(mm.brk, SZ_1G)


# ---------------------------------------------------------------- the area for mappings


@linux("arch/x86/mm/mmap.c")
def stack_maxrandom_size() -> int:
    """The farthest that the stack may have moved, in bytes."""
    return STACK_RND_MASK << PAGE_SHIFT if current().flags & PF_RANDOMIZE else 0


@linux("arch/x86/mm/mmap.c")
def mmap_base(rnd: int, task_size: int, rlim_stack: int) -> int:
    """The end of the area for mappings: below the room that a stack of ``rlim_stack`` bytes may
    need and a guard gap."""
    gap = rlim_stack
    pad = stack_maxrandom_size() + (system.sysctl.stack_guard_gap << PAGE_SHIFT)
    if gap + pad <= U64:
        gap += pad
    gap = max(SZ_128M, min(gap, task_size // 6 * 5))
    return PAGE_ALIGN(task_size - gap - rnd)


@linux("arch/x86/mm/mmap.c")
def mmap_legacy_base(rnd: int, task_size: int) -> int:
    """Where the bottom-up search begins, the last resort (TASK_UNMAPPED_BASE)."""
    return PAGE_ALIGN(task_size // 3) + rnd


@linux("arch/x86/mm/mmap.c")
def arch_pick_mmap_layout(mm: mm_struct, rlim_stack: int) -> None:
    """Choose where mappings of ``mm`` go; ``rlim_stack``: the soft limit of the stack in bytes."""
    task_size = default_map_window()
    rnd = arch_rnd(mmap64_rnd_bits)
    mm.flags |= MMF_TOPDOWN
    mm.mmap_legacy_base = mmap_legacy_base(rnd, task_size)
    mm.mmap_base = mmap_base(rnd, task_size, rlim_stack)


# ---------------------------------------------------------------- pages of an ELF file


def ELF_PAGESTART(addr: int) -> int:
    """The address rounded down to a page (u64)."""
    return addr & PAGE_MASK & U64


def ELF_PAGEOFFSET(addr: int) -> int:
    """The offset in the page, in bytes."""
    return addr & (PAGE_SIZE - 1)
