"""Page-table entries and tables (arch/x86/include/asm/pgtable.h, arch/x86/mm/pgtable.c,
mm/memory.c: __pte_alloc).

    pgd = pgd_offset(mm, addr)      physical address of the entry for addr in the root table
    p4d = p4d_alloc(mm, pgd, addr)  in the next table, made if the entry is empty; 0 = no memory
    pud, pmd, pte                   a level that the geometry lacks is folded: returns its argument

An entry (``pte_t``) is an int of 64 bits, a pointer to one (``pte_t *``) its physical address, 0
the null pointer.  Upper entries give all permissions (P, RW, US): the leaf alone restricts.

Every change of a page-table entry by the kernel happens here.
"""

from __future__ import annotations

from kemu.errors import KernelBug
from kemu.kernel.arch.tlbflush import flush_tlb_page
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_SHIFT,
    PAGE_SIZE,
    PGTY_table,
    mm_struct,
    page,
    vm_area_struct,
)
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.page_alloc import GFP_ZERO, __free_page, alloc_page
from kemu.machine.atomic import spin_lock, spin_unlock
from kemu.machine.geometry import EntryBits, Geometry
from kemu.machine.mmu import is_leaf
from kemu.trace.frames import linux
from kemu.trace.steps import step

PTRS_PER_TABLE = 512

# ---------------------------------------------------------------- values


def pte_none(pte: int) -> bool:
    """True if the entry is empty (A and D alone do not count: some processors set them
    spuriously)."""
    bits = system.bits
    return not pte & ~(bits.accessed | bits.dirty)


def pte_present(pte: int) -> bool:
    """True if the entry maps a page, even one that the hardware may not touch (PROT_NONE)."""
    bits = system.bits
    return bool(pte & (bits.present | bits.protnone))


def pte_protnone(pte: int) -> bool:
    """True for the entry of a PROT_NONE page: mapped for Linux, not present for the hardware."""
    bits = system.bits
    return pte & (bits.present | bits.protnone) == bits.protnone


def pte_write(pte: int) -> bool:
    """True if the entry allows writing."""
    return bool(pte & system.bits.write)


def pte_dirty(pte: int) -> bool:
    """True if the page was written through the entry."""
    return bool(pte & system.bits.dirty)


def pte_young(pte: int) -> bool:
    """True if the page was used through the entry."""
    return bool(pte & system.bits.accessed)


def pte_special(pte: int) -> bool:
    """True if the entry's frame is not managed as a page (the zero page)."""
    return bool(pte & system.bits.special)


def pte_pfn(pte: int) -> int:
    """The frame number."""
    bits = system.bits
    return (pte & bits.pfn_mask) >> bits.pfn_shift


def pte_mkwrite(pte: int) -> int:
    """With write permission."""
    return pte | system.bits.write


def pte_wrprotect(pte: int) -> int:
    """Without write permission."""
    return pte & ~system.bits.write


def pte_mkdirty(pte: int) -> int:
    """Marked written."""
    return pte | system.bits.dirty


def pte_mkclean(pte: int) -> int:
    """Marked not written."""
    return pte & ~system.bits.dirty


def pte_mkyoung(pte: int) -> int:
    """Marked used."""
    return pte | system.bits.accessed


def pte_mkold(pte: int) -> int:
    """Marked not used."""
    return pte & ~system.bits.accessed


def pte_mkspecial(pte: int) -> int:
    """Marked as having no managed page."""
    return pte | system.bits.special


def pfn_pte(pfn: int, prot: int) -> int:
    """The entry for frame ``pfn`` with the template ``prot``."""
    return pfn << system.bits.pfn_shift | prot


def mk_pte(page: page, prot: int) -> int:
    """The entry for ``page`` with the template ``prot``."""
    return page.pfn << system.bits.pfn_shift | prot


def pte_modify(pte: int, newprot: int) -> int:
    """The same page with other permissions: the frame, A, D and special are kept."""
    bits = system.bits
    keep = bits.pfn_mask | bits.accessed | bits.dirty | bits.special
    return pte & keep | newprot & ~keep


