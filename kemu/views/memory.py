"""RAM for the terminal: one frame, its reverse map, all frames on one screen, the allocator."""

from __future__ import annotations

from kemu.readings import FileList, FrameReading, FreeReading, Holder, MemoryMap, RmapReading
from kemu.views.spaces import short
from kemu.views.style import Style, facts, numbered, plural, printable, table

MAP_COLUMNS = 64
"""Frames per line of the memory map."""
MAP_MARGIN = 10
"""Columns before them, for the number of the first frame."""


def frame_line(frame: FrameReading) -> str:
    """A frame in one line: ``0x1a3 anon, refcount 2, mapcount 2: parent 0x10000, child
    0x10000``."""
    words = [
        f"{frame.pfn:#x} {frame.state}",
        f"refcount {frame.refcount}",
        f"mapcount {frame.mapcount}",
    ]
    if frame.state == "anon":
        words.append("exclusive" if frame.exclusive else "not exclusive")
    held = ", ".join(holder_text(holder) for holder in frame.holders)
    return ", ".join(words) + (f": {held}" if held else "")


def holder_text(holder: Holder) -> str:
    """The holders of references: ``parent 0x10000``, ``page cache``, ``lru_add batch of CPU 0``."""
    if holder.what == "pte":
        text = f"{holder.name} {holder.address:#x}"
    else:
        named = holder.name.startswith(f"{holder.what} ")  # a pipe is called pipe 1
        text = holder.name if named else holder.what + (f" of {holder.name}" if holder.name else "")
        text += f" of CPU {holder.cpu}" if holder.cpu is not None else ""
    return text + (f" x{holder.count}" if holder.count > 1 else "")


def unexplained(missing: int) -> str:
    """A remark on a refcount that is not the sum of its holders: ``2 references that nobody here
    explains``."""
    if missing >= 0:
        return f"{plural(missing, 'reference')} that nobody here explains" if missing else ""
    return f"{plural(-missing, 'holder')} more than references: a get is missing"


def frame(reading: FrameReading, style: Style) -> str:
    """frame: counts, flags, owners."""
    r = reading
    pairs = [
        ("refcount", f"{r.refcount}"),
        *[("held by", _holder(holder)) for holder in r.holders],
        ("missing" if r.missing > 0 else "too few", unexplained(r.missing)),
        ("mapcount", f"{r.mapcount}  (_mapcount {r.mapcount - 1})"),
        (
            "exclusive",
            ("yes: its one mapping may write without a copy" if r.exclusive else "no")
            if r.state == "anon"
            else "",
        ),
        (
            "flags",
            " ".join(r.flags) + (f"  ({r.letters})" if r.letters else "") if r.flags else "none",
        ),
        ("mapping", f"{r.mapping}, index {r.index:#x}" if r.mapping else ""),
        ("table", r.table),
        ("order", f"first of a free block of {1 << r.order}" if r.order is not None else ""),
        (
            "begins",
            f"{r.preview.hex(' ')}  {printable(r.preview)}"
            if r.preview.strip(b"\0")
            else "with zeros",
        ),
    ]
    return "\n".join(
        [
            f"frame {r.pfn:#x} at {r.address:#x}: {style.paint(r.state, 'name')}",
            *facts(pairs, style),
        ]
    )


def _holder(holder: Holder) -> str:
    entry = f"  {holder.letters}" if holder.letters else ""
    return holder_text(holder) + entry + (f"  ({holder.note})" if holder.note else "")


def rmap(reading: RmapReading, style: Style) -> str:
    """rmap: the VMAs that the reverse walk visits, and which of them map the frame."""
    r = reading
    head = f"frame {style.paint(f'{r.pfn:#x}', 'name')}: {r.kind}"
    if not r.via:
        return f"{head}, no reverse map"
    head += f", found through {r.via} at index {r.index:#x}; mapcount {r.mapcount}"
    rows = [
        (
            "*" if v.mapped else " ",
            f"{v.name} ({v.pid})",
            f"{v.address:#x}",
            v.letters or "-",
            short(v.vma),
        )
        for v in reading.visits
    ]
    if not rows:
        return f"{head}\n  no VMA to visit"
    return "\n".join([head, *table("< <TASK <ADDRESS <ENTRY <VMA", rows), "* maps the frame"])


def memory_map(reading: MemoryMap, style: Style) -> str:
    """mem: one letter per frame, 64 to a line, or 32 on a narrow terminal; lines that repeat the
    one above are folded."""
    letters = "".join(run.letter * run.count for run in reading.runs)
    columns = (
        MAP_COLUMNS // 2 if style.fold and style.width < MAP_COLUMNS + MAP_MARGIN else MAP_COLUMNS
    )
    lines: list[str] = []
    previous, skipped = "", 0
    for at in range(0, len(letters), columns):
        row = letters[at : at + columns]
        if row == previous and at + columns < len(letters):
            skipped += 1
            continue
        if skipped:
            lines.append(f"{style.glyphs.more:>8}  {plural(skipped, 'more line')} like this")
        lines.append(f"{at:>#8x}  {row}")
        previous, skipped = row, 0
    key = [
        f"{letter}  {meaning}: {plural(count, 'frame')}"
        for letter, meaning, count in reading.legend
    ]
    return "\n".join([*lines, *key])


def free(reading: FreeReading, style: Style) -> str:
    """free: pages, buddy lists, counters."""
    r = reading
    pairs = [
        ("memory", f"{plural(r.total, 'frame')}, {r.managed} managed by the allocator"),
        ("free", f"{plural(r.free, 'frame')} ({r.free * 4} kB)"),
        ("used", numbered(r.used)),
        (
            "buddy",
            " ".join(f"{order}:{count}" for order, count in enumerate(r.orders))
            + "  (order: free blocks)",
        ),
        ("marks", numbered(r.watermarks)),
        ("lru", numbered(r.lru)),
        ("committed", plural(r.committed, "page")),
        ("vmstat", numbered(r.vmstat)),
    ]
    return "\n".join(facts(pairs, style, indent=""))


def file_list(reading: FileList, _style: Style) -> str:
    """ls: one line per file."""
    if not reading.files:
        return "no files; load brings one in"
    return "\n".join(
        table(
            "<PATH <KIND BYTES CACHED_PAGES",
            [(f.path, f.kind, f.size, f.cached) for f in reading.files],
        )
    )
