"""Counting everything once more: what must fit together when no kernel function is running.

Reads tables, counters and lists, each by itself; every difference is one line of text."""

from collections import Counter

from kemu.kernel.filemap import file_pages
from kemu.kernel.flags import VM_ACCOUNT, VM_SHARED, PG_anon_exclusive, PG_reserved
from kemu.kernel.lists import list_for_each
from kemu.kernel.mm_types import PAGE_SIZE, anon_vma
from kemu.kernel.pgtable import pte_present
from kemu.kernel.system import system
from kemu.kernel.vma import vma_lookup
from kemu.machine.mmu import rights, walk


def spaces():
    """Every address space that a task uses, once."""
    return list({id(task.mm): task.mm for _, task in sorted(system.tasks.items()) if task.mm is not None}.values())


def leaves(mm):
    """(address, entry) of every last-level entry of the user half that is not empty."""
    yield from _below(mm.pgd, 0, 0)


def tables(mm):
    """Frames of the tables below the root, for the user half, that ``pgtables_bytes`` counts: P4D tables it does not."""
    found = []
    _tables(mm.pgd, 0, found)
    return found


def _entries(table, level):
    half = 256 if level == 0 else 512
    frame = system.phys.frames.get(table >> 12, {})
    return [(index, frame[index]) for index in sorted(frame) if index < half]


def _below(table, level, base):
    geometry = system.geometry
    for index, entry in _entries(table, level):
        address = base | index << geometry.levels[level].shift
        if level == len(geometry.levels) - 1:
            yield address, entry
        else:
            yield from _below(geometry.entry_pfn(entry) << 12, level + 1, address)


def _tables(table, level, found):
    if level == len(system.geometry.levels) - 1:
        return
    for _, entry in _entries(table, level):
        pfn = system.geometry.entry_pfn(entry)
        if system.geometry.levels[level + 1].name != "p4d":
            found.append(pfn)
        _tables(pfn << 12, level + 1, found)


def audit():
    """The differences found, as lines; nothing if all is well."""
    wrong = []
    mapped = Counter()
    for mm in spaces():
        wrong += _space(mm, mapped)
    wrong += _frames(mapped)
    wrong += _free() + _tlbs()
    if committed() != system.counters.vm_committed_as:
        wrong.append(f"vm_committed_as {system.counters.vm_committed_as}, promised {committed()}")
    return wrong


