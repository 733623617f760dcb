"""Address spaces: the mm_struct, its VMAs, and the map of the whole."""

from __future__ import annotations

from kemu.errors import UsageError
from kemu.kernel.include import flags
from kemu.kernel.include import mm_types as mt
from kemu.kernel.include.mm_types import anon_vma, mm_struct, vm_area_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.kernel.init.boot import regions as mapped_regions
from kemu.observe.entries import entry_kind, leaves
from kemu.observe.look import looking
from kemu.observe.names import Names, mm_flags, name_of, vm_flag_names, vm_mnemonics
from kemu.observe.regions import REGIONS
from kemu.readings import (
    AddressSpace,
    AnonLink,
    LayoutReading,
    MmHolder,
    MmReading,
    Region,
    VmaDetail,
    VmaReading,
)

DEVICES = {"disk": "fe:00", "tmpfs": "00:1a", "memfd": "00:01", "shm": "00:01"}
"""major:minor that maps shows, by kind of file: a virtio disk, a tmpfs mount, the kernel's own
shared-memory mount."""

GATE = VmaReading(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, "--xp", name="[vsyscall]")
"""The page that x86 shows at the end of every maps; it is not a VMA (arch/x86/entry/vsyscall)."""


def gate_vma(mm: mm_struct | None) -> VmaReading | None:
    """The vsyscall page, where the architecture has one."""
    return GATE if mm is not None and system.geometry.name.startswith("x86") else None


def permissions(vma: vm_area_struct) -> str:
    """``rw-p``: the last is ``s`` for every MAP_SHARED."""
    bits = (("r", flags.VM_READ), ("w", flags.VM_WRITE), ("x", flags.VM_EXEC))
    letters = "".join(letter if vma.vm_flags & bit else "-" for letter, bit in bits)
    return letters + ("s" if vma.vm_flags & flags.VM_MAYSHARE else "p")


def vma_name(vma: vm_area_struct) -> str:
    """What maps shows after the inode (get_vma_name)."""
    mm = vma.vm_mm
    if vma.vm_file is not None:
        return vma.vm_file.f_path.replace("\n", "\\012")
    if vma.vm_name or mm is None:
        return vma.vm_name
    if vma.vm_start < mm.brk and vma.vm_end > mm.start_brk:
        return "[heap]"
    return "[stack]" if vma.vm_start <= mm.start_stack <= vma.vm_end else ""


def read_vma(vma: vm_area_struct) -> VmaReading:
    """One line of maps."""
    backing = vma.vm_file
    return VmaReading(
        start=vma.vm_start,
        end=vma.vm_end,
        perm=permissions(vma),
        offset=vma.vm_pgoff << mt.PAGE_SHIFT if backing is not None else 0,
        device=DEVICES.get(backing.f_inode.kind, "00:00") if backing is not None else "00:00",
        inode=backing.f_inode.i_ino if backing is not None else 0,
        name=vma_name(vma),
    )


def address_space(task: task_struct, names: Names = None) -> AddressSpace:
    """/proc/PID/maps."""
    mm = task.mm
    vmas = tuple(map(read_vma, mm.mm_mt)) if mm is not None else ()
    return AddressSpace(
        task.pid, name_of(task, names), mm.id if mm is not None else 0, vmas, gate_vma(mm)
    )


def need_mm(task: task_struct, names: Names = None) -> mm_struct:
    """The task's address space.  ``UsageError`` if it has none."""
    if task.mm is not None:
        return task.mm
    why = "it is a zombie" if task.exit_state else "it is a kernel thread"
    what = f"{name_of(task, names)} (pid {task.pid}) has no address space"
    raise UsageError(what, hint=f"{why}; ps lists the tasks", about="task")


def space_of(task: task_struct, names: Names = None) -> mm_struct:
    """The address space that the task uses: its own, else the one that it borrows.  ``UsageError``
    if there is none."""
    space = task.mm if task.mm is not None else task.active_mm
    return space if space is not None else need_mm(task, names)


# ---------------------------------------------------------------- mm

LAYOUT_FIELDS = (
    "start_code",
    "end_code",
    "start_data",
    "end_data",
    "start_brk",
    "brk",
    "mmap_base",
    "start_stack",
    "arg_start",
    "arg_end",
    "env_start",
    "env_end",
    "task_size",
    "vdso",
)
SIZE_FIELDS = (
    "mm_users",
    "mm_count",
    "map_count",
    "total_vm",
    "locked_vm",
    "pinned_vm",
    "data_vm",
    "exec_vm",
    "stack_vm",
    "pgtables_bytes",
    "hiwater_rss",
    "hiwater_vm",
    "context_id",
    "tlb_gen",
)


