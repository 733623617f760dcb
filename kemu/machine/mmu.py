"""The hardware walk: from a virtual address to a frame, or to a fault that is a value.

    CR3 -> pgd[i] -> pud[i] -> pmd[i] -> pte[i] -> frame         one step a level; a huge entry ends it early

At each step the entry is read from RAM as a word.  If it is present the walk goes on; at the leaf the rights of the
levels are combined (``Geometry.combine``) and compared with the access.  Only an access that is allowed sets Accessed
and Dirty and fills the TLB; a refused one changes nothing and returns a ``PageFault``.

Rules: Intel SDM volume 3, 4.6 and 4.7; RISC-V privileged specification, 4.3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import attrs

from kemu.errors import KernelBug
from kemu.machine.cpu import Cpu
from kemu.machine.geometry import EntryBits, Geometry, Level
from kemu.machine.physmem import PhysMem
from kemu.machine.tlb import TlbEntry
from kemu.trace.frames import hardware

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


def walk(phys: PhysMem, geometry: Geometry, root: int, va: int) -> Walk:
    """Follow the tables from the root table at physical address ``root``; looks only."""
    bits = geometry.bits
    size = geometry.entry_bytes
    table = root
    steps: list[Step] = []
    last = len(geometry.levels) - 1
    for n, level in enumerate(geometry.levels):
        entry_pa = table + ((va >> level.shift) & ((1 << level.bits) - 1)) * size
        entry = phys.load(entry_pa) if size == 8 else int.from_bytes(phys.read(entry_pa, size), "little")
        steps.append(Step(n, entry_pa, entry))
        if not entry & bits.present:
            return Walk(steps, "not present")
        if entry & bits.reserved:
            return Walk(steps, "reserved bit")
        if n == last or is_leaf(bits, entry):
            return Walk(steps, _leaf_fault(geometry, level, entry))
        table = ((entry & bits.pfn_mask) >> bits.pfn_shift) << geometry.page_shift
    raise AssertionError("the last level ends the walk")


def is_leaf(bits: EntryBits, entry: int) -> bool:
    """True if a present ``entry`` above the last level maps memory itself."""
    if bits.leaf_is_rwx:
        return bool(entry & (bits.read | bits.write | bits.exec_))
    return bool(entry & bits.huge)


def _leaf_fault(geometry: Geometry, level: Level, entry: int) -> str:
    """A large leaf must be aligned and of a level that has large leaves; in RISC-V, write without read is reserved and
    the last level must be a leaf."""
    bits = geometry.bits
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
    bits = geometry.bits
    relevant = steps if geometry.combine == "and" else steps[-1:]
    write = user = exec_ = read = True
    for step in relevant:
        entry = step.entry
        if bits.write:
            write = write and bool(entry & bits.write)
        if bits.user:
            user = user and bool(entry & bits.user)
        if bits.nx:
            exec_ = exec_ and not entry & bits.nx
        if bits.exec_:
            exec_ = exec_ and bool(entry & bits.exec_)
        if bits.read:
            read = read and bool(entry & bits.read)
    return Rights(read, write, user, exec_, bool(steps[-1].entry & bits.glob))


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
    inside = (1 << geometry.levels[step.level].shift) - 1
    return ((geometry.entry_pfn(step.entry) << geometry.page_shift) & ~inside) | (va & inside)


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
        return (entry.pfn << shift) | (va & ((1 << shift) - 1))
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
    steps, stopped = walk(cpu.phys, geometry, cpu.root, va)
    if not stopped:
        r = rights(geometry, steps)
        if allowed(cpu, r, access, user):
            dirty = _set_accessed_dirty(cpu, steps, access == WRITE)
            pa = physical(geometry, steps[-1], va)
            pages = 1 << (geometry.levels[steps[-1].level].shift - shift)
            cpu.tlb.fill(TlbEntry(cpu.pcid, va >> shift, pa >> shift, r.write, r.user, r.exec_, r.read, dirty, r.glob, pages))
            return pa
    cpu.tlb.invlpg(va >> shift, cpu.pcid)  # a page fault drops what the TLB knew about the page
    return PageFault(va, error_code(stopped, access, user))


def _set_accessed_dirty(cpu: Cpu, steps: list[Step], write: bool) -> bool:
    """Set A in every entry used and D in the leaf if it is written; True if the leaf's D is now set."""
    bits = cpu.geometry.bits
    for step in steps:
        want = bits.accessed
        leaf = step is steps[-1]
        if not leaf and cpu.geometry.combine == "leaf":
            continue  # RISC-V keeps A, D and U of a pointer entry zero
        if leaf and write:
            want |= bits.dirty
        if step.entry & want != want:
            cpu.phys.store(step.entry_pa, step.entry | want)
    return write or bool(steps[-1].entry & bits.dirty)


MAX_RETRIES = 10_000

Trap = Callable[[Cpu, "PageFault | GeneralProtection", bool], bool]
"""The trap vector that the kernel fills at boot.  It gets the CPU, the exception value and whether the CPU was in user
mode; it returns True if the instruction is to be executed again, False if it is given up (a signal took the task
elsewhere, or a kernel access was fixed up)."""


def access(cpu: Cpu, va: int, kind: int, user: bool, trap: Trap) -> int | PageFault | GeneralProtection:
    """Perform one access within a page: the physical address, or the exception value with which it was given up."""
    for _ in range(MAX_RETRIES):
        got = translate(cpu, va, kind, user)
        if isinstance(got, int) or not trap(cpu, got, user):
            return got
    raise KernelBug(f"the access to {va:#x} faults for ever")
