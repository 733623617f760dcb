"""Boot: from empty RAM to a kernel with three tasks (the work of start_kernel, without its order).

    RAM       0                1 MiB                                        end
              | firmware: kept | free ... | kernel image (2 MiB) | ... free |
    kernel    direct map of all RAM in large pages, vmalloc area, text: tables shared by every mm
    tasks     0 swapper (idle, one a CPU) - 1 init - 2 kthreadd (no mm of its own: it borrows)

What Linux keeps in slabs (task_struct, VMAs, ...) is outside the emulated RAM; page tables, user
pages, the page cache and the kernel image are in it.  Boot is not recorded: event 0 is the state at
its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isqrt
from types import CodeType, FunctionType
from typing import Any, ClassVar

from kemu.abi.uapi import *
from kemu.errors import UsageError
from kemu.kernel.arch.entry import trap
from kemu.kernel.arch.mmap_layout import mmap_base, mmap_legacy_base
from kemu.kernel.arch.pgtable import (
    level_shifts,
    mk_pte,
    p4d_alloc,
    pgd_offset,
    pmd_alloc,
    protection_map,
    pte_alloc,
    pte_alloc_one,
    pte_offset_map,
    pud_alloc,
    set_pte,
    vm_get_page_prot,
)
from kemu.kernel.arch.tlbflush import switch_mm_irqs_off
from kemu.kernel.arch.uaccess import default_map_window
from kemu.kernel.arch.vdso import init_vdso
from kemu.kernel.include.flags import *
from kemu.kernel.include.lists import INIT_LIST_HEAD
from kemu.kernel.include.mm_types import (
    PAGE_SHIFT,
    PAGE_SIZE,
    files_struct,
    maple_tree,
    mm_struct,
    page,
    super_operations,
    vm_operations_struct,
)
from kemu.kernel.include.mmzone import for_each_zone
from kemu.kernel.include.sched_types import (
    MAX_ORDER,
    PF_KTHREAD,
    SIGNAL_UNKILLABLE,
    counters,
    free_area,
    lruvec,
    percpu,
    pglist_data,
    sysctl,
    task_struct,
    vm_event_state,
    zone,
)
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.kernel.exit import fatal_signal
from kemu.kernel.kernel.fork import copy_process
from kemu.kernel.kernel.mm_life import __mmdrop, mm_alloc
from kemu.kernel.kernel.sched import schedule_to
from kemu.kernel.mm.oom import out_of_memory
from kemu.kernel.mm.page_alloc import GFP_ZERO, alloc_page, memblock_free_pages
from kemu.kernel.mm.reclaim import try_to_free_pages
from kemu.kernel.mm.util import vm_stat_account
from kemu.kernel.mm.vma import vm_area_alloc, vma_link
from kemu.machine.cpu import new_cpu
from kemu.machine.geometry import X86_64_4LEVEL, Geometry
from kemu.machine.physmem import Frame, PhysMem
from kemu.trace.barrier import Table
from kemu.trace.barrier import record as switch_recording
from kemu.trace.digest import digest
from kemu.trace.frames import use_bodies
from kemu.trace.journal import Journal


class Region:
    """A named part of the kernel's half: [start, end)."""

    __slots__ = ("end", "name", "start")

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name, self.start, self.end = name, start, end


PAGE_OFFSET = {
    "x86-64": 0xFFFF888000000000,
    "x86-64-la57": 0xFF11000000000000,
    "sv39": 0xFFFFFFD600000000,
}
VMALLOC_START = {
    "x86-64": 0xFFFFC90000000000,
    "x86-64-la57": 0xFFA0000000000000,
    "sv39": 0xFFFFFFC600000000,
}
KERNEL_TEXT = 0xFFFFFFFF80000000
"""Where the direct map, the vmalloc area and the kernel image begin (Documentation/arch:
x86_64/mm.rst, vm-layout.rst)."""

MiB = 1 << 20
KERNEL_IMAGE = 2 * MiB
MIN_MEMORY, MAX_MEMORY = 8 * MiB, 1 << 40
STACK_SIZE = 132 << 10
"""Bytes of stack that a program starts with: 128 KiB below the page that exec fills."""

SPAWN_BRK = 0x1000000