def mm(kernel: Kernel, task: task_struct, names: Names = None) -> MmReading:
    """The task's mm_struct; for a kernel thread the one that it borrows.  ``UsageError`` if there
    is none."""
    with looking(kernel):
        space = space_of(task, names)
        return MmReading(
            id=space.id,
            pid=task.pid,
            name=name_of(task, names),
            pgd=space.pgd,
            users=_users(space, names),
            counts=_counts(space, names),
            rss=tuple((name, space.rss_stat[i]) for i, name in enumerate(mt.MM_COUNTER_NAMES)),
            layout=tuple((field, getattr(space, field)) for field in LAYOUT_FIELDS),
            cpumask=tuple(sorted(space.mm_cpumask)),
            flags=mm_flags(space.flags),
            exe=space.exe_file.f_path if space.exe_file is not None else "",
            **{field: getattr(space, field) for field in SIZE_FIELDS},
        )


def counter(space: mm_struct, name: str) -> int | None:
    """A counter of ``rss_stat`` by its Linux name, in pages; None for a name that it does not
    have."""
    known = mt.MM_COUNTER_NAMES
    return space.rss_stat[known.index(name)] if name in known else None


def _users(space: mm_struct, names: Names) -> tuple[MmHolder, ...]:
    tasks = [task for _, task in sorted(system.tasks.items()) if task.mm is space]
    return tuple(MmHolder("task", task.pid, name_of(task, names)) for task in tasks)


def _counts(space: mm_struct, names: Names) -> tuple[MmHolder, ...]:
    """All users together hold one; each CPU that borrows the mm one more."""
    holders = [MmHolder("its users", 0, "")] if space.mm_users else []
    for cpu in system.cpus:
        task = cpu.curr
        if task is not None and task.mm is None and task.active_mm is space:
            holders.append(MmHolder(f"borrowed on CPU {cpu.id} by", task.pid, name_of(task, names)))
    return tuple(holders)


# ---------------------------------------------------------------- one VMA


def vma(task: task_struct, addr: int, names: Names = None) -> VmaDetail:
    """The VMA that contains ``addr``. ``UsageError``, naming the neighbours, if there is none."""
    space = need_mm(task, names)
    found = space.mm_mt.find(addr)
    if found is None or found.vm_start > addr:
        raise UsageError(
            f"{addr:#x} is not in any mapping of {name_of(task, names)}",
            hint=_near(space, addr),
            about="addr",
        )
    before, after = space.mm_mt.before(found.vm_start), space.mm_mt.find(found.vm_end)
    return VmaDetail(
        pid=task.pid,
        name=name_of(task, names),
        mm=space.id,
        vma=read_vma(found),
        kind=found.vm_ops.name if found.vm_ops is not None else "anonymous",
        flags=vm_mnemonics(found.vm_flags),
        names=vm_flag_names(found.vm_flags),
        vm_flags=found.vm_flags,
        page_prot=found.vm_page_prot,
        pgoff=found.vm_pgoff,
        resident=resident(space, found),
        anon=tuple(_link(chain.anon_vma, found) for chain in found.anon_vma_chain),
        before=read_vma(before) if before is not None else None,
        after=read_vma(after) if after is not None else None,
    )


def _near(space: mm_struct, addr: int) -> str:
    around = (space.mm_mt.before(addr), space.mm_mt.find(addr))
    shown = [f"{v.vm_start:#x}-{v.vm_end:#x}" for v in around if v is not None]
    return f"the nearest are {' and '.join(shown)}" if shown else "it has no mapping at all"


def resident(space: mm_struct, area: vm_area_struct) -> int:
    """Pages of the VMA that have a present entry (also one of PROT_NONE)."""
    found = leaves(space.pgd, area.vm_start, area.vm_end)
    return sum(entry_kind(leaf.level, leaf.entry) in ("page", "protnone", "huge") for leaf in found)


def _link(av: anon_vma, area: vm_area_struct) -> AnonLink:
    return AnonLink(
        id=av.id,
        root=av.root.id,
        parent=av.parent.id,
        refcount=av.refcount,
        num_children=av.num_children,
        num_active_vmas=av.num_active_vmas,
        vmas=len(av.rb_root),
        own=av is area.anon_vma,
    )


# ---------------------------------------------------------------- the whole of it


def layout(kernel: Kernel, task: task_struct, names: Names = None) -> LayoutReading:
    """The regions of the architecture, with the task's VMAs in the user half and what this kernel
    has mapped in its own."""
    with looking(kernel):
        geometry = system.geometry
        placed = [
            Region(v.start, v.end, "vma", v.name, v.perm) for v in address_space(task, names).vmas
        ]
        placed += [Region(r.start, r.end, "mapped", r.name) for r in mapped_regions(geometry)]
        regions = sorted(
            [*REGIONS[geometry.name], *placed],
            key=lambda region: (region.start, region.kind in ("vma", "mapped")),
        )
        return LayoutReading(
            task.pid, name_of(task, names), geometry.title, geometry.va_bits, tuple(regions)
        )
