"""Bringing an ELF program into memory (fs/binfmt_elf.c).

    load_elf_binary     header, program headers, interpreter: what is wrong here is an errno
      begin_new_exec    ------------------------------------- from here on it is SIGSEGV
      load_segments     each PT_LOAD: elf_load = elf_map (the part in the file) + padzero + vm_brk_flags (the rest, zeros)
      load_elf_interp   the same for the interpreter, in the area for mappings
      map_vdso, create_elf_tables, heap, registers

    ET_EXEC             where the file says
    ET_DYN + PT_INTERP  a PIE program: at ELF_ET_DYN_BASE
    ET_DYN alone        a loader, or static-pie: in the area for mappings, its heap at ELF_ET_DYN_BASE

Numbers of the file are u64 and sums of them wrap, as in C: a segment that reaches around the end of the address space must
come out as the error that Linux finds.
"""

from __future__ import annotations

from kemu.kernel.binprm import PATH_MAX, kernel_read, linux_binprm, open_exec
from kemu.kernel.brk import vm_brk_flags
from kemu.kernel.elf import PF_R, PF_W, PF_X, SIZEOF_EHDR, SIZEOF_PHDR, elf_phdr, elfhdr, parse_elf_phdrs, parse_elfhdr
from kemu.kernel.elf_tables import create_elf_tables
from kemu.kernel.flags import VM_EXEC
from kemu.kernel.mm_types import PAGE_ALIGN, PAGE_SIZE, U64, file
from kemu.kernel.mman import (
    EFAULT,
    EINVAL,
    EIO,
    ELIBBAD,
    ENOEXEC,
    ENOMEM,
    EPERM,
    MAP_FIXED,
    MAP_FIXED_NOREPLACE,
    MAP_PRIVATE,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
)
from kemu.kernel.mmap import vm_mmap
from kemu.kernel.mmap_layout import (
    ELF_PAGEOFFSET,
    ELF_PAGESTART,
    arch_mmap_rnd,
    arch_randomize_brk,
    elf_et_dyn_base,
    randomize_stack_top,
    randomizing,
    stack_top,
)
from kemu.kernel.munmap import __vm_munmap
from kemu.kernel.new_exec import (
    EXSTACK_DEFAULT,
    EXSTACK_DISABLE_X,
    EXSTACK_ENABLE_X,
    begin_new_exec,
    finalize_exec,
    setup_arg_pages,
    setup_new_exec,
)
from kemu.kernel.sched_types import PF_RANDOMIZE
from kemu.kernel.system import current, current_mm, system
from kemu.kernel.uaccess import clear_user, task_size_max
from kemu.kernel.vdso import arch_setup_additional_pages
from kemu.kernel.vma import fput
from kemu.trace.frames import linux

MAX_PHDRS_SIZE = 65536


def BAD_ADDR(addr: int) -> bool:
    """True for an error and for an address that is not the user's."""
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
    """Where the program's segments came to lie; ``bias`` is what was added to the addresses of the file (u64)."""

    __slots__ = ("bias", "brk", "end_code", "end_data", "phdr_addr", "start_code", "start_data")

    def __init__(self) -> None:
        self.bias = self.brk = self.phdr_addr = 0
        self.start_code = U64
        self.end_code = self.start_data = self.end_data = 0


# ---------------------------------------------------------------- reading the file


def elf_check_arch(ex: elfhdr) -> bool:
    """True if the file is for this machine."""
    return ex.e_machine == ("EM_X86_64" if system.geometry.name.startswith("x86") else "EM_RISCV")


@linux("fs/binfmt_elf.c")
def elf_read(file: file, length: int, pos: int) -> bytes | int:
    """Exactly ``length`` bytes from ``pos``; -EIO if the file is shorter, -EINVAL, -ENOMEM."""
    data = kernel_read(file, length, pos)
    return -EIO if isinstance(data, bytes) and len(data) != length else data