class Kernel:
    """One booted machine.

    ``mem`` bytes of RAM, ``geometry`` the page-table format, ``nr_cpus`` CPUs; ``record`` keeps a
    journal, which going back requires; ``lru_batch`` turns on the per-CPU LRU batches.  Several
    kernels may exist: ``activate`` makes ``system`` refer to this one.  ``bodies``: functions that
    are replaced in this kernel, which makes it a wrong one."""

    def __init__(
        self,
        mem: int = 64 * MiB,
        geometry: Geometry = X86_64_4LEVEL,
        nr_cpus: int = 2,
        *,
        record: bool = True,
        lru_batch: bool = False,
    ) -> None:
        if mem % PAGE_SIZE or not MIN_MEMORY <= mem <= MAX_MEMORY:
            raise UsageError(
                f"memory of {mem} bytes: expected a whole number of pages from 8M to 1024G"
            )
        if not 1 <= nr_cpus <= 8:
            raise UsageError(f"{nr_cpus} CPUs: expected 1 to 8")
        switch_recording(None)
        use_bodies({})
        self.bodies: Mapping[FunctionType, CodeType] = {}
        self.globals: dict[str, Any] = {}
        self.journal = Journal()
        self.recording = record
        Kernel.running = None
        _boot(mem, geometry, nr_cpus, lru_batch)
        self.globals = system.values()
        Kernel.running = self
        self.activate()

    running: ClassVar[Kernel | None] = None
    """The kernel whose globals are in ``system``."""

    def activate(self) -> None:
        """Make this kernel the one that runs, on its first CPU.  The globals are filled only if
        another one ran: except for ``cpu`` and ``delivered``, which every operation sets, they are
        constant after boot."""
        if Kernel.running is not self:
            system.fill(self.globals)
            Kernel.running = self
        system.cpu = self.globals["cpu"]
        use_bodies(self.bodies)
        switch_recording(self.journal if self.recording else None)

    def replace(self, globals_: dict[str, Any], journal: Journal) -> None:
        """Continue with the globals of another kernel of this size, and the journal that begins
        with them."""
        self.globals, self.journal = globals_, journal
        Kernel.running = None
        self.activate()

    def state_hash(self) -> str:
        """SHA-256 of all state that is recorded, without the journal."""
        self.activate()
        roots = {name: self.globals[name] for name in STATE}
        return digest(roots, _expand)


STATE = (
    "cpus", "node_data", "init_mm", "init_task", "tasks", "files", "vmstat", "sysctl", "counters",
    "mem_map", "phys",
)  # fmt: skip
"""The globals whose contents are state; the others are constant after boot."""


def _expand(obj: Any) -> Iterator[tuple[str, Any]] | None:
    """The parts of objects that are not plain structures, for the digest."""
    if isinstance(obj, maple_tree):
        return iter([("vmas", tuple(obj.vmas))])
    if isinstance(obj, PhysMem):
        return ((hex(pfn), obj.frames[pfn]) for pfn in sorted(obj.frames) if obj.frames[pfn])
    if isinstance(obj, Frame):
        return ((str(i), obj[i]) for i in sorted(obj))
    if obj is system.mem_map:
        return ((hex(pfn), obj[pfn]) for pfn in sorted(obj) if not _untouched(obj[pfn]))
    return iter(()) if isinstance(obj, (Geometry, vm_operations_struct, super_operations)) else None


def _untouched(p: page) -> bool:
    """True for a page in its initial state."""
    return (
        p.next is None
        and not (p.flags or p._refcount or p.page_type or p.private or p.index)
        and p._mapcount == -1
    )


# ---------------------------------------------------------------- the steps of boot


def _boot(mem: int, geometry: Geometry, nr_cpus: int, lru_batch: bool) -> None:
    system.clear()
    _set_up_globals(mem, geometry, nr_cpus)
    system.sysctl.lru_batch = lru_batch
    _hooks()
    image = _free_memory(mem)
    _init_mm(mem, image)
    init_vdso(image >> PAGE_SHIFT)
    _idle_tasks()
    _tasks()


def _set_up_globals(mem: int, geometry: Geometry, nr_cpus: int) -> None:
    system.phys = PhysMem(mem >> PAGE_SHIFT)
    system.geometry = geometry
    system.bits = geometry.bits
    system.protection_map = protection_map(geometry)
    shifts = level_shifts(geometry)
    system.pgd_shift, system.p4d_shift = shifts["pgd"], shifts["p4d"]
    system.pud_shift, system.pmd_shift = shifts["pud"], shifts["pmd"]
    system.mem_map = {}
    system.cpus = [
        percpu(id=number, hw=new_cpu(number, system.phys, geometry)) for number in range(nr_cpus)
    ]
    system.cpu = system.cpus[0]
    only = zone(free_area=tuple(free_area(order=i) for i in range(MAX_ORDER + 1)))
    lists = lruvec()
    for head in (*lists.lists, *(area.free_list for area in only.free_area)):
        INIT_LIST_HEAD(head)
    system.node_data = (pglist_data(node_id=0, node_zones=(only,), lruvec=lists),)
    system.tasks = Table("tasks")
    system.files = Table("files")
    system.vmstat = vm_event_state()
    system.sysctl = sysctl()
    system.counters = counters()
    system.delivered = []


