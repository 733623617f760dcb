"""Stacks that grow (mm/vma.c).

An access below a MAP_GROWSDOWN mapping moves its start down to the touched page, however far, as
long as the limits allow it and a guard gap of 256 pages to an accessible mapping below remains.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import PAGE_MASK, PAGE_SHIFT, vm_area_struct
from kemu.kernel.include.system import system
from kemu.kernel.mm.rmap import anon_vma_prepare
from kemu.kernel.mm.util import __vm_enough_memory, may_expand_vm, rlimit, vm_stat_account
from kemu.kernel.mm.vma import set_range
from kemu.trace.frames import linux


@linux("mm/mmap.c")
def acct_stack_growth(vma: vm_area_struct, size: int, grow: int) -> int:
    """Check the limits and charge ``grow`` pages; 0 or -ENOMEM."""
    mm = vma.vm_mm
    if not may_expand_vm(mm, vma.vm_flags, grow):
        return -ENOMEM  #: {may_expand_vm}
    if size > rlimit(RLIMIT_STACK):
        #: a stack of {size:#x} bytes would exceed RLIMIT_STACK
        #: -> a higher limit: setrlimit TASK stack SIZE
        return -ENOMEM
    if __vm_enough_memory(mm, grow):
        return -ENOMEM  #: {__vm_enough_memory}
    if not vma.vm_flags & VM_ACCOUNT:
        system.counters.vm_leaked += grow
    return 0


@linux("mm/mmap.c")
def expand_downwards(vma: vm_area_struct, address: int) -> int:
    """Move the start of a stack down to ``address``'s page; 0, -EFAULT, -EPERM, -ENOMEM.  Faults
    nothing in."""
    mm = vma.vm_mm
    if not vma.vm_flags & VM_GROWSDOWN:
        return -EFAULT  #: {address:#x} is below {vma:range}, which does not grow
    address &= PAGE_MASK
    if address < system.sysctl.mmap_min_addr:
        return -EPERM  #: {address:#x} is below the lowest address that may be mapped
    prev = mm.mm_mt.before(vma.vm_start)
    if prev is not None and prev.vm_flags & VM_ACCESS_FLAGS and not prev.vm_flags & VM_GROWSDOWN:
        gap = system.sysctl.stack_guard_gap << PAGE_SHIFT
    else:
        gap = 0
    if prev is not None and address - prev.vm_end < gap:
        return -ENOMEM  #: the stack would come closer to {prev:range} than the guard gap
    if anon_vma_prepare(vma):
        return -ENOMEM  #: {anon_vma_prepare}
    if address >= vma.vm_start:
        return 0
    size = vma.vm_end - address
    grow = (vma.vm_start - address) >> PAGE_SHIFT
    if grow > vma.vm_pgoff or acct_stack_growth(vma, size, grow):
        return -ENOMEM  #: {acct_stack_growth}
    if vma.vm_flags & VM_LOCKED:
        mm.locked_vm += grow
    vm_stat_account(mm, vma.vm_flags, grow)
    set_range(vma, address, vma.vm_end)
    return 0


def expand_stack_locked(vma: vm_area_struct, address: int) -> int:
    """Expand a stack: on this architecture, always downwards."""
    return expand_downwards(vma, address)
