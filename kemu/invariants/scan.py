"""One look at the whole machine, shared by all invariants: every entry of every address space,
counted once.

    task.mm -> tables -> entries       Mapped(mm, address, entry, page, vma, table)
                                       entries_of[pfn]   how many of them map a frame
    files   -> page cache, pipes       holders of references
    CPUs    -> batches, TLBs

A wrong kernel leaves states in which kernel functions would crash; the code here relies only on the
shape of the tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from kemu.kernel.arch.pgtable import pte_present, pte_special
from kemu.kernel.include.flags import PG_reserved
from kemu.kernel.include.lists import list_for_each, list_head
from kemu.kernel.include.mm_types import address_space, inode, mm_struct, page, vm_area_struct
from kemu.kernel.include.mmzone import for_each_zone
from kemu.kernel.include.sched_types import percpu, task_struct
from kemu.kernel.include.swapops import Kind, classify
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import PAGE_OFFSET
from kemu.machine.tlb import TlbEntry
from kemu.observe.entries import is_table, user_end, words
from kemu.observe.names import Names, mm_label

GUP_PIN_COUNTING_BIAS = 1024


class Mapped(NamedTuple):
    """A present last-level entry.  ``page`` is None for a frame that is not counted; ``table`` is
    the frame of the table that holds the entry."""

    mm: mm_struct
    address: int
    entry: int
    pfn: int
    page: page | None
    vma: vm_area_struct | None
    table: int


class Marker(NamedTuple):
    """An entry that is neither empty nor present, such as a guard marker."""

    mm: mm_struct
    address: int
    vma: vm_area_struct | None
    kind: Kind


class TableFrame(NamedTuple):
    """A page table below the root: its level, frame, first address, and the entry that points to
    it."""

    mm: mm_struct
    level: int
    pfn: int
    address: int
    entry: int


class Scan:
    """The machine as it is now, made once for a check of any number of invariants.  ``names``
    gives the name of a task by its pid."""

    def __init__(self, names: Names = None) -> None:
        self.names = names
        self.pages = system.mem_map
        self.zones = list(for_each_zone())
        self.mapped: list[Mapped] = []
        self.markers: list[Marker] = []
        self.tables: list[TableFrame] = []
        self.tasks: list[task_struct] = [task for _, task in sorted(system.tasks.items())]
        self.spaces = _distinct([task.mm for task in self.tasks])
        """The address spaces that have an owner, by the owner's pid."""
        for mm in self.spaces:
            if mm.pgd:
                self._read_table(mm, mm.pgd >> 12, 0, 0)
        self.entries_of = Counter(m.pfn for m in self.mapped if m.page is not None)

    # ---------------------------------------------------------------- tables

    def _read_table(self, mm: mm_struct, pfn: int, level: int, base: int) -> None:
        geometry = system.geometry
        if level == len(geometry.levels) - 1:
            self._read_entries(mm, pfn, base)
            return
        shift, end = geometry.levels[level].shift, user_end()
        for index, entry in words(pfn):
            address = base | index << shift
            if address >= end:
                break
            if is_table(level, entry):
                below = geometry.entry_pfn(entry)
                self.tables.append(TableFrame(mm, level + 1, below, address, entry))
                self._read_table(mm, below, level + 1, address)

    def _read_entries(self, mm: mm_struct, table: int, base: int) -> None:
        """The entries of one last-level table, each with its VMA."""
        pfn_of, pages = system.geometry.entry_pfn, system.mem_map
        vma: vm_area_struct | None = None
        for index, entry in words(table):
            address = base | index << 12
            if vma is None or not vma.vm_start <= address < vma.vm_end:
                vma = mm.mm_mt.find(address)
                vma = vma if vma is not None and vma.vm_start <= address else None
            if not pte_present(entry):
                self.markers.append(Marker(mm, address, vma, classify(entry)))
                continue
            pfn = pfn_of(entry)
            found = None if pte_special(entry) else pages.get(pfn) or page(pfn=pfn)
            self.mapped.append(Mapped(mm, address, entry, pfn, found, vma, table))

    def table_locked(self, mapped: Mapped) -> bool:
        """True while entries of the table are being changed."""
        found = system.mem_map.get(mapped.table)
        return found is not None and bool(found.ptl)

    # ---------------------------------------------------------------- names

    def space(self, mm: mm_struct) -> str:
        """The name of an address space."""
        return mm_label(mm, self.names)[1]

    def at(self, mapped: Mapped | Marker) -> str:
        """``app 0x10000``."""
        return f"{self.space(mapped.mm)} {mapped.address:#x}"

    def task(self, task: task_struct) -> str:
        """The name of a task."""
        return f"task {task.pid} {self.names(task.pid) if self.names is not None else task.comm}"

    # ---------------------------------------------------------------- holders

    @cached_property
    def all_spaces(self) -> list[mm_struct]:
        """The address spaces of ``spaces``, and those without an owner that a CPU still has loaded
        or borrowed."""
        held = [
            mm
            for cpu in system.cpus
            for mm in (cpu.curr.active_mm, cpu.loaded_mm)
            if mm is not system.init_mm
        ]
        return _distinct([*self.spaces, *held])

    @cached_property
    def inodes(self) -> list[inode]:
        """Every file that has a name, is open, or is mapped."""
        known = list(system.files.values())
        known += [
            file.f_inode
            for task in self.tasks
            if task.files is not None
            for file in task.files.fd.values()
        ]
        known += [
            vma.vm_file.f_inode for mm in self.spaces for vma in mm.mm_mt if vma.vm_file is not None
        ]
        known += [
            p.mapping.host for p in self.pages.values() if isinstance(p.mapping, address_space)
        ]
        return sorted({id(node): node for node in known}.values(), key=lambda node: node.i_ino)

    @cached_property
    def cached(self) -> dict[int, tuple[inode, int]]:
        """Frame -> (file, index) of every page in a page cache."""
        return {
            p.pfn: (node, index)
            for node in self.inodes
            for index, p in node.i_mapping.i_pages.items()
        }

    @cached_property
    def batched(self) -> Counter[int]:
        """References that the per-CPU batches of the LRU hold, by frame."""
        return Counter(p.pfn for cpu in system.cpus for p in batches(cpu))

    @cached_property
    def in_pipes(self) -> Counter[int]:
        """References that pipes hold, by frame."""
        return Counter(
            held[0].pfn
            for node in self.inodes
            if node.i_pipe is not None
            for held in node.i_pipe.bufs
        )

    @cached_property
    def pinned(self) -> Counter[int]:
        """Pins of registered buffers, by frame."""
        return Counter(p.pfn for task in self.tasks for _, p in task.io_buffers)

    @cached_property
    def kernels_own(self) -> frozenset[int]:
        """Frames that the kernel itself uses: its image, the zero page, and those that its half
        maps page by page."""
        own = {system.zero_pfn} | {
            pfn for pfn, p in system.mem_map.items() if p.flags & PG_reserved
        }
        return frozenset(own | set(_kernel_pages(system.init_mm.pgd >> 12, 0, 0)))

    @cached_property
    def roots(self) -> dict[int, str]:
        """Frame of each root table -> its address space."""
        spaces = [*self.all_spaces, system.init_mm]
        return {
            mm.pgd >> 12: "the kernel" if mm is system.init_mm else self.space(mm)
            for mm in spaces
            if mm.pgd
        }

    @cached_property
    def usable_tlb(self) -> list[tuple[percpu, mm_struct, TlbEntry]]:
        """The cached translations that an access could still use, with CPU and address space.

        A CPU that has the address space loaded uses all entries of its slot.  In a slot that is
        not loaded, and on a lazy CPU, entries count only if no flush has been requested since, for
        the CPU checks that before it uses the slot again (``choose_new_asid``)."""
        by_context = {mm.context_id: mm for mm in self.all_spaces}
        found = []
        for cpu in system.cpus:
            for slot in cpu.hw.tlb.entries():
                context, seen = cpu.ctxs.get(slot.pcid - 1, (0, 0))
                mm = by_context.get(context)
                if mm is None or slot.glob:
                    continue
                if (cpu.loaded_mm is mm and not cpu.is_lazy) or seen == mm.tlb_gen:
                    found.append((cpu, mm, slot))
        return found


