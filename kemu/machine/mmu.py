"""The hardware walk: from a virtual address to a frame, or to a fault that is a value.

    CR3 -> pgd[i] -> pud[i] -> pmd[i] -> pte[i] -> frame         one step a level; a huge entry ends it early

At each step the entry is read from RAM as a word.  If it is present the walk goes on; at the leaf the rights of the
levels are combined (``Geometry.combine``) and compared with the access.  Only an access that is allowed sets Accessed
and Dirty and fills the TLB; a refused one changes nothing and returns a ``PageFault``.

Rules: Intel SDM volume 3, 4.6 and 4.7; RISC-V privileged specification, 4.3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import attrs

from kemu.errors import KernelBug
from kemu.machine.cpu import Cpu
from kemu.machine.geometry import EntryBits, Geometry, Level
from kemu.machine.physmem import PhysMem
from kemu.machine.tlb import TlbEntry
from kemu.trace.frames import hardware
from kemu.trace.steps import step

READ, WRITE, FETCH = 0, 1, 2
"""Kinds of access."""

PF_PROT, PF_WRITE, PF_USER, PF_RSVD, PF_INSTR = 1, 2, 4, 8, 16
"""Bits of the page-fault error code (arch/x86/include/asm/trap_pf.h)."""


@attrs.frozen
class PageFault:
    """The CPU could not translate ``address``; ``error_code`` as x86 pushes it."""

    address: int
    error_code: int

    @property
    def scause(self) -> int:
        """The same fault as RISC-V numbers it: 12 instruction, 13 load, 15 store."""
        if self.error_code & PF_INSTR:
            return 12
        return 15 if self.error_code & PF_WRITE else 13


@attrs.frozen
class GeneralProtection:
    """The address is not canonical: the CPU does not even walk."""

    address: int


class Step(NamedTuple):
    """One level of a walk: index of the level in the geometry, physical address of the entry, the entry (u64)."""

    level: int
    entry_pa: int
    entry: int


class Rights(NamedTuple):
    """What a translation allows."""

    read: bool
    write: bool
    user: bool
    exec_: bool
    glob: bool


class Walk(NamedTuple):
    """The steps of a walk and why it stopped: "" at a leaf, else "not present" or "reserved bit"."""

    steps: list[Step]
    stopped: str


Found = list[tuple[int, int]]
"""What a walk found, from the root down: (physical address of the entry, the entry)."""


def walk(phys: PhysMem, geometry: Geometry, root: int, va: int) -> Walk:
    """Follow the tables from the root table at physical address ``root``; looks only."""
    found, stopped = _descend(phys, geometry, root, va)
    return Walk([Step(level, place, entry) for level, (place, entry) in enumerate(found)], stopped)


def _descend(phys: PhysMem, geometry: Geometry, root: int, va: int) -> tuple[Found, str]:
    """The walk itself: the entries that it used, and why it stopped (as in ``Walk``)."""
    bits, size, page_shift = geometry.bits, geometry.entry_bytes, geometry.page_shift
    present, ends, pfn_mask, pfn_shift = bits.present, bits.ends, bits.pfn_mask, bits.pfn_shift
    load = phys.load if size == 8 else partial(_load_small, phys, size)
    found: Found = []
    table = root
    for level in geometry.levels:
        place = table + ((va >> level.shift) & level.mask) * size
        entry = load(place)
        found.append((place, entry))
        if not entry & present:
            return found, "not present"
        if entry & ends:
            break
        table = (entry & pfn_mask) >> pfn_shift << page_shift
    return found, _leaf_fault(geometry, level, entry)


def _load_small(phys: PhysMem, size: int, pa: int) -> int:
    """An entry of less than 8 bytes."""
    return int.from_bytes(phys.read(pa, size), "little")


def is_leaf(bits: EntryBits, entry: int) -> bool:
    """True if a present ``entry`` above the last level maps memory itself."""
    if bits.leaf_is_rwx:
        return bool(entry & (bits.read | bits.write | bits.exec_))
    return bool(entry & bits.huge)


def _leaf_fault(geometry: Geometry, level: Level, entry: int) -> str:
    """Why the present ``entry``, at which the walk ended, is no leaf of ``level``; "" if it is one.  A large leaf must be
    aligned and of a level that has large leaves; in RISC-V, write without read is reserved and the last level must be a leaf."""
    bits = geometry.bits
    if entry & bits.reserved:
        return "reserved bit"
    if level.shift > geometry.page_shift:
        base = geometry.entry_pfn(entry & ~bits.pat_large) << geometry.page_shift
        if not level.leaf or base & ((1 << level.shift) - 1):
            return "reserved bit"
    if bits.leaf_is_rwx:
        if not is_leaf(bits, entry):
            return "not present"
        if entry & bits.write and not entry & bits.read:
            return "reserved bit"
    return ""


def rights(geometry: Geometry, steps: list[Step]) -> Rights:
    """The rights of a complete walk, combined as the format says."""
    return Rights(*_combined(geometry, [(step.entry_pa, step.entry) for step in steps]))


def _combined(geometry: Geometry, found: Found) -> tuple[bool, bool, bool, bool, bool]:
    """The fields of ``Rights``: what the entries that count all allow and none of them forbids."""
    bits = geometry.bits
    leaf = found[-1][1]
    all_set = any_set = leaf
    if geometry.combine == "and":
        for _, entry in found:
            all_set &= entry
            any_set |= entry
    return (
        all_set & bits.read == bits.read,
        all_set & bits.write == bits.write,
        all_set & bits.user == bits.user,
        all_set & bits.exec_ == bits.exec_ and not any_set & bits.nx,
        bool(leaf & bits.glob),
    )


def allowed(cpu: Cpu, r: Rights | TlbEntry, access: int, user: bool) -> bool:
    """True if rights ``r`` permit ``access`` from user mode or, with WP, SMEP and SMAP on, from kernel mode."""
    if user:
        if not r.user:
            return False
    elif r.user and (access == FETCH or not cpu.ac):
        return False  # SMEP; SMAP unless the kernel has opened the door (stac)
    if access == WRITE:
        return r.write
    return r.exec_ if access == FETCH else r.read


def physical(geometry: Geometry, step: Step, va: int) -> int:
    """The physical address of ``va`` under the leaf ``step``."""
    return _target(geometry, geometry.levels[step.level], step.entry, va)


def _target(geometry: Geometry, level: Level, leaf: int, va: int) -> int:
    """The physical address of ``va`` under the entry ``leaf`` of ``level``."""
    bits = geometry.bits
    inside = (1 << level.shift) - 1
    return (leaf & bits.pfn_mask) >> bits.pfn_shift << geometry.page_shift & ~inside | va & inside


def error_code(stopped: str, access: int, user: bool) -> int:
    """The error code of a refused access: ``stopped`` as in ``Walk``, "" if the rights refused it."""
    code = (PF_USER if user else 0) | (PF_WRITE if access == WRITE else 0) | (PF_INSTR if access == FETCH else 0)
    if stopped == "not present":
        return code
    return code | PF_PROT | (PF_RSVD if stopped else 0)


def translate(cpu: Cpu, va: int, access: int, user: bool) -> int | PageFault | GeneralProtection:
    """The physical address that an access to ``va`` reaches, or the exception that it raises."""
    geometry = cpu.geometry
    shift = geometry.page_shift
    entry = cpu.tlb.lookup(va >> shift, cpu.pcid)
    if entry is not None and (access != WRITE or entry.dirty) and allowed(cpu, entry, access, user):
        return entry.pfn << shift | va & geometry.offset_mask
    if not geometry.canonical(va):
        if geometry.noncanonical_page_fault:
            return PageFault(va, error_code("not present", access, user))
        return GeneralProtection(va)
    return page_walk(cpu, va, access, user)


@hardware
def page_walk(cpu: Cpu, va: int, access: int, user: bool) -> int | PageFault:
    """What the CPU does on a TLB miss: walk, check, set Accessed and Dirty, remember."""
    geometry = cpu.geometry
    shift = geometry.page_shift
    found, stopped = _descend(cpu.phys, geometry, cpu.root, va)
    if not stopped:
        entry = _tlb_entry(cpu, found, va, access == WRITE)
        if allowed(cpu, entry, access, user):
            _set_accessed_dirty(cpu, found, access == WRITE)
            cpu.tlb.fill(entry)
            return entry.pfn << shift | va & geometry.offset_mask
    cpu.tlb.invlpg(va >> shift, cpu.pcid)  # a page fault drops what the TLB knew about the page
    return PageFault(va, error_code(stopped, access, user))


def _tlb_entry(cpu: Cpu, found: Found, va: int, write: bool) -> TlbEntry:
    """What the CPU would remember of a complete walk to ``va``; ``write``: the access sets D."""
    geometry = cpu.geometry
    shift = geometry.page_shift
    level, leaf = geometry.levels[len(found) - 1], found[-1][1]
    read, may_write, user, exec_, glob = _combined(geometry, found)
    pfn = _target(geometry, level, leaf, va) >> shift
    dirty = write or bool(leaf & geometry.bits.dirty)
    return TlbEntry(cpu.pcid, va >> shift, pfn, may_write, user, exec_, read, dirty, glob, 1 << (level.shift - shift))


def _set_accessed_dirty(cpu: Cpu, found: Found, write: bool) -> None:
    """Set A in every entry used, and D in the leaf if it is written."""
    bits = cpu.geometry.bits
    accessed = bits.accessed
    if cpu.geometry.combine != "leaf":  # RISC-V keeps A, D and U of a pointer entry zero
        for place, entry in found[:-1]:
            if entry & accessed != accessed:
                cpu.phys.store(place, entry | accessed)
    place, leaf = found[-1]
    want = accessed | bits.dirty if write else accessed
    if leaf & want != want:
        cpu.phys.store(place, leaf | want)


MAX_RETRIES = 10_000

Trap = Callable[[Cpu, "PageFault | GeneralProtection", bool], bool]
"""The trap vector that the kernel fills at boot.  It gets the CPU, the exception value and whether the CPU was in user
mode; it returns True if the instruction is to be executed again, False if it is given up (a signal took the task
elsewhere, or a kernel access was fixed up)."""


def access(cpu: Cpu, va: int, kind: int, user: bool, trap: Trap) -> int | PageFault | GeneralProtection:
    """Perform one access within a page: the physical address, or the exception value with which it was given up."""
    for _ in range(MAX_RETRIES):
        step()
        got = translate(cpu, va, kind, user)
        if isinstance(got, int) or not trap(cpu, got, user):
            return got
    raise KernelBug(f"the access to {va:#x} faults for ever")
