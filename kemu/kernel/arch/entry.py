"""Where the CPU enters and leaves the kernel (arch/x86/mm/fault.c, arch/x86/entry/syscall_64.c).

    exc_page_fault -> handle_page_fault -> do_user_addr_fault
         |- no VMA                    bad_area_nosemaphore    SIGSEGV, SEGV_MAPERR
         |- the VMA forbids it        bad_area_access_error   SIGSEGV, SEGV_ACCERR
         |- handle_mm_fault fails     do_sigbus | SEGV_MAPERR | out of memory
         `- done: the instruction runs again

    do_syscall_64: the system call, then syscall_return         its result goes to regs->ax

A fault in kernel mode (copy_to_user) is served in the same way; where user mode would get a signal,
the kernel continues at its fix-up address and the copy is cut short.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import task_size_max
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import U64, mm_struct, vm_area_struct
from kemu.kernel.include.sched_types import TASK_RUNNING
from kemu.kernel.include.system import current, current_mm, system
from kemu.kernel.kernel.signal import fatal_signal_pending, force_sig_fault, get_signal
from kemu.kernel.mm.fault import handle_mm_fault
from kemu.kernel.mm.mmap_lock import (
    lock_vma_under_rcu,
    mmap_read_lock,
    mmap_read_unlock,
    mmap_write_lock,
    mmap_write_unlock,
    vma_end_read,
)
from kemu.kernel.mm.oom import pagefault_out_of_memory
from kemu.kernel.mm.stack import expand_stack_locked
from kemu.kernel.mm.vma import find_vma
from kemu.machine.cpu import Cpu
from kemu.machine.mmu import PF_INSTR, PF_PROT, PF_RSVD, PF_WRITE, GeneralProtection, PageFault
from kemu.trace.frames import linux


class fault_regs:
    """The exception frame: the mode the CPU was in; ``fixed_up``: a kernel access was given up."""

    __slots__ = ("fixed_up", "user_mode")

    def __init__(self, user_mode: bool) -> None:
        self.user_mode = user_mode
        self.fixed_up = False


def trap(cpu: Cpu, fault: PageFault | GeneralProtection, user: bool) -> bool:
    """The trap vector (entry code): True if the instruction runs again."""
    regs = fault_regs(user)
    if isinstance(fault, GeneralProtection):
        exc_general_protection(regs)
    else:
        exc_page_fault(regs, fault.error_code, fault.address)
    if user:
        return exit_to_user_mode()
    return not regs.fixed_up


def exit_to_user_mode() -> bool:
    """Take the pending signals; True if the task continues where it was."""
    task = current()
    if not task.pending and not task.signal.shared_pending:
        return True
    taken = get_signal()
    system.delivered.extend(taken)
    return not taken


def syscall_return(ret: int) -> None:
    """The end of do_syscall_64, ``regs->ax = ret``: the current task's call returns ``ret``, 0 or
    more or a negative errno, which the register holds as u64.  Nothing is stored for a call that
    waits or whose task has ended; a register that already has the value is not written and makes no
    event."""
    task = current()
    if task.state == TASK_RUNNING and task.regs.ax != ret & U64:
        task.regs.ax = ret & U64


@linux("arch/x86/mm/fault.c")
def exc_page_fault(regs: fault_regs, error_code: int, address: int) -> None:
    """The page-fault exception: ``address`` from CR2."""
    handle_page_fault(regs, error_code, address)


@linux("arch/x86/mm/fault.c")
def handle_page_fault(regs: fault_regs, error_code: int, address: int) -> None:
    """Kernel addresses and user addresses are handled separately."""
    if address >= task_size_max():
        do_kern_addr_fault(regs, error_code, address)
    else:
        do_user_addr_fault(regs, error_code, address)


def exc_general_protection(regs: fault_regs) -> None:
    """A non-canonical address: SIGSEGV without the address."""
    if regs.user_mode:
        force_sig_fault(SIGSEGV, SI_KERNEL, 0)
    else:
        regs.fixed_up = True


@linux("arch/x86/mm/fault.c")
def do_kern_addr_fault(regs: fault_regs, error_code: int, address: int) -> None:
    """A kernel address: SIGSEGV, without a hint whether the address is mapped."""
    bad_area_nosemaphore(regs, error_code, address)


@linux("arch/x86/mm/fault.c")
def do_user_addr_fault(regs: fault_regs, error_code: int, address: int) -> None:
    """A fault on a user address, from user mode or from a kernel access with SMAP disabled."""
    tsk = current()
    mm = tsk.mm
    if error_code & PF_RSVD or mm is None or tsk.pagefault_disabled:
        bad_area_nosemaphore(regs, error_code, address)
        return
    flags = FAULT_FLAG_DEFAULT | _fault_flags(regs, error_code)
    vma = None
    if regs.user_mode:
        vma = lock_vma_under_rcu(mm, address)
    if vma is not None:
        if access_error(error_code, vma):
            vma_end_read(vma)
            bad_area_access_error(regs, error_code, address)
            return
        fault = handle_mm_fault(vma, address, flags | FAULT_FLAG_VMA_LOCK)
        if not fault & VM_FAULT_RETRY:
            vma_end_read(vma)
            _fault_done(regs, error_code, address, fault)
            return
        flags |= FAULT_FLAG_TRIED if fault & VM_FAULT_MAJOR else 0
    _fault_under_mmap_lock(regs, error_code, address, flags)


def _fault_under_mmap_lock(regs: fault_regs, error_code: int, address: int, flags: int) -> None:
    """The rest of do_user_addr_fault: with the mmap lock held, repeated while the fault had to
    wait."""
    mm = current_mm()
    while True:
        vma = lock_mm_and_find_vma(mm, address)
        if vma is None:
            bad_area_nosemaphore(regs, error_code, address)  #: nothing is mapped at {address:#x}
            return
        if access_error(error_code, vma):
            mmap_read_unlock(mm)
            #: {vma:range} does not allow the access
            bad_area_access_error(regs, error_code, address)
            return
        fault = handle_mm_fault(vma, address, flags)
        if not fault & VM_FAULT_RETRY:
            break
        flags |= FAULT_FLAG_TRIED
    mmap_read_unlock(mm)
    _fault_done(regs, error_code, address, fault)


def _fault_flags(regs: fault_regs, error_code: int) -> int:
    flags = FAULT_FLAG_WRITE if error_code & PF_WRITE else 0
    flags |= FAULT_FLAG_INSTRUCTION if error_code & PF_INSTR else 0
    return flags | (FAULT_FLAG_USER if regs.user_mode else 0)


def _fault_done(regs: fault_regs, error_code: int, address: int, fault: int) -> None:
    if fault & VM_FAULT_ERROR:
        _fault_failed(regs, error_code, address, fault)


def _fault_failed(regs: fault_regs, error_code: int, address: int, fault: int) -> None:
    """``handle_mm_fault`` could not serve the access."""
    if fatal_signal_pending(current()) and not regs.user_mode:
        regs.fixed_up = True
    elif fault & VM_FAULT_OOM:
        if regs.user_mode:
            pagefault_out_of_memory()
        else:
            regs.fixed_up = True
    elif fault & VM_FAULT_SIGBUS:
        do_sigbus(regs, error_code, address)
    else:
        bad_area_nosemaphore(regs, error_code, address)


@linux("mm/mmap_lock.c")
def lock_mm_and_find_vma(mm: mm_struct, address: int) -> vm_area_struct | None:
    """The VMA for ``address``, with the address space locked for reading; a stack above it is
    expanded.  None, with nothing locked, if there is no VMA."""
    mmap_read_lock(mm)
    vma = find_vma(mm, address)
    if vma is not None and vma.vm_start <= address:
        return vma
    mmap_read_unlock(mm)
    if vma is None or not vma.vm_flags & VM_GROWSDOWN:
        return None
    mmap_write_lock(mm)
    error = expand_stack_locked(vma, address)
    mmap_write_unlock(mm)
    if error:
        return None
    mmap_read_lock(mm)
    return vma


def access_error(error_code: int, vma: vm_area_struct) -> bool:
    """True if the VMA forbids the access.  On this machine any readable, writable or executable VMA
    can be read."""
    if error_code & PF_WRITE:
        return not vma.vm_flags & VM_WRITE
    if error_code & PF_PROT:
        return True
    return not vma.vm_flags & VM_ACCESS_FLAGS


@linux("arch/x86/mm/fault.c")
def bad_area_nosemaphore(regs: fault_regs, error_code: int, address: int) -> None:
    """Nothing is mapped there: SIGSEGV with SEGV_MAPERR."""
    __bad_area_nosemaphore(regs, error_code, address, SEGV_MAPERR)


@linux("arch/x86/mm/fault.c")
def bad_area_access_error(regs: fault_regs, error_code: int, address: int) -> None:
    """Something is mapped there that does not allow this: SIGSEGV with SEGV_ACCERR."""
    __bad_area_nosemaphore(regs, error_code, address, SEGV_ACCERR)


def __bad_area_nosemaphore(regs: fault_regs, error_code: int, address: int, code: int) -> None:
    """Send user mode the signal; continue kernel mode at its fix-up address."""
    if not regs.user_mode:
        regs.fixed_up = True
        return
    if address >= task_size_max():
        error_code |= PF_PROT
    set_signal_archinfo(address, error_code)
    force_sig_fault(SIGSEGV, code, address, error_code)


@linux("arch/x86/mm/fault.c")
def do_sigbus(regs: fault_regs, error_code: int, address: int) -> None:
    """The mapping has no page there (past the end of the file): SIGBUS."""
    if not regs.user_mode:
        regs.fixed_up = True
        return
    set_signal_archinfo(address, error_code)
    force_sig_fault(SIGBUS, BUS_ADRERR, address, error_code)


def set_signal_archinfo(address: int, error_code: int) -> None:
    """Record the fault for the signal frame."""
    tsk = current()
    tsk.trap_nr = 14
    tsk.error_code = error_code
    tsk.cr2 = address
