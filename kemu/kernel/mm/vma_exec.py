"""The stack VMA of a new program: made at the top of the address space, later moved to its place
(mm/vma_exec.c).

    create_init_stack_vma            |page|  STACK_TOP_MAX  the strings are copied here, before the
    relocate_vma_down      |page| <- - - '                  place of the stack is known

Until it is in its place, the VMA has VM_STACK_INCOMPLETE_SETUP set.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import vm_get_page_prot
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_SHIFT,
    PAGE_SIZE,
    mm_struct,
    vm_area_struct,
    vma_is_anonymous,
    vma_pages,
)
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock
from kemu.kernel.mm.move_tables import move_page_tables
from kemu.kernel.mm.util import __vm_enough_memory, vm_unacct_memory
from kemu.kernel.mm.vma import (
    find_vma,
    find_vma_intersection,
    vm_area_alloc,
    vma_link,
    vma_set_range,
)
from kemu.kernel.mm.zap import free_pgd_range, tlb_finish_mmu, tlb_gather_mmu
from kemu.trace.frames import linux


@linux("mm/vma.c")
def insert_vm_struct(mm: mm_struct, vma: vm_area_struct) -> int:
    """Charge the VMA and put it into the tree, without merging; 0, or -ENOMEM (also if something is
    mapped there already)."""
    if find_vma_intersection(mm, vma.vm_start, vma.vm_end) is not None:
        return -ENOMEM  #: something is mapped at {vma:range} already
    if vma.vm_flags & VM_ACCOUNT and __vm_enough_memory(mm, vma_pages(vma)):
        return -ENOMEM  #: {__vm_enough_memory}
    if vma_is_anonymous(vma):
        vma.vm_pgoff = vma.vm_start >> PAGE_SHIFT
    vma_link(mm, vma)
    return 0


@linux("mm/vma_exec.c")
def create_init_stack_vma(mm: mm_struct) -> tuple[vm_area_struct | None, int]:
    """(a stack of one page in the empty ``mm``, the highest address of a word in it); (None,
    negative error)."""
    vma = vm_area_alloc(mm, task_size_max() - PAGE_SIZE, task_size_max())
    if vma is None:
        return None, -ENOMEM  #: {vm_area_alloc}
    vma.vm_flags = VM_STACK_FLAGS | VM_STACK_INCOMPLETE_SETUP
    vma.vm_page_prot = vm_get_page_prot(vma.vm_flags)
    mmap_write_lock(mm)
    error = insert_vm_struct(mm, vma)
    if not error:
        mm.stack_vm = mm.total_vm = 1
    mmap_write_unlock(mm)
    return (None, error) if error else (vma, vma.vm_end - 8)


@linux("mm/vma_exec.c")
def relocate_vma_down(vma: vm_area_struct, shift: int) -> int:
    """Move ``vma`` with its pages down by ``shift`` bytes, to addresses where nothing is mapped; 0,
    -EFAULT, -ENOMEM.

    It is expanded over both places, its entries move, the tables of the old place are freed, and it
    shrinks to the new place.  ``vm_pgoff`` does not change: the pages keep their index, so rmap
    finds them.  After -ENOMEM it stays expanded until the process ends, and it is charged for that,
    because its whole size is uncharged at the end (Linux does not charge it)."""
    mm = vma.vm_mm
    old_start, old_end, pgoff = vma.vm_start, vma.vm_end, vma.vm_pgoff
    new_start, new_end = old_start - shift, old_end - shift
    if find_vma(mm, new_start) is not vma:
        return -EFAULT  #: something is mapped where the stack would go
    vma_set_range(vma, new_start, old_end, pgoff)
    if move_page_tables(vma, old_start, new_start, old_end - old_start) != old_end - old_start:
        vm_unacct_memory(-shift >> PAGE_SHIFT)
        return -ENOMEM  #: {move_page_tables}
    next = find_vma(mm, old_end)
    tlb = tlb_gather_mmu(mm)
    free_pgd_range(
        tlb, max(new_end, old_start), old_end, new_end, next.vm_start if next is not None else 0
    )
    tlb_finish_mmu(tlb)
    vma_set_range(vma, new_start, new_end, pgoff)
    return 0
