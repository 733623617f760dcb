"""RAM: one frame with all its holders, its reverse map, all frames at once, the allocator, the
TLBs.

The references of a frame are explained one by one: its page-table entries (found by the reverse
map), the page cache, the per-CPU batches of the LRU, the kernel for what it uses itself.
References that remain unexplained are reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.kernel.arch.vdso import IMAGE_FRAME
from kemu.kernel.include import flags
from kemu.kernel.include import mm_types as mt
from kemu.kernel.include.mm_types import address_space, mm_struct, page, vm_area_struct
from kemu.kernel.include.mmzone import for_each_zone, nr_free_pages, totalram_pages
from kemu.kernel.include.sched_types import LRU_NAMES, percpu
from kemu.kernel.include.system import system
from kemu.kernel.mm.gup import GUP_PIN_COUNTING_BIAS
from kemu.kernel.mm.rmap import (
    PageAnonExclusive,
    folio_mapcount,
    folio_test_anon,
    page_vma_mapped,
    vma_address,
)
from kemu.machine import mmu
from kemu.machine.mmu import Rights
from kemu.machine.tlb import TlbEntry
from kemu.observe.entries import leaves, tables, user_end
from kemu.observe.look import looking
from kemu.observe.names import Names, entry_letters, mm_label, page_flags, path_of
from kemu.observe.procfs import kpageflags
from kemu.observe.space import read_vma
from kemu.readings import (
    FrameReading,
    FrameRun,
    FreeReading,
    Holder,
    MemoryMap,
    RmapReading,
    RmapVisit,
    TlbCpu,
    TlbReading,
    TlbRow,
    TlbSlot,
)
from kemu.readings.memory import MEANINGS, OWNERS

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

PREVIEW = 16
"""Number of bytes of a frame that its reading contains."""


def frame(kernel: Kernel, pfn: int, names: Names = None) -> FrameReading:
    """The frame and its ``struct page``.  ``UsageError`` if the machine has no such frame."""
    with looking(kernel):
        return read_frame(_existing(pfn), names)


def _existing(pfn: int) -> int:
    last = system.phys.nr_frames - 1
    if not 0 <= pfn <= last:
        raise UsageError(
            f"frame {pfn:#x} does not exist",
            hint=f"the machine has the frames 0 to {last:#x}",
            about="pfn",
        )
    return pfn


def read_frame(pfn: int, names: Names) -> FrameReading:
    """Like `frame`, for callers that have checked the number."""
    found = system.mem_map.get(pfn) or page(pfn=pfn)
    state = frame_state(found)
    held = holders(found, state, names)
    return FrameReading(
        pfn=pfn,
        address=pfn << mt.PAGE_SHIFT,
        state=state,
        refcount=found._refcount,
        mapcount=folio_mapcount(found),
        flags=page_flags(found.flags),
        flag_word=found.flags,
        letters=kpageflags(found) if state in ("anon", "file", "shmem") else "",
        mapping=_mapping_name(found),
        index=found.index,
        exclusive=state == "anon" and PageAnonExclusive(found),
        holders=held,
        missing=found._refcount - sum(holder.count for holder in held) if state != "zero" else 0,
        order=found.private if found.page_type == mt.PGTY_buddy else None,
        table=_table_name(pfn, names) if state == "table" else "",
        preview=system.phys.read(pfn << mt.PAGE_SHIFT, PREVIEW),
    )


def frame_state(found: page) -> str:
    """What the frame is used for, in one word; "released": its owner has let go of it, and only a
    per-CPU batch still holds it."""
    if found.pfn == system.zero_pfn:
        return "zero"
    if found.page_type == mt.PGTY_table:
        return "table"
    found = mt.page_folio(found)
    if folio_test_anon(found):
        return "anon"
    if isinstance(found.mapping, address_space):
        return "shmem" if found.flags & flags.PG_swapbacked else "file"
    if not found._refcount and not found.flags & flags.PG_reserved:
        return "free"
    return (
        "released"
        if any(found in batch for cpu in system.cpus for _, batch in _batches(cpu))
        else "kernel"
    )


def _mapping_name(found: page) -> str:
    mapping = found.mapping
    if isinstance(mapping, address_space):
        return path_of(mapping.host) if mapping.host is not None else "a file"
    return repr(mapping) if mapping is not None else ""


def _table_name(pfn: int, names: Names) -> str:
    """Which table lies in the frame: ``pmd of parent from 0x0``."""
    for space in address_spaces():
        for at in tables(space.pgd):
            if at.pfn == pfn:
                level = system.geometry.levels[at.level].name
                return f"{level} of {mm_label(space, names)[1]} from {at.va:#x}"
    return "in no address space"


def address_spaces() -> list[mm_struct]:
    """The address spaces by id: init_mm, and each that a task owns or borrows or a CPU has
    loaded."""
    found = {id(system.init_mm): system.init_mm}
    for _, task in sorted(system.tasks.items()):
        found.update({id(space): space for space in (task.mm, task.active_mm) if space is not None})
    for cpu in system.cpus:
        if cpu.loaded_mm is not None:
            found[id(cpu.loaded_mm)] = cpu.loaded_mm
    return sorted(found.values(), key=lambda space: space.id)


# ---------------------------------------------------------------- holders


def holders(found: page, state: str, names: Names) -> tuple[Holder, ...]:
    """All holders of a reference to the page that can be found."""
    mapped_at = [
        (vma, address) for vma, address, mapped in candidates(found) if mapped
    ] or _vdso_places(found)
    held = [_entry_holder(vma, address, names) for vma, address in mapped_at]
    mapping = found.mapping
    if isinstance(mapping, address_space) and mapping.i_pages.get(found.index) is found:
        held.append(Holder("page cache", name=_mapping_name(found)))
    for cpu in system.cpus:
        counts = ((name, batch.count(found)) for name, batch in _batches(cpu))
        held += [Holder(f"{name} batch", count, cpu=cpu.id) for name, count in counts if count]
    held += _pins(found) + _pipes(found)
    if state in ("table", "kernel") and found._refcount:
        held.append(Holder("the page tables" if state == "table" else "the kernel"))
    return tuple(held)


def _pins(found: page) -> list[Holder]:
    """The registered buffers in which the page is pinned, with the references that a pin takes."""
    return [
        Holder("pin", GUP_PIN_COUNTING_BIAS, pid, task.comm, address)
        for pid, task in sorted(system.tasks.items())
        for address, pinned in task.io_buffers
        if pinned is found
    ]


def _pipes(found: page) -> list[Holder]:
    """The pipes that hold the page, each of them once."""
    pipes = {
        file.f_inode.i_ino: file.f_inode.i_pipe.bufs
        for task in system.tasks.values()
        if task.files is not None
        for file in task.files.fd.values()
        if file.f_inode.i_pipe is not None
    }
    counts = (
        (number, sum(held is found for held, *_ in pipes[number])) for number in sorted(pipes)
    )
    return [Holder("pipe", count, name=f"pipe {number}") for number, count in counts if count]


def _batches(cpu: percpu) -> tuple[tuple[str, tuple[page, ...]], ...]:
    """The per-CPU batches; each holds one reference per occurrence of a page in it."""
    return (
        ("lru_add", cpu.lru_add),
        ("lru_activate", cpu.lru_activate),
        ("lru_lazyfree", cpu.lru_lazyfree),
        ("mlock", tuple(folio for folio, _ in cpu.mlock_fbatch)),
    )


def _vdso_places(found: page) -> list[tuple[vm_area_struct, int]]:
    """(VMA, address) where a page of the vdso is mapped. The page does not belong to a file, so no
    reverse walk finds it."""
    offset = (found.pfn - system.vdso_pfn - IMAGE_FRAME) * 4096
    if not found.flags & flags.PG_reserved or found._mapcount < 0:
        return []
    spaces = {id(task.mm): task.mm for task in system.tasks.values() if task.mm is not None}
    vmas = [vma for mm in spaces.values() for vma in mm.mm_mt if vma.vm_name == "[vdso]"]
    places = [
        (vma, vma.vm_start + offset) for vma in vmas if 0 <= offset < vma.vm_end - vma.vm_start
    ]
    return [(vma, address) for vma, address in places if page_vma_mapped(vma.vm_mm, address, found)]


def candidates(found: page) -> list[tuple[vm_area_struct, int, bool]]:
    """(VMA, address, whether it is mapped there) of every VMA in which the reverse walk looks for
    the page."""
    if folio_test_anon(found):
        vmas = [chain.vma for chain in found.mapping.rb_root]
    elif isinstance(found.mapping, address_space):
        vmas = list(found.mapping.i_mmap)
    else:
        return []
    seen = []
    for vma in vmas:
        address = vma_address(vma, found.index)
        if address is not None:
            seen.append((vma, address, bool(page_vma_mapped(vma.vm_mm, address, found))))
    return seen


def _entry(vma: vm_area_struct, address: int) -> int:
    """The last entry on the way to ``address``."""
    return mmu.walk(system.phys, system.geometry, vma.vm_mm.pgd, address).steps[-1].entry


def _entry_holder(vma: vm_area_struct, address: int, names: Names) -> Holder:
    pid, name = mm_label(vma.vm_mm, names)
    entry = _entry(vma, address)
    return Holder("pte", 1, pid, name, address, entry, entry_letters(system.bits, entry))


def rmap(kernel: Kernel, pfn: int, names: Names = None) -> RmapReading:
    """The reverse walk of the frame.  ``UsageError`` if the machine has no such frame."""
    with looking(kernel):
        found = system.mem_map.get(_existing(pfn)) or page(pfn=pfn)
        visits = tuple(
            _visit(vma, address, mapped, names) for vma, address, mapped in candidates(found)
        )
        return RmapReading(
            pfn,
            frame_state(found),
            _mapping_name(found),
            found.index,
            folio_mapcount(found),
            visits,
        )


def _visit(vma: vm_area_struct, address: int, mapped: bool, names: Names) -> RmapVisit:
    pid, name = mm_label(vma.vm_mm, names)
    letters = entry_letters(system.bits, _entry(vma, address)) if mapped else ""
    return RmapVisit(pid, name, vma.vm_mm.id, read_vma(vma), address, mapped, letters)


# ---------------------------------------------------------------- all of RAM


def memory_map(kernel: Kernel, names: Names = None) -> MemoryMap:
    """One letter per frame: ``.`` free, K kernel, T table, Z zero page, F page cache, R released, S
    shared, else the owner's."""
    with looking(kernel):
        owner_of, owners = _owners(names)
        letters = {pfn: _letter(found, owner_of.get(pfn)) for pfn, found in system.mem_map.items()}
        runs = runs_of(letters)
        counts: dict[str, int] = {}
        for run in runs:
            counts[run.letter] = counts.get(run.letter, 0) + run.count
        legend = tuple((c, n, counts[c]) for c, n in {**MEANINGS, **owners}.items() if c in counts)
        return MemoryMap(system.phys.nr_frames, runs, legend)


