"""Mapping the segments of an ELF file (fs/binfmt_elf.c: elf_load and what calls it).

    PT_LOAD    | in the file: p_filesz | zeros: up to p_memsz |
    elf_map    +-----------------------+                           private file mapping
    padzero                            +--+                        the rest of its last page
    vm_brk_flags                          +-------------------+    anonymous memory

    ET_EXEC             where the file says
    ET_DYN + PT_INTERP  a PIE program: at ELF_ET_DYN_BASE
    ET_DYN alone        a loader, or static-pie: in the area for mappings

Numbers from the file are u64 and their sums wrap, as in C: a segment that wraps around the end of
the address space must give the error that Linux gives.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.mmap_layout import (
    ELF_PAGEOFFSET,
    ELF_PAGESTART,
    arch_mmap_rnd,
    elf_et_dyn_base,
)
from kemu.kernel.arch.uaccess import clear_user, task_size_max
from kemu.kernel.include.elf import PF_R, PF_W, PF_X, elf_phdr, elfhdr
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import PAGE_ALIGN, PAGE_SIZE, U64, file
from kemu.kernel.mm.brk import vm_brk_flags
from kemu.kernel.mm.mmap import vm_mmap
from kemu.kernel.mm.munmap import __vm_munmap
from kemu.trace.frames import linux


def BAD_ADDR(addr: int) -> bool:
    """True for an error and for an address outside user memory."""
    return not 0 <= addr < task_size_max()


class elf_image:
    """One ELF file that is being loaded: the program or its interpreter."""

    __slots__ = ("ex", "file", "phdata")

    def __init__(self, file: file, ex: elfhdr, phdata: tuple[elf_phdr, ...]) -> None:
        self.file, self.ex, self.phdata = file, ex, phdata

    def loads(self) -> list[elf_phdr]:
        """The PT_LOAD headers, in order."""
        return [phdr for phdr in self.phdata if phdr.p_type == "PT_LOAD"]


class elf_layout:
    """Where the program's segments were mapped; ``bias`` is what was added to the addresses in the
    file (u64)."""

    __slots__ = ("bias", "brk", "end_code", "end_data", "phdr_addr", "start_code", "start_data")

    def __init__(self) -> None:
        self.bias = self.brk = self.phdr_addr = 0
        self.start_code = U64
        self.end_code = self.start_data = self.end_data = 0


# ---------------------------------------------------------------- one segment


@linux("fs/binfmt_elf.c")
def make_prot(p_flags: int) -> int:
    """PROT_* from PF_*."""
    pairs = ((PF_R, PROT_READ), (PF_W, PROT_WRITE), (PF_X, PROT_EXEC))
    return sum(prot for flag, prot in pairs if p_flags & flag)


@linux("fs/binfmt_elf.c")
def padzero(address: int) -> int:
    """Zero from ``address`` to the end of its page; 0 or -EFAULT."""
    nbyte = -address % PAGE_SIZE
    return -EFAULT if nbyte and clear_user(address, nbyte) else 0  #: {address:#x} cannot be zeroed


@linux("fs/binfmt_elf.c")
def elf_map(file: file, addr: int, phdr: elf_phdr, prot: int, type: int, total_size: int) -> int:
    """Map the part of a segment that is in the file; the address or a negative error.  With
    ``total_size``, room for all segments is found first and the rest is unmapped."""
    size = PAGE_ALIGN(phdr.p_filesz + ELF_PAGEOFFSET(phdr.p_vaddr))
    off = (phdr.p_offset - ELF_PAGEOFFSET(phdr.p_vaddr)) & U64
    addr = ELF_PAGESTART(addr)
    if not size:
        return addr
    if not total_size:
        return vm_mmap(file, addr, size, prot, type, off)
    total_size = PAGE_ALIGN(total_size)
    map_addr = vm_mmap(file, addr, total_size, prot, type, off)
    if not BAD_ADDR(map_addr):
        __vm_munmap(map_addr + size, (total_size - size) & U64)
    return map_addr


@linux("fs/binfmt_elf.c")
def elf_load(file: file, addr: int, phdr: elf_phdr, prot: int, type: int, total_size: int) -> int:
    """Map a segment: the part in the file, then zeros up to its size in memory; the address or a
    negative error."""
    if phdr.p_filesz:
        map_addr = elf_map(file, addr, phdr, prot, type, total_size)
        if BAD_ADDR(map_addr):
            return map_addr
        zero_start = (map_addr + ELF_PAGEOFFSET(phdr.p_vaddr) + phdr.p_filesz) & U64
        if phdr.p_memsz > phdr.p_filesz and padzero(zero_start) and prot & PROT_WRITE:
            return -EFAULT  #: the last page of a segment cannot be zeroed
    else:
        map_addr = zero_start = ELF_PAGESTART(addr)
    if phdr.p_memsz > phdr.p_filesz:
        zero_end = PAGE_ALIGN((map_addr + ELF_PAGEOFFSET(phdr.p_vaddr) + phdr.p_memsz) & U64)
        zero_start = PAGE_ALIGN(zero_start)
        error = vm_brk_flags(
            zero_start, (zero_end - zero_start) & U64, VM_EXEC if prot & PROT_EXEC else 0
        )
        return error or map_addr
    return map_addr


# ---------------------------------------------------------------- all segments


@linux("fs/binfmt_elf.c")
def total_mapping_size(loads: list[elf_phdr]) -> int:
    """Bytes from the first page of the lowest segment to the end of the highest (u64); 0 without
    segments."""
    if not loads:
        return 0
    top = max((phdr.p_vaddr + phdr.p_memsz) & U64 for phdr in loads)
    return (top - min(ELF_PAGESTART(phdr.p_vaddr) for phdr in loads)) & U64


@linux("fs/binfmt_elf.c")
def maximum_alignment(loads: list[elf_phdr]) -> int:
    """The largest alignment that is a power of two, at least a page; 0 if no segment has one."""
    sizes = [
        phdr.p_align for phdr in loads if phdr.p_align and not phdr.p_align & (phdr.p_align - 1)
    ]
    return PAGE_ALIGN(max(sizes, default=0))


def load_segments(program: elf_image, has_interp: bool) -> elf_layout | int:
    """Map the program; where it was mapped, or a negative error."""
    layout = elf_layout()
    loads = program.loads()
    fixed = program.ex.e_type == "ET_EXEC"
    for phdr in loads:
        prot = make_prot(phdr.p_flags)
        type, total_size = MAP_PRIVATE | MAP_FIXED, 0
        if phdr is loads[0]:
            type = MAP_PRIVATE | (MAP_FIXED_NOREPLACE if fixed or has_interp else 0)
            if not fixed:
                bias, type, total_size = choose_bias(program, phdr, prot, type, has_interp)
                if bias < 0:
                    return bias
                layout.bias = ELF_PAGESTART(bias - phdr.p_vaddr)
        addr = elf_load(
            program.file, (layout.bias + phdr.p_vaddr) & U64, phdr, prot, type, total_size
        )
        if BAD_ADDR(addr):
            return min(addr, 0) or -EINVAL  #: the segment cannot be mapped at {addr:#x}
        if phdr is loads[0] and not fixed:
            layout.bias = (layout.bias + addr - ELF_PAGESTART(layout.bias + phdr.p_vaddr)) & U64
        error = count_segment(layout, program.ex, phdr)
        if error:
            return error
    for field in ("phdr_addr", "brk", "start_code", "end_code", "start_data", "end_data"):
        setattr(layout, field, (getattr(layout, field) + layout.bias) & U64)
    return layout


def choose_bias(
    program: elf_image, phdr: elf_phdr, prot: int, type: int, has_interp: bool
) -> tuple[int, int, int]:
    """(address of a position-independent program, MAP_ flags, total size); address 0: anywhere in
    the area for mappings; negative: an error."""
    loads = program.loads()
    total_size = total_mapping_size(loads)
    if not total_size:
        return -EINVAL, 0, 0  #: the program has no PT_LOAD segment
    alignment = maximum_alignment(loads)
    if has_interp:
        bias = elf_et_dyn_base() + arch_mmap_rnd()
    elif alignment > PAGE_SIZE:
        bias = elf_load(program.file, 0, phdr, prot, type, total_size)
        if BAD_ADDR(bias):
            return min(bias, 0) or -EINVAL, 0, 0  #: the program cannot be mapped at {bias:#x}
        __vm_munmap(bias, total_size)
        type |= MAP_FIXED_NOREPLACE
    else:
        return 0, type, total_size
    return bias & ~(alignment - 1) if alignment else bias, type, total_size


def count_segment(layout: elf_layout, ex: elfhdr, phdr: elf_phdr) -> int:
    """Extend code, data and heap start by one segment (addresses as in the file); 0, or -EINVAL if
    it does not fit."""
    vaddr = phdr.p_vaddr
    if phdr.p_offset <= ex.e_phoff < (phdr.p_offset + phdr.p_filesz) & U64:
        layout.phdr_addr = (ex.e_phoff - phdr.p_offset + vaddr) & U64
    if phdr.p_flags & PF_X:
        layout.start_code = min(layout.start_code, vaddr)
    layout.start_data = max(layout.start_data, vaddr)
    if not segment_fits(phdr, vaddr):
        return -EINVAL  #: the segment at {vaddr:#x} does not fit into user memory
    if phdr.p_flags & PF_X:
        layout.end_code = max(layout.end_code, vaddr + phdr.p_filesz)
    layout.end_data = max(layout.end_data, vaddr + phdr.p_filesz)
    layout.brk = max(layout.brk, vaddr + phdr.p_memsz)
    return 0


def segment_fits(phdr: elf_phdr, vaddr: int) -> bool:
    """True if the segment, at ``vaddr``, ends in the user's half and is not larger in the file than
    in memory."""
    task_size = task_size_max()
    return (
        not BAD_ADDR(vaddr)
        and phdr.p_filesz <= phdr.p_memsz <= task_size
        and task_size - phdr.p_memsz >= vaddr
    )


@linux("fs/binfmt_elf.c")
def load_elf_interp(interpreter: elf_image, no_base: int) -> int:
    """Map the interpreter; what was added to its addresses (u64), or a negative error.
    ``no_base``: the program's bias."""
    dynamic = interpreter.ex.e_type == "ET_DYN"
    if not dynamic and interpreter.ex.e_type != "ET_EXEC":
        return -EPERM  #: the interpreter is neither ET_EXEC nor ET_DYN
    loads = interpreter.loads()
    total_size = total_mapping_size(loads)
    if not total_size:
        return -EINVAL  #: the interpreter has no PT_LOAD segment
    load_addr = -loads[0].p_vaddr & U64 if dynamic and no_base else 0
    for phdr in loads:
        first = phdr is loads[0]
        type = MAP_PRIVATE | (MAP_FIXED if not dynamic or not first else 0)
        addr = (load_addr + phdr.p_vaddr) & U64
        map_addr = elf_load(
            interpreter.file, addr, phdr, make_prot(phdr.p_flags), type, total_size if first else 0
        )
        if BAD_ADDR(map_addr):
            #: the interpreter cannot be mapped at {map_addr:#x}
            return map_addr if map_addr < 0 else -EINVAL
        if first and dynamic:
            load_addr = (map_addr - ELF_PAGESTART(phdr.p_vaddr)) & U64
        if not segment_fits(phdr, (load_addr + phdr.p_vaddr) & U64):
            return -ENOMEM  #: a segment of the interpreter does not fit into user memory
    return load_addr
