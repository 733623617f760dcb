"""What a new program finds on its stack (fs/binfmt_elf.c: create_elf_tables).

    sp ->  argc
           argv[0] ... argv[argc-1]  0
           envp[0] ...               0
           auxv: (type, value) ...  (AT_NULL, 0)
           (up to 15 bytes, so that sp is a multiple of 16)
           16 random bytes           AT_RANDOM
           "x86_64"                  AT_PLATFORM
    p ->   argv strings, envp strings, file name (AT_EXECFN), 8 bytes of 0

The new address space is loaded by now: the kernel writes through user addresses, and may fault.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.mmap_layout import arch_align_stack
from kemu.kernel.arch.random import get_random_bytes
from kemu.kernel.arch.uaccess import copy_to_user, strnlen_user
from kemu.kernel.fs.binprm import MAX_ARG_STRLEN, linux_binprm
from kemu.kernel.include.elf import SIZEOF_PHDR, elfhdr
from kemu.kernel.include.mm_types import PAGE_MASK, PAGE_SIZE, mm_struct, vm_area_struct
from kemu.kernel.include.system import current_mm
from kemu.kernel.mm.mmap_lock import mmap_write_lock, mmap_write_unlock
from kemu.kernel.mm.stack import expand_stack_locked
from kemu.kernel.mm.vma import find_vma
from kemu.trace.frames import linux

AT_NULL, AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_BASE, AT_FLAGS, AT_ENTRY = (
    0,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
)
AT_UID, AT_EUID, AT_GID, AT_EGID, AT_PLATFORM, AT_HWCAP, AT_CLKTCK = 11, 12, 13, 14, 15, 16, 17
AT_SECURE, AT_RANDOM, AT_HWCAP2, AT_RSEQ_FEATURE_SIZE, AT_RSEQ_ALIGN = 23, 25, 26, 27, 28
AT_EXECFN, AT_SYSINFO_EHDR, AT_MINSIGSTKSZ = 31, 33, 51

ELF_PLATFORM = b"x86_64\0"
ELF_HWCAP, ELF_HWCAP2, MINSIGSTKSZ = 0x178BFBFF, 2, 0xD30
"""As on the machine that was recorded: CPUID 1 EDX, FSGSBASE, the size of a signal frame."""

CLOCKS_PER_SEC = 100
RSEQ_FEATURE_SIZE, RSEQ_ALIGN = 28, 32


def new_aux_entries(
    bprm: linux_binprm, ex: elfhdr, addresses: dict[int, int], platform: int, random: int
) -> tuple[tuple[int, int], ...]:
    """The auxiliary vector in Linux's order; ``addresses``: AT_BASE, AT_ENTRY, AT_PHDR."""
    return (
        (AT_SYSINFO_EHDR, current_mm().vdso),
        (AT_MINSIGSTKSZ, MINSIGSTKSZ),
        (AT_HWCAP, ELF_HWCAP),
        (AT_PAGESZ, PAGE_SIZE),
        (AT_CLKTCK, CLOCKS_PER_SEC),
        (AT_PHDR, addresses[AT_PHDR]),
        (AT_PHENT, SIZEOF_PHDR),
        (AT_PHNUM, ex.e_phnum),
        (AT_BASE, addresses[AT_BASE]),
        (AT_FLAGS, 0),
        (AT_ENTRY, addresses[AT_ENTRY]),
        *((kind, 0) for kind in (AT_UID, AT_EUID, AT_GID, AT_EGID, AT_SECURE)),
        (AT_RANDOM, random),
        (AT_HWCAP2, ELF_HWCAP2),
        (AT_EXECFN, bprm.exec),
        (AT_PLATFORM, platform),
        (AT_RSEQ_FEATURE_SIZE, RSEQ_FEATURE_SIZE),
        (AT_RSEQ_ALIGN, RSEQ_ALIGN),
        (AT_NULL, 0),
    )


@linux("fs/binfmt_elf.c")
def create_elf_tables(
    bprm: linux_binprm, ex: elfhdr, interp_load_addr: int, e_entry: int, phdr_addr: int
) -> int:
    """Fill the stack below the strings and set ``bprm.p`` to the program's stack pointer; 0,
    -EFAULT, -EINVAL."""
    mm = current_mm()
    u_platform = arch_align_stack(bprm.p) - len(ELF_PLATFORM)
    u_rand_bytes = u_platform - 16
    if copy_to_user(u_platform, ELF_PLATFORM) or copy_to_user(u_rand_bytes, get_random_bytes(16)):
        return -EFAULT  #: the new stack cannot be written
    addresses = {AT_BASE: interp_load_addr, AT_ENTRY: e_entry, AT_PHDR: phdr_addr}
    mm.saved_auxv = new_aux_entries(bprm, ex, addresses, u_platform, u_rand_bytes)
    words = 1 + bprm.argc + 1 + bprm.envc + 1 + 2 * len(mm.saved_auxv)
    bprm.p = u_rand_bytes - 8 * words & ~0xF
    mmap_write_lock(mm)
    vma = find_extend_vma_locked(mm, bprm.p)
    mmap_write_unlock(mm)
    if vma is None or put_words(bprm.p, [bprm.argc]):
        return -EFAULT  #: the new stack cannot be written
    sp = bprm.p + 8
    mm.arg_end = mm.arg_start
    error, mm.arg_end = put_strings(sp, mm.arg_start, bprm.argc)
    if error:
        return error
    mm.env_start = mm.env_end = mm.arg_end
    sp += 8 * (bprm.argc + 1)
    error, mm.env_end = put_strings(sp, mm.env_start, bprm.envc)
    if error:
        return error
    sp += 8 * (bprm.envc + 1)
    #: the new stack cannot be written
    return -EFAULT if put_words(sp, [word for pair in mm.saved_auxv for word in pair]) else 0


@linux("mm/mmap.c")
def find_extend_vma_locked(mm: mm_struct, addr: int) -> vm_area_struct | None:
    """The VMA for ``addr``; a stack above it is expanded down to it."""
    addr &= PAGE_MASK
    vma = find_vma(mm, addr)
    if vma is None or vma.vm_start <= addr:
        return vma
    return None if expand_stack_locked(vma, addr) else vma


def put_strings(sp: int, p: int, number: int) -> tuple[int, int]:
    """Store pointers to the ``number`` strings from ``p``, and a null pointer; (0 or a negative
    error, the strings' end)."""
    pointers = []
    for _ in range(number):
        pointers.append(p)
        length = strnlen_user(p, MAX_ARG_STRLEN)
        if not 0 < length <= MAX_ARG_STRLEN:
            return -EINVAL, p  #: the argument at {p:#x} has no terminating NUL
        p += length
    return -EFAULT if put_words(sp, [*pointers, 0]) else 0, p  #: the new stack cannot be written


def put_words(sp: int, words: list[int]) -> int:
    """Store words at the user address ``sp``; the number of bytes that could not be stored."""
    return copy_to_user(sp, b"".join(word.to_bytes(8, "little") for word in words))
