"""One event in words: what changed, from what to what, and what that means.

    page        pfn 0x1a3 _refcount 1 -> 2
    page table  pte parent 0x10000 0x80000000001a3067 -> 0x80000000001a3065 (W cleared)
    RAM         ram 0x1a3000 0x0 -> 0x78
    mm, VMA     mm of parent total_vm 33 -> 37
                vma 0x10000-0x14000 of parent vm_end 0x12000 -> 0x14000

The event has not happened yet when it is described: the state is the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kemu.kernel.include import lists, sched_types
from kemu.kernel.include import mm_types as mt
from kemu.kernel.include.swapops import is_guard_pte_marker
from kemu.kernel.include.system import system
from kemu.kernel.mm.rows import Row
from kemu.machine.cpu import Cpu
from kemu.machine.physmem import Frame
from kemu.machine.tlb import Tlb, TlbEntry
from kemu.observe.entries import is_table, sign_extend
from kemu.observe.frames import candidates, rights_letters
from kemu.observe.names import (
    changed_bits,
    entry_letters,
    mm_flags,
    page_flags,
    task_flags,
    vm_flag_names,
)
from kemu.observe.tasks import RLIMIT_NAMES
from kemu.observe.who import Directory, Part
from kemu.trace.barrier import Table


class Words(NamedTuple):
    """An event or a difference, named."""

    kind: str
    what: str
    field: str
    old: str
    new: str
    note: str = ""


LOW = frozenset({"list", "lock", "alloc", "count"})
"""Kinds that are shown only on demand: links of lists, locks, the allocator's lists, statistics."""

LOCK_FIELDS = frozenset({"ptl", "mmap_lock", "vm_refcnt"})
LINK_FIELDS = frozenset({"next", "prev", "owner"})
HEX_FIELDS = frozenset(
    {
        "index",
        "pgd",
        "task_size",
        "brk",
        "vdso",
        "root",
        "ip",
        "sp",
        "ax",
        "cr2",
        "flags",
        "def_flags",
        "blocked",
    }
)
HEX_PREFIXES = ("vm_", "start_", "end_", "arg_", "env_", "mmap_", "set_child_", "clear_child_")
"""Fields whose numbers are addresses or bits."""
VALUE_NAMES: dict[Any, dict[int, str]] = {
    "page_type": {0: "none", mt.PGTY_buddy: "buddy", mt.PGTY_table: "table"},
    "exit_state": {
        0: "none",
        sched_types.EXIT_ZOMBIE: "EXIT_ZOMBIE",
        sched_types.EXIT_DEAD: "EXIT_DEAD",
    },
    "state": {value: name for name, value in vars(sched_types).items() if name.startswith("TASK_")},
}
"""Fields whose values are known by names."""


class Raw(NamedTuple):
    """An event as the journal has it."""

    obj: Any
    field: Any
    old: Any
    new: Any


def describe(who: Directory, event: Raw) -> Words:
    """The parts of an event's text."""
    return DESCRIBERS.get(type(event.obj), _plain)(who, event)


def _plain(who: Directory, e: Raw) -> Words:
    """A structure that is part of another, or the only one of its kind."""
    kind = "count" if type(e.obj) in STATISTICS else "other"
    part = who.parts.get(id(e.obj)) or Part(kind, _type_name(e.obj))
    return _named(part.kind, part.name, who, e)


STATISTICS = (sched_types.vm_event_state, sched_types.counters, sched_types.lruvec)


def _type_name(obj: Any) -> str:
    return type(obj).__name__.removesuffix("_struct")


# ---------------------------------------------------------------- values


def value(who: Directory, field: Any, v: Any) -> str:
    """A value as text; numbers in the base that suits the field."""
    if v is None or v == "":
        return "none"
    if isinstance(v, bool) or not isinstance(v, int):
        return _object(who, v)
    return number_text(field, v)


def number_text(field: Any, v: int) -> str:
    """A number: by its name, or in the base that suits the field."""
    if field in VALUE_NAMES:
        return VALUE_NAMES[field].get(v, hex(v))
    in_hex = field in HEX_FIELDS or str(field).startswith(HEX_PREFIXES)
    return hex(v) if in_hex and v > 9 else str(v)


