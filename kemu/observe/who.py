"""Owners while the machine moves: to which task an mm, a table of counters, a page-table frame or a
list belongs.

An event names an object; a student wants to know whose it is. A ``Directory`` is made at a moment
and kept up to date as events are done one by one:

    mm        the task that owns it, also one that will own it later in the range (fork fills the
              child's mm first)
    frame     the page table in it: which level, of which mm, from which address on
    the rest  small parts of a larger thing: the counters of an mm, the free list of an order, the
              TLB of a CPU
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kemu.kernel.include.mm_types import PGTY_table, address_space, inode, mm_struct
from kemu.kernel.include.mmzone import for_each_zone
from kemu.kernel.include.sched_types import LRU_NAMES, percpu, task_struct
from kemu.kernel.include.system import system
from kemu.machine.physmem import Frame
from kemu.observe.entries import is_table, sign_extend, tables, user_end
from kemu.observe.frames import address_spaces
from kemu.observe.names import Names, path_of
from kemu.trace.index import STRETCH
from kemu.trace.journal import SLOTS, Journal


class Place(NamedTuple):
    """Where a page-table frame belongs: its level in the geometry, whose it is, the first address
    that it covers, and the address space."""

    level: int
    owner: str
    va: int
    space: mm_struct


class Part(NamedTuple):
    """What a small object is: its kind (as in ``EventReading``) and its name."""

    kind: str
    name: str


SHARED_PARTS = {"signal": "rlim", "sighand": "action", "files": "fd", "regs": ""}
"""Structures of a task that threads may share, and the table in each."""

BIRTH_FIELDS = frozenset({"pid", "comm", "mm", "pgd", *SHARED_PARTS})
"""Fields that are written when a task or an address space is created."""

AROUND = 4096
"""Events before and after a range that are searched for names too: fork fills the child's mm
before it is the child's."""


