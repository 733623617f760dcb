"""The TLBs of the CPUs against the tables (reference G: numbers 59 to 63)."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.invariants.registry import ALWAYS, QUIESCENT, Finding, invariant
from kemu.invariants.scan import Scan
from kemu.kernel.include.mm_types import mm_struct
from kemu.kernel.include.sched_types import percpu
from kemu.kernel.include.system import system
from kemu.machine.mmu import rights, walk
from kemu.machine.tlb import TlbEntry


def remembered(scan: Scan, cpu: percpu, mm: mm_struct, slot: TlbEntry) -> str:
    """``CPU 0, TLB entry of app for 0x10000``."""
    return f"CPU {cpu.id}, TLB entry of {scan.space(mm)} for {slot.vpn << 12:#x}"


@invariant(59, 61, when=QUIESCENT)
def tlbs_allow_no_more_than_the_tables(scan: Scan) -> Iterator[Finding]:
    """A cached translation leads where the tables lead and allows no more than they do.

    It may allow less, at the cost of a spurious fault.  Entries that the CPU will drop before it
    uses the slot again do not count.  arch/x86/mm/tlb.c: flush_tlb_mm_range."""
    for cpu, mm, slot in scan.usable_tlb:
        found = walk(system.phys, system.geometry, mm.pgd, slot.vpn << 12)
        if found.stopped:
            yield (
                remembered(scan, cpu, mm, slot),
                f"leads to frame {slot.pfn:#x}",
                "the tables map nothing there",
            )
            continue
        pfn = system.geometry.entry_pfn(found.steps[-1].entry)
        if pfn != slot.pfn:
            yield (
                remembered(scan, cpu, mm, slot),
                f"leads to frame {slot.pfn:#x}",
                f"the tables lead to {pfn:#x}",
            )
            continue
        allowed = rights(system.geometry, found.steps)
        more = [
            name
            for name in ("read", "write", "user", "exec_")
            if getattr(slot, name) and not getattr(allowed, name)
        ]
        if slot.dirty and not found.steps[-1].entry & system.bits.dirty:
            more.append("dirty")
        if more:
            yield remembered(scan, cpu, mm, slot), f"has {', '.join(more)}", "the tables do not"


@invariant(60, when=ALWAYS)
def tlbs_lead_to_no_free_frame(scan: Scan) -> Iterator[Finding]:
    """No cached translation that can still be used leads to a free frame.

    The TLBs are flushed before the last reference is dropped.  mm/mmu_gather.c: tlb_flush_mmu;
    mm/memory.c: wp_page_copy."""
    for cpu, mm, slot in scan.usable_tlb:
        p = system.mem_map.get(slot.pfn)
        if p is not None and p._refcount <= 0:
            yield (
                remembered(scan, cpu, mm, slot),
                f"leads to frame {slot.pfn:#x}",
                f"its _refcount is {p._refcount}: it is free",
            )


@invariant(62, when=QUIESCENT)
def loaded_spaces_know_their_cpus(scan: Scan) -> Iterator[Finding]:
    """A CPU that has an address space loaded is in its ``mm_cpumask``.

    Otherwise no flush would reach the CPU.  arch/x86/mm/tlb.c: switch_mm_irqs_off."""
    for cpu in system.cpus:
        mm = cpu.loaded_mm
        if mm is not None and cpu.id not in mm.mm_cpumask:
            yield (
                f"CPU {cpu.id}",
                f"has {scan.space(mm)} loaded",
                f"mm_cpumask is {sorted(mm.mm_cpumask)}",
            )
        if mm is not None and cpu.hw.root != mm.pgd:
            yield (
                f"CPU {cpu.id}",
                f"CR3 {cpu.hw.root:#x}",
                f"the root of {scan.space(mm)} is {mm.pgd:#x}",
            )


@invariant(63, when=ALWAYS)
def tlb_generations_do_not_run_ahead(scan: Scan) -> Iterator[Finding]:
    """No slot has seen more flushes than were requested, and every context id is unique.

    arch/x86/mm/tlb.c: flush_tlb_func."""
    by_context: dict[int, mm_struct] = {}
    for mm in scan.all_spaces:
        other = by_context.setdefault(mm.context_id, mm)
        if other is not mm:
            yield (
                f"mm of {scan.space(mm)}",
                f"context_id {mm.context_id}",
                f"{scan.space(other)} has it too",
            )
    for cpu in system.cpus:
        for asid, (context, seen) in sorted(cpu.ctxs.items()):
            found = by_context.get(context)
            if found is not None and seen > found.tlb_gen:
                yield (
                    f"CPU {cpu.id} slot {asid}",
                    f"has seen {seen} flushes",
                    f"{found.tlb_gen} were requested",
                )
