"""Translation: one walk with everything that it touches, whole page tables, the bytes at a
range of addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.kernel.include.mm_types import mm_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.machine import mmu
from kemu.observe.entries import entry_kind, is_table, read_entry, sign_extend, user_end, words
from kemu.observe.frames import read_frame, rights_letters, tlb_rows
from kemu.observe.look import looking
from kemu.observe.names import Names, entry_legend, error_letters, name_of
from kemu.observe.space import read_vma, space_of
from kemu.readings import EntryRun, MemoryDump, PageTables, TableReading, Translation, VmaReading

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

ACCESSES = (("read", mmu.READ), ("write", mmu.WRITE), ("fetch", mmu.FETCH))


def walk(kernel: Kernel, task: task_struct, addr: int, names: Names = None) -> Translation:
    """The walk of ``addr`` (u64) through the task's tables, and what it ends at. Changes nothing:
    no fault, no A or D."""
    with looking(kernel):
        if not 0 <= addr < 1 << 64:
            raise UsageError(f"{addr:#x} is not an address", hint="addresses have 64 bits")
        mm, geometry = space_of(task, names), system.geometry
        canonical = geometry.canonical(addr)
        steps, stopped = (
            mmu.walk(system.phys, geometry, mm.pgd, addr) if canonical else ([], "not canonical")
        )
        shift = (
            geometry.levels[steps[-1].level].shift if steps and not stopped else geometry.page_shift
        )
        found = Translation(
            pid=task.pid,
            name=name_of(task, names),
            address=addr,
            canonical=canonical,
            root=mm.pgd,
            geometry=geometry.name,
            indices=tuple(
                (level.name, index)
                for level, index in zip(geometry.levels, geometry.indices(addr), strict=True)
            ),
            offset=addr & ((1 << shift) - 1),
            legend=entry_legend(system.bits),
            steps=tuple(read_entry(*step) for step in steps),
            stopped=stopped,
            page_size=1 << shift,
            faults=tuple((name, _fault(steps, stopped, access)) for name, access in ACCESSES)
            if canonical
            else (),
            vma=_vma_at(mm, addr),
            tlb=tlb_rows(mm, addr >> geometry.page_shift, names),
        )
        return found if stopped else _with_end(found, steps, names)


def _with_end(found: Translation, steps: list[mmu.Step], names: Names) -> Translation:
    """The reading of a complete walk with the rights, the byte and the frame."""
    geometry = system.geometry
    rights = mmu.rights(geometry, steps)
    physical = mmu.physical(geometry, steps[-1], found.address)
    ram = physical < system.phys.size
    return found.replace(
        rights=rights_letters(rights),
        denied=tuple(_denied(steps)),
        physical=physical,
        byte=system.phys.read(physical, 1)[0] if ram else None,
        frame=read_frame(physical >> geometry.page_shift, names) if ram else None,
    )


RIGHTS = (
    ("read", "read", True),
    ("write", "write", True),
    ("execute", "exec_", True),
    ("execute", "nx", False),
    ("user", "user", True),
)
"""A right, the entry bit (field of EntryBits) that decides it, and the value that the bit must
have."""


def _denied(steps: list[mmu.Step]) -> list[tuple[str, str]]:
    """(right, first level that takes it away)."""
    geometry = system.geometry
    relevant = steps if geometry.combine == "and" else steps[-1:]
    denied = []
    for right, field, wanted in RIGHTS:
        mask = getattr(system.bits, field)
        level = next(
            (step.level for step in relevant if mask and bool(step.entry & mask) is not wanted),
            None,
        )
        if level is not None:
            denied.append((right, geometry.levels[level].name))
    return denied


def _fault(steps: list[mmu.Step], stopped: str, access: int) -> str:
    """The error code of a user access by these tables, ``""`` if they allow it."""
    if not stopped:
        r = mmu.rights(system.geometry, steps)
        if r.user and (
            r.write if access == mmu.WRITE else r.exec_ if access == mmu.FETCH else r.read
        ):
            return ""
    return error_letters(mmu.error_code(stopped, access, user=True))


def _vma_at(mm: mm_struct, addr: int) -> VmaReading | None:
    vma = mm.mm_mt.find(addr)
    return read_vma(vma) if vma is not None and vma.vm_start <= addr else None


# ---------------------------------------------------------------- whole tables


def page_tables(
    kernel: Kernel, task: task_struct, names: Names = None, *, kernel_half: bool = False
) -> PageTables:
    """The task's page tables as a tree, the user half or all."""
    with looking(kernel):
        mm = space_of(task, names)
        end = 1 << 64 if kernel_half else user_end()
        root = _table(mm.pgd >> 12, 0, 0, end)
        legend = entry_legend(system.bits)
        return PageTables(
            task.pid, name_of(task, names), mm.id, system.geometry.name, legend, root, *_count(root)
        )