class Directory:
    """Names of objects, from a moment on."""

    def __init__(self, names: Names = None) -> None:
        self.names = names
        self.parts: dict[int, Part] = {}
        self.tables: dict[int, Place] = {}
        self._roots: dict[int, Place] = {}
        self._owners: dict[int, str] = {}
        self._tasks: dict[int, tuple[int, str]] = {}
        self._kept: list[Any] = []

    # ---------------------------------------------------------------- learning

    def learn_from(self, earlier: Directory) -> None:
        """Keep the names of an earlier moment for things that are gone now."""
        self._owners = {**earlier._owners, **self._owners}
        self._tasks = {**earlier._tasks, **self._tasks}
        self.parts = {**earlier.parts, **self.parts}
        self._kept += earlier._kept

    def learn_present(self) -> None:
        """Learn everything that exists at this moment."""
        for _, task in sorted(system.tasks.items()):
            self._own(task.mm, task)
            self.learn(task)
        for cpu in system.cpus:
            self.learn(cpu)
        for node in system.files.values():
            self.learn(node)
        self._learn_globals()
        for space in address_spaces():
            self.learn(space)
            self._learn_tables(space)

    def _learn_globals(self) -> None:
        self._part(system.tasks, "task", "tasks")
        self._part(system.files, "file", "files")
        for node in system.node_data:
            self._part(node.lruvec.nr, "count", "lru size of")
            for name, head in zip(LRU_NAMES, node.lruvec.lists, strict=True):
                self._part(head, "list", f"lru list {name}")
        for area in (area for zone in for_each_zone() for area in zone.free_area):
            self._part(area.free_list, "list", f"free list of order {area.order}")

    def _learn_tables(self, space: mm_struct) -> None:
        if not space.pgd:
            return
        owner = self.mm_name(space)
        for at in tables(space.pgd, 1 << 64 if space is system.init_mm else user_end()):
            self.tables.setdefault(at.pfn, Place(at.level, owner, at.va, space))

    def learn_events(self, log: list[Any], first: int, last: int) -> None:
        """Learn what appears in and around the events (first, last] of a journal's log: objects
        that are being made or torn down."""
        low, high = max(first - AROUND, 0) * SLOTS, min((last + AROUND) * SLOTS, len(log))
        objects, values = log[low:high:SLOTS], log[low + 3 : high : SLOTS]
        self._learn_born(objects, log[low + 1 : high : SLOTS], values)
        for obj in [*_once(objects), *_once(values)]:
            self.learn(obj)

    def learn_births(self, journal: Journal, first: int, last: int) -> None:
        """Learn the tasks and address spaces that are created in the events (first, last]."""
        log = journal.log
        for stretch in range(first // STRETCH, -(-last // STRETCH)):
            if BIRTH_FIELDS.isdisjoint(journal.index.of(log, stretch).fields):
                continue
            low, high = (
                max(first, stretch * STRETCH) * SLOTS,
                min(last, (stretch + 1) * STRETCH) * SLOTS,
            )
            self._learn_born(
                log[low:high:SLOTS], log[low + 1 : high : SLOTS], log[low + 3 : high : SLOTS]
            )

    def _learn_born(self, objects: list[Any], fields: list[Any], values: list[Any]) -> None:
        classes = list(map(type, objects))
        if task_struct in classes:
            self._learn_tasks(
                [
                    e
                    for e in zip(objects, fields, values, strict=True)
                    if e[0].__class__ is task_struct
                ]
            )
        if mm_struct in classes:
            for obj, field, new in zip(objects, fields, values, strict=True):
                if obj.__class__ is mm_struct and field == "pgd" and new:
                    self._learn_root(obj, new)

    def _learn_root(self, space: mm_struct, root: int) -> None:
        """An address space that gets its root table around here; if it already has one, the tables
        below it."""
        self._roots[root >> 12] = Place(0, self.mm_name(space), 0, space)
        if space.pgd == root and space.mm_users:
            self._learn_tables(space)

    def _learn_tasks(self, made: list[tuple[task_struct, Any, Any]]) -> None:
        """What events say about tasks: which they are, and what they own."""
        for task, field, new in made:
            if field == "pid":
                self._tasks[id(task)] = (new, self._name(new, task.comm))
        for task, field, new in made:
            if field == "comm" and self.names is None:
                self._tasks[id(task)] = (self.task_id(task)[0], new)
        for task, field, new in made:
            self._learn_task_field(task, field, new)

    def _learn_task_field(self, task: task_struct, field: str, new: Any) -> None:
        if field == "mm":
            self._own(new, task)
        elif field in SHARED_PARTS and new is not None:
            self._learn_shared(field, new, self.task_name(task))

    def learn(self, obj: Any) -> None:
        """Learn the parts of ``obj``, if it has any."""
        learner = LEARNERS.get(type(obj))
        if learner is not None:
            learner(self, obj)

    def _part(self, obj: Any, kind: str, name: str) -> None:
        if id(obj) not in self.parts:
            self.parts[id(obj)] = Part(kind, name)
            self._kept.append(obj)

    def _own(self, space: mm_struct | None, task: task_struct) -> None:
        """``task`` owns the space; its second one (exec) also carries its number."""
        if space is None or id(space) in self._owners:
            return
        name = self.task_name(task)
        self._owners[id(space)] = f"{name} mm#{space.id}" if name in self._owners.values() else name
        self._kept.append(space)

    def learn_task(self, task: task_struct) -> None:
        """A task's parts."""
        name = self.task_name(task)
        for field in SHARED_PARTS:
            part = getattr(task, field)
            if part is not None:
                self._learn_shared(field, part, name)
        self._part(task.children, "list", f"children of {name}")
        self._part(task.sibling, "list", f"sibling of {name}")

    def _learn_shared(self, field: str, part: Any, name: str) -> None:
        """A structure that threads may share, and its table."""
        self._part(part, "task", f"{field} of {name}")
        table = SHARED_PARTS[field]
        if table:
            self._part(getattr(part, table), "task", f"{table} of {name}")

    def learn_mm(self, space: mm_struct) -> None:
        """The counters and the tree of an mm."""
        self._part(space.rss_stat, "mm", f"mm of {self.mm_name(space)} rss_stat")
        self._part(space.mm_mt, "vma", f"maps of {self.mm_name(space)}")

    def learn_file(self, node: inode) -> None:
        """The page cache and the disk of a file."""
        name = path_of(node)
        self._part(node, "file", name)
        self._part(node.i_mapping, "file", f"mapping of {name}")
        self._part(node.i_mapping.i_pages, "file", f"page cache of {name}")
        self._part(node.disk, "file", f"disk of {name}")

    def learn_mapping(self, mapping: address_space) -> None:
        """The page cache of a file without a path."""
        if mapping.host is not None:
            self.learn_file(mapping.host)

    def learn_cpu(self, cpu: percpu) -> None:
        """The parts of a CPU."""
        self._part(cpu.ctxs, "tlb", f"CPU {cpu.id} ctxs slot")
        self._part(cpu.hw, "cpu", f"CPU {cpu.id}")
        self._part(cpu.hw.tlb, "tlb", f"CPU {cpu.id} TLB")
        self._part(cpu.hw.tlb.slots, "tlb", f"CPU {cpu.id} TLB slot")

    # ---------------------------------------------------------------- asking

    def parts_named(self, name: str) -> list[Any]:
        """The objects with the name, among those that are part of another."""
        found = {key for key, part in self.parts.items() if part.name == name}
        return [obj for obj in self._kept if id(obj) in found]

    def task_id(self, task: task_struct) -> tuple[int, str]:
        """(pid, name) of a task, even of one that does not have its pid yet."""
        found = self._tasks.get(id(task))
        if found is None:
            found = self._tasks[id(task)] = (task.pid, self._name(task.pid, task.comm))
            self._kept.append(task)
        return found

    def _name(self, pid: int, comm: str) -> str:
        return self.names(pid) if self.names is not None else comm

    def task_name(self, task: task_struct) -> str:
        """What the task is called."""
        return self.task_id(task)[1]

    def mm_name(self, space: mm_struct | None) -> str:
        """Whose mm it is."""
        if space is None:
            return "nobody"
        if space is system.init_mm:
            return "the kernel"
        return self._owners.get(id(space), f"mm#{space.id}")

    # ---------------------------------------------------------------- keeping up

    def follow(self, obj: Any, field: Any, new: Any) -> None:
        """An event is about to happen: a table may get linked below another one, or stop being one,
        a TLB be replaced."""
        if type(obj) is Frame:
            self._follow_entry(obj.pfn, field, new or 0)
        elif field == "page_type":
            self._follow_type(obj.pfn, new)
        elif field == "slots":
            self._part(new, "tlb", f"CPU {obj.cpu} TLB slot")

    def _follow_type(self, pfn: int, new: int) -> None:
        if new == PGTY_table and pfn in self._roots:
            self.tables[pfn] = self._roots[pfn]
        elif new != PGTY_table:
            self.tables.pop(pfn, None)

    def _follow_entry(self, pfn: int, index: int, entry: int) -> None:
        place = self.tables.get(pfn)
        if place is not None and is_table(place.level, entry):
            va = sign_extend(place.va | index << system.geometry.levels[place.level].shift)
            self.tables[system.geometry.entry_pfn(entry)] = Place(
                place.level + 1, place.owner, va, place.space
            )


LEARNERS: dict[type, Callable[[Directory, Any], None]] = {
    task_struct: Directory.learn_task,
    mm_struct: Directory.learn_mm,
    inode: Directory.learn_file,
    address_space: Directory.learn_mapping,
    percpu: Directory.learn_cpu,
}


def _once(objects: list[Any]) -> list[Any]:
    """Those that have parts to be learnt, each once, in order."""
    return [
        obj
        for obj in dict(zip(map(id, objects), objects, strict=True)).values()
        if type(obj) in LEARNERS
    ]
