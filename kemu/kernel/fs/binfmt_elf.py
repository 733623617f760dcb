"""Recognising an ELF program and replacing the old one by it (fs/binfmt_elf.c).

    load_elf_binary       header, program headers, interpreter: what is wrong here is an errno
      begin_new_exec      ------------------------------------- from here on it is SIGSEGV
      setup_arg_pages     the stack to its place
      load_segments, load_elf_interp                            (elf_load.py)
      map_vdso, create_elf_tables                               (vdso.py, elf_tables.py)
      set_code_and_heap, start_thread

The heap begins after the program.  A static-pie program is in the area for mappings; its heap
begins at ELF_ET_DYN_BASE.
"""

from __future__ import annotations

from typing import Any

import attrs

from kemu.abi.uapi import *
from kemu.kernel.arch.mmap_layout import (
    arch_randomize_brk,
    elf_et_dyn_base,
    randomize_stack_top,
    randomizing,
    stack_top,
)
from kemu.kernel.arch.vdso import arch_setup_additional_pages
from kemu.kernel.fs.binprm import kernel_read, linux_binprm, open_exec
from kemu.kernel.fs.elf_load import BAD_ADDR, elf_image, elf_layout, load_elf_interp, load_segments
from kemu.kernel.fs.elf_tables import create_elf_tables
from kemu.kernel.fs.file_table import fput
from kemu.kernel.fs.new_exec import (
    EXSTACK_DEFAULT,
    EXSTACK_DISABLE_X,
    EXSTACK_ENABLE_X,
    begin_new_exec,
    finalize_exec,
    setup_arg_pages,
    setup_new_exec,
)
from kemu.kernel.include.elf import (
    PF_X,
    SIZEOF_EHDR,
    SIZEOF_PHDR,
    elf_phdr,
    elfhdr,
    parse_elf_phdrs,
    parse_elfhdr,
)
from kemu.kernel.include.mm_types import PAGE_ALIGN, PAGE_SIZE, U64, file
from kemu.kernel.include.sched_types import PF_RANDOMIZE, pt_regs, thread_struct
from kemu.kernel.include.system import current, current_mm, system
from kemu.trace.frames import linux

MAX_PHDRS_SIZE = 65536

# ---------------------------------------------------------------- reading the file


def elf_check_arch(ex: elfhdr) -> bool:
    """True if the file is for this machine."""
    return ex.e_machine == ("EM_X86_64" if system.geometry.name.startswith("x86") else "EM_RISCV")


@linux("fs/binfmt_elf.c")
def elf_read(file: file, length: int, pos: int) -> bytes | int:
    """Exactly ``length`` bytes from ``pos``; -EIO if the file is shorter, -EINVAL, -ENOMEM."""
    data = kernel_read(file, length, pos)
    #: the file ends before byte {pos} + {length}
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
    """(open file that the first PT_INTERP names, its first bytes); (None, 0) if there is none;
    (None, negative error)."""
    phdr = next((phdr for phdr in program.phdata if phdr.p_type == "PT_INTERP"), None)
    if phdr is None:
        return None, 0
    if not 2 <= phdr.p_filesz <= PATH_MAX:
        return None, -ENOEXEC  #: the path of the interpreter has {phdr.p_filesz} bytes
    name = elf_read(program.file, phdr.p_filesz, phdr.p_offset)
    if isinstance(name, int):
        return None, name
    if name[-1]:
        return None, -ENOEXEC  #: the path of the interpreter does not end with a zero byte
    interpreter = open_exec(name.partition(b"\0")[0])
    if isinstance(interpreter, int):
        return None, interpreter
    return interpreter, elf_read(interpreter, SIZEOF_EHDR, 0)


def check_interpreter(interpreter: file, head: bytes | int) -> elf_image | int:
    """The interpreter as an ELF file; -ELIBBAD if it is not one, or the error of reading it."""
    if isinstance(head, int):
        return head
    ex = parse_elfhdr(head)
    phdata = load_elf_phdrs(ex, interpreter) if ex is not None and elf_check_arch(ex) else None
    #: the interpreter is not an ELF file for this machine -> an ELF file as the interpreter
    return elf_image(interpreter, ex, phdata) if ex is not None and phdata is not None else -ELIBBAD


def executable_stack(program: elf_image) -> int:
    """Whether the stack is executable, from the last PT_GNU_STACK."""
    wish = EXSTACK_DEFAULT
    for phdr in program.phdata:
        if phdr.p_type == "PT_GNU_STACK":
            wish = EXSTACK_ENABLE_X if phdr.p_flags & PF_X else EXSTACK_DISABLE_X
    return wish


@linux("fs/binfmt_elf.c")
def load_elf_binary(bprm: linux_binprm) -> int:
    """Execute ``bprm`` if it is an ELF file; 0, -ENOEXEC (the next format is tried), or another
    error."""
    ex = parse_elfhdr(bprm.buf)
    if ex is None or ex.e_type not in ("ET_EXEC", "ET_DYN") or not elf_check_arch(ex):
        #: the file is not an ELF program for this machine -> a file with an ELF header, or with #!
        return -ENOEXEC
    phdata = load_elf_phdrs(ex, bprm.file)
    if phdata is None:
        return -ENOEXEC  #: the program headers cannot be read
    program = elf_image(bprm.file, ex, phdata)
    file, head = open_interpreter(program)
    if file is None:
        return head if isinstance(head, int) and head else load_elf_program(bprm, program, None)
    interpreter = check_interpreter(file, head)
    retval = (
        interpreter
        if isinstance(interpreter, int)
        else load_elf_program(bprm, program, interpreter)
    )
    fput(file)
    return retval


# ---------------------------------------------------------------- the new program


def load_elf_program(bprm: linux_binprm, program: elf_image, interpreter: elf_image | None) -> int:
    """Replace the current program (the second half of ``load_elf_binary``); 0 or a negative
    error."""
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
        return min(entry, 0) or -EINVAL  #: the program starts at {entry:#x}, above user memory
    retval = arch_setup_additional_pages()
    retval = retval or create_elf_tables(bprm, program.ex, base, e_entry, layout.phdr_addr)
    if retval:
        return retval
    set_code_and_heap(bprm, layout, moved=program.ex.e_type == "ET_DYN" and interpreter is None)
    finalize_exec(bprm)
    start_thread(entry, bprm.p)
    return 0


def set_code_and_heap(bprm: linux_binprm, layout: elf_layout, *, moved: bool) -> None:
    """Set the mm's code, data, stack and heap; ``moved``: the heap goes where a PIE program would
    be."""
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
    """Set the instruction and stack pointers, and the other registers to those of a new program
    (arch/x86/kernel/process_64.c; elf_common_init of arch/x86/include/asm/elf.h).  A register that
    already has its value is not written and makes no event."""
    task = current()
    task.regs.ip, task.regs.sp, task.regs.ax = ip, sp, 0
    pairs: list[tuple[Any, Any]] = [
        (task.regs, pt_regs(ip=ip, sp=sp)),
        (task.thread, thread_struct()),
    ]
    for held, wanted in pairs:
        for field in attrs.fields(type(held)):
            if getattr(held, field.name) != getattr(wanted, field.name):
                setattr(held, field.name, getattr(wanted, field.name))