def _owners(names: Names) -> tuple[dict[int, str], dict[str, str]]:
    """The letter of the one address space that maps each frame, and the names of the letters."""
    owner_of: dict[int, str] = {}
    legend: dict[str, str] = {}
    bits, geometry = system.bits, system.geometry
    for space in address_spaces():
        if space is system.init_mm:
            continue
        letter = OWNERS[len(legend)] if len(legend) < len(OWNERS) else "+"
        legend.setdefault(letter, mm_label(space, names)[1])
        for leaf in leaves(space.pgd, 0, user_end()):
            if leaf.entry & (bits.present | bits.protnone):
                owner_of[geometry.entry_pfn(leaf.entry)] = letter
    return owner_of, legend


def _letter(found: page, owner: str | None) -> str:
    state = frame_state(found)
    fixed = {"free": ".", "kernel": "K", "table": "T", "zero": "Z", "released": "R"}
    if state in fixed:
        return fixed[state]
    if folio_mapcount(found) > 1:
        return "S"
    return owner or ("F" if state in ("file", "shmem") else "+")


def runs_of(letters: dict[int, str]) -> tuple[FrameRun, ...]:
    """All frames in runs; a frame that nothing has claimed is free."""
    runs: list[FrameRun] = []

    def add(first: int, count: int, letter: str) -> None:
        if runs and runs[-1].letter == letter:
            last = runs.pop()
            first, count = last.first, last.count + count
        if count:
            runs.append(FrameRun(first, count, letter))

    nxt = 0
    for pfn in sorted(letters):
        add(nxt, pfn - nxt, ".")
        add(pfn, 1, letters[pfn])
        nxt = pfn + 1
    add(nxt, system.phys.nr_frames - nxt, ".")
    return tuple(runs)