@linux("fs/binfmt_elf.c")
def load_elf_phdrs(ex: elfhdr, file: file) -> tuple[elf_phdr, ...] | None:
    """The program headers; None if they cannot be right."""
    size = SIZEOF_PHDR * ex.e_phnum
    if ex.e_phentsize != SIZEOF_PHDR or not 0 < size <= MAX_PHDRS_SIZE:
        return None
    data = elf_read(file, size, ex.e_phoff)
    return None if isinstance(data, int) else parse_elf_phdrs(data, ex.e_phnum)


def open_interpreter(program: elf_image) -> tuple[file | None, bytes | int]:
    """(the open file that the first PT_INTERP names, its first bytes); (None, 0 or a negative error) without one."""
    phdr = next((phdr for phdr in program.phdata if phdr.p_type == "PT_INTERP"), None)
    if phdr is None:
        return None, 0
    if not 2 <= phdr.p_filesz <= PATH_MAX:
        return None, -ENOEXEC
    name = elf_read(program.file, phdr.p_filesz, phdr.p_offset)
    if isinstance(name, int):
        return None, name
    if name[-1]:
        return None, -ENOEXEC
    interpreter = open_exec(name.partition(b"\0")[0])
    if isinstance(interpreter, int):
        return None, interpreter
    return interpreter, elf_read(interpreter, SIZEOF_EHDR, 0)


def check_interpreter(interpreter: file, head: bytes | int) -> elf_image | int:
    """The interpreter as an ELF file; -ELIBBAD if it is none, or the error of reading it."""
    if isinstance(head, int):
        return head
    ex = parse_elfhdr(head)
    phdata = load_elf_phdrs(ex, interpreter) if ex is not None and elf_check_arch(ex) else None
    return elf_image(interpreter, ex, phdata) if ex is not None and phdata is not None else -ELIBBAD


@linux("fs/binfmt_elf.c")
def make_prot(p_flags: int) -> int:
    """PROT_* from PF_*."""
    pairs = ((PF_R, PROT_READ), (PF_W, PROT_WRITE), (PF_X, PROT_EXEC))
    return sum(prot for flag, prot in pairs if p_flags & flag)


def executable_stack(program: elf_image) -> int:
    """What the last PT_GNU_STACK says about the stack."""
    wish = EXSTACK_DEFAULT
    for phdr in program.phdata:
        if phdr.p_type == "PT_GNU_STACK":
            wish = EXSTACK_ENABLE_X if phdr.p_flags & PF_X else EXSTACK_DISABLE_X
    return wish


@linux("fs/binfmt_elf.c")
def load_elf_binary(bprm: linux_binprm) -> int:
    """Execute ``bprm`` if it is an ELF file; 0, -ENOEXEC (perhaps another format), or another error."""
    ex = parse_elfhdr(bprm.buf)
    if ex is None or ex.e_type not in ("ET_EXEC", "ET_DYN") or not elf_check_arch(ex):
        return -ENOEXEC
    phdata = load_elf_phdrs(ex, bprm.file)
    if phdata is None:
        return -ENOEXEC
    program = elf_image(bprm.file, ex, phdata)
    file, head = open_interpreter(program)
    if file is None:
        return head if isinstance(head, int) and head else load_elf_program(bprm, program, None)
    interpreter = check_interpreter(file, head)
    retval = interpreter if isinstance(interpreter, int) else load_elf_program(bprm, program, interpreter)
    fput(file)
    return retval


# ---------------------------------------------------------------- the new program


def load_elf_program(bprm: linux_binprm, program: elf_image, interpreter: elf_image | None) -> int:
    """Replace the current program (the second half of ``load_elf_binary``); 0 or a negative error."""
    retval = begin_new_exec(bprm)
    if retval:
        return retval
    if randomizing():
        current().flags |= PF_RANDOMIZE
    setup_new_exec(bprm)
    retval = setup_arg_pages(bprm, randomize_stack_top(stack_top()), executable_stack(program))
    if retval:
        return retval
    layout = load_segments(program, interpreter is not None)
    if isinstance(layout, int):
        return layout
    e_entry = (program.ex.e_entry + layout.bias) & U64
    entry, base = e_entry, 0
    if interpreter is not None:
        base = load_elf_interp(interpreter, layout.bias)
        entry = base if base < 0 else (base + interpreter.ex.e_entry) & U64
    if BAD_ADDR(entry):
        return min(entry, 0) or -EINVAL
    retval = arch_setup_additional_pages()
    retval = retval or create_elf_tables(bprm, program.ex, base, e_entry, layout.phdr_addr)
    if retval:
        return retval
    set_code_and_heap(bprm, layout, moved=program.ex.e_type == "ET_DYN" and interpreter is None)
    finalize_exec(bprm)
    start_thread(entry, bprm.p)
    return 0


