"""The hardware walk: from a virtual address to a frame, or to a fault that is a value.

    CR3 -> pgd[i] -> pud[i] -> pmd[i] -> pte[i] -> frame  a huge entry ends it early

Each step reads an entry from RAM as a word.  If it is present the walk goes on; at the leaf the
rights of all levels are combined (``Geometry.combine``) and compared with the access.  Only an
allowed access sets Accessed and Dirty and fills the TLB; a refused one changes nothing and returns
a ``PageFault``.

Rules: Intel SDM volume 3, 4.6 and 4.7; RISC-V privileged specification, 4.3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import and_
from typing import NamedTuple

import attrs

from kemu.errors import KernelBug
from kemu.machine.cpu import Cpu
from kemu.machine.geometry import EntryBits, Geometry, Level
from kemu.machine.physmem import PhysMem
from kemu.machine.tlb import TlbEntry, make_entry
from kemu.trace import tape
from kemu.trace.frames import hardware
from kemu.trace.steps import step

READ, WRITE, FETCH = 0, 1, 2
"""Kinds of access."""

PF_PROT, PF_WRITE, PF_USER, PF_RSVD, PF_INSTR = 1, 2, 4, 8, 16
"""Bits of the page-fault error code (arch/x86/include/asm/trap_pf.h)."""


class PageFault(NamedTuple):
    """The CPU could not translate ``address``; ``error_code`` as x86 pushes it."""

    address: int
    error_code: int

    @property
    def scause(self) -> int:
        """The fault's number on RISC-V: 12 instruction, 13 load, 15 store."""
        if self.error_code & PF_INSTR:
            return 12
        return 15 if self.error_code & PF_WRITE else 13


make_fault: Callable[[tuple[int, int]], PageFault] = partial(tuple.__new__, PageFault)
"""Make a ``PageFault`` from its two fields without running Python code."""


@attrs.frozen
class GeneralProtection:
    """The address is not canonical: the CPU does not even walk."""

    address: int


class Step(NamedTuple):
    """One level of a walk: index of the level in the geometry, physical address of the entry, the
    entry (u64)."""

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
    """The steps of a walk, and why it stopped: "" at a leaf, else "not present" or "reserved
    bit"."""

    steps: list[Step]
    stopped: str


Found = list[tuple[int, int]]
"""What a walk found, from the root down: (physical address of the entry, the entry)."""


def walk(phys: PhysMem, geometry: Geometry, root: int, va: int) -> Walk:
    """Follow the tables from the root table at physical address ``root``, without side effects."""
    found, stopped = _descend(phys, geometry, root, va)
    return Walk([Step(level, place, entry) for level, (place, entry) in enumerate(found)], stopped)


def _descend(phys: PhysMem, geometry: Geometry, root: int, va: int) -> tuple[Found, str]:
    """The walk itself: the entries that it read, and why it stopped (as in ``Walk``)."""
    bits, size, page_shift = geometry.bits, geometry.entry_bytes, geometry.page_shift
    present, ends, pfn_mask, pfn_shift = bits.present, bits.ends, bits.pfn_mask, bits.pfn_shift
    words = (
        size == 8 and page_shift >= 3
    )  # with smaller pages a table may begin in the middle of a word
    load = phys.load if words else partial(_load_bytes, phys, size)
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
    return found, _leaf_fault(geometry, level.shift, entry)


def _load_bytes(phys: PhysMem, size: int, pa: int) -> int:
    """An entry that need not be a word of RAM."""
    return int.from_bytes(phys.read(pa, size), "little")


def is_leaf(bits: EntryBits, entry: int) -> bool:
    """True if a present ``entry`` above the last level maps memory itself."""
    if bits.leaf_is_rwx:
        return bool(entry & (bits.read | bits.write | bits.exec_))
    return bool(entry & bits.huge)


def _leaf_fault(geometry: Geometry, shift: int, entry: int) -> str:
    """Why the present ``entry``, at which the walk ended, is not a leaf of the level with index
    ``shift``; "" if it is one.  A large leaf must be aligned, on a level that has large leaves; on
    RISC-V, write without read is reserved, and a last-level entry must be a leaf."""
    bits = geometry.bits
    if entry & bits.reserved:
        return "reserved bit"
    if shift > geometry.page_shift:
        base = geometry.entry_pfn(entry & ~bits.pat_large) << geometry.page_shift
        if shift not in geometry.large_shifts or base & ((1 << shift) - 1):
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
    leaf = steps[-1].entry
    counts = [leaf] if geometry.combine == "leaf" else [step.entry for step in steps]
    together = reduce(and_, (entry ^ bits.nx for entry in counts))
    write, user, exec_, read = geometry.decode[together & geometry.decode.mask]
    return Rights(read, write, user, exec_, bool(leaf & bits.glob))