def _hooks() -> None:
    """Set the hooks for upward calls."""
    system.trap = trap
    system.out_of_memory = out_of_memory
    system.reclaim = try_to_free_pages
    system.mmdrop = __mmdrop
    system.fatal_signal = fatal_signal


def _image(mem: int) -> int:
    """The physical address of the kernel image: 16 MiB (CONFIG_PHYSICAL_START), or lower in a
    machine with less memory."""
    return 16 * MiB if mem >= 32 * MiB else 2 * MiB


def _text(image: int) -> int:
    """Where the kernel image is mapped."""
    return KERNEL_TEXT + image % (1 << 30)


def _free_memory(mem: int) -> int:
    """Give the allocator all RAM except the first MiB and the kernel image; returns the image's
    physical address."""
    image = _image(mem)
    for first, last in ((0, MiB), (image, image + KERNEL_IMAGE)):
        for pfn in range(first >> PAGE_SHIFT, last >> PAGE_SHIFT):
            reserved = pfn_to_page(pfn)
            reserved.flags = PG_reserved
            reserved._refcount = 1
    (only,) = for_each_zone()
    memblock_free_pages(only, MiB >> PAGE_SHIFT, image >> PAGE_SHIFT)
    memblock_free_pages(only, (image + KERNEL_IMAGE) >> PAGE_SHIFT, mem >> PAGE_SHIFT)
    _watermarks(mem)
    return image


