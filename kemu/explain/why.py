"""Who made a thing what it is: the events that wrote it, found in the journal from the newest back.

    why pte child 0x10000
        thing    the word 16 of the child's page table in frame 0x116
        cells    that word, that whole frame, and rows that copied the word
        events   #463 wp_page_copy, #449 ptep_clear_flush, #412 __copy_present_ptes

A thing is a set of *cells*; a cell says of one event whether it wrote the thing, and from what to
what. An event that stored what was there already changed nothing and is not an answer.

Only what is in the journal is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from kemu.errors import UsageError
from kemu.kernel.include.mm_types import MM_COUNTER_NAMES, mm_struct, page, vm_area_struct
from kemu.kernel.include.mmzone import for_each_zone
from kemu.kernel.include.sched_types import siginfo, task_struct
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.kernel.signal import BARE_SIGKILL
from kemu.kernel.mm.rows import Row
from kemu.machine import mmu
from kemu.machine.physmem import Frame
from kemu.observe.named import key_of, named
from kemu.observe.space import space_of
from kemu.trace.identity import Numbers
from kemu.trace.index import STRETCH, Contents
from kemu.trace.journal import SLOTS

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel
    from kemu.observe.names import Names
    from kemu.trace.journal import Journal

ROWS = frozenset({"copied", "zapped", "put"})
"""What rows do: such an event may concern anything."""

Change = tuple[Any, Any]
"""Old and new value."""


class Thing(NamedTuple):
    """What is asked about: its name, the objects whose events may concern it, and what such an
    event did to it (None: nothing). It is made for the present moment and followed back from there
    once; `objects` may grow meanwhile. `fields` are those that such an event can have (None: any);
    `classes` are classes any object of which counts, each with the fields of such events. `level`
    is that of an entry of a page table, -1 for anything else; `birth` is what is asked instead
    where a new object was simply made with the value. `empty`: at the present moment there is
    nothing."""

    text: str
    objects: set[int]
    classes: dict[type, frozenset[Any]]
    change: Callable[[Any, Any, Any, Any], Change | None]
    fields: frozenset[Any] | None = None
    level: int = -1
    birth: Thing | None = None
    empty: bool = False


def writers(
    journal: Journal, thing: Thing, upto: int, patience: int | None = None
) -> Iterator[tuple[int, Any, Any]]:
    """(event, old, new) of the events up to `upto` that changed the thing, newest first; with
    `patience`, none more than that many events before the newest."""
    floor = 0
    for stretch in range((upto - 1) // STRETCH, -1, -1):
        end = min((stretch + 1) * STRETCH, upto)
        if end <= floor:
            return
        for number, old, new in _in_stretch(journal, thing, stretch, end):
            if number <= floor:
                return
            if patience is not None:
                floor, patience = max(number - patience, 0), None
            yield number, old, new


def _in_stretch(
    journal: Journal, thing: Thing, stretch: int, end: int
) -> Iterator[tuple[int, Any, Any]]:
    """The writers in a stretch of the index, up to event `end`, newest first. Going back may add
    objects to the thing; the rest of the stretch is then searched anew."""
    held = journal.index.of(journal.log, stretch)
    start, size = stretch * STRETCH, -1
    log: list[Any] = []
    while len(thing.objects) != size:
        size = len(thing.objects)
        fields = _fields_in(thing, held, journal.index.numbers)
        if fields is not None and not fields:
            return
        log = log or journal.log[start * SLOTS : end * SLOTS]
        for i in reversed(_candidates(thing, log, fields)):
            change = _change(thing, *log[i * SLOTS : i * SLOTS + SLOTS])
            if change is not None and change[0] is not change[1] and change[0] != change[1]:
                yield start + i + 1, *change
            if len(thing.objects) != size:
                del log[i * SLOTS :]
                break


def _change(thing: Thing, obj: Any, field: Any, old: Any, new: Any) -> Change | None:
    """What the event did to the thing; of a row, what one of its changes did."""
    if not isinstance(obj, Row):
        return thing.change(obj, field, old, new)
    if thing.objects.isdisjoint(map(id, obj.log[::SLOTS])):
        return None
    mine = [change for change in obj.changes() if id(change[0]) in thing.objects]
    found = [thing.change(*change) for change in reversed(mine)]
    return next((change for change in found if change is not None), None)


def _fields_in(thing: Thing, held: Contents, numbers: Numbers) -> frozenset[Any] | None:
    """The fields to look for in a stretch: none of them, or None for any."""
    found = frozenset[Any]().union(
        *(fields for cls, fields in thing.classes.items() if cls in held.classes)
    )
    if Row in held.classes:
        found |= ROWS
    if not held.objects.isdisjoint(numbers.at(thing.objects)):
        if thing.fields is None:
            return None
        found |= thing.fields
    return found & held.fields


def _candidates(thing: Thing, log: list[Any], fields: frozenset[Any] | None) -> list[int]:
    """The places of events that may concern the thing."""
    objects, classes = thing.objects, {*thing.classes, Row}
    present = log[::SLOTS]
    if fields is None:
        return [
            i for i, obj in enumerate(present) if id(obj) in objects or obj.__class__ in classes
        ]
    found = [i for i, field in enumerate(log[1::SLOTS]) if field in fields]
    return [i for i in found if id(present[i]) in objects or present[i].__class__ in classes]


# ---------------------------------------------------------------- things


def field_of(obj: Any, text: str, field: str) -> Thing:
    """A field of a structure or a key of a table."""

    def change(_obj: Any, name: Any, old: Any, new: Any) -> Change | None:
        return (old, new) if name == field else None

    return Thing(f"{text} {field}", {id(obj)}, {}, change, frozenset({field}))


def word(pfn: int, index: int, text: str) -> Thing:
    """A word of RAM, whether it was stored alone, with its frame, or with a row.

    A frame that is put into RAM goes on changing, so the journal does not say what it held then:
    its old value is then the word's value after the event, which is known on the way back."""
    frames = system.phys.frames
    value = [system.phys.load((pfn << 12) + index * 8)]
    objects = {id(frames), id(frames.get(pfn))}

    def change(obj: Any, field: Any, old: Any, new: Any) -> Change | None:
        found: Change | None = None
        if obj is frames and field == pfn:
            found = (old or {}).get(index, 0), value[0]
            objects.add(id(old))
        elif isinstance(obj, Frame) and obj.pfn == pfn and field == index:
            found = old or 0, new or 0
        if found is not None:
            value[0] = found[0]
        return found

    return Thing(text, objects, {}, change, frozenset({pfn, index}))


