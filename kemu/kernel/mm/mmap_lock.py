"""Locks for reading and for changing the VMAs of an address space (include/linux/mmap_lock.h,
mm/mmap_lock.c).

    mmap_write_lock    system calls that change the tree       mm.mmap_lock = -1
    mmap_read_lock     faults that need more than one VMA      mm.mmap_lock = readers
    vma_start_read     the usual user fault: one VMA alone     vma.vm_refcnt + 1
    vma_start_write    before one VMA is changed or detached   waits until vm_refcnt is back at 1

Locks are state: a CPU that must wait for one cannot run.  In Linux a sequence number in each VMA
says whether the VMA is locked for writing; here all VMAs are locked while ``mmap_lock`` is held for
writing.
"""

from __future__ import annotations

from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import mm_struct, vm_area_struct, vm_fault
from kemu.machine.atomic import refcount_dec_and_test, refcount_inc_not_zero
from kemu.trace.frames import linux
from kemu.trace.steps import is_removed, step, step_until

MMAP_LOCK, VMA_LOCK = "mmap_lock", "vma_lock"
"""The names of the locks for `race --without-lock`."""


def mmap_write_lock(mm: mm_struct) -> None:
    """Lock for writing; nobody else may hold the lock."""
    if not is_removed(MMAP_LOCK):
        step_until(_nobody_holds, mm, MMAP_LOCK)
        mm.mmap_lock = -1


def _nobody_holds(mm: mm_struct, _lock: str) -> bool:
    return not mm.mmap_lock


def _nobody_writes(mm: mm_struct, _lock: str) -> bool:
    return mm.mmap_lock >= 0


def mmap_write_unlock(mm: mm_struct) -> None:
    """Release the lock after writing."""
    if not is_removed(MMAP_LOCK):
        step()
        mm.mmap_lock = 0


def mmap_read_lock(mm: mm_struct) -> None:
    """Lock for reading; other readers may hold the lock too."""
    if not is_removed(MMAP_LOCK):
        step_until(_nobody_writes, mm, MMAP_LOCK)
        mm.mmap_lock += 1


def mmap_read_unlock(mm: mm_struct) -> None:
    """Release the lock after reading."""
    if not is_removed(MMAP_LOCK):
        step()
        mm.mmap_lock -= 1


@linux("mm/mmap_lock.c")
def lock_vma_under_rcu(mm: mm_struct, address: int) -> vm_area_struct | None:
    """The VMA at ``address``, locked for one fault; None if there is none or the tree is being
    changed.  The lookup takes no lock, so the VMA is checked again once it is locked."""
    vma = mm.mm_mt.find(address)
    if vma is None or vma.vm_start > address:
        return None
    if not vma_start_read(mm, vma):
        return None
    if mm.mmap_lock < 0 or not vma.vm_start <= address < vma.vm_end:
        vma_end_read(vma)
        return None
    return vma


def vma_start_read(mm: mm_struct, vma: vm_area_struct) -> bool:
    """Lock one VMA against changes; False if the tree is locked for writing, or no longer contains
    the VMA."""
    if is_removed(VMA_LOCK):
        return True
    if mm.mmap_lock < 0:
        return False
    return refcount_inc_not_zero(vma, "vm_refcnt")


def vma_end_read(vma: vm_area_struct) -> None:
    """Release the VMA at the end of a fault."""
    if not is_removed(VMA_LOCK):
        refcount_dec_and_test(vma, "vm_refcnt")


def vma_start_write(vma: vm_area_struct) -> None:
    """Wait until no fault holds the VMA; since ``mmap_lock`` is held for writing, no new fault can
    lock it."""
    if not is_removed(VMA_LOCK):
        step_until(_nobody_reads, vma, VMA_LOCK)


def _nobody_reads(vma: vm_area_struct, _lock: str) -> bool:
    return vma.vm_refcnt <= 1


def release_fault_lock(vmf: vm_fault) -> None:
    """Release the lock that the fault holds, on the VMA or on the address space: the fault is about
    to wait, and will be retried."""
    if vmf.flags & FAULT_FLAG_VMA_LOCK:
        vma_end_read(vmf.vma)
    else:
        mmap_read_unlock(vmf.mm)
