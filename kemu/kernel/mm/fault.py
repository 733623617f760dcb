"""The page fault, from the VMA to the entry that decides (mm/memory.c).

handle_mm_fault -> __handle_mm_fault -> handle_pte_fault
entry empty             do_pte_missing (fault_missing.py)   do_anonymous_page | do_fault
present, write refused  do_wp_page (fault_wp.py)            wp_page_reuse, _copy or _shared
else                    set accessed (and dirty)
"""

from __future__ import annotations

from kemu.kernel.arch.pgtable import (
    p4d_alloc,
    pgd_offset,
    pmd_alloc,
    pte_mkdirty,
    pte_mkyoung,
    pte_none,
    pte_offset_map,
    pte_offset_map_lock,
    pte_present,
    pte_unmap_unlock,
    pte_write,
    ptep_get,
    ptep_set_access_flags,
    pud_alloc,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import is_cow_mapping, vm_area_struct, vm_fault, vma_is_anonymous
from kemu.kernel.include.swapops import classify, no_handler
from kemu.kernel.include.system import current, system
from kemu.kernel.mm.fault_missing import do_anonymous_page, do_fault
from kemu.kernel.mm.fault_wp import do_wp_page
from kemu.trace.frames import linux

# ---------------------------------------------------------------- the way in


@linux("mm/memory.c")
def handle_mm_fault(vma: vm_area_struct, address: int, flags: int) -> int:
    """Make the access to ``address`` in ``vma`` possible; VM_FAULT bits.  The caller has checked
    the VMA's permissions."""
    ret = sanitize_fault_flags(vma, flags)
    if not ret:
        ret = __handle_mm_fault(vma, address, flags)
    mm_account_fault(flags, ret)
    return ret


def sanitize_fault_flags(vma: vm_area_struct, flags: int) -> int:
    """Refuse combinations that no caller may request."""
    if flags & FAULT_FLAG_UNSHARE and flags & FAULT_FLAG_WRITE:
        return VM_FAULT_SIGSEGV  #: unsharing is not a write
    if flags & FAULT_FLAG_WRITE:
        if not vma.vm_flags & VM_MAYWRITE:
            return VM_FAULT_SIGSEGV  #: {vma:range} can never be written
        if not vma.vm_flags & VM_WRITE and not is_cow_mapping(vma.vm_flags):
            return VM_FAULT_SIGSEGV  #: {vma:range} may not be written -> mprotect it with w
    return 0


def mm_account_fault(flags: int, ret: int) -> None:
    """Count the fault for the current task: as major if the page had to be read, not at all if it
    failed."""
    if ret & VM_FAULT_RETRY:
        return
    system.vmstat.PGFAULT += 1
    if ret & VM_FAULT_ERROR:
        return
    task = current()
    if ret & VM_FAULT_MAJOR or flags & FAULT_FLAG_TRIED:
        task.maj_flt += 1
    else:
        task.min_flt += 1


@linux("mm/memory.c")
def __handle_mm_fault(vma: vm_area_struct, address: int, flags: int) -> int:
    """Walk down to the PMD entry, making the tables on the way."""
    vmf = vm_fault(vma, address, flags)
    mm = vmf.mm
    pgd = pgd_offset(mm, vmf.address)
    p4d = p4d_alloc(mm, pgd, vmf.address)
    if not p4d:
        return VM_FAULT_OOM  #: {p4d_alloc}
    pud = pud_alloc(mm, p4d, vmf.address)
    if not pud:
        return VM_FAULT_OOM  #: {pud_alloc}
    vmf.pmd = pmd_alloc(mm, pud, vmf.address)
    if not vmf.pmd:
        return VM_FAULT_OOM  #: {pmd_alloc}
    return handle_pte_fault(vmf)


@linux("mm/memory.c")
def handle_pte_fault(vmf: vm_fault) -> int:
    """Choose the handler for the entry."""
    vmf.pte = pte_offset_map(vmf.pmd, vmf.address)
    if vmf.pte:
        vmf.orig_pte = ptep_get(vmf.pte)
        if pte_none(vmf.orig_pte):
            vmf.pte = 0
    if not vmf.pte:
        return do_pte_missing(vmf)
    if not pte_present(vmf.orig_pte):
        return do_swap_page(vmf)
    entry = vmf.orig_pte
    vmf.pte = pte_offset_map_lock(vmf.mm, vmf.pmd, vmf.address)
    if ptep_get(vmf.pte) != entry:
        pte_unmap_unlock(vmf.pte)
        return 0
    if vmf.flags & (FAULT_FLAG_WRITE | FAULT_FLAG_UNSHARE):
        if not pte_write(entry):
            return do_wp_page(vmf)
        if vmf.flags & FAULT_FLAG_WRITE:
            entry = pte_mkdirty(entry)
    ptep_set_access_flags(
        vmf.vma, vmf.address, vmf.pte, pte_mkyoung(entry), bool(vmf.flags & FAULT_FLAG_WRITE)
    )
    pte_unmap_unlock(vmf.pte)
    return 0


def do_pte_missing(vmf: vm_fault) -> int:
    """Handle a fault where nothing is mapped yet."""
    return do_anonymous_page(vmf) if vma_is_anonymous(vmf.vma) else do_fault(vmf)


# ---------------------------------------------------------------- not present, not empty


@linux("mm/memory.c")
def do_swap_page(vmf: vm_fault) -> int:
    """An entry that is neither empty nor present.  There is no swap device, so it is a marker."""
    return handle_pte_marker(vmf)


@linux("mm/memory.c")
def handle_pte_marker(vmf: vm_fault) -> int:
    """A guard marker: every access raises SIGSEGV, as if nothing were mapped.  No other kind of
    marker is made here, so none can be resolved."""
    if classify(vmf.orig_pte) == "guard":
        return (
            VM_FAULT_SIGSEGV  #: {vmf.address:#x} is a guard page -> madvise it guard_remove first
        )
    raise no_handler(vmf.orig_pte)
