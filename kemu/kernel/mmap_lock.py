"""Who may look at, and who may change, the VMAs of an address space (include/linux/mmap_lock.h, mm/mmap_lock.c).

    mmap_write_lock    system calls that change the tree       mm.mmap_lock = -1
    mmap_read_lock     faults that need more than one VMA      mm.mmap_lock = readers
    vma_start_read     the usual user fault: one VMA alone     vma.vm_refcnt + 1

Locks are state: a CPU that must wait for one cannot run.
"""

from __future__ import annotations

from kemu.errors import KernelBug
from kemu.kernel.flags import FAULT_FLAG_VMA_LOCK
from kemu.kernel.mm_types import mm_struct, vm_area_struct, vm_fault
from kemu.machine.atomic import atomic_dec, atomic_inc
from kemu.trace.frames import linux
from kemu.trace.steps import step


def mmap_write_lock(mm: mm_struct) -> None:
    """Lock for changing; nobody else may hold it."""
    step()
    if mm.mmap_lock:
        raise KernelBug(f"deadlock: mmap_lock of {mm} is held")
    mm.mmap_lock = -1


def mmap_write_unlock(mm: mm_struct) -> None:
    """Release after changing."""
    step()
    mm.mmap_lock = 0


def mmap_read_lock(mm: mm_struct) -> None:
    """Lock for looking; other readers may hold it too."""
    step()
    if mm.mmap_lock < 0:
        raise KernelBug(f"deadlock: mmap_lock of {mm} is held for writing")
    mm.mmap_lock += 1


def mmap_read_unlock(mm: mm_struct) -> None:
    """Release after looking."""
    step()
    mm.mmap_lock -= 1


@linux("mm/mmap_lock.c")
def lock_vma_under_rcu(mm: mm_struct, address: int) -> vm_area_struct | None:
    """The VMA at ``address``, held for one fault; None if there is none or the tree is being changed."""
    vma = mm.mm_mt.find(address)
    if vma is None or vma.vm_start > address or mm.mmap_lock < 0:
        return None
    atomic_inc(vma, "vm_refcnt")
    return vma


def vma_end_read(vma: vm_area_struct) -> None:
    """The fault is done with the VMA."""
    atomic_dec(vma, "vm_refcnt")


def release_fault_lock(vmf: vm_fault) -> None:
    """Release what the fault holds, the VMA or the whole address space: it is about to wait, and will run again."""
    if vmf.flags & FAULT_FLAG_VMA_LOCK:
        vma_end_read(vmf.vma)
    else:
        mmap_read_unlock(vmf.mm)
