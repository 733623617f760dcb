"""Who made a thing what it is: the events that wrote it, found in the journal from the newest back.

    why pte child 0x10000
        thing    the word 16 of the child's page table in frame 0x116
        cells    that word, that whole frame, and rows that copied the word
        events   #463 wp_page_copy, #449 ptep_clear_flush, #412 __copy_present_ptes

A thing is a set of *cells*; a cell says of one event whether it wrote the thing, and from what to what. An event that
stored what was there already changed nothing and is no answer.

The rule that keeps this file honest: what the journal does not say is not said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from kemu.errors import UsageError
from kemu.kernel.fork_row import Row
from kemu.kernel.mm_types import MM_COUNTER_NAMES, mm_struct, page, vm_area_struct
from kemu.kernel.sched_types import siginfo, task_struct
from kemu.kernel.system import pfn_to_page, system
from kemu.machine import mmu
from kemu.machine.physmem import Frame
from kemu.observe.space import space_of
from kemu.trace.journal import SLOTS

if TYPE_CHECKING:
    from kemu.trace.journal import Journal

STRETCH = 1 << 13
"""Events that are looked through at a time."""

Change = tuple[Any, Any]
"""Old and new value."""


class Thing(NamedTuple):
    """What is asked about: its name, the objects and classes whose events may concern it, and what such an event did to it
    (None: nothing). It is made for the present moment and followed back from there once; `objects` may grow on the way.
    `level` is that of an entry of a page table, -1 for anything else; `birth` is what is asked instead where a new object
    was simply made with the value; `value` says what the thing is at the shown moment, where the events alone do not say
    whether they changed it."""

    text: str
    objects: set[int]
    classes: frozenset[type]
    change: Callable[[Any, Any, Any, Any], Change | None]
    level: int = -1
    birth: Thing | None = None
    value: Callable[[], Any] | None = None


def writers(journal: Journal, thing: Thing, upto: int, patience: int | None = None) -> Iterator[tuple[int, Any, Any]]:
    """(event, old, new) of the events up to `upto` that changed the thing, newest first; with `patience` none that lie
    further than so many events behind the newest."""
    end = upto
    while end > 0:
        start = max(end - STRETCH, 0)
        for number, old, new in _in_stretch(journal, thing, start, end):
            if patience is not None:
                floor, patience = number - patience, None
                yield from ((number, old, new), *_down_to(journal, thing, number - 1, floor))
                return
            yield number, old, new
        end = start


def _down_to(journal: Journal, thing: Thing, upto: int, floor: int) -> Iterator[tuple[int, Any, Any]]:
    """The writers in (floor, upto], newest first."""
    floor = max(floor, 0)
    for end in range(upto, floor, -STRETCH):
        yield from _in_stretch(journal, thing, max(end - STRETCH, floor), end)


def _in_stretch(journal: Journal, thing: Thing, start: int, end: int) -> Iterator[tuple[int, Any, Any]]:
    """The writers in (start, end], newest first. Going back may teach the thing more objects; then what is left of the
    stretch is looked through anew."""
    log = journal.log[start * SLOTS : end * SLOTS]
    present = log[::SLOTS]
    size = -1
    while len(thing.objects) != size:
        size = len(thing.objects)
        for i in reversed(_candidates(thing, present)):
            change = thing.change(*log[i * SLOTS : i * SLOTS + SLOTS])
            if change is not None and change[0] is not change[1] and change[0] != change[1]:
                yield start + i + 1, *change
            if len(thing.objects) != size:
                del present[i:]
                break


def _candidates(thing: Thing, present: list[Any]) -> list[int]:
    """The places of objects that may concern the thing; in most stretches there are none, and that is found fast."""
    objects, classes = thing.objects, thing.classes
    if objects.isdisjoint(map(id, present)) and classes.isdisjoint(set(map(type, present))):
        return []
    return [i for i, obj in enumerate(present) if id(obj) in objects or obj.__class__ in classes]


# ---------------------------------------------------------------- things


def field_of(obj: Any, text: str, field: str) -> Thing:
    """A field of a structure or a key of a table."""

    def change(_obj: Any, name: Any, old: Any, new: Any) -> Change | None:
        return (old, new) if name == field else None

    return Thing(f"{text} {field}", {id(obj)}, frozenset(), change)


def word(pfn: int, index: int, text: str) -> Thing:
    """A word of RAM, whether it was stored alone, with its frame, or with a row.

    A frame that is put into RAM goes on changing, so the journal does not say what it held then: that is what the word was
    behind the event, which is known on the way back."""
    frames = system.phys.frames
    value = [system.phys.load((pfn << 12) + index * 8)]
    objects = {id(frames), id(frames.get(pfn))}

    def change(obj: Any, field: Any, old: Any, new: Any) -> Change | None:
        found: Change | None = None
        if obj is frames and field == pfn:
            found = (old or {}).get(index, 0), value[0]
            objects.add(id(old))
        elif isinstance(obj, Row):
            found = _in_row(obj, pfn, index)
        elif isinstance(obj, Frame) and obj.pfn == pfn and field == index:
            found = old or 0, new or 0
        if found is not None:
            value[0] = found[0]
        return found

    return Thing(text, objects, frozenset({Row}), change)


def _in_row(row: Row, pfn: int, index: int) -> Change | None:
    if row.dst.pfn == pfn and index in row.copied:
        return 0, row.copied[index]
    if row.src.pfn == pfn and index in row.src_before:
        return row.src_before[index], row.src_before[index] & ~system.bits.write
    return None


def entry(task: task_struct, address: int, name: str) -> Thing:
    """The last entry that exists on the way to the address."""
    mm = space_of(task, None)
    if not system.geometry.canonical(address):
        raise UsageError(f"address: {address:#x} is not canonical", hint="its upper bits must all be the same")
    steps, _ = mmu.walk(system.phys, system.geometry, mm.pgd, address)
    last = steps[-1]
    level = system.geometry.levels[last.level].name
    at = address & ~((1 << system.geometry.levels[last.level].shift) - 1)
    found = word(last.entry_pa >> 12, last.entry_pa >> 3 & 511, f"{level} {name} {at:#x}")
    return found._replace(level=last.level)


def frame(pfn: int, field: str) -> Thing:
    """A field of a struct page."""
    found = pfn_to_page(pfn) if pfn in system.mem_map else None
    if found is None:
        raise UsageError(f"pfn: frame {pfn:#x} has never been used", hint="frame PFN shows one; mem shows all")
    counted = {"_refcount": 1, "_mapcount": 1}.get(field)

    def change(obj: Any, name: Any, old: Any, new: Any) -> Change | None:
        if isinstance(obj, Row):
            if counted and any(p is found for p in obj.pages):
                return "n", f"n + {counted}"
            return ("exclusive", "shared") if field == "flags" and any(p is found for p in obj.exclusive) else None
        return (old, new) if name == field else None

    return Thing(f"pfn {pfn:#x} {field}", {id(found)}, frozenset({Row}), change)


def mapping(task: task_struct, address: int, field: str, name: str) -> Thing:
    """That a VMA holds the address (or none does), or a field of the one that does."""
    mm = space_of(task, None)
    tree = mm.mm_mt
    vma = next((vma for vma in tree if vma.vm_start <= address < vma.vm_end), None)
    if field:
        if vma is None:
            raise UsageError(f"address: no mapping holds {address:#x}", hint="without a field why says what became of it")
        found = field_of(vma, f"vma {vma.vm_start:#x}-{vma.vm_end:#x} of {name}", field)
        return found._replace(birth=mapping(task, address, "", name))

    def change(obj: Any, changed: Any, old: Any, new: Any) -> Change | None:
        bounds = obj is not tree and (obj.vm_mm is not mm or changed not in ("vm_start", "vm_end"))
        return None if bounds else (old, new)

    def covering() -> vm_area_struct | None:
        return next((vma for vma in tree if vma.vm_start <= address < vma.vm_end), None)

    text = f"vma {vma.vm_start:#x}-{vma.vm_end:#x} of {name}" if vma else f"no vma of {name} at {address:#x}"
    return Thing(text, {id(tree)}, frozenset({vm_area_struct}), change, value=covering)


def counter(task: task_struct, field: str, name: str) -> Thing:
    """A number of an mm_struct: a field, or a counter of its resident pages (MM_ANONPAGES ...)."""
    mm = space_of(task, None)
    birth = field_of(task, f"task {name}", "mm")
    if field in MM_COUNTER_NAMES:
        key = MM_COUNTER_NAMES.index(field)
        found = field_of(mm.rss_stat, f"mm of {name}", field)
        return found._replace(change=lambda _obj, k, old, new: (old, new) if k == key else None, birth=birth)
    return field_of(mm, f"mm of {name}", field)._replace(birth=birth)


def of_task(task: task_struct, field: str, name: str) -> Thing:
    """A field of a task_struct."""
    birth = field_of(system.tasks, "tasks", "")._replace(
        change=lambda _obj, pid, old, new: (old, new) if pid == task.pid else None
    )
    return field_of(task, f"task {name}", field)._replace(birth=birth)


def tlb_entry(cpu: int, address: int) -> Thing:
    """What a CPU remembers (or does not) of the page of the address. A flush puts a new table of entries in place of the
    old one, so the tables are learnt on the way back."""
    tlb = system.cpus[cpu].hw.tlb
    vpn, slot = address >> 12, (address >> 12) % tlb.size
    tables = {id(tlb), id(tlb.slots)}

    def of(found: Any) -> Any:
        return found if found is not None and found.vpn == vpn else None

    def change(obj: Any, field: Any, old: Any, new: Any) -> Change | None:
        if obj is tlb:
            if field == "slots":
                tables.add(id(old))
            return (of(old.get(slot)), of(new.get(slot))) if field == "slots" else None
        return (of(old), of(new)) if field == slot else None

    return Thing(f"TLB of CPU {cpu} {address & ~4095:#x}", tables, frozenset(), change)


CLASSES: dict[str, type] = {"frame": page, "vma": vm_area_struct, "mm": mm_struct, "task": task_struct}
"""The structure whose fields may be asked about, by what is asked."""


def known_fields(what: str) -> frozenset[str]:
    """The fields that may be named for a key of `CLASSES`."""
    counters = MM_COUNTER_NAMES if what == "mm" else ()
    return frozenset(known.name for known in attrs.fields(CLASSES[what])).union(counters)


def last_signal(journal: Journal, first: int, last: int) -> tuple[int, siginfo] | None:
    """(event, signal) of the newest signal that was sent in (first, last]."""
    for number in range(last, first, -1):
        _, field, old, new = journal.event(number)
        if field == "pending" and len(new) > len(old):
            return number, next(info for info in new if not any(info is known for known in old))
    return None