def maybe_mkwrite(pte: int, vma: vm_area_struct) -> int:
    """Writable if the VMA is."""
    return pte | system.bits.write if vma.vm_flags & VM_WRITE else pte


# ---------------------------------------------------------------- templates


def protection_map(geometry: Geometry) -> tuple[int, ...]:
    """Entry templates by the low four VM_ flags (READ, WRITE, EXEC, SHARED): private writable ones
    lack write, since the first write must fault."""
    return tuple(_template(geometry.bits, flags) for flags in range(16))


def _template(bits: EntryBits, flags: int) -> int:
    if not flags & (VM_READ | VM_WRITE | VM_EXEC):
        return bits.protnone | bits.accessed
    prot = bits.present | bits.user | bits.accessed
    if flags & VM_EXEC:
        prot |= bits.exec_
    else:
        prot |= bits.nx
    if flags & (VM_READ | VM_WRITE):
        prot |= bits.read
    if flags & VM_WRITE and flags & VM_SHARED:
        prot |= bits.write
    return prot


def vm_get_page_prot(vm_flags: int) -> int:
    """The entry template for a VMA with ``vm_flags``."""
    return system.protection_map[vm_flags & (VM_READ | VM_WRITE | VM_EXEC | VM_SHARED)]


def _table_entry(pfn: int, mm: mm_struct) -> int:
    """The upper-level entry that points to a table, with all permissions: the leaf restricts."""
    bits = system.bits
    entry = pfn << bits.pfn_shift | bits.present
    if bits.leaf_is_rwx:
        return entry
    user = bits.user if mm is not system.init_mm else 0
    return entry | bits.write | bits.accessed | bits.dirty | user


# ---------------------------------------------------------------- reading and writing entries


def ptep_get(ptep: int) -> int:
    """The entry at ``ptep``."""
    step()
    return system.phys.load(ptep)


def set_pte(ptep: int, pte: int) -> None:
    """Store the entry."""
    step()
    system.phys.store(ptep, pte)


def set_pte_at(mm: mm_struct, addr: int, ptep: int, pte: int) -> None:
    """Store the entry that maps ``addr`` of ``mm``."""
    step()
    system.phys.store(ptep, pte)


def ptep_get_and_clear(mm: mm_struct, addr: int, ptep: int) -> int:
    """Clear the entry and return its old value: one exchange, so no A or D set by the hardware is
    lost."""
    step()
    pte = system.phys.load(ptep)
    system.phys.store(ptep, 0)
    return pte


def ptep_set_wrprotect(mm: mm_struct, addr: int, ptep: int) -> None:
    """Clear write permission in place."""
    step()
    system.phys.store(ptep, pte_wrprotect(system.phys.load(ptep)))


@linux("mm/pgtable-generic.c")
def ptep_clear_flush(vma: vm_area_struct, address: int, ptep: int) -> int:
    """Clear the entry and flush it on every CPU, before a new one can be installed."""
    pte = ptep_get_and_clear(vma.vm_mm, address, ptep)
    if pte & system.bits.present:
        flush_tlb_page(vma, address)
    return pte


@linux("arch/x86/mm/pgtable.c")
def ptep_set_access_flags(
    vma: vm_area_struct, address: int, ptep: int, entry: int, dirty: bool
) -> bool:
    """Relax the entry to ``entry``, without a flush: a CPU that still caches the stricter one
    faults once more and finds it changed.  As on x86, nothing is stored unless the access was a
    write (``dirty``)."""
    changed = ptep_get(ptep) != entry
    if changed and dirty:
        set_pte(ptep, entry)
    return changed