def _table(pfn: int, level: int, base: int, end: int) -> TableReading:
    """One table; entries that cover addresses from ``end`` on are left out."""
    shift = system.geometry.levels[level].shift
    entries = [
        (i, e)
        for i, e in words(pfn)
        if sign_extend(base | i << shift) < end and entry_kind(level, e) != "none"
    ]
    runs: list[EntryRun] = []
    nxt = 0
    for first, group in _groups(entries, level):
        if first > nxt:
            runs.append(_run(nxt, first - nxt, base, shift))
        run = _run(first, len(group), base, shift)
        below = (
            _table(system.geometry.entry_pfn(group[0]), level + 1, run.start, end)
            if is_table(level, group[0])
            else None
        )
        runs.append(
            run.replace(entry=read_entry(level, (pfn << 12) + first * 8, group[0]), table=below)
        )
        nxt = first + len(group)
    rest = min(
        system.geometry.levels[level].entries, (min(end, base + (512 << shift)) - base) >> shift
    )
    if rest > nxt:
        runs.append(_run(nxt, rest - nxt, base, shift))
    return TableReading(system.geometry.levels[level].name, pfn, len(entries), tuple(runs))


def _run(first: int, count: int, base: int, shift: int) -> EntryRun:
    start = sign_extend(base | first << shift)
    return EntryRun(first, count, start, start + (count << shift))


def _groups(entries: list[tuple[int, int]], level: int) -> list[tuple[int, list[int]]]:
    """Runs of entries as (first index, entries): leaves of neighbouring frames with equal bits."""
    step = (
        1 << system.geometry.levels[level].shift - system.geometry.page_shift
    ) << system.bits.pfn_shift
    groups: list[tuple[int, list[int]]] = []
    for index, entry in entries:
        if groups and not is_table(level, entry):
            first, group = groups[-1]
            if index == first + len(group) and entry - group[-1] == step:
                group.append(entry)
                continue
        groups.append((index, [entry]))
    return groups


def _count(root: TableReading) -> tuple[int, int]:
    """(tables, leaves) below and with ``root``."""
    tables, leaves = 1, 0
    for run in root.runs:
        if run.table is not None:
            below = _count(run.table)
            tables, leaves = tables + below[0], leaves + below[1]
        elif run.entry is not None:
            leaves += run.count
    return tables, leaves


# ---------------------------------------------------------------- bytes

DUMP_LIMIT = 1 << 20


def dump(
    kernel: Kernel, task: task_struct, addr: int, size: int, names: Names = None
) -> MemoryDump:
    """``size`` bytes (at most 1 MiB) from ``addr`` as the tables translate them; None where they do
    not."""
    with looking(kernel):
        if not 0 <= addr < addr + size <= 1 << 64 or size > DUMP_LIMIT:
            raise UsageError(
                f"cannot dump {size} bytes at {addr:#x}",
                hint=f"give give 1 to {DUMP_LIMIT} bytes below 2**64",
                about="size",
            )
        mm, chunks, at = space_of(task, names), [], addr
        while at < addr + size:
            end = min((at | 0xFFF) + 1, addr + size)
            chunks.append((at, _bytes(mm, at, end - at)))
            at = end
        return MemoryDump(task.pid, name_of(task, names), addr, tuple(chunks))


def _bytes(mm: mm_struct, addr: int, size: int) -> bytes | None:
    geometry = system.geometry
    if not geometry.canonical(addr):
        return None
    steps, stopped = mmu.walk(system.phys, geometry, mm.pgd, addr)
    return None if stopped else system.phys.read(mmu.physical(geometry, steps[-1], addr), size)