def _object(who: Directory, v: Any) -> str:
    texter = TEXTS.get(type(v))
    if texter is not None:
        return texter(who, v)
    part = who.parts.get(id(v))
    return part.name if part is not None else str(v)


def _tlb_entry(_who: Directory, v: TlbEntry) -> str:
    return (
        f"{v.vpn << 12:#x} at pfn {v.pfn:#x} pcid {v.pcid} "
        f"{rights_letters(v)}{'D' if v.dirty else '-'}"
    )


def _signal_text(_who: Directory, v: sched_types.siginfo) -> str:
    where = f" at {v.addr:#x}" if v.addr else f" from pid {v.pid}" if v.pid else ""
    return f"signal {v.signo} code {v.code}{where}"


def _task_text(who: Directory, v: sched_types.task_struct) -> str:
    pid, name = who.task_id(v)
    return f"{name} ({pid})"


def vma_name(who: Directory, vma: mt.vm_area_struct) -> str:
    """``vma 0x10000-0x14000 of parent``."""
    return f"vma {vma.vm_start:#x}-{vma.vm_end:#x} of {who.mm_name(vma.vm_mm)}"


def _collection(who: Directory, items: tuple[Any, ...] | frozenset[Any]) -> str:
    """Numbers one by one; other items as a count, since the note says which ones come and go."""
    if isinstance(items, frozenset):
        return "{" + ", ".join(map(str, sorted(items))) + "}"
    if items and not isinstance(items[0], (int, str)):
        return str(len(items))
    return f"({', '.join(value(who, '', item) for item in items)})" if items else "0"


TEXTS: dict[type, Callable[[Directory, Any], str]] = {
    mt.mm_struct: lambda who, v: f"mm of {who.mm_name(v)}",
    mt.vm_area_struct: vma_name,
    mt.anon_vma_chain: lambda who, v: f"{vma_name(who, v.vma)} on {v.anon_vma}",
    sched_types.task_struct: _task_text,
    TlbEntry: _tlb_entry,
    mt.vm_operations_struct: lambda _, v: v.name,
    mt.super_operations: lambda _, v: f"evict by {getattr(v.evict_inode, '__name__', 'nobody')}",
    mt.file_operations: lambda _, v: f"release by {v.release.__name__}",
    sched_types.siginfo: _signal_text,
    bytes: lambda _, v: f"{len(v)} bytes",
    tuple: _collection,
    frozenset: _collection,
    dict: lambda _, v: f"{len(v)} entries",
}
"""How a value is written; objects of other classes have their own names."""

FLAG_NAMES: dict[tuple[type, str], Callable[[int], tuple[str, ...]]] = {
    (mt.page, "flags"): page_flags,
    (mt.vm_area_struct, "vm_flags"): vm_flag_names,
    (sched_types.task_struct, "flags"): task_flags,
    (mt.mm_struct, "flags"): mm_flags,
}


def flag_note(e: Raw) -> str:
    """``+NAME -NAME`` for a word of flags, otherwise ""."""
    names = FLAG_NAMES.get((type(e.obj), e.field))
    if names is None or e.old is None or e.new is None:
        return ""
    return " ".join(
        [f"+{name}" for name in names(e.new & ~e.old)]
        + [f"-{name}" for name in names(e.old & ~e.new)]
    )


def item_note(who: Directory, e: Raw) -> str:
    """What was added to a list (``+``) and what was removed (``-``)."""
    old, new = (
        {id(item): item for item in v} if isinstance(v, tuple) else {} for v in (e.old, e.new)
    )
    changed = [("+", new[k]) for k in new if k not in old] + [
        ("-", old[k]) for k in old if k not in new
    ]
    return ", ".join(
        f"{sign}{_object(who, item)}"
        for sign, item in changed
        if not isinstance(item, (int, str, tuple))
    )


# ---------------------------------------------------------------- kinds of objects


def _named(kind: str, what: str, who: Directory, e: Raw) -> Words:
    """A field of a structure with a name."""
    kind = "lock" if e.field in LOCK_FIELDS else "list" if e.field in LINK_FIELDS else kind
    note = flag_note(e) or item_note(who, e)
    return Words(
        kind, what, str(e.field), value(who, e.field, e.old), value(who, e.field, e.new), note
    )


