"""Accounting of an address space: the class in which a VMA counts, what a process may have, what
the machine has committed, what is resident.

Sources: mm/mmap.c (vm_stat_account, may_expand_vm), mm/util.c (__vm_enough_memory).
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    MM_ANONPAGES,
    MM_FILEPAGES,
    MM_SHMEMPAGES,
    PAGE_SHIFT,
    mm_struct,
)
from kemu.kernel.include.mmzone import totalram_pages
from kemu.kernel.include.system import current, system
from kemu.trace.frames import linux

OVERCOMMIT_GUESS, OVERCOMMIT_ALWAYS, OVERCOMMIT_NEVER = 0, 1, 2


def rlimit(resource: int) -> int:
    """The current task's soft limit in bytes (RLIM_INFINITY if none is set)."""
    return current().signal.rlim.get(resource, (RLIM_INFINITY, RLIM_INFINITY))[0]


def is_exec_mapping(flags: int) -> bool:
    """True for code: executable, not writable, not a stack."""
    return flags & (VM_EXEC | VM_WRITE | VM_GROWSDOWN) == VM_EXEC


def is_stack_mapping(flags: int) -> bool:
    """True for a stack: it grows down."""
    return bool(flags & VM_GROWSDOWN)


def is_data_mapping(flags: int) -> bool:
    """True for data: writable, private, not a stack."""
    return flags & (VM_WRITE | VM_SHARED | VM_GROWSDOWN) == VM_WRITE


@linux("mm/mmap.c")
def vm_stat_account(mm: mm_struct, flags: int, npages: int) -> None:
    """Count ``npages`` (may be negative) in ``total_vm`` and in the class that ``flags`` select."""
    mm.total_vm += npages
    if is_exec_mapping(flags):
        mm.exec_vm += npages
    elif is_stack_mapping(flags):
        mm.stack_vm += npages
    elif is_data_mapping(flags):
        mm.data_vm += npages


@linux("mm/mmap.c")
def may_expand_vm(mm: mm_struct, flags: int, npages: int) -> bool:
    """True if RLIMIT_AS and, for data, RLIMIT_DATA allow ``npages`` more."""
    limit = rlimit(RLIMIT_AS) >> PAGE_SHIFT
    if mm.total_vm + npages > limit:
        #: {npages:pages} more would exceed RLIMIT_AS ({mm.total_vm} of {limit} in use)
        #: -> fewer pages, munmap of others first, or a higher limit: setrlimit TASK as SIZE
        return False
    limit = rlimit(RLIMIT_DATA) >> PAGE_SHIFT
    if is_data_mapping(flags) and mm.data_vm + npages > limit:
        hard = current().signal.rlim.get(RLIMIT_DATA, (0, RLIM_INFINITY))[1]
        if rlimit(RLIMIT_DATA) != 0 or mm.data_vm + npages > hard >> PAGE_SHIFT:
            #: {npages:pages} more would exceed RLIMIT_DATA ({mm.data_vm} of {limit} in use)
            #: -> fewer pages, munmap of others first, or a higher limit: setrlimit TASK data SIZE
            return False
    return True


@linux("mm/util.c")
def __vm_enough_memory(mm: mm_struct, pages: int) -> int:
    """Charge ``pages`` to committed memory: 0, or -ENOMEM if the overcommit policy forbids it."""
    system.counters.vm_committed_as += pages
    mode = system.sysctl.overcommit_memory
    if mode == OVERCOMMIT_ALWAYS:
        return 0
    limit = totalram_pages()
    if mode == OVERCOMMIT_GUESS:
        if pages <= limit:
            return 0
        vm_unacct_memory(pages)
        #: {pages:pages} are more than all of RAM ({limit})
        #: -> fewer pages, noreserve, or a machine with more --mem
        return -ENOMEM
    limit //= 2
    if system.counters.vm_committed_as < limit:
        return 0
    vm_unacct_memory(pages)
    #: {pages:pages} more would exceed the commit limit ({limit} pages: half of RAM)
    #: -> fewer pages
    return -ENOMEM


def vm_unacct_memory(pages: int) -> None:
    """Give back a charge to committed memory."""
    if pages:
        system.counters.vm_committed_as -= pages


def inc_mm_counter(mm: mm_struct, member: int) -> None:
    """Add a page to an rss counter (MM_*)."""
    mm.rss_stat.put(member, mm.rss_stat[member] + 1)


def dec_mm_counter(mm: mm_struct, member: int) -> None:
    """Subtract a page from an rss counter."""
    mm.rss_stat.put(member, mm.rss_stat[member] - 1)


def get_mm_rss(mm: mm_struct) -> int:
    """The number of resident pages: file, anonymous and shared memory."""
    return mm.rss_stat[MM_FILEPAGES] + mm.rss_stat[MM_ANONPAGES] + mm.rss_stat[MM_SHMEMPAGES]


def update_hiwater(mm: mm_struct) -> None:
    """Record the peaks, before memory is released."""
    rss = get_mm_rss(mm)
    mm.hiwater_rss = max(mm.hiwater_rss, rss)
    mm.hiwater_vm = max(mm.hiwater_vm, mm.total_vm)
