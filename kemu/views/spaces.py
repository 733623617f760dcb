"""Address spaces for the terminal. Where Linux has a format, it is used."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.readings import (
    AddressSpace,
    AnonLink,
    LayoutReading,
    MmHolder,
    MmReading,
    Pagemap,
    Region,
    Smaps,
    SmapsRollup,
    StatmReading,
    StatReading,
    StatusReading,
    VmaDetail,
    VmaReading,
)
from kemu.views import procfs
from kemu.views.style import Style, facts, numbered, plural, table


def address_space(reading: AddressSpace, style: Style) -> str:
    """maps, as /proc shows it; on a narrow terminal with fewer blanks."""
    if not reading.mm:
        return f"{reading.name} (pid {reading.pid}) has no address space"
    column = _name_column(procfs.maps_vmas(reading), style)
    return procfs.maps(reading, column) or f"{reading.name} (pid {reading.pid}) has no mapping"


def smaps(reading: Smaps, style: Style) -> str:
    """smaps, as /proc shows it; on a narrow terminal with fewer blanks."""
    column = _name_column([entry.vma for entry in reading.entries], style)
    return procfs.smaps(reading, column) or f"{reading.name} (pid {reading.pid}) has no mapping"


def _name_column(vmas: Sequence[VmaReading], style: Style) -> int:
    """Where the names of mappings begin: where the kernel puts them, or, if a terminal would break
    one there, far enough left for most lines to fit."""
    named = [vma for vma in vmas if vma.name]

    def fitting(column: int) -> int:
        return sum(len(procfs.map_line(vma, column)) <= style.width for vma in named)

    if not style.fold or fitting(procfs.NAME_COLUMN) == len(named):
        return procfs.NAME_COLUMN
    columns = {len(procfs.map_head(vma)) for vma in named}
    return max(columns, key=lambda column: (fitting(column), column))


def smaps_rollup(reading: SmapsRollup, _style: Style) -> str:
    """smaps_rollup, as /proc shows it."""
    return procfs.smaps_rollup(reading)


def status(reading: StatusReading, _style: Style) -> str:
    """status, as /proc shows it."""
    return procfs.status(reading)


def stat(reading: StatReading, _style: Style) -> str:
    """stat: the line of /proc, then its fields by name."""
    named = [("pid", reading.pid), ("comm", reading.comm), ("state", reading.state)]
    named += [(name, value) for name, value in reading.fields if name != "pid"]
    rows = [f"{n:>2} {name:<13}{value!s:<22}" for n, (name, value) in enumerate(named, 1)]
    half = (len(rows) + 1) // 2
    columns = [
        f"{left} {right}".rstrip()
        for left, right in zip(rows[:half], [*rows[half:], ""], strict=False)
    ]
    return "\n".join([procfs.stat(reading), *columns])


def statm(reading: StatmReading, _style: Style) -> str:
    """statm: the line of /proc and its names."""
    return f"{procfs.statm(reading)}\nsize resident shared text lib data dt (pages)"


def mm(reading: MmReading, style: Style) -> str:
    """An mm_struct in numbers."""
    r = reading
    rss = sum(value for name, value in r.rss if name != "MM_SWAPENTS")
    pairs = [
        ("mm_users", f"{r.mm_users}: {_holders(r.users)}"),
        ("mm_count", f"{r.mm_count}: {_holders(r.counts)}"),
        ("mappings", f"{r.map_count}"),
        (
            "total_vm",
            f"{plural(r.total_vm, 'page')}: data {r.data_vm}, stack {r.stack_vm}, exec {r.exec_vm}",
        ),
        (
            "locked_vm",
            f"{r.locked_vm}; pinned_vm {r.pinned_vm}" if r.locked_vm or r.pinned_vm else "",
        ),
        ("rss", f"{plural(rss, 'page')}: " + numbered(r.rss)),
        ("peaks", f"hiwater_rss {r.hiwater_rss}, hiwater_vm {r.hiwater_vm}"),
        (
            "tables",
            (
                f"pgtables_bytes {r.pgtables_bytes}: {plural(r.pgtables_bytes >> 12, 'table')}; "
                "pgd "
                f"at {r.pgd:#x}"
            ),
        ),
        (
            "tlb",
            (
                f"context_id {r.context_id}, tlb_gen {r.tlb_gen}, used on CPU "
                f"{' '.join(map(str, r.cpumask)) or 'none'}"
            ),
        ),
        ("flags", " ".join(r.flags)),
        ("exe", r.exe),
        ("layout", numbered((name, hex(value)) for name, value in r.layout)),
    ]
    return "\n".join(
        [f"mm#{r.id} of {style.paint(r.name, 'name')} (pid {r.pid})", *facts(pairs, style)]
    )


def _holders(holders: tuple[MmHolder, ...]) -> str:
    return ", ".join(map(_holder, holders)) or "nobody"


def _holder(holder: MmHolder) -> str:
    who = f" {holder.name} ({holder.pid})" if holder.name else ""
    return f"{holder.what}{who}" + (f" x{holder.count}" if holder.count > 1 else "")


def short(vma: VmaReading) -> str:
    """A VMA in a few words: ``0x10000-0x14000 rw-p /bin/app+0x1000``."""
    name = f" {vma.name}" if vma.name else ""
    offset = f"+{vma.offset:#x}" if vma.offset else ""
    return f"{vma.start:#x}-{vma.end:#x} {vma.perm}{name}{offset}"


def vma_detail(reading: VmaDetail, style: Style) -> str:
    """One VMA in full, with its neighbours."""
    r = reading
    pairs = [
        ("pages", f"{r.vma.pages}, {r.resident} of them present"),
        ("kind", r.kind),
        ("vm_flags", f"{r.vm_flags:#x}: {' '.join(r.names)}"),
        ("VmFlags", " ".join(r.flags)),
        ("page_prot", f"{r.page_prot:#x}"),
        ("pgoff", f"{r.pgoff:#x}"),
        ("anon_vma", "none: no anonymous page yet" if not r.anon else ""),
        *[("anon_vma", _anon(link)) for link in r.anon],
        ("below", _neighbour(r.before, r.vma.start - r.before.end) if r.before else ""),
        ("above", _neighbour(r.after, r.after.start - r.vma.end) if r.after else ""),
    ]
    return "\n".join(
        [
            f"{short(r.vma)} of {style.paint(r.name, 'name')} (pid {r.pid}, mm#{r.mm})",
            *facts(pairs, style),
        ]
    )


def _anon(link: AnonLink) -> str:
    role = "its own" if link.own else "inherited"
    return (
        f"#{link.id} ({role}): root #{link.root}, parent #{link.parent}, refcount {link.refcount}, "
        f"{plural(link.vmas, 'VMA')} may map its pages, num_children {link.num_children}, "
        f"num_active_vmas {link.num_active_vmas}"
    )


def _neighbour(vma: VmaReading, gap: int) -> str:
    """A neighbour, and the room between in bytes."""
    return short(vma) + (f", {plural(gap >> 12, 'page')} away" if gap else ", adjacent")


def pagemap(reading: Pagemap, style: Style) -> str:
    """The pagemap with kpageflags and kpagecount: the pages that have an entry."""
    rows = [
        (
            f"{p.address:#x}",
            f"{p.word:#018x}",
            p.letters,
            "zero" if p.zero else "-" if p.pfn is None else f"{p.pfn:#x}",
            "-" if p.mapcount is None else p.mapcount,
            p.kpageflags,
        )
        for p in reading.pages
    ]
    head = f"pagemap of {reading.name} (pid {reading.pid}), {reading.start:#x}-{reading.end:#x}"
    legend = "P present, S swap, F file or shared, X mapped once, G guard; E PageAnonExclusive"
    if not rows:
        return f"{head}: nothing has an entry"
    return "\n".join(
        [
            style.paint(head, "name"),
            *table("<ADDRESS <WORD <BITS PFN MAPS <KPAGEFLAGS", rows),
            legend,
        ]
    )


def layout(reading: LayoutReading, style: Style) -> str:
    """The whole address space, lowest first, the task's mappings indented."""
    head = (
        f"address space of {reading.name} (pid {reading.pid}), {reading.geometry}: "
        f"{reading.va_bits}-bit addresses"
    )
    return "\n".join([head, *[_region(region, style) for region in reading.regions]])


def _region(region: Region, style: Style) -> str:
    span = f"{region.start:016x} - {region.end - 1:016x}"
    size = size_text(region.end - region.start)
    if region.kind in ("vma", "mapped"):
        return f"  {span} {size:>8}    {region.perm or 'mapped:'} {region.what}".rstrip()
    line = (
        f"  {span} {size:>8}  {'(' + region.what + ')' if region.kind == 'hole' else region.what}"
    )
    return style.paint(line, "kernel") if region.kind == "kernel" else line


def size_text(size: int) -> str:
    """A size in the largest unit that divides it: ``128 TB``, ``444 GB``, ``132 kB``; the hole in
    the middle is ``~16M TB``."""
    if size >= 1 << 60:
        return f"~{(size + (1 << 59)) >> 60}M TB"
    shift, unit = next(
        (s, u)
        for s, u in ((40, "TB"), (30, "GB"), (20, "MB"), (10, "kB"))
        if not size & ((1 << s) - 1)
    )
    return f"{size >> shift} {unit}"