def entry(task: task_struct, address: int, name: str, level: str = "") -> Thing:
    """The last entry that exists on the way to the address, or the one of the level."""
    mm = space_of(task, lambda _pid: name)
    if not system.geometry.canonical(address):
        raise UsageError(
            f"address: {address:#x} is not canonical", hint="its upper bits must all be the same"
        )
    steps, _ = mmu.walk(system.phys, system.geometry, mm.pgd, address)
    levels = [system.geometry.levels[step.level].name for step in steps]
    last = steps[levels.index(level)] if level in levels else steps[-1]
    level = system.geometry.levels[last.level].name
    at = address & ~((1 << system.geometry.levels[last.level].shift) - 1)
    found = word(last.entry_pa >> 12, last.entry_pa >> 3 & 511, f"{level} {name} {at:#x}")
    return found._replace(level=last.level, empty=not last.entry)


def frame(pfn: int, field: str) -> Thing:
    """A field of a struct page."""
    last = system.phys.nr_frames - 1
    if not 0 <= pfn <= last:
        raise UsageError(
            f"pfn: frame {pfn:#x} does not exist", hint=f"the machine has the frames 0 to {last:#x}"
        )
    found = pfn_to_page(pfn) if pfn in system.mem_map else None
    if found is None:
        raise UsageError(
            f"pfn: frame {pfn:#x} has never been used", hint="frame PFN shows one; mem shows all"
        )
    return field_of(found, f"pfn {pfn:#x}", field)


def mapping(task: task_struct, address: int, field: str, name: str) -> Thing:
    """Whether a VMA holds the address, or a field of the one that does."""
    mm = space_of(task, lambda _pid: name)
    tree = mm.mm_mt
    vma = next((vma for vma in tree if vma.vm_start <= address < vma.vm_end), None)
    if field:
        if vma is None:
            raise UsageError(
                f"address: no mapping holds {address:#x}",
                hint="leave out the field to see what happened to it",
            )
        found = field_of(vma, f"vma {vma.vm_start:#x}-{vma.vm_end:#x} of {name}", field)
        return found._replace(birth=mapping(task, address, "", name))

    text = (
        f"vma {vma.vm_start:#x}-{vma.vm_end:#x} of {name}"
        if vma
        else f"no vma of {name} at {address:#x}"
    )
    change = _Covering(mm, address).change
    return Thing(text, {id(tree)}, {vm_area_struct: frozenset(BOUNDS)}, change, empty=vma is None)


class _Covering:
    """Which VMA of an mm holds an address, followed back event by event: the VMAs of the tree with
    their bounds."""

    def __init__(self, mm: mm_struct, address: int) -> None:
        self.mm, self.address = mm, address
        self.bounds = {vma: [vma.vm_start, vma.vm_end] for vma in mm.mm_mt}
        self.gone: dict[vm_area_struct, list[int]] = {}

    def now(self) -> vm_area_struct | None:
        """The VMA that holds the address at the moment that has been reached."""
        return next(
            (vma for vma, (start, end) in self.bounds.items() if start <= self.address < end), None
        )

    def change(self, obj: Any, field: Any, old: Any, new: Any) -> Change | None:
        """Go back over an event: what held the address before and after it."""
        if isinstance(obj, vm_area_struct) and (obj.vm_mm is not self.mm or field not in BOUNDS):
            return None
        after = self.now()
        if isinstance(obj, vm_area_struct):
            self._bounds_of(obj)[BOUNDS.index(field)] = old
        elif new is not None:
            self.gone[new] = self.bounds.pop(new)
        else:
            self.bounds[old] = self._bounds_of(old)
        return self.now(), after

    def _bounds_of(self, vma: vm_area_struct) -> list[int]:
        """Start and end; those of a VMA that is not in the tree are as they were left."""
        return self.bounds.get(vma) or self.gone.setdefault(vma, [vma.vm_start, vma.vm_end])