VMSTAT = ("PGFAULT", "PGMAJFAULT", "PGREUSE", "PGALLOC", "PGFREE", "OOM_KILL")
"""Fields of vm_event_state."""


def free(kernel: Kernel) -> FreeReading:
    """The allocator's numbers."""
    with looking(kernel):
        states = {"anon": 0, "file": 0, "shmem": 0, "table": 0, "kernel": 0, "released": 0}
        zones = list(for_each_zone())
        areas = zip(*(zone.free_area for zone in zones), strict=True)
        lrus = [sum(node.lruvec.nr[i] for node in system.node_data) for i in range(len(LRU_NAMES))]
        for found in system.mem_map.values():
            state = frame_state(found)
            if state in states:
                states[state] += 1
        return FreeReading(
            total=system.phys.nr_frames,
            managed=totalram_pages(),
            free=nr_free_pages(),
            orders=tuple(sum(area.nr_free for area in order) for order in areas),
            watermarks=(
                ("min", sum(zone.watermark_min for zone in zones)),
                ("low", sum(zone.watermark_low for zone in zones)),
                ("high", sum(zone.watermark_high for zone in zones)),
            ),
            lru=tuple(zip(LRU_NAMES, lrus, strict=True)),
            vmstat=tuple((name, getattr(system.vmstat, name)) for name in VMSTAT),
            committed=system.counters.vm_committed_as,
            used=tuple(states.items()),
        )


