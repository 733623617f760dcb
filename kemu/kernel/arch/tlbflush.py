"""Loading an address space on a CPU, and flushing TLBs (arch/x86/mm/tlb.c).

Each CPU keeps six slots (ASIDs).  A slot remembers whose entries it holds and how many flushes of
that mm they have seen:

    mm.tlb_gen  7                 every flush request raises it
    slot        (ctx_id, 6)       this CPU has seen 6 of 7: it must flush before it reuses the slot

So a flush does not disturb a CPU that runs something else; that CPU notices when it switches back.
A lazy CPU (a kernel thread on borrowed tables) is skipped too, unless page tables are freed.
"""

from __future__ import annotations

from kemu.kernel.include.mm_types import PAGE_SHIFT, mm_struct, vm_area_struct
from kemu.kernel.include.sched_types import percpu
from kemu.kernel.include.system import system
from kemu.trace.frames import linux
from kemu.trace.steps import step

TLB_NR_DYN_ASIDS = 6
TLB_FLUSH_ALL = (1 << 64) - 1
tlb_single_page_flush_ceiling = 33
"""A range of more pages than this is flushed as a whole."""


def kern_pcid(asid: int) -> int:
    """The hardware tag of a slot; 0 is not used."""
    return asid + 1


@linux("arch/x86/mm/tlb.c")
def choose_new_asid(next: mm_struct) -> tuple[int, bool]:
    """The slot for ``next`` on this CPU, and whether its entries are stale."""
    cpu = system.cpu
    for asid in range(TLB_NR_DYN_ASIDS):
        ctx_id, tlb_gen = cpu.ctxs.get(asid, (0, 0))
        if ctx_id == next.context_id:
            return asid, tlb_gen < next.tlb_gen
    asid = cpu.next_asid
    cpu.next_asid = (asid + 1) % TLB_NR_DYN_ASIDS
    return asid, True


@linux("arch/x86/mm/tlb.c")
def switch_mm_irqs_off(next: mm_struct) -> None:
    """Load the tables of ``next`` on this CPU."""
    cpu = system.cpu
    real_prev = cpu.loaded_mm
    was_lazy = cpu.is_lazy
    if was_lazy:
        cpu.is_lazy = False
    if real_prev is next:
        if was_lazy and cpu.ctxs[cpu.loaded_mm_asid][1] < next.tlb_gen:
            load_new_mm_cr3(next, cpu.loaded_mm_asid, flush=True)
        return
    if real_prev is not None:
        real_prev.mm_cpumask -= {cpu.id}
    next.mm_cpumask |= {cpu.id}
    asid, need_flush = choose_new_asid(next)
    load_new_mm_cr3(next, asid, flush=need_flush)


def load_new_mm_cr3(next: mm_struct, asid: int, *, flush: bool) -> None:
    """Write CR3 and note what the slot now holds."""
    cpu = system.cpu
    if flush:
        cpu.ctxs.put(asid, (next.context_id, next.tlb_gen))
    cpu.loaded_mm = next
    cpu.loaded_mm_asid = asid
    cpu.hw.load_cr3(next.pgd, kern_pcid(asid), flush=flush)


@linux("arch/x86/mm/tlb.c")
def enter_lazy_tlb(mm: mm_struct) -> None:
    """Let a task without its own address space use the tables of ``mm``."""
    if system.cpu.loaded_mm is not system.init_mm:
        system.cpu.is_lazy = True


@linux("arch/x86/mm/tlb.c")
def flush_tlb_mm_range(mm: mm_struct, start: int, end: int, *, freed_tables: bool = False) -> None:
    """Flush [start, end) on every CPU that uses ``mm``; ``end`` TLB_FLUSH_ALL flushes all of it."""
    if end != TLB_FLUSH_ALL and (end - start) >> PAGE_SHIFT > tlb_single_page_flush_ceiling:
        start, end = 0, TLB_FLUSH_ALL
    step()
    mm.tlb_gen += 1
    for number in sorted(mm.mm_cpumask):
        cpu = system.cpus[number]
        if cpu is not system.cpu:
            step()
        if cpu is system.cpu or not cpu.is_lazy or freed_tables:
            flush_tlb_func(cpu, mm, start, end)


@linux("arch/x86/mm/tlb.c")
def flush_tlb_func(cpu: percpu, mm: mm_struct, start: int, end: int) -> None:
    """Flush on one CPU (on the others it runs in an inter-processor interrupt)."""
    if cpu.loaded_mm is not mm:
        return
    asid = cpu.loaded_mm_asid
    if cpu.is_lazy:
        leave_mm(cpu)
        return
    _, seen = cpu.ctxs[asid]
    if seen >= mm.tlb_gen:
        return
    if end != TLB_FLUSH_ALL and seen == mm.tlb_gen - 1:
        for vpn in range(start >> PAGE_SHIFT, (end + 4095) >> PAGE_SHIFT):
            cpu.hw.tlb.invlpg(vpn, kern_pcid(asid))
    else:
        cpu.hw.tlb.flush_pcid(kern_pcid(asid))
    cpu.ctxs.put(asid, (mm.context_id, mm.tlb_gen))


def leave_mm(cpu: percpu) -> None:
    """Make a lazy CPU give up its borrowed tables and load those of init_mm."""
    executing = system.cpu
    system.cpu = cpu
    switch_mm_irqs_off(system.init_mm)
    system.cpu = executing


def flush_tlb_mm(mm: mm_struct) -> None:
    """Flush all of ``mm``."""
    flush_tlb_mm_range(mm, 0, TLB_FLUSH_ALL)


def flush_tlb_page(vma: vm_area_struct, address: int) -> None:
    """Flush one page of ``vma``."""
    flush_tlb_mm_range(vma.vm_mm, address, address + (1 << PAGE_SHIFT))


def flush_tlb_range(vma: vm_area_struct, start: int, end: int) -> None:
    """Flush [start, end) of ``vma``."""
    flush_tlb_mm_range(vma.vm_mm, start, end)
