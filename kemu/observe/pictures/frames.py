"""Pictures that begin at frames: the paths of a reverse walk, and RAM by counts instead of
owners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.kernel.include.mm_types import vm_area_struct
from kemu.kernel.include.system import system
from kemu.kernel.mm.rmap import folio_test_anon
from kemu.machine import mmu
from kemu.observe import frames
from kemu.observe.entries import read_entry
from kemu.observe.look import looking
from kemu.observe.names import Names, path_of
from kemu.readings import EntryReading, MemoryMap, RmapGraph, RmapPath

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel


def rmap(kernel: Kernel, pfn: int, names: Names = None) -> RmapGraph:
    """The frame and every path from it to a mapping. ``UsageError`` if the machine has no such
    frame."""
    reading = frames.rmap(kernel, pfn, names)
    with looking(kernel):
        found = system.mem_map.get(pfn)
        areas = [vma for vma, _, _ in frames.candidates(found)] if found is not None else []
        paths = tuple(
            RmapPath(visit, vma.vm_pgoff, _through(vma, pfn), _steps(vma, visit.address))
            for vma, visit in zip(areas, reading.visits, strict=True)
        )
        return RmapGraph(frames.read_frame(pfn, names), reading, paths)


def _through(vma: vm_area_struct, pfn: int) -> str:
    """The structure in whose tree the walk finds the VMA: the VMA's own anon_vma first, since pages
    belong to that one."""
    found = system.mem_map[pfn]
    if folio_test_anon(found):
        return f"{found.mapping!r}"
    return (
        path_of(found.mapping.host)
        if vma.vm_file is not None and found.mapping.host is not None
        else "i_mmap"
    )


def _steps(vma: vm_area_struct, address: int) -> tuple[EntryReading, ...]:
    steps, _ = mmu.walk(system.phys, system.geometry, vma.vm_mm.pgd, address)
    return tuple(read_entry(*step) for step in steps)


DIGITS = ".123456789"


def counts(kernel: Kernel) -> MemoryMap:
    """RAM by ``_refcount``: a dot for none, digits, ``+`` for more than nine."""
    with looking(kernel):
        letters = {
            pfn: DIGITS[found._refcount] if 0 <= found._refcount <= 9 else "+"
            for pfn, found in system.mem_map.items()
        }
        runs = frames.runs_of(letters)
        tally: dict[str, int] = {}
        for run in runs:
            tally[run.letter] = tally.get(run.letter, 0) + run.count
        words = {
            ".": "no reference: free",
            **{d: f"refcount {d}" for d in DIGITS[1:]},
            "+": "refcount above 9",
        }
        legend = tuple(
            (letter, word, tally[letter]) for letter, word in words.items() if letter in tally
        )
        return MemoryMap(system.phys.nr_frames, runs, legend)
