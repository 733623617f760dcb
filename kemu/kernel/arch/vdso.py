"""The kernel's pages in every program: [vvar], [vvar_vclock], [vdso] (arch/x86/entry/vdso/vma.c,
mm/mmap.c).

    [vvar]         time | (other time namespace) | random | -     raw frames, read only, not counted
    [vvar_vclock]  pvclock | -                                    (VM_IO | VM_PFNMAP)
    [vdso]         ELF image, two pages                           pages of the kernel image, counted
                                                                  as file pages

An access to a page marked - raises SIGBUS.  The image here is an ELF header with one
empty segment: it has the place and the size of the real one, and no functions.  None of the three
can be split: munmap and mprotect apply to the whole of one, or fail.
"""

from __future__ import annotations

import struct

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import (
    pfn_pte,
    pte_alloc,
    pte_mkspecial,
    pte_none,
    pte_offset_map_lock,
    pte_unmap_unlock,
    ptep_get,
    set_pte_at,
    vm_get_page_prot,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_SHIFT,
    PAGE_SIZE,
    mm_struct,
    vm_area_struct,
    vm_fault,
    vm_operations_struct,
)
from kemu.kernel.include.system import current_mm, pfn_to_page, system
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock
from kemu.kernel.mm.munmap import do_vmi_munmap
from kemu.kernel.mm.page_alloc import folio_get
from kemu.kernel.mm.unmapped_area import __get_unmapped_area
from kemu.kernel.mm.util import vm_stat_account
from kemu.kernel.mm.vma import vm_area_alloc
from kemu.kernel.mm.vma_exec import insert_vm_struct
from kemu.trace.frames import linux

VDSO_PAGES, VVAR_PAGES, VVAR_VCLOCK_PAGES = 2, 4, 2

VVAR_FRAMES = {0: 0, 2: 1}
VCLOCK_FRAMES = {0: 2}
IMAGE_FRAME = 3
"""Page of the mapping -> frame, counted from ``system.vdso_pfn``; the image's pages follow each
other."""


def init_vdso(pfn: int) -> None:
    """Boot: the frames of the kernel image from ``pfn`` are the data pages and the image."""
    system.vdso_pfn = pfn
    system.phys.set_page(pfn + IMAGE_FRAME, _image())


def _image() -> bytes:
    """An ELF header (ET_DYN) and one PT_LOAD over both pages."""
    machine = 62 if system.geometry.name.startswith("x86") else 243
    size = VDSO_PAGES * PAGE_SIZE
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    )
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, PAGE_SIZE)


# ---------------------------------------------------------------- faults


@linux("arch/x86/entry/vdso/vma.c")
def vdso_fault(vmf: vm_fault) -> int:
    """A page of the image, referenced; ``__do_fault`` locks it."""
    if vmf.pgoff >= VDSO_PAGES:
        return VM_FAULT_SIGBUS  #: the vdso has only {VDSO_PAGES} pages
    page = pfn_to_page(system.vdso_pfn + IMAGE_FRAME + vmf.pgoff)
    folio_get(page)
    vmf.page = page
    return 0


@linux("arch/x86/entry/vdso/vma.c")
def vvar_fault(vmf: vm_fault) -> int:
    """Map a data page of the kernel as a raw frame; SIGBUS if this machine does not have it."""
    frame = VVAR_FRAMES.get(vmf.pgoff)
    #: this page of the vvar mapping is empty
    return VM_FAULT_SIGBUS if frame is None else vmf_insert_pfn(vmf, system.vdso_pfn + frame)


@linux("arch/x86/entry/vdso/vma.c")
def vvar_vclock_fault(vmf: vm_fault) -> int:
    """The hypervisor's clock page."""
    frame = VCLOCK_FRAMES.get(vmf.pgoff)
    #: this page of the vvar mapping is empty
    return VM_FAULT_SIGBUS if frame is None else vmf_insert_pfn(vmf, system.vdso_pfn + frame)