# ---------------------------------------------------------------- TLBs


def rights_letters(r: Rights | TlbEntry) -> str:
    """``rwxu`` with ``-`` for what is not allowed."""
    return "".join(
        c if on else "-" for c, on in (("r", r.read), ("w", r.write), ("x", r.exec_), ("u", r.user))
    )


def tlb(kernel: Kernel, names: Names = None) -> TlbReading:
    """The TLBs of all CPUs."""
    with looking(kernel):
        return TlbReading(tuple(_tlb_cpu(cpu, names) for cpu in system.cpus))


def _tlb_cpu(cpu: percpu, names: Names) -> TlbCpu:
    spaces = {space.context_id: space for space in address_spaces()}
    slots = []
    for asid, (context, gen) in sorted(cpu.ctxs.items()):
        space = spaces.get(context)
        behind = space.tlb_gen - gen if space is not None else 0
        slots.append(TlbSlot(asid, context, gen, space.id if space is not None else 0, behind))
    return TlbCpu(
        cpu=cpu.id,
        curr=cpu.curr.pid if cpu.curr is not None else 0,
        loaded_mm=cpu.loaded_mm.id if cpu.loaded_mm is not None else 0,
        root=cpu.hw.root,
        pcid=cpu.hw.pcid,
        lazy=cpu.is_lazy,
        slots=tuple(slots),
        entries=tuple(_tlb_row(cpu, entry, names) for entry in cpu.hw.tlb.entries()),
    )


def space_of_pcid(cpu: percpu, pcid: int) -> mm_struct | None:
    """The address space whose entries a PCID of the CPU holds (pcid = slot + 1), if it still
    exists."""
    context, _ = cpu.ctxs.get(pcid - 1, (0, 0))
    return next((space for space in address_spaces() if space.context_id == context), None)


def _tlb_row(cpu: percpu, entry: TlbEntry, names: Names) -> TlbRow:
    space = space_of_pcid(cpu, entry.pcid)
    pid, name = mm_label(space, names)
    page_shift = system.geometry.page_shift
    stale = space is not None and is_stale(space, entry)
    rights = rights_letters(entry)
    return TlbRow(
        cpu.id,
        entry.pcid,
        entry.vpn << page_shift,
        entry.pfn,
        rights,
        entry.dirty,
        entry.glob,
        pid,
        name,
        stale,
    )


def is_stale(space: mm_struct, entry: TlbEntry) -> bool:
    """True if the entry allows what the tables do not, or leads to another frame. Fewer rights are
    harmless."""
    geometry = system.geometry
    va = entry.vpn << geometry.page_shift
    steps, stopped = mmu.walk(system.phys, geometry, space.pgd, va)
    if stopped or mmu.physical(geometry, steps[-1], va) >> geometry.page_shift != entry.pfn:
        return True
    now = mmu.rights(geometry, steps)
    pairs = (
        (entry.read, now.read),
        (entry.write, now.write),
        (entry.exec_, now.exec_),
        (entry.user, now.user),
    )
    return any(then and not today for then, today in pairs)


def tlb_rows(space: mm_struct, vpn: int, names: Names) -> tuple[TlbRow, ...]:
    """The entries of all CPUs for page ``vpn`` of ``space``."""
    return tuple(
        _tlb_row(cpu, entry, names)
        for cpu in system.cpus
        for entry in cpu.hw.tlb.entries()
        if entry.vpn == vpn and space_of_pcid(cpu, entry.pcid) is space
    )