def _page(who: Directory, e: Raw) -> Words:
    buddy = e.field == "private" or (e.field == "page_type" and mt.PGTY_table not in (e.old, e.new))
    return _named("alloc" if buddy else "frame", f"pfn {e.obj.pfn:#x}", who, e)


def _vma(who: Directory, e: Raw) -> Words:
    return _named("vma", vma_name(who, e.obj), who, e)


def _mm(who: Directory, e: Raw) -> Words:
    return _named("mm", f"mm of {who.mm_name(e.obj)}", who, e)


def _task(who: Directory, e: Raw) -> Words:
    return _named("task", f"task {_object(who, e.obj)}", who, e)


def _anon(who: Directory, e: Raw) -> Words:
    return _named("anon", repr(e.obj), who, e)


def _file(who: Directory, e: Raw) -> Words:
    part = who.parts.get(id(e.obj))
    return _named("file", part.name if part is not None else repr(e.obj), who, e)


def _cpu(who: Directory, e: Raw) -> Words:
    return _named("cpu", f"CPU {e.obj.id}", who, e)


def _tlb(who: Directory, e: Raw) -> Words:
    if e.field != "slots":
        return _named("tlb", f"CPU {e.obj.cpu} TLB", who, e)
    counts = [len(slots) if slots is not None else 0 for slots in (e.old, e.new)]
    old, new = counts
    return Words(
        "tlb", f"CPU {e.obj.cpu} TLB", "entries", str(old), str(new), f"{old - new} flushed"
    )


def _allocator(who: Directory, e: Raw) -> Words:
    order = f" of order {e.obj.order}" if isinstance(e.obj, sched_types.free_area) else ""
    return _named("alloc", f"{_type_name(e.obj)}{order}", who, e)


def _list(who: Directory, e: Raw) -> Words:
    part = who.parts.get(id(e.obj))
    return _named("list", part.name if part is not None else "a list", who, e)


def _tree(who: Directory, e: Raw) -> Words:
    part = who.parts.get(id(e.obj)) or Part("vma", "maps")
    old, new = (
        f"{v.vm_start:#x}-{v.vm_end:#x}" if v is not None else "none" for v in (e.old, e.new)
    )
    return Words("vma", part.name, "", old, new, "removed" if e.new is None else "inserted")


def _table(who: Directory, e: Raw) -> Words:
    """A dictionary: RAM itself, the counters of an mm, a page cache, a TLB."""
    if e.obj is system.phys.frames:
        return _whole_frame(who, e)
    part = who.parts.get(id(e.obj)) or Part("other", e.obj.name)
    names = KEY_NAMES.get(e.obj.name)
    key = names[e.field] if names is not None and e.field < len(names) else str(e.field)
    return Words(part.kind, part.name, key, value(who, "", e.old), value(who, "", e.new))


KEY_NAMES = {
    "rss_stat": mt.MM_COUNTER_NAMES,
    "lru_size": sched_types.LRU_NAMES,
    "rlim": RLIMIT_NAMES,
}
"""Names of the keys of a table."""


def _whole_frame(who: Directory, e: Raw) -> Words:
    old, new = (f"{len(frame)} words of data" if frame else "zeros" for frame in (e.old, e.new))
    if old == new == "zeros":
        return Words("alloc", f"page {e.field << 12:#x}", "", old, new, "first store to it")
    kind = "pte" if e.field in who.tables else "ram"
    return Words(kind, f"page {e.field << 12:#x}", "", old, new, "filled" if e.new else "cleared")


def _word(who: Directory, e: Raw) -> Words:
    """A word of RAM: an entry of a page table, or data."""
    return word_words(who, e.obj.pfn, e.field, e.old or 0, e.new or 0)