def _space(mm, mapped):
    """One address space against its own counters; counts its entries in ``mapped``."""
    wrong = []
    vmas = list(mm.mm_mt)
    counted = Counter()
    for address, entry in leaves(mm):
        vma = vma_lookup(mm, address)
        if vma is None:
            wrong.append(f"{mm}: an entry at {address:#x} outside of every VMA")
        elif pte_present(entry) and not entry & system.bits.special:
            page = system.mem_map[system.geometry.entry_pfn(entry)]
            mapped[page.pfn] += 1
            counted[_kind(page)] += 1
            wrong += _entry(vma, address, entry, page)
    for member, name in enumerate(("file", "anon", "swap", "shmem")):
        if mm.rss_stat[member] != counted[name]:
            wrong.append(f"{mm}: rss {name} {mm.rss_stat[member]}, entries {counted[name]}")
    checks = [
        ("map_count", mm.map_count, len(vmas)),
        ("total_vm", mm.total_vm, sum(v.vm_end - v.vm_start for v in vmas) // PAGE_SIZE),
        ("pgtables_bytes", mm.pgtables_bytes, len(tables(mm)) * PAGE_SIZE),
        ("mm_users", mm.mm_users, sum(task.mm is mm for task in system.tasks.values())),
        ("mmap_lock", mm.mmap_lock, 0),
        ("vm_refcnt", {v.vm_refcnt for v in vmas} or {1}, {1}),
        ("order", [v.vm_start for v in vmas], sorted(v.vm_start for v in vmas)),
    ]
    return wrong + [f"{mm}: {name} {has}, counted {want}" for name, has, want in checks if has != want]


def _kind(page):
    if isinstance(page.mapping, anon_vma):
        return "anon"
    return "shmem" if page.mapping is not None and page.mapping.host.kind != "disk" else "file"


def _entry(vma, address, entry, page):
    """The rights of one entry."""
    exclusive = page.flags & PG_anon_exclusive
    if not entry & system.bits.write:
        return []
    if not vma.vm_flags & 2:
        return [f"{address:#x}: W in a VMA that is not writable"]
    if not vma.vm_flags & VM_SHARED and not exclusive:
        return [f"{address:#x}: W in a private mapping and the page is not exclusive"]
    return []


def _frames(mapped):
    """Every page against the entries that map it."""
    wrong = []
    for pfn, page in sorted(system.mem_map.items()):
        if page._mapcount + 1 != mapped[pfn]:
            wrong.append(f"frame {pfn:#x}: _mapcount says {page._mapcount + 1}, entries {mapped[pfn]}")
        if page.flags & PG_anon_exclusive and mapped[pfn] > 1:
            wrong.append(f"frame {pfn:#x}: exclusive and mapped {mapped[pfn]} times")
        if page.flags & PG_reserved or page.page_type or not mapped[pfn]:
            continue
        cached = 0 if isinstance(page.mapping, anon_vma) or page.mapping is None else 1
        batched = sum(cpu.lru_add.count(page) + cpu.lru_activate.count(page) for cpu in system.cpus)
        if page._refcount != mapped[pfn] + cached + batched:
            holders = f"mapped {mapped[pfn]}, cached {cached}, in batches {batched}"
            wrong.append(f"frame {pfn:#x}: _refcount {page._refcount}, {holders}")
        if page.ptl:
            wrong.append(f"frame {pfn:#x}: the lock of a table is held")
    return wrong


def _free():
    """The allocator's number against its lists."""
    total = 0
    for area in system.zone.free_area:
        blocks = list(list_for_each(area.free_list))
        total += len(blocks) << area.order
        if len(blocks) != area.nr_free:
            return [f"order {area.order}: nr_free {area.nr_free}, on the list {len(blocks)}"]
        if any(page._refcount for page in blocks):
            return [f"order {area.order}: a free block with references"]
    return [] if total == system.zone.nr_free_pages else [f"free {system.zone.nr_free_pages}, on the lists {total}"]


def _tlbs():
    """What the CPUs remember, against the tables; entries that the next switch will flush do not count."""
    by_context = {mm.context_id: mm for mm in spaces()}
    wrong = []
    for cpu in system.cpus:
        for slot in cpu.hw.tlb.entries():
            context, seen = cpu.ctxs.get(slot.pcid - 1, (0, 0))
            mm = by_context.get(context)
            if mm is not None and seen == mm.tlb_gen and not slot.glob:
                wrong += _remembered(cpu, mm, slot)
    return wrong


def _remembered(cpu, mm, slot):
    """One TLB entry may know less than the tables, never more."""
    found = walk(system.phys, system.geometry, mm.pgd, slot.vpn << 12)
    where = f"CPU {cpu.id}, {mm}: the TLB entry for {slot.vpn << 12:#x}"
    if found.stopped:
        return [f"{where} is left although nothing is mapped"]
    pfn = system.geometry.entry_pfn(found.steps[-1].entry)
    if pfn != slot.pfn:
        return [f"{where} leads to frame {slot.pfn:#x}, the tables to {pfn:#x}"]
    allowed = rights(system.geometry, found.steps)
    more = [name for name in ("read", "write", "user", "exec_") if getattr(slot, name) and not getattr(allowed, name)]
    return [f"{where} allows {more}"] if more else []


def committed():
    """Pages that are promised: those of accounted VMAs, and those of the nameless files behind shared anonymous ones."""
    vmas = [vma for mm in spaces() for vma in mm.mm_mt]
    nodes = {id(v.vm_file.f_inode): v.vm_file.f_inode for v in vmas if v.vm_file is not None}
    shared = sum(file_pages(node) for node in nodes.values() if node.kind == "shm" and not node.noreserve)
    return shared + sum((v.vm_end - v.vm_start) // PAGE_SIZE for v in vmas if v.vm_flags & VM_ACCOUNT)