def pte_needs_flush(old: int, new: int) -> bool:
    """True if CPUs that cache ``old`` must flush it when it becomes ``new``
    (arch/x86/include/asm/tlbflush.h)."""
    bits = system.bits
    if not old & bits.present:
        return False
    if (old ^ new) & bits.pfn_mask or old & ~new & (bits.dirty | bits.present):
        return True
    return bool(
        (old ^ new) & (bits.write | bits.user | bits.nx | bits.exec_ | bits.read | bits.glob)
    )


# ---------------------------------------------------------------- walking down


def level_shifts(geometry: Geometry) -> dict[str, int]:
    """Index shift by level name; 0 for a folded level."""
    shifts = {level.name: level.shift for level in geometry.levels}
    return {name: shifts.get(name, 0) for name in ("pgd", "p4d", "pud", "pmd", "pte")}


def table_of(entry: int) -> int:
    """Physical address of the table to which an upper entry points (``pmd_page_vaddr`` and others).
    Large pages are not mapped yet, so anything else in an upper entry is a ``KernelBug``: the
    memory that it maps would be read as a table."""
    bits = system.bits
    if entry & bits.leads != bits.present:
        what = "maps a large page" if is_leaf(bits, entry) else "is malformed"
        raise KernelBug(f"the upper entry {entry:#x} {what}, where a table is expected")
    return (entry & bits.pfn_mask) << bits.base_shift


def _offset(entry: int, shift: int, address: int) -> int:
    """The entry for ``address`` in the table to which ``entry`` points; 0 if ``entry`` is empty."""
    bits = system.bits
    if entry & bits.leads == bits.present:
        table = (entry & bits.pfn_mask) << bits.base_shift
    elif entry:
        table = table_of(entry)
    else:
        return 0
    return table + (address >> shift & 511) * 8


def pgd_offset(mm: mm_struct, address: int) -> int:
    """The entry in the root table."""
    return mm.pgd + ((address >> system.pgd_shift) & 511) * 8


def p4d_offset(pgd: int, address: int) -> int:
    """The P4D entry; in a geometry of 4 levels the PGD entry itself."""
    return _offset(system.phys.load(pgd), system.p4d_shift, address) if system.p4d_shift else pgd


def pud_offset(p4d: int, address: int) -> int:
    """The PUD entry."""
    return _offset(system.phys.load(p4d), system.pud_shift, address) if system.pud_shift else p4d


def pmd_offset(pud: int, address: int) -> int:
    """The PMD entry."""
    return _offset(system.phys.load(pud), system.pmd_shift, address)


def pmd_of(mm: mm_struct, address: int) -> int:
    """The PMD entry for ``address``, from the root; 0 if the tables above it do not exist."""
    p4d = p4d_offset(pgd_offset(mm, address), address)
    pud = pud_offset(p4d, address) if p4d else 0
    return pmd_offset(pud, address) if pud else 0


def pte_offset_map(pmd: int, address: int) -> int:
    """The PTE, or 0 if there is no table."""
    return _offset(system.phys.load(pmd), PAGE_SHIFT, address)


def pte_offset_map_lock(mm: mm_struct, pmd: int, address: int) -> int:
    """The PTE with its table locked, or 0 (nothing locked) if there is no table."""
    ptep = pte_offset_map(pmd, address)
    if ptep:
        spin_lock(pfn_to_page(ptep >> PAGE_SHIFT), "ptl")
    return ptep


def pte_lock(ptep: int) -> None:
    """Lock the table in which ``ptep`` lies."""
    spin_lock(pfn_to_page(ptep >> PAGE_SHIFT), "ptl")


def pte_unmap_unlock(ptep: int) -> None:
    """Release the lock of the table in which ``ptep`` lies."""
    spin_unlock(pfn_to_page(ptep >> PAGE_SHIFT), "ptl")


def entry_none(entry_pa: int) -> bool:
    """True if the upper-level entry is empty (``pgd_none`` ... ``pmd_none``)."""
    return not system.phys.load(entry_pa)


# ---------------------------------------------------------------- allocating tables