def allowed(cpu: Cpu, r: Rights | TlbEntry, access: int, user: bool) -> bool:
    """True if rights ``r`` permit ``access`` from user mode or, with WP, SMEP and SMAP on, from
    kernel mode."""
    if user and not r.user:
        return False
    if not user and r.user and (access == FETCH or not cpu.ac):
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


_KIND_BITS = (0, PF_WRITE, PF_INSTR)
"""Bits of the error code by kind of access."""


def error_code(stopped: str, access: int, user: bool) -> int:
    """The error code of a refused access: ``stopped`` as in ``Walk``, "" if the rights refused
    it."""
    code = _KIND_BITS[access] | (PF_USER if user else 0)
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
    if va > geometry.low_half and not geometry.canonical(va):
        if geometry.noncanonical_page_fault:
            return PageFault(va, error_code("not present", access, user))
        return GeneralProtection(va)
    return page_walk(cpu, va, access, user)


@hardware
def page_walk(cpu: Cpu, va: int, access: int, user: bool) -> int | PageFault:
    """What the CPU does on a TLB miss: walk, check, set Accessed and Dirty, remember."""
    geometry = cpu.geometry
    table = None  # in tables that the kernel makes, only the leaf restricts
    if not geometry.careful:
        table = tape.last_table(cpu.phys.frames, geometry.pointers, cpu.root, va)
    page_shift, last_mask, present, nx = geometry.last
    span, stopped, vpn = 1, "", va >> page_shift
    if table is None:
        leaf, together, span, stopped = _leaf_with_care(cpu.phys, geometry, cpu.root, va)
    else:
        leaf = table.get(vpn & last_mask, 0)
        together = leaf ^ nx
        if not leaf & present:
            stopped = "not present"
    if not stopped:
        bits, decode = geometry.bits, geometry.decode
        may_write, may_user, may_exec, may_read = decode[together & decode.mask]
        pfn = (leaf & bits.pfn_mask) >> bits.pfn_shift
        if span > 1:
            pfn = pfn & -span | vpn & span - 1
        want = bits.dirtied if access == WRITE else bits.accessed
        dirty, glob = (leaf | want) & bits.dirty != 0, leaf & bits.glob != 0
        entry = make_entry(
            (cpu.pcid, vpn, pfn, may_write, may_user, may_exec, may_read, dirty, glob, span)
        )
        if allowed(cpu, entry, access, user):
            if leaf & want != want or not together & bits.accessed:
                _set_accessed_dirty(cpu, va, want)
            cpu.tlb.fill(entry)
            return pfn << page_shift | va & geometry.offset_mask
    cpu.tlb.invlpg(vpn, cpu.pcid)  # a page fault drops the page's TLB entries
    return make_fault((va, error_code(stopped, access, user)))


def _leaf_with_care(
    phys: PhysMem, geometry: Geometry, root: int, va: int
) -> tuple[int, int, int, str]:
    """Walk tables of any kind: (leaf, the bits that are set in all entries that count for the
    rights, how many base pages the leaf maps, why the walk stopped as in ``Walk``).  NX is
    inverted, so that it is a right like the others."""
    found, stopped = _descend(phys, geometry, root, va)
    entries = [entry ^ geometry.bits.nx for _, entry in found]
    together = entries[-1] if geometry.combine == "leaf" else reduce(and_, entries)
    return (
        found[-1][1],
        together,
        1 << (geometry.levels[len(found) - 1].shift - geometry.page_shift),
        stopped,
    )


def _set_accessed_dirty(cpu: Cpu, va: int, want: int) -> None:
    """Set A in every entry used for ``va``, and the bits ``want`` in the leaf."""
    found, _ = _descend(cpu.phys, cpu.geometry, cpu.root, va)
    accessed = cpu.geometry.bits.accessed
    if cpu.geometry.combine != "leaf":  # RISC-V: A, D and U of a pointer entry stay zero
        for place, entry in found[:-1]:
            if entry & accessed != accessed:
                cpu.phys.store(place, entry | accessed)
    place, leaf = found[-1]
    if leaf & want != want:
        cpu.phys.store(place, leaf | want)


MAX_RETRIES = 10_000

Trap = Callable[[Cpu, "PageFault | GeneralProtection", bool], bool]
"""The trap vector, filled by the kernel at boot.  It gets the CPU, the exception value, and whether
the CPU was in user mode.  It returns True if the instruction is to be executed again, False if it
is given up (a signal took the task elsewhere, or a kernel access was fixed up)."""


def access(
    cpu: Cpu, va: int, kind: int, user: bool, trap: Trap
) -> int | PageFault | GeneralProtection:
    """Perform one access within a page: the physical address, or the exception value that made it
    fail."""
    for _ in range(MAX_RETRIES):
        step()
        got = translate(cpu, va, kind, user)
        if isinstance(got, int) or not trap(cpu, got, user):
            return got
    raise KernelBug(f"the access to {va:#x} faults for ever")
