"""The state as processes see it, as plain facts that can be compared across machines and timelines.

    ("pte", "pte app 0x10000", "")         "pfn 0x112 PWUAD---N"
    ("frame", "pfn 0x112", "_refcount")    "2"

Objects are given by names and numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kemu.kernel.include.mm_types import MM_COUNTER_NAMES, mm_struct
from kemu.kernel.include.system import system
from kemu.observe.entries import leaves
from kemu.observe.look import looking
from kemu.observe.names import Names, entry_letters, name_of, vm_mnemonics

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

Key = tuple[str, str, str]
"""Kind, object and field, as in FieldChange."""


def facts(kernel: Kernel, names: Names = None) -> dict[Key, str]:
    """All facts of the present moment."""
    with looking(kernel):
        found: dict[Key, str] = {}
        for _, task in sorted(system.tasks.items()):
            name = name_of(task, names)
            found["task", f"task {name}", "pid"] = str(task.pid)
            found["task", f"task {name}", "exit_state"] = str(task.exit_state)
            found["task", f"task {name}", "min_flt"] = str(task.min_flt)
            if task.mm is not None:
                found.update(_space(task.mm, name))
        return found


def _space(mm: mm_struct, name: str) -> Iterator[tuple[Key, str]]:
    """The mappings, counters, entries and frames of one address space."""
    for vma in mm.mm_mt:
        yield (
            ("vma", f"vma {vma.vm_start:#x} of {name}", ""),
            f"to {vma.vm_end:#x} {' '.join(vm_mnemonics(vma.vm_flags))}",
        )
    for counter, pages in mm.rss_stat.items():
        yield ("mm", f"mm of {name}", MM_COUNTER_NAMES[counter]), str(pages)
    yield ("mm", f"mm of {name}", "pgtables_bytes"), str(mm.pgtables_bytes)
    for leaf in leaves(mm.pgd, 0, mm.task_size):
        pfn = system.geometry.entry_pfn(leaf.entry)
        yield (
            ("pte", f"pte {name} {leaf.va:#x}", ""),
            f"pfn {pfn:#x} {entry_letters(system.bits, leaf.entry)}",
        )
        page = system.mem_map.get(pfn)
        if page is not None and leaf.entry & system.bits.present:
            yield ("frame", f"pfn {pfn:#x}", "_refcount"), str(page._refcount)
            yield ("frame", f"pfn {pfn:#x}", "_mapcount"), str(page._mapcount)