def p4d_alloc(mm: mm_struct, pgd: int, address: int) -> int:
    """The P4D entry, making its table if needed; 0 when out of memory."""
    p4d = p4d_offset(pgd, address)
    if not p4d and not __p4d_alloc(mm, pgd):
        p4d = p4d_offset(pgd, address)
    return p4d


def pud_alloc(mm: mm_struct, p4d: int, address: int) -> int:
    """The PUD entry, making its table if needed; 0 when out of memory."""
    pud = pud_offset(p4d, address)
    if not pud and not __pud_alloc(mm, p4d):
        pud = pud_offset(p4d, address)
    return pud


def pmd_alloc(mm: mm_struct, pud: int, address: int) -> int:
    """The PMD entry, making its table if needed; 0 when out of memory."""
    pmd = pmd_offset(pud, address)
    if not pmd and not __pmd_alloc(mm, pud):
        pmd = pmd_offset(pud, address)
    return pmd


def pte_alloc(mm: mm_struct, pmd: int) -> bool:
    """Ensure that the PTE table exists; True when out of memory (as in C, non-zero is failure)."""
    return entry_none(pmd) and bool(__pte_alloc(mm, pmd))


@linux("mm/memory.c")
def __p4d_alloc(mm: mm_struct, pgd: int) -> int:
    """Make a P4D table; 0 or -1.  Not counted in ``pgtables_bytes``."""
    return _populate(mm, pgd, 0)


@linux("mm/memory.c")
def __pud_alloc(mm: mm_struct, p4d: int) -> int:
    """Make a PUD table; 0 or -1."""
    return _populate(mm, p4d, PAGE_SIZE)


@linux("mm/memory.c")
def __pmd_alloc(mm: mm_struct, pud: int) -> int:
    """Make a PMD table; 0 or -1."""
    return _populate(mm, pud, PAGE_SIZE)


@linux("mm/memory.c")
def __pte_alloc(mm: mm_struct, pmd: int) -> int:
    """Make a PTE table; 0 or -1."""
    return _populate(mm, pmd, PAGE_SIZE)


def _populate(mm: mm_struct, entry_pa: int, accounted: int) -> int:
    """Make a table and link it, unless another CPU was faster.  The check and the link are one
    step, as in Linux under the lock of the table above."""
    table = pte_alloc_one(mm)
    if table is None:
        return -1
    step()
    if not entry_none(entry_pa):
        pte_free(table)
        return 0
    if accounted:
        mm.pgtables_bytes += accounted
    system.phys.store(entry_pa, _table_entry(table.pfn, mm))
    return 0


@linux("arch/x86/mm/pgtable.c")
def pte_alloc_one(mm: mm_struct) -> page | None:
    """A zeroed frame for a table of any level."""
    table = alloc_page(GFP_ZERO)
    if table is not None:
        table.page_type = PGTY_table
    return table


def pte_free(table: page) -> None:
    """Free a table's frame."""
    system.phys.clear_page(table.pfn)
    table.page_type = 0
    __free_page(table)


@linux("arch/x86/mm/pgtable.c")
def pgd_alloc(mm: mm_struct) -> int:
    """A root table whose kernel half is that of init_mm; its physical address, 0 when out of
    memory."""
    table = pte_alloc_one(mm)
    if table is None:
        return 0
    pgd_ctor(table.pfn)
    return table.pfn << PAGE_SHIFT


def pgd_ctor(pfn: int) -> None:
    """Copy the kernel half of init_mm's root (``KERNEL_PGD_PTRS`` entries), so that all address
    spaces share the tables below it."""
    root = system.phys.frames[system.init_mm.pgd >> PAGE_SHIFT]
    for index in sorted(root):
        if index >= PTRS_PER_TABLE // 2:
            system.phys.store((pfn << PAGE_SHIFT) + index * 8, root[index])


@linux("arch/x86/mm/pgtable.c")
def pgd_free(mm: mm_struct) -> None:
    """Free the root table."""
    pte_free(pfn_to_page(mm.pgd >> PAGE_SHIFT))