SWAPENTS = MM_COUNTER_NAMES.index("MM_SWAPENTS")
"""The counter that is not part of RSS."""

BOUNDS = ("vm_start", "vm_end")
"""The fields of a VMA that say what it holds."""


def counter(task: task_struct, field: str, name: str) -> Thing:
    """A number of an mm_struct: a field, or a counter of its resident pages (MM_ANONPAGES ...)."""
    mm = space_of(task, lambda _pid: name)
    birth = field_of(task, f"task {name}", "mm")
    if field == "rss":
        return field_of(mm.rss_stat, f"mm of {name}", field)._replace(
            change=lambda _obj, key, old, new: (old, new) if key != SWAPENTS else None,
            fields=frozenset(range(len(MM_COUNTER_NAMES))) - {SWAPENTS},
            birth=birth,
        )
    if field in MM_COUNTER_NAMES:
        key = MM_COUNTER_NAMES.index(field)
        found = field_of(mm.rss_stat, f"mm of {name}", field)
        wanted = frozenset({key})
        return found._replace(
            change=lambda _obj, k, old, new: (old, new) if k == key else None,
            fields=wanted,
            birth=birth,
        )
    return field_of(mm, f"mm of {name}", field)._replace(birth=birth)


def of_kernel(field: str) -> Thing:
    """A number of the whole machine: an event that is counted (PGFAULT ...), free pages, memory
    that was promised."""
    return field_of(counted()[field], "kernel", field)


def counted() -> dict[str, Any]:
    """The names that `of_kernel` knows, each with the structure that has the field."""
    owners: tuple[Any, ...] = (system.vmstat, system.counters, *for_each_zone())
    return {
        field.name: owner
        for owner in reversed(owners)
        for field in attrs.fields(type(owner))
        if field.type in ("int", int)
    }


def printed(kernel: Kernel, name: str, names: Names) -> Thing:
    """A field of what `trace` calls so: `regs of kid ax`, `CPU 0 ctxs slot 3`."""
    owner, _, field = name.rpartition(" ")
    found = named(kernel, owner, field, names)
    if found is None:
        raise UsageError(
            f"field: trace shows nothing named '{owner[:40]}' at this moment",
            hint="copy a name from a line of trace",
        )
    key = key_of(found, field)
    return field_of(found, owner, field)._replace(
        change=lambda _obj, name, old, new: (old, new) if name == key else None,
        fields=frozenset({key}),
    )


def ram(address: int) -> Thing:
    """The word of eight bytes at a physical address."""
    return word(address >> 12, address >> 3 & 511, f"ram {address & ~7:#x}")


def of_task(task: task_struct, field: str, name: str) -> Thing:
    """A field of a task_struct."""
    birth = field_of(system.tasks, "tasks", "")._replace(
        change=lambda _obj, pid, old, new: (old, new) if pid == task.pid else None,
        fields=frozenset({task.pid}),
    )
    return field_of(task, f"task {name}", field)._replace(birth=birth)


def tlb_entry(cpu: int, address: int) -> Thing:
    """The translation that a CPU's TLB holds (or does not) for the page of the address. A flush
    replaces the table of entries, so the older tables are found on the way back."""
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

    empty = of(tlb.slots.get(slot)) is None
    return Thing(
        f"TLB of CPU {cpu} {address & ~4095:#x}",
        tables,
        {},
        change,
        frozenset({slot, "slots"}),
        empty=empty,
    )


CLASSES: dict[str, type] = {
    "frame": page,
    "vma": vm_area_struct,
    "mm": mm_struct,
    "task": task_struct,
}
"""The structure whose fields may be asked about, by what is asked."""


def known_fields(what: str) -> frozenset[str]:
    """The fields that may be named for a key of `CLASSES`."""
    counters = (*MM_COUNTER_NAMES, "rss") if what == "mm" else ()
    return frozenset(known.name for known in attrs.fields(CLASSES[what])).union(counters)


PENDING = frozenset({"pending", "shared_pending"})
"""The fields that hold signals until they are taken, of a task and of its thread group."""


def last_signal(journal: Journal, first: int, last: int) -> tuple[int, siginfo] | None:
    """(event, signal) of the newest signal that was sent in (first, last].  The bare SIGKILL by
    which the end of a process reaches its threads does not count."""
    for stretch in range((last - 1) // STRETCH, first // STRETCH - 1, -1):
        if PENDING.isdisjoint(journal.index.of(journal.log, stretch).fields):
            continue
        for number in range(min(last, (stretch + 1) * STRETCH), max(first, stretch * STRETCH), -1):
            _, field, old, new = journal.event(number)
            if field in PENDING and len(new) > len(old):
                info = next(info for info in new if not any(info is known for known in old))
                if info != BARE_SIGKILL:
                    return number, info
    return None
