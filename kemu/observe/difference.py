"""What differs between two moments: net changes, whatever happened in between.

The journal says which fields were touched; their values are read at both moments.  A field that is
back at its old value is not a difference. A thing that did not exist at one of the moments has the
value "none" there; one that existed at neither is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from kemu.kernel.include import mm_types as mt
from kemu.kernel.include import sched_types
from kemu.kernel.include.system import system
from kemu.kernel.mm.rows import Row
from kemu.machine.physmem import Frame
from kemu.machine.tlb import Tlb, TlbEntry
from kemu.observe.describe import LOW, Raw, Words, describe, vma_name, word_words
from kemu.observe.events import check_range, directory_at
from kemu.observe.frames import address_spaces
from kemu.observe.look import travelling
from kemu.observe.names import Names
from kemu.observe.reached import reached
from kemu.observe.who import Directory
from kemu.readings import Difference, FieldChange
from kemu.trace.barrier import Table
from kemu.trace.journal import SLOTS

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

ORDER = ("task", "mm", "vma", "pte", "frame", "ram", "anon", "file", "cpu", "tlb")
"""Kinds in the order in which they are shown; others come last."""

LEVELS = ("pgd", "p4d", "pud", "pmd", "pte")

BIRTH = {
    sched_types.task_struct: {"pid", "tgid", "comm", "real_parent", "mm", "flags", "exit_signal"},
    mt.mm_struct: {"mm_users", "mm_count", "pgd", "total_vm", "map_count", "pgtables_bytes", "brk"},
}
"""How many fields are shown of a structure that did not exist at one of the moments; the rest are
counted."""

MORTAL = (sched_types.task_struct, mt.mm_struct, mt.vm_area_struct)
"""Structures that come and go: a field has a value only while the structure is in use. In others it
has one while the structure can be reached."""


class Touched(NamedTuple):
    """What a range of events touched: fields of structures, keys of tables, frames of RAM, trees of
    VMAs.  TLBs are small and get a new table with every flush, so they are compared as wholes."""

    fields: dict[tuple[int, Any], tuple[Any, Any]]
    frames: set[int]
    trees: dict[int, mt.maple_tree]


class Moment(NamedTuple):
    """The touched state at one moment, and the names of that moment."""

    values: dict[tuple[int, Any], Any]
    frames: dict[int, dict[int, int]]
    trees: dict[int, dict[int, mt.vm_area_struct]]
    living: frozenset[int]
    reached: frozenset[int]
    tlbs: list[dict[int, TlbEntry]]
    spans: dict[int, str]
    who: Directory


def diff(
    kernel: Kernel, first: int, last: int, names: Names = None, *, low: bool = False
) -> Difference:
    """The differences between the moments after ``first`` and after ``last``.  ``UsageError``
    outside the journal."""
    with travelling(kernel) as journal:
        check_range(journal, first, last)
        touched = _touched(journal.log, first, last)
        who = directory_at(journal, first, last, names)
        before = _moment(touched, who)
        journal.seek(last)
        later = Directory(names)
        later.learn_from(who)
        later.learn_present()
        later.learn_events(journal.log, first, last)
        after = _moment(touched, later)
        words = [
            *_fields(touched, before, after),
            *_words(before, after),
            *_vmas(touched, before, after),
            *_tlbs(before, after),
        ]
    shown = [w for w in words if low or w.kind not in LOW]
    changes = tuple(FieldChange(*w) for w in sorted(shown, key=_rank))
    return Difference(first, last, changes, len(words) - len(shown))


def _rank(words: Words) -> tuple[Any, ...]:
    """The sort key: by kind, then by name, in which numbers sort by value; page tables are listed
    together from the root down."""
    kind = ORDER.index(words.kind) if words.kind in ORDER else len(ORDER)
    parts = [
        int(part, 16) if part.startswith("0x") else part
        for part in re.split(r"(0x[0-9a-f]+)", words.what)
    ]
    if words.kind == "pte":
        level, _, owner = words.what.partition(" ")
        parts = [owner.rpartition(" ")[0], LEVELS.index(level), *parts]
    return kind, not words.what.startswith(words.kind), parts


# ---------------------------------------------------------------- what was touched


def _touched(log: list[Any], first: int, last: int) -> Touched:
    touched = Touched({}, set(), {})
    for at in range(first * SLOTS, last * SLOTS, SLOTS):
        _touch(touched, log[at], log[at + 1])
    return touched


def _touch(touched: Touched, obj: Any, field: Any) -> None:
    if type(obj) is Frame:
        touched.frames.add(obj.pfn)
    elif obj is system.phys.frames:
        touched.frames.add(field)
    elif type(obj) is Row:
        for part, name, _, _ in obj.changes():
            _touch(touched, part, name)
    elif type(obj) is mt.maple_tree:
        touched.trees[id(obj)] = obj
    elif not _of_tlb(obj):
        touched.fields[id(obj), field] = (obj, field)


def _of_tlb(obj: Any) -> bool:
    return type(obj) is Tlb or (type(obj) is Table and obj.name == "tlb")


def _moment(touched: Touched, who: Directory) -> Moment:
    """Read the present values of everything that was touched."""
    spaces = address_spaces()
    tasks = [id(task) for task in system.tasks.values()]
    trees = [*(space.mm_mt for space in spaces), *touched.trees.values()]
    vmas = {id(vma): vma_name(who, vma) for tree in trees for vma in tree}
    return Moment(
        values={key: _read(obj, field) for key, (obj, field) in touched.fields.items()},
        frames={pfn: dict(system.phys.frames.get(pfn) or {}) for pfn in touched.frames},
        trees={key: {id(vma): vma for vma in tree} for key, tree in touched.trees.items()},
        living=frozenset([*tasks, *map(id, spaces), *vmas]),
        reached=reached(),
        tlbs=[dict(cpu.hw.tlb.slots) for cpu in system.cpus],
        spans=vmas,
        who=who,
    )


def _read(obj: Any, field: Any) -> Any:
    return obj.get(field) if isinstance(obj, Table) else getattr(obj, field)


# ---------------------------------------------------------------- what differs


def _fields(touched: Touched, before: Moment, after: Moment) -> list[Words]:
    """Fields of structures and keys of tables."""
    found = []
    for key, (obj, field) in touched.fields.items():
        old, new = before.values[key], after.values[key]
        old, new = (v if _exists(obj, m) else None for v, m in ((old, before), (new, after)))
        if isinstance(obj, mt.vm_area_struct) and (id(obj) in before.living) is not (
            id(obj) in after.living
        ):
            continue  # the tree already shows it
        if old is not new and old != new:
            words = _field_words(before, after, Raw(obj, field, old, new))
            found.append(
                words if _telling(obj, field, before, after) else words._replace(kind="count")
            )
    return found


def _exists(obj: Any, moment: Moment) -> bool:
    """True if a field of ``obj`` had a value then."""
    if isinstance(obj, MORTAL):
        return id(obj) in moment.living
    return isinstance(obj, mt.page) or id(obj) in moment.reached


def _telling(obj: Any, field: Any, before: Moment, after: Moment) -> bool:
    """False for the less important fields of a structure that came or went."""
    lived = (id(obj) in before.living, id(obj) in after.living)
    return lived == (True, True) or field in BIRTH.get(type(obj), {field})


def _field_words(before: Moment, after: Moment, raw: Raw) -> Words:
    key = id(raw.obj)
    named = before if isinstance(raw.obj, MORTAL) and key not in after.living else after
    words = describe(named.who, raw)
    return words._replace(what=named.spans[key]) if key in named.spans else words


def _words(before: Moment, after: Moment) -> list[Words]:
    """Words of RAM, page-table entries among them."""
    found = []
    for pfn in sorted(before.frames):
        was, now = before.frames[pfn], after.frames[pfn]
        who = after.who if pfn in after.who.tables else before.who
        changed = [i for i in sorted(was.keys() | now.keys()) if was.get(i, 0) != now.get(i, 0)]
        found += [word_words(who, pfn, i, was.get(i, 0), now.get(i, 0)) for i in changed]
    return found


def _vmas(touched: Touched, before: Moment, after: Moment) -> list[Words]:
    """VMAs that came or went."""
    found = []
    for key in touched.trees:
        was, now = before.trees[key], after.trees[key]
        name = next((m.who.parts[key].name for m in (after, before) if key in m.who.parts), "maps")
        for vma in [*was, *now]:
            if (vma in was) is not (vma in now):
                span = (before.spans if vma in was else after.spans).get(vma, "a vma").split(" ")[1]
                found.append(
                    Words(
                        "vma",
                        name,
                        "",
                        *((span, "none", "removed") if vma in was else ("none", span, "inserted")),
                    )
                )
    return found


def _tlbs(before: Moment, after: Moment) -> list[Words]:
    """Entries that a TLB has learnt or forgotten; the machine is at the later moment."""
    found = []
    for cpu, was, now in zip(system.cpus, before.tlbs, after.tlbs, strict=True):
        changed = [
            slot for slot in sorted(was.keys() | now.keys()) if was.get(slot) != now.get(slot)
        ]
        found += [
            describe(after.who, Raw(cpu.hw.tlb.slots, slot, was.get(slot), now.get(slot)))
            for slot in changed
        ]
    return found