@linux("mm/memory.c")
def vmf_insert_pfn(vmf: vm_fault, pfn: int) -> int:
    """Map the raw frame at the faulting address: a special entry, neither counted nor
    referenced."""
    mm = vmf.mm
    if pte_alloc(mm, vmf.pmd):
        return VM_FAULT_OOM  #: {pte_alloc}
    ptep = pte_offset_map_lock(mm, vmf.pmd, vmf.address)
    if pte_none(ptep_get(ptep)):
        set_pte_at(mm, vmf.address, ptep, pte_mkspecial(pfn_pte(pfn, vmf.vma.vm_page_prot)))
    pte_unmap_unlock(ptep)
    return VM_FAULT_NOPAGE


@linux("mm/mmap.c")
def special_mapping_split(vma: vm_area_struct, addr: int) -> int:
    """-EINVAL: special mappings cannot be split."""
    return -EINVAL  #: {vma:range} is a special mapping and cannot be split -> the whole mapping


vdso_vm_ops = vm_operations_struct(
    name="special_mapping_vmops", fault=vdso_fault, may_split=special_mapping_split
)
vvar_vm_ops = vm_operations_struct(
    name="special_mapping_vmops", fault=vvar_fault, may_split=special_mapping_split
)
vvar_vclock_vm_ops = vm_operations_struct(
    name="special_mapping_vmops", fault=vvar_vclock_fault, may_split=special_mapping_split
)

# ---------------------------------------------------------------- mapping


@linux("mm/mmap.c")
def _install_special_mapping(
    mm: mm_struct, addr: int, length: int, vm_flags: int, ops: vm_operations_struct, name: str
) -> int:
    """Map pages of the kernel at ``addr`` as a named special mapping; 0 or -ENOMEM."""
    vma = vm_area_alloc(mm, addr, addr + length)
    if vma is None:
        return -ENOMEM  #: {vm_area_alloc}
    vma.vm_flags = (vm_flags | mm.def_flags | VM_DONTEXPAND) & ~VM_LOCKED_MASK
    vma.vm_page_prot = vm_get_page_prot(vma.vm_flags)
    vma.vm_ops = ops
    vma.vm_name = name
    error = insert_vm_struct(mm, vma)
    if not error:
        vm_stat_account(mm, vma.vm_flags, length >> PAGE_SHIFT)
    return error


@linux("arch/x86/entry/vdso/vma.c")
def map_vdso(addr: int) -> int:
    """Map the three, adjacent, at ``addr`` (0: anywhere); 0, or a negative error with nothing
    mapped."""
    mm = current_mm()
    data = (VVAR_PAGES + VVAR_VCLOCK_PAGES) * PAGE_SIZE
    mmap_write_lock(mm)
    addr = __get_unmapped_area(None, addr, data + VDSO_PAGES * PAGE_SIZE, 0, 0, 0)
    error = min(addr, 0) or _map_at(mm, addr, addr + data)
    mmap_write_unlock(mm)
    return error


def _map_at(mm: mm_struct, addr: int, text_start: int) -> int:
    """Map the image at ``text_start``, then the data pages from ``addr``, in Linux's order."""
    vvar_flags = VM_READ | VM_MAYREAD | VM_IO | VM_DONTDUMP | VM_PFNMAP
    vclock = text_start - VVAR_VCLOCK_PAGES * PAGE_SIZE
    wanted = (
        (
            text_start,
            VDSO_PAGES,
            VM_READ | VM_EXEC | VM_MAYREAD | VM_MAYWRITE | VM_MAYEXEC,
            vdso_vm_ops,
            "[vdso]",
        ),
        (addr, VVAR_PAGES, vvar_flags, vvar_vm_ops, "[vvar]"),
        (vclock, VVAR_VCLOCK_PAGES, vvar_flags, vvar_vclock_vm_ops, "[vvar_vclock]"),
    )
    for start, pages, vm_flags, ops, name in wanted:
        error = _install_special_mapping(mm, start, pages * PAGE_SIZE, vm_flags, ops, name)
        if error:
            do_vmi_munmap(mm, addr, text_start + VDSO_PAGES * PAGE_SIZE - addr)
            return error
    mm.vdso = text_start
    return 0


@linux("arch/x86/entry/vdso/vma.c")
def arch_setup_additional_pages() -> int:
    """Map what every program gets besides its segments; 0 or a negative error."""
    return map_vdso(0)
