"""Work in bulk: which functions run without their calls (trace/inline.py).

Chosen by what a fault, a copy and a fork run through, and measured (tests/bench).  Everything else
stays as it is written.  The result is kept beside the compiled modules, as it takes a second to
make (trace/kept.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kemu.kernel.arch import entry, pgtable, tlbflush, uaccess
from kemu.kernel.include import lists, mm_inline, mm_types, swapops, system
from kemu.kernel.mm import (
    fault,
    fault_missing,
    fault_wp,
    filemap,
    lru,
    mlock_folio,
    mmap_lock,
    page_alloc,
    rmap,
    util,
    zap,
)
from kemu.machine import atomic, mmu, physmem, tlb
from kemu.trace import barrier, kept, steps
from kemu.trace.frames import functions_with_frames, use_expanded

MODULES = (
    entry, fault, fault_missing, fault_wp, filemap, lists, lru, mlock_folio, mm_inline, mm_types, mmap_lock, page_alloc, pgtable,
    rmap, swapops, system, tlbflush, uaccess, util, zap, atomic, mmu, physmem, tlb, barrier, steps,
)  # fmt: skip
"""What is read again."""

SOURCES = tuple(str(Path(module.__file__ or "").parent) for module in (entry, mmu, barrier))
"""The folders of all that the result depends on."""


def _names(*, recorded: bool) -> dict[str, Mapping[str, Any]]:
    """What hides behind a name in all of these modules, as the methods it has."""
    tables = dict.fromkeys(
        ("frames", "frame", "slots", "rss_stat", "nr", "ctxs"),
        barrier.methods_of_tables(recorded=recorded),
    )
    return {
        "phys": vars(physmem.PhysMem),
        "tlb": vars(tlb.Tlb),
        "mm_mt": vars(mm_types.maple_tree),
        **tables,
    }


@cache
def prepare(*, recorded: bool) -> None:
    """Once a process: put the calls in.  That takes a second unless it is found made; for a machine
    that is ``recorded`` it is only done if it can be kept, so that no other process does it
    again."""
    found = kept.load(__file__, SOURCES)
    if found is None and recorded and not kept.possible(__file__):
        return
    if found is None:
        from kemu.trace.inline import (
            expand,
        )  # with the parser and all: not for those who find it made

        without_calls = expand(MODULES, _names(recorded=False))
        found = (without_calls, expand(MODULES, _names(recorded=True), functions_with_frames()))
        kept.save(__file__, SOURCES, found)
    plain, events = (kept.in_place(expanded) for expanded in found)
    use_expanded({False: plain, True: events})