def set_code_and_heap(bprm: linux_binprm, layout: elf_layout, *, moved: bool) -> None:
    """Set the mm's code, data, stack and heap; ``moved``: the heap goes where a PIE program would be."""
    mm = current_mm()
    mm.end_code, mm.start_code = layout.end_code, layout.start_code
    mm.start_data, mm.end_data = layout.start_data, layout.end_data
    mm.start_stack = bprm.p
    mm.start_brk = mm.brk = PAGE_ALIGN(elf_et_dyn_base() if moved else layout.brk)
    if current().flags & PF_RANDOMIZE:
        if not moved:
            mm.brk = mm.start_brk = mm.brk + PAGE_SIZE
        mm.brk = mm.start_brk = arch_randomize_brk(mm)


def start_thread(ip: int, sp: int) -> None:
    """The first instruction and the stack pointer; everything else is 0 (arch/x86/kernel/process_64.c)."""
    regs = current().regs
    regs.ip, regs.sp, regs.ax = ip, sp, 0


# ---------------------------------------------------------------- segments


@linux("fs/binfmt_elf.c")
def total_mapping_size(loads: list[elf_phdr]) -> int:
    """Bytes from the first page of the lowest segment to the end of the highest (u64); 0 without segments."""
    if not loads:
        return 0
    top = max((phdr.p_vaddr + phdr.p_memsz) & U64 for phdr in loads)
    return (top - min(ELF_PAGESTART(phdr.p_vaddr) for phdr in loads)) & U64


@linux("fs/binfmt_elf.c")
def maximum_alignment(loads: list[elf_phdr]) -> int:
    """The largest alignment that is a power of two, at least a page; 0 if there is none."""
    sizes = [phdr.p_align for phdr in loads if phdr.p_align and not phdr.p_align & (phdr.p_align - 1)]
    return PAGE_ALIGN(max(sizes, default=0))


@linux("fs/binfmt_elf.c")
def padzero(address: int) -> int:
    """Zero from ``address`` to the end of its page; 0 or -EFAULT."""
    nbyte = -address % PAGE_SIZE
    return -EFAULT if nbyte and clear_user(address, nbyte) else 0


@linux("fs/binfmt_elf.c")
def elf_map(file: file, addr: int, phdr: elf_phdr, prot: int, type: int, total_size: int) -> int:
    """Map the part of a segment that is in the file; the address or a negative error.  With ``total_size`` room for all
    segments is found first, and the rest given back."""
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
    """Map a segment: the part in the file, then zeros up to its size in memory; the address or a negative error."""
    if phdr.p_filesz:
        map_addr = elf_map(file, addr, phdr, prot, type, total_size)
        if BAD_ADDR(map_addr):
            return map_addr
        zero_start = (map_addr + ELF_PAGEOFFSET(phdr.p_vaddr) + phdr.p_filesz) & U64
        if phdr.p_memsz > phdr.p_filesz and padzero(zero_start) and prot & PROT_WRITE:
            return -EFAULT
    else:
        map_addr = zero_start = ELF_PAGESTART(addr)
    if phdr.p_memsz > phdr.p_filesz:
        zero_end = PAGE_ALIGN((map_addr + ELF_PAGEOFFSET(phdr.p_vaddr) + phdr.p_memsz) & U64)
        zero_start = PAGE_ALIGN(zero_start)
        error = vm_brk_flags(zero_start, (zero_end - zero_start) & U64, VM_EXEC if prot & PROT_EXEC else 0)
        return error or map_addr
    return map_addr


