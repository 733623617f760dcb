"""Pictures of address spaces as objects: task -> mm -> VMAs -> anon_vmas and files, and the family
with what its members share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.kernel.include import flags
from kemu.kernel.include.mm_types import anon_vma, inode, mm_struct, page, vm_area_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.kernel.mm.rmap import folio_mapcount
from kemu.observe import space
from kemu.observe.entries import leaves, user_end
from kemu.observe.look import looking
from kemu.observe.names import Names, path_of
from kemu.observe.tasks import task_row, task_tree
from kemu.readings import CachedPage, FamilyGraph, MmAnon, MmFile, MmGraph, MmVma, TaskShares

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

MOST_PAGES = 8
"""Maximum number of a file's pages that are shown one by one."""


def mm(kernel: Kernel, task: task_struct, names: Names = None) -> MmGraph:
    """The task's address space with all that belongs to it; for a kernel thread the one that it
    borrows. ``UsageError`` if it has none."""
    reading = space.mm(kernel, task, names)
    with looking(kernel):
        mine = space.space_of(task, names)
        tasks = [found for _, found in sorted(system.tasks.items())]
        vmas = list(mine.mm_mt)
        files = {
            vma.vm_file.f_inode.i_ino: vma.vm_file.f_inode
            for vma in vmas
            if vma.vm_file is not None
        }
        anons = {chain.anon_vma.id: chain.anon_vma for vma in vmas for chain in vma.anon_vma_chain}
        return MmGraph(
            mm=reading,
            tasks=tuple(task_row(found, names) for found in tasks if found.mm is mine),
            borrowers=tuple(
                task_row(found, names)
                for found in tasks
                if found.mm is None and found.active_mm is mine
            ),
            vmas=tuple(_vma(mine, vma) for vma in vmas),
            anon_vmas=tuple(_anon(found) for _, found in sorted(anons.items())),
            files=tuple(_file(found) for _, found in sorted(files.items())),
        )


def _vma(mine: mm_struct, vma: vm_area_struct) -> MmVma:
    chain = sorted(
        vma.anon_vma_chain, key=lambda link: (link.anon_vma is not vma.anon_vma, link.anon_vma.id)
    )
    anon = tuple(link.anon_vma.id for link in chain)
    file = vma.vm_file.f_inode.i_ino if vma.vm_file is not None else 0
    return MmVma(space.read_vma(vma), space.resident(mine, vma), anon, file)


def _anon(found: anon_vma) -> MmAnon:
    pages = sum(frame.mapping is found for frame in system.mem_map.values())
    return MmAnon(found.id, found.root.id, found.parent.id, len(found.rb_root), pages)


def _file(found: inode) -> MmFile:
    cached = sorted(found.i_mapping.i_pages.items())
    pages = tuple(_cached(index, page) for index, page in cached[:MOST_PAGES])
    return MmFile(found.i_ino, path_of(found), found.kind, found.i_size, len(cached), pages)


def _cached(index: int, found: page) -> CachedPage:
    return CachedPage(index, found.pfn, folio_mapcount(found), bool(found.flags & flags.PG_dirty))


# ---------------------------------------------------------------- the family


def family(kernel: Kernel, names: Names = None) -> FamilyGraph:
    """All processes, and what each shares with the others."""
    tree = task_tree(kernel, names)
    with looking(kernel):
        tasks = [task for _, task in sorted(system.tasks.items())]
        mapped = {id(task.mm): _frames(task.mm) for task in tasks if task.mm is not None}
        return FamilyGraph(tree, tuple(_shares(task, tasks, mapped) for task in tasks))


def _frames(mine: mm_struct) -> set[int]:
    """The frames that the user half maps, without the zero page."""
    mask, shift, present = (
        system.bits.pfn_mask,
        system.bits.pfn_shift,
        system.bits.present | system.bits.protnone,
    )
    found = {
        (leaf.entry & mask) >> shift
        for leaf in leaves(mine.pgd, 0, user_end())
        if leaf.entry & present
    }
    return found - {system.zero_pfn}


def _shares(task: task_struct, tasks: list[task_struct], mapped: dict[int, set[int]]) -> TaskShares:
    others = [other for other in tasks if other is not task]
    frames: list[tuple[int, int]] = []
    if task.mm is not None:
        mine = mapped[id(task.mm)]
        leaders = [
            other for other in others if other.mm not in (None, task.mm) and other.pid == other.tgid
        ]
        counted = ((other.pid, len(mine & mapped[id(other.mm)])) for other in leaders)
        frames = [(pid, count) for pid, count in counted if count]
    return TaskShares(
        pid=task.pid,
        mm=tuple(other.pid for other in others if task.mm is not None and other.mm is task.mm),
        files=tuple(
            other.pid for other in others if task.files is not None and other.files is task.files
        ),
        handlers=tuple(other.pid for other in others if other.sighand is task.sighand),
        frames=tuple(frames),
    )