def listed(head: list_head) -> list[Any]:
    """The nodes of a list, at most as many as there are frames, so that the walk ends even if a
    wrong kernel made a cycle."""
    return list(islice(list_for_each(head), system.phys.nr_frames))


def batches(cpu: percpu) -> Iterator[page]:
    """The pages in the batches of a CPU, each of which holds a reference."""
    yield from cpu.lru_add
    yield from cpu.lru_activate
    yield from cpu.lru_lazyfree
    yield from (p for p, _ in cpu.mlock_fbatch)


def _distinct(spaces: list[mm_struct | None]) -> list[mm_struct]:
    return list({id(mm): mm for mm in spaces if mm is not None}.values())


def _kernel_pages(table: int, level: int, base: int) -> Iterator[int]:
    """The frames that last-level entries in the kernel's half map, and the tables on the way.
    The direct map, which has last-level entries where RAM ends inside a large page, is left out: it
    says nothing about the owner of a frame."""
    geometry = system.geometry
    last, direct = (
        len(geometry.levels) - 1,
        PAGE_OFFSET[geometry.name] & (1 << geometry.va_bits) - 1,
    )
    for index, entry in words(table):
        pfn, address = geometry.entry_pfn(entry), base | index << geometry.levels[level].shift
        if level == last and address - direct != pfn << 12:
            yield pfn
        elif level != last and is_table(level, entry):
            yield pfn
            yield from _kernel_pages(pfn, level + 1, address)
