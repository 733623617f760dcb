"""mem and layout: RAM frame by frame, and the whole address space to a scale that can be read.

The parts of an address space differ in size by a factor of 2^40, so a part is drawn as high as the
logarithm of its size says: 132 kB of stack and 64 TB of direct map can both be seen. The highest
address is at the top, as in most books.
"""

from __future__ import annotations

from kemu.readings import LayoutReading, MemoryMap, Region
from kemu.views.memory import MAP_COLUMNS, memory_map
from kemu.views.pictures.model import Cell, Diagram, Node
from kemu.views.pictures.text import columns, cut, left, plain
from kemu.views.spaces import size_text
from kemu.views.style import PLAIN, Style, plural

MOST_LINES = 40
"""Maximum number of lines of cells drawn."""

# ---------------------------------------------------------------- mem


def mem(reading: MemoryMap, style: Style) -> list[str]:
    """One cell per frame, 64 to a line; lines that repeat the one above are folded."""
    rows, key = _mem_lines(reading, style)
    return [_mem_title(reading), "", *rows, *key]


def _mem_lines(r: MemoryMap, style: Style) -> tuple[list[str], list[str]]:
    """The lines of cells, without those in the middle if there are too many, and the key."""
    lines = memory_map(r, style).split("\n")
    rows, key = lines[: len(lines) - len(r.legend)], lines[len(lines) - len(r.legend) :]
    if len(rows) <= MOST_LINES:
        return rows, key
    head, tail = rows[: MOST_LINES - 4], rows[-4:]
    tail = tail[next(at for at, row in enumerate(tail) if not _repeats(row)) :]
    shown = [_tally(part, r) for part in (head, tail)]
    rest = {word: count - sum(found[letter] for found in shown) for letter, word, count in r.legend}
    said = ", ".join(f"{word} {count}" for word, count in rest.items() if count)
    left_out = f"{style.glyphs.more:>8}  {sum(rest.values())} frames not drawn: {said}"
    return [*head, cut(left_out, style.width, style), *tail], key


def _repeats(row: str) -> int:
    """How often a folded line repeats the one above; 0 for a line of cells."""
    return int(row.split()[1]) if "more line" in row else 0


def _tally(rows: list[str], r: MemoryMap) -> dict[str, int]:
    """Frames by letter in some lines, those that are folded included."""
    found = dict.fromkeys((letter for letter, _, _ in r.legend), 0)
    cells = ""
    for row in rows:
        cells = cells if _repeats(row) else row.split()[-1]
        for letter in found:
            found[letter] += cells.count(letter) * (_repeats(row) or 1)
    return found


def _mem_title(r: MemoryMap) -> str:
    return f"RAM: {plural(r.frames, 'frame')} of 4 kB, {MAP_COLUMNS} to a line"


def mem_diagram(reading: MemoryMap) -> Diagram:
    """The lines as the cells of one node."""
    rows, key = _mem_lines(reading, PLAIN)
    cells = [
        Cell(row, row.split()[0] if row.split()[0].startswith("0x") else f"fold {at}")
        for at, row in enumerate(rows)
    ]
    return Diagram(_mem_title(reading), (Node("ram", tuple(cells), "frame"),), (), tuple(key))


# ---------------------------------------------------------------- layout


def layout(reading: LayoutReading, style: Style) -> list[str]:
    """The address space as a tower, the highest address at the top."""
    g, width = style.glyphs, style.width - 19
    lines = [_layout_title(reading), "", f"{'':16} {g.corners[0]}{g.rule * width}{g.corners[1]}"]
    for region, inside in parts(reading):
        name, *texts = _texts(region, inside)
        shown = cut(f" {name} ", width - 2, style)
        lines.append(
            f"{region.end - 1:016x} "
            f"{g.tees[0]}{g.rule}{shown}{g.rule * (width - 1 - columns(shown))}{g.tees[1]}"
        )
        lines += [_line(text, width, style) for text in texts]
    lowest = reading.regions[0].start if reading.regions else 0
    return [*lines, f"{lowest:016x} {g.corners[2]}{g.rule * width}{g.corners[3]}", "", _scale()]


def _layout_title(r: LayoutReading) -> str:
    return (
        f"address space of {plain(r.name)} (pid {r.pid}), {r.geometry}: {r.va_bits}-bit addresses"
    )


def _scale() -> str:
    return "not to scale: a part is one line higher for each factor of 2^16 in its size"


def _line(text: str, width: int, style: Style) -> str:
    bar = style.glyphs.pipe
    return f"{'':16} {bar}{left(cut(' ' + text, width, style), width, style)}{bar}"


def parts(reading: LayoutReading) -> list[tuple[Region, list[Region]]]:
    """The regions of the architecture, highest first, each with what the task or the kernel has
    mapped in it."""
    outer = [region for region in reading.regions if region.kind not in ("vma", "mapped")]
    placed = [region for region in reading.regions if region.kind in ("vma", "mapped")]
    return [
        (o, [p for p in reversed(placed) if o.start <= p.start < o.end]) for o in reversed(outer)
    ]


def _texts(region: Region, inside: list[Region]) -> list[str]:
    """The text of a part: its name and size, then what is mapped in it with the gaps between."""
    what = {"hole": f"({region.what})", "user": "user half"}.get(region.kind, region.what)
    lines = [f"{what}, {size_text(region.end - region.start)}"]
    above = region.end
    for part in inside:
        gap = above - part.end
        lines += [f"   ({about(gap)} free)"] if gap else []
        lines.append(
            f"   {part.start:#x}-{part.end:#x} {part.perm or 'mapped:'} {plain(part.what)}".rstrip()
        )
        above = part.start
    if inside and above > region.start:
        lines.append(f"   ({about(above - region.start)} free)")
    height = max((region.end - region.start).bit_length() // 16, 1)
    return lines + [""] * (height - len(lines))


def about(size: int) -> str:
    """A size in the unit that suits it, rounded: ``128 TB``, ``1.5 GB``."""
    shift, unit = next(
        (s, u)
        for s, u in ((40, "TB"), (30, "GB"), (20, "MB"), (10, "kB"), (0, "bytes"))
        if size >> s or not s
    )
    value = round(size / (1 << shift), 1)
    return f"{value:.0f} {unit}" if value >= 100 or value == int(value) else f"{value} {unit}"


def layout_diagram(reading: LayoutReading) -> Diagram:
    """The tower as one record, the highest address at the top."""
    cells = [
        Cell(_cell_text(region, inside), f"{region.start:#x}") for region, inside in parts(reading)
    ]
    return Diagram(_layout_title(reading), (Node("space", tuple(cells), "table"),), (), (_scale(),))


def _cell_text(region: Region, inside: list[Region]) -> str:
    """A part between its last and its first address."""
    return "\n".join(
        [
            f"{region.end - 1:016x}",
            *(text or " " for text in _texts(region, inside)),
            f"{region.start:016x}",
        ]
    )