def load_segments(program: elf_image, has_interp: bool) -> elf_layout | int:
    """Map the program; where it lies, or a negative error."""
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
        addr = elf_load(program.file, (layout.bias + phdr.p_vaddr) & U64, phdr, prot, type, total_size)
        if BAD_ADDR(addr):
            return min(addr, 0) or -EINVAL
        if phdr is loads[0] and not fixed:
            layout.bias = (layout.bias + addr - ELF_PAGESTART(layout.bias + phdr.p_vaddr)) & U64
        error = count_segment(layout, program.ex, phdr)
        if error:
            return error
    for field in ("phdr_addr", "brk", "start_code", "end_code", "start_data", "end_data"):
        setattr(layout, field, (getattr(layout, field) + layout.bias) & U64)
    return layout


def choose_bias(program: elf_image, phdr: elf_phdr, prot: int, type: int, has_interp: bool) -> tuple[int, int, int]:
    """(where a position-independent program goes, its MAP_ flags, the size of all of it); 0: anywhere in the area for mappings,
    negative: an error."""
    loads = program.loads()
    total_size = total_mapping_size(loads)
    if not total_size:
        return -EINVAL, 0, 0
    alignment = maximum_alignment(loads)
    if has_interp:
        bias = elf_et_dyn_base() + arch_mmap_rnd()
    elif alignment > PAGE_SIZE:
        bias = elf_load(program.file, 0, phdr, prot, type, total_size)
        if BAD_ADDR(bias):
            return min(bias, 0) or -EINVAL, 0, 0
        __vm_munmap(bias, total_size)
        type |= MAP_FIXED_NOREPLACE
    else:
        return 0, type, total_size
    return bias & ~(alignment - 1) if alignment else bias, type, total_size


def count_segment(layout: elf_layout, ex: elfhdr, phdr: elf_phdr) -> int:
    """Widen code, data and heap start by one segment (addresses as in the file); 0, or -EINVAL if it cannot be."""
    vaddr = phdr.p_vaddr
    if phdr.p_offset <= ex.e_phoff < (phdr.p_offset + phdr.p_filesz) & U64:
        layout.phdr_addr = (ex.e_phoff - phdr.p_offset + vaddr) & U64
    if phdr.p_flags & PF_X:
        layout.start_code = min(layout.start_code, vaddr)
    layout.start_data = max(layout.start_data, vaddr)
    if not segment_fits(phdr, vaddr):
        return -EINVAL
    if phdr.p_flags & PF_X:
        layout.end_code = max(layout.end_code, vaddr + phdr.p_filesz)
    layout.end_data = max(layout.end_data, vaddr + phdr.p_filesz)
    layout.brk = max(layout.brk, vaddr + phdr.p_memsz)
    return 0


def segment_fits(phdr: elf_phdr, vaddr: int) -> bool:
    """True if the segment, at ``vaddr``, ends in the user's half and has no more in the file than in memory."""
    task_size = task_size_max()
    return not BAD_ADDR(vaddr) and phdr.p_filesz <= phdr.p_memsz <= task_size and task_size - phdr.p_memsz >= vaddr


@linux("fs/binfmt_elf.c")
def load_elf_interp(interpreter: elf_image, no_base: int) -> int:
    """Map the interpreter; what was added to its addresses (u64), or a negative error.  ``no_base``: the program's bias."""
    dynamic = interpreter.ex.e_type == "ET_DYN"
    if not dynamic and interpreter.ex.e_type != "ET_EXEC":
        return -EPERM
    loads = interpreter.loads()
    total_size = total_mapping_size(loads)
    if not total_size:
        return -EINVAL
    load_addr = -loads[0].p_vaddr & U64 if dynamic and no_base else 0
    for phdr in loads:
        first = phdr is loads[0]
        type = MAP_PRIVATE | (MAP_FIXED if not dynamic or not first else 0)
        addr = (load_addr + phdr.p_vaddr) & U64
        map_addr = elf_load(interpreter.file, addr, phdr, make_prot(phdr.p_flags), type, total_size if first else 0)
        if BAD_ADDR(map_addr):
            return map_addr if map_addr < 0 else -EINVAL
        if first and dynamic:
            load_addr = (map_addr - ELF_PAGESTART(phdr.p_vaddr)) & U64
        if not segment_fits(phdr, (load_addr + phdr.p_vaddr) & U64):
            return -ENOMEM
    return load_addr