def _watermarks(mem: int) -> None:
    """min_free_kbytes = 4 * sqrt(lowmem in kB), and the marks that follow from it (reference:
    mm/page_alloc.c)."""
    min_free_kbytes = max(128, min(262144, isqrt(16 * (mem >> 10))))
    (z,) = for_each_zone()
    z.watermark_min = min_free_kbytes >> (PAGE_SHIFT - 10)
    gap = max(z.watermark_min // 4, z.managed_pages * 10 // 10000)
    z.watermark_low = z.watermark_min + gap
    z.watermark_high = z.watermark_low + gap


def _init_mm(mem: int, image: int) -> None:
    """The kernel's own address space: direct map, vmalloc area, kernel text; and the zero page."""
    init_mm = mm_struct(id=0, mm_mt=maple_tree(), mm_users=2, mm_count=1)
    init_mm.mm_mt.mm = init_mm
    system.init_mm = init_mm
    table = pte_alloc_one(init_mm)
    zero = alloc_page(GFP_ZERO)
    assert table is not None
    assert zero is not None
    init_mm.pgd = table.pfn << PAGE_SHIFT
    zero.flags |= PG_reserved
    system.zero_pfn = zero.pfn
    name = system.geometry.name
    _map_large(PAGE_OFFSET[name], 0, mem, executable=False)
    _map_large(_text(image), image, KERNEL_IMAGE, executable=True)
    _map_vmalloc(VMALLOC_START[name])


def _kernel_prot(*, executable: bool) -> int:
    """Leaf entries of the kernel: supervisor, global; text is not writable, data not executable."""
    bits = system.bits
    prot = bits.present | bits.accessed | bits.dirty | bits.glob | bits.read
    return prot | (bits.exec_ if executable else bits.write | bits.nx)


def _map_large(va: int, pa: int, size: int, *, executable: bool) -> None:
    """Map [va, va+size) to [pa, ...) with the largest leaves that alignment allows."""
    levels = system.geometry.levels
    end = va + size
    while va < end:
        fits = [
            n
            for n, lv in enumerate(levels)
            if lv.leaf and not (va | pa) % (1 << lv.shift) and va + (1 << lv.shift) <= end
        ]
        n = fits[0]
        set_pte(_kernel_entry(va, n), _kernel_leaf(pa, n, executable=executable))
        va += 1 << levels[n].shift
        pa += 1 << levels[n].shift


def _kernel_leaf(pa: int, level: int, *, executable: bool) -> int:
    bits = system.bits
    huge = bits.huge if level < len(system.geometry.levels) - 1 else 0
    return pa >> PAGE_SHIFT << bits.pfn_shift | _kernel_prot(executable=executable) | huge


def _kernel_entry(va: int, level: int) -> int:
    """Physical address of init_mm's entry for ``va`` at ``level``, making the tables above it."""
    mm = system.init_mm
    pgd = pgd_offset(mm, va)
    if level == 0:
        return pgd
    name = system.geometry.levels[level].name
    p4d = p4d_alloc(mm, pgd, va)
    if name == "p4d":
        return p4d
    pud = pud_alloc(mm, p4d, va)
    if name == "pud":
        return pud
    pmd = pmd_alloc(mm, pud, va)
    if name == "pmd":
        return pmd
    pte_alloc(mm, pmd)
    return pte_offset_map(pmd, va)


def _map_vmalloc(va: int) -> None:
    """Kthreadd's stack: four pages in the vmalloc area, mapped one by one (CONFIG_VMAP_STACK)."""
    last = len(system.geometry.levels) - 1
    for n in range(4):
        stack_page = alloc_page(GFP_ZERO)
        assert stack_page is not None
        set_pte(
            _kernel_entry(va + n * PAGE_SIZE, last),
            mk_pte(stack_page, _kernel_prot(executable=False)),
        )


def _idle_tasks() -> None:
    """Let each CPU run its idle task on init_mm's tables."""
    for number, cpu in enumerate(system.cpus):
        idle = task_struct(
            pid=0,
            tgid=0,
            comm=f"swapper/{number}",
            flags=PF_KTHREAD,
            active_mm=system.init_mm,
            cpu=number,
        )
        idle.group_leader = idle
        idle.signal.thread_head = (idle,)
        INIT_LIST_HEAD(idle.children)
        idle.sibling.owner = idle
        cpu.idle = cpu.curr = idle
        system.init_mm.mm_count += 1
        system.cpu = cpu
        switch_mm_irqs_off(system.init_mm)
    system.cpu = system.cpus[0]
    system.init_task = system.cpu.idle
    system.tasks.put(0, system.init_task)


def _tasks() -> None:
    """Init and kthreadd, children of the idle task."""
    system.counters.last_pid = 0
    init = _new_task("init")
    kthreadd = _new_task("kthreadd")
    kthreadd.flags |= PF_KTHREAD
    init.signal.flags |= SIGNAL_UNKILLABLE
    init.sighand.action.put(SIGCHLD, "ignore")
    init.signal.rlim.put(RLIMIT_STACK, (8 * MiB, RLIM_INFINITY))
    init.files = files_struct()
    schedule_to(init)
    mm = mm_alloc()
    assert mm is not None
    init.mm = mm
    init.active_mm = mm
    system.cpu.curr = system.init_task
    system.init_task.active_mm = system.init_mm
    _user_layout(mm)
    schedule_to(init)
    _map_stack(mm)
    schedule_to(system.init_task)


def _new_task(name: str) -> task_struct:
    task = copy_process(0, SIGCHLD, 0, 0, 0, name)
    assert not isinstance(task, int)
    task.flags &= ~PF_KTHREAD
    return task


def _user_layout(mm: mm_struct) -> None:
    """Choose where mappings and the heap go, without randomisation (``arch_pick_mmap_layout``)."""
    mm.mmap_base = mmap_base(0, default_map_window(), 8 * MiB)
    mm.mmap_legacy_base = mmap_legacy_base(0, default_map_window())
    mm.start_brk = mm.brk = SPAWN_BRK


def _map_stack(mm: mm_struct) -> None:
    """A stack as after exec, untouched."""
    top = default_map_window()
    vma = vm_area_alloc(mm, top - STACK_SIZE, top)
    assert vma is not None
    vma.vm_flags = VM_STACK_FLAGS
    vma.vm_pgoff = (top - STACK_SIZE) >> PAGE_SHIFT
    vma.vm_page_prot = vm_get_page_prot(VM_STACK_FLAGS)
    vma_link(mm, vma)
    vm_stat_account(mm, VM_STACK_FLAGS, STACK_SIZE >> PAGE_SHIFT)
    system.counters.vm_committed_as += STACK_SIZE >> PAGE_SHIFT
    mm.start_stack = top - 16


def regions(geometry: Geometry) -> list[Region]:
    """The parts of the kernel's half that are mapped here, in address order."""
    name = geometry.name
    size = system.phys.size
    text = _text(_image(size))
    found = [
        Region("direct map", PAGE_OFFSET[name], PAGE_OFFSET[name] + size),
        Region("vmalloc", VMALLOC_START[name], VMALLOC_START[name] + 4 * PAGE_SIZE),
        Region("kernel text", text, text + KERNEL_IMAGE),
    ]
    return sorted(found, key=lambda region: region.start)
