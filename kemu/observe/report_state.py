"""The state as the report shows it, and what each event changes of it.

Reading the whole machine at each of 2,000 moments would take a minute. An event says which object
it wrote, and so which facts may have changed; only those are read again:

    a word of RAM       the entry, if the frame is a page table; else the first bytes of the frame
    a field of a page   the look of that frame; a table begins or ends
    a copied row        the entries of both tables, the looks of the pages
    a CPU's batch       the looks of the pages that came or went
    anything else       the tasks and the address spaces with their mappings

A fact is always read from the machine, never computed from
the event. A test holds the sum of the changes against readings of whole moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kemu.kernel.arch.pgtable import pte_protnone, pte_special
from kemu.kernel.include import lists, sched_types
from kemu.kernel.include import mm_types as mt
from kemu.kernel.include.mm_types import PGTY_table, mm_struct, page
from kemu.kernel.include.swapops import classify
from kemu.kernel.include.system import system
from kemu.kernel.mm.rmap import PageAnonExclusive, folio_mapcount
from kemu.kernel.mm.rows import Row
from kemu.machine.mmu import is_leaf
from kemu.machine.physmem import Frame
from kemu.machine.tlb import Tlb
from kemu.observe.entries import tables, words
from kemu.observe.frames import address_spaces, frame_state
from kemu.observe.names import Names, entry_letters, mm_label, name_of
from kemu.observe.space import read_vma
from kemu.observe.tasks import task_row
from kemu.observe.who import Directory
from kemu.readings.report import (
    ENTRY,
    FRAMES,
    NO_ENTRY,
    NO_TABLE,
    SPACES,
    TASKS,
    FrameLook,
    Op,
    Pools,
    SpaceRow,
    WordLook,
)

SILENT = {
    lists.list_head,
    lists.list_node,
    sched_types.zone,
    sched_types.free_area,
    sched_types.vm_event_state,
    sched_types.counters,
    sched_types.lruvec,
    mt.anon_vma,
    mt.anon_vma_chain,
    Tlb,
}
"""Objects of which the report shows nothing."""

DATA = ("anon", "file", "shmem")
"""States of frames whose first bytes are shown."""

PREVIEW = 16


class Pool(dict[Any, int]):
    """Things by their place, each of them once."""

    def place(self, thing: Any) -> int:
        """The place of the thing."""
        return self.setdefault(thing, len(self))


class States:
    """The facts of the shown moment, kept up to date event by event."""

    def __init__(self, who: Directory, names: Names = None) -> None:
        self.who, self.names = who, names
        self.words, self.looks, self.vmas, self.spaces, self.tasks = (
            Pool(),
            Pool(),
            Pool(),
            Pool(),
            Pool(),
        )
        self.tables: dict[int, dict[int, tuple[int, int]]] = {}
        self.frames: dict[int, int] = {}
        self.all_spaces: Op = ()
        self.all_tasks: Op = ()
        self.made: dict[int, mm_struct] = {}
        self.readers: dict[type, Callable[..., list[Op]]] = {
            Frame: self._word,
            page: self._page,
            Row: self._row,
            sched_types.percpu: self._cpu,
        }

    def pools(self) -> Pools:
        """The things that the ops so far refer to."""
        return Pools(
            *(tuple(pool) for pool in (self.words, self.looks, self.vmas, self.spaces, self.tasks))
        )

    def begin(self) -> list[Op]:
        """All facts of this moment."""
        found = [
            at.pfn
            for space in address_spaces()
            if space is not system.init_mm
            for at in tables(space.pgd)
        ]
        ops = [op for pfn in dict.fromkeys(found) for op in self._table(pfn)]
        return [*ops, *self._looks(sorted(system.mem_map)), *self._people()]

    def after(self, obj: Any, field: Any, old: Any, new: Any) -> list[Op]:
        """What the event, which has just happened, changed."""
        if obj is system.phys.frames:
            return [*(self._table(field) if field in self.tables else ()), *self._looks([field])]
        reader = self.readers.get(type(obj))
        if reader is not None:
            return reader(obj, field, old, new)
        if type(obj) is mm_struct:
            self.made[id(obj)] = obj
        return [] if type(obj) in SILENT else self._people()

    # ---------------------------------------------------------------- readers of one kind of event

    def _word(self, obj: Frame, field: int, _old: Any, _new: Any) -> list[Op]:
        if obj.pfn in self.tables:
            return self._entries(obj.pfn, [field])
        return self._looks([obj.pfn]) if field * 8 < PREVIEW else []

    def _page(self, obj: page, field: str, old: Any, _new: Any) -> list[Op]:
        ops = self._looks([obj.pfn])
        if field == "page_type" and obj.page_type == PGTY_table:
            return [*ops, *self._table(obj.pfn)]
        if (
            field == "page_type"
            and old == PGTY_table
            and self.tables.pop(obj.pfn, None) is not None
        ):
            return [*ops, (NO_TABLE, obj.pfn)]
        return ops

    def _row(self, obj: Row, _field: Any, _old: Any, _new: Any) -> list[Op]:
        words: dict[int, list[int]] = {}
        pages = set()
        for part, field, _, _ in obj.changes():
            if isinstance(part, Frame):
                words.setdefault(part.pfn, []).append(field)
            elif isinstance(part, page):
                pages.add(part.pfn)
        ops = [op for pfn, indices in words.items() for op in self._entries(pfn, indices)]
        return [*ops, *self._looks(sorted(pages))]

    def _cpu(self, _obj: Any, _field: str, old: Any, new: Any) -> list[Op]:
        batches = [item for batch in (old, new) if isinstance(batch, tuple) for item in batch]
        pages = [item[0] if isinstance(item, tuple) else item for item in batches]
        return [
            *self._looks(sorted({p.pfn for p in pages if isinstance(p, page)})),
            *self._people(),
        ]

    # ---------------------------------------------------------------- facts, read again

    def _table(self, pfn: int) -> list[Op]:
        """The frame is a page table: all its entries."""
        known = self.tables.setdefault(pfn, {})
        return self._entries(pfn, sorted({*known, *(index for index, _ in words(pfn))}))

    def _entries(self, pfn: int, indices: Iterable[int]) -> list[Op]:
        """Entries of a table, in runs; unchanged ones are left out."""
        known = self.tables.setdefault(pfn, {})
        frame: dict[int, int] = system.phys.frames.get(pfn) or {}
        runs: list[list[int]] = []
        for index in sorted(indices):
            look = self._look_of_word(frame.get(index, 0))
            if known.get(index) == look:
                continue
            if look is None:
                del known[index]
            else:
                known[index] = look
            run = [ENTRY, pfn, index, 1, *look] if look is not None else [NO_ENTRY, pfn, index, 1]
            if not (runs and _goes_on(runs[-1], run)):
                runs.append(run)
        return [tuple(run) for run in runs]

    def _look_of_word(self, entry: int) -> tuple[int, int] | None:
        """(word, pfn); None for an empty entry."""
        kind: str = classify(entry)
        if kind == "none":
            return None
        bits = system.bits
        if pte_protnone(entry):
            kind = "protnone"
        elif kind == "guard":
            kind = "marker"
        framed = kind in ("present", "protnone")
        base = entry & ~bits.pfn_mask if framed else entry
        look = WordLook(
            base,
            entry_letters(bits, entry),
            kind,
            is_leaf(bits, entry),
            framed and pte_special(entry),
        )
        return self.words.place(look), system.geometry.entry_pfn(entry) if framed else 0

    def _looks(self, pfns: Iterable[int]) -> list[Op]:
        """The looks of frames, in runs; unchanged ones are left out."""
        runs: list[list[int]] = []
        for pfn in pfns:
            look = self._look_of_frame(pfn)
            if self.frames.get(pfn) == look:
                continue
            self.frames[pfn] = look
            if runs and runs[-1][1] + runs[-1][2] == pfn and runs[-1][3] == look:
                runs[-1][2] += 1
            else:
                runs.append([FRAMES, pfn, 1, look])
        return [tuple(run) for run in runs]

    def _look_of_frame(self, pfn: int) -> int:
        found = system.mem_map.get(pfn) or page(pfn=pfn)
        state = frame_state(found)
        preview = (
            system.phys.read(pfn << mt.PAGE_SHIFT, PREVIEW).rstrip(b"\0") if state in DATA else b""
        )
        exclusive = state == "anon" and PageAnonExclusive(found)
        return self.looks.place(
            FrameLook(state, found._refcount, folio_mapcount(found), exclusive, preview)
        )

    def _people(self) -> list[Op]:
        """Tasks and address spaces that changed."""
        tasks = (
            TASKS,
            *(
                self.tasks.place(task_row(task, self.names))
                for _, task in sorted(system.tasks.items())
            ),
        )
        spaces = (SPACES, *(self.spaces.place(self._space(space)) for space in self._living()))
        ops = [
            op for op, known in ((tasks, self.all_tasks), (spaces, self.all_spaces)) if op != known
        ]
        self.all_tasks, self.all_spaces = tasks, spaces
        return ops

    def _living(self) -> list[mm_struct]:
        """All address spaces but the kernel's own; also one that fork is filling or exit is
        emptying."""
        used = {id(space): space for space in address_spaces()}
        self.made = {key: space for key, space in self.made.items() if space.mm_count > 0}
        found = {
            **{key: space for key, space in self.made.items() if space.pgd >> 12 in self.tables},
            **used,
        }
        return sorted(
            (space for space in found.values() if space is not system.init_mm),
            key=lambda space: space.id,
        )

    def _space(self, space: mm_struct) -> SpaceRow:
        users = [task for _, task in sorted(system.tasks.items()) if task.mm is space]
        label = mm_label(space, self.names)[1] if users else self.who.mm_name(space)
        return SpaceRow(
            id=space.id,
            label=label,
            users=tuple(name_of(task, self.names) for task in users),
            pids=tuple(task.pid for task in users),
            root=space.pgd >> 12,
            vmas=tuple(self.vmas.place(read_vma(vma)) for vma in space.mm_mt),
            making=all(space is not known for known in address_spaces()),
        )


def _goes_on(run: list[int], more: list[int]) -> bool:
    """If ``more``, of one entry, continues the run, add it and return True."""
    op, table, index, count, *look = run
    if (op, table, index + count) != tuple(more[:3]):
        return False
    if look and (look[0], look[1] + count) != (more[4], more[5]):
        return False
    run[3] += 1
    return True