def word_words(who: Directory, pfn: int, index: int, old: int, new: int) -> Words:
    """A change of the word ``index`` of a frame."""
    place = who.tables.get(pfn)
    if place is None:
        note = ", ".join(
            part for part in (ascii_note(old, new), mapped_note(who, pfn, index * 8)) if part
        )
        return Words("ram", f"ram {(pfn << 12) + index * 8:#x}", "", hex(old), hex(new), note)
    level = system.geometry.levels[place.level]
    at = sign_extend(place.va | index << level.shift)
    return Words(
        "pte",
        f"{level.name} {place.owner} {at:#x}",
        "",
        hex(old),
        hex(new),
        entry_note(place.level, old, new),
    )


def entry_note(level: int, old: int, new: int) -> str:
    """What a change of an entry means: ``W cleared``, ``pfn 0x2 -> 0x4, W set``, ``pfn 0x2
    unmapped``."""
    if is_guard_pte_marker(old) or is_guard_pte_marker(new):
        return "a guard page" if is_guard_pte_marker(new) else "no guard page any more"
    was, now = (system.geometry.entry_pfn(entry) for entry in (old, new))
    if not old:
        return f"pfn {now:#x} {entry_letters(system.bits, new)}"
    if not new:
        return f"table {was:#x} unlinked" if is_table(level, old) else f"pfn {was:#x} unmapped"
    bits = changed_bits(system.bits, old, new)
    return ", ".join(
        part for part in (f"pfn {was:#x} -> {now:#x}" if was != now else "", bits) if part
    )


def ascii_note(old: int, new: int) -> str:
    """The bytes that changed, as text, if they can be printed."""
    pairs = zip(old.to_bytes(8, "little"), new.to_bytes(8, "little"), strict=True)
    changed = [b for a, b in pairs if a != b]
    return (
        '"' + bytes(changed).decode() + '"'
        if changed and all(32 <= b < 127 for b in changed)
        else ""
    )


def mapped_note(who: Directory, pfn: int, offset: int) -> str:
    """Where processes see a word of RAM: ``parent 0x10008``; at most three of them."""
    found = system.mem_map.get(pfn)
    seen = (
        [(vma, at) for vma, at, mapped in candidates(found) if mapped] if found is not None else []
    )
    return ", ".join(f"{who.mm_name(vma.vm_mm)} {at + offset:#x}" for vma, at in seen[:3])


def _row(who: Directory, e: Raw) -> Words:
    changes = [Raw(*change) for change in e.obj.changes()]
    words = [change for change in changes if type(change.obj) is Frame]
    if e.field == "put":
        counts = [change.new for change in changes if change.field == "_refcount"]
        return Words(
            "row",
            "pages set aside",
            "",
            f"{len(counts)} references",
            "0 references",
            f"{counts.count(0)} pages freed",
        )
    made = [change for change in words if change.old is None]
    protected = [change for change in words if change.old is not None and change.new is not None]
    table = who.tables.get((made or words)[0].obj.pfn)
    span = f" from {table.va:#x}" if table is not None else ""
    what = f"pte table of {table.owner if table is not None else 'a child'}{span}"
    pages = sum(change.field == "_mapcount" for change in changes)
    if e.field == "zapped":
        return Words(
            "row", what, "", f"{len(words)} entries", "0 entries", f"{pages} pages unmapped"
        )
    parent = who.tables.get(protected[0].obj.pfn) if protected else None
    cleared = (
        f"W cleared in {len(protected)} of {parent.owner if parent is not None else 'the other'}"
    )
    return Words(
        "row",
        what,
        "",
        "0 entries",
        f"{len(made)} entries",
        f"{cleared}, {pages} pages shared",
    )


DESCRIBERS: dict[type, Callable[[Directory, Raw], Words]] = {
    mt.page: _page,
    mt.vm_area_struct: _vma,
    mt.mm_struct: _mm,
    sched_types.task_struct: _task,
    mt.anon_vma: _anon,
    mt.anon_vma_chain: _anon,
    mt.inode: _file,
    mt.address_space: _file,
    mt.file: _file,
    sched_types.percpu: _cpu,
    Cpu: _cpu,
    Tlb: _tlb,
    sched_types.zone: _allocator,
    sched_types.free_area: _allocator,
    lists.list_head: _list,
    lists.list_node: _list,
    mt.maple_tree: _tree,
    Table: _table,
    Frame: _word,
    Row: _row,
}
