"""The page tables of one or two address spaces, joined at the frames that they share, as HTML
tables with arrows of SVG.

    app                                              child
    pgd 0x10e                                        pgd 0x113
      pud 0x10f                                      pud 0x114
        ...                                            ...
        pte 0x111               frames               pte 0x116
        [16] 0x10000 P-U... --> 0x112 anon     <-- [16] 0x10000 P-U...
                                refcount 2

No engine lays this out: a table goes below the one before it, each line is ``ROW`` high, a frame
goes next to the first entry that leads to it, or below the frame before. The page's script draws
the same, character for character, at every moment (report.js); a test compares them.

The meaning of an arrow is also written in the line at which it begins.
"""

from __future__ import annotations

from typing import NamedTuple

from kemu.readings.report import FrameLook, SpaceRow
from kemu.views.page import esc
from kemu.views.report_player import FRAMED, Entry, Player

ROW, CAPTION, GAP, HEAD, LINE, PAD = 20, 22, 10, 30, 16, 8
"""Heights in pixels: of an entry, of a table's caption, between tables, of a name, of a line in a
frame, around these lines."""
MOST_ROWS, FIRST_ROWS, LAST_ROWS = 12, 5, 2
"""Maximum number of entries drawn of a table."""


class Shape(NamedTuple):
    """Widths in pixels: of a column of tables, of an arrow's way, of the frames; ``step``: how far
    a lower table is moved in; ``full``: with addresses and all letters."""

    column: int
    way: int
    frames: int
    step: int
    full: bool

    @property
    def width(self) -> int:
        """The whole width."""
        return 2 * self.column + 2 * self.way + self.frames


WIDE = Shape(291, 44, 190, 8, full=True)
NARROW = Shape(118, 14, 94, 3, full=False)


class Row(NamedTuple):
    """A run of ``times`` similar entries, or a line that says how many are left out (``entry``
    None)."""

    entry: Entry | None
    times: int
    y: int = 0


class Box(NamedTuple):
    """A table in its place."""

    level: int
    pfn: int
    used: int
    rows: tuple[Row, ...]
    depth: int
    y: int
    height: int
    parent_y: int


class Cell(NamedTuple):
    """A frame, or ``times`` of them that look the same, in its place."""

    pfn: int
    times: int
    lines: tuple[str, ...]
    y: int
    height: int


def joined(player: Player, ids: tuple[int, ...], shape: Shape = WIDE) -> str:
    """The drawing of the address spaces with these ids (one or two), as HTML."""
    mapped = player.mapped_by()
    columns = [_column(player, player.space(number), mapped) for number in ids]
    cells = _cells(player, columns, mapped, ids, shape)
    bottoms = [box.y + box.height for column in columns for box in column] + [
        cell.y + cell.height for cell in cells
    ]
    height = max([HEAD, *bottoms]) + GAP
    sides = [player.space(number) for number in ids]
    marks = "".join(_arrows(columns, cells, shape))
    title = f"<title>{esc(summary(player, ids))}</title>"
    parts = [
        (
            f'<div class="joined{"" if shape.full else " small"}" '
            f'style="width:{shape.width}px;height:{height}px">'
        ),
        f'<svg width="{shape.width}" height="{height}" role="img">{title}{marks}</svg>',
        *(_head(space, side, shape) for side, space in enumerate(sides)),
        *(
            _table(player, box, side, shape)
            for side, column in enumerate(columns)
            for box in column
        ),
        *(_frame(cell, shape) for cell in cells),
        "</div>",
    ]
    return "".join(parts)


# ---------------------------------------------------------------- where things go


def _column(player: Player, space: SpaceRow, mapped: dict[int, list[int]]) -> list[Box]:
    """The tables of an address space from the root down."""
    boxes: list[Box] = []

    def place(table: int, level: int, base: int, parent_y: int, y: int) -> int:
        entries = player.entries_of(table, level, base)
        rows = tuple(
            row._replace(y=y + CAPTION + i * ROW)
            for i, row in enumerate(folded(grouped(player, entries, mapped)))
        )
        height = CAPTION + len(rows) * ROW
        boxes.append(Box(level, table, len(entries), rows, level, y, height, parent_y))
        y += height + GAP
        for row in rows:
            if row.entry is not None and row.entry.kind == "table":
                y = place(row.entry.pfn, level + 1, row.entry.va, row.y + ROW // 2, y)
        return y

    if space.root in player.tables:
        place(space.root, 0, 0, 0, HEAD)
    return boxes


def grouped(player: Player, entries: list[Entry], mapped: dict[int, list[int]]) -> list[Row]:
    """Neighbours that lead to neighbouring frames, with equal bits, and whose frames look the same
    and have the same owners."""
    rows: list[Row] = []
    for entry in entries:
        first, count = (rows[-1].entry, rows[-1].times) if rows else (None, 0)
        if (
            first is not None
            and (first.kind, first.look, first.slot + count, first.pfn + count)
            == (entry.kind, entry.look, entry.slot, entry.pfn)
            and entry.kind in ("page", "protnone")
            and player.look(first.pfn) == player.look(entry.pfn)
            and mapped.get(first.pfn) == mapped.get(entry.pfn)
        ):
            rows[-1] = Row(first, count + 1)
        else:
            rows.append(Row(entry, 1))
    return rows


def folded(rows: list[Row]) -> list[Row]:
    """The rows, or the first and the last of many, with one between them that counts the entries
    left out."""
    if len(rows) <= MOST_ROWS:
        return rows
    out = rows[FIRST_ROWS : len(rows) - LAST_ROWS]
    return [
        *rows[:FIRST_ROWS],
        Row(None, sum(row.times for row in out)),
        *rows[len(rows) - LAST_ROWS :],
    ]


def _cells(
    player: Player,
    columns: list[list[Box]],
    mapped: dict[int, list[int]],
    ids: tuple[int, ...],
    shape: Shape,
) -> list[Cell]:
    """The frames to which the drawn entries lead, each next to the first of its entries if there is
    room."""
    wanted: list[tuple[int, int, int]] = []
    known: set[int] = set()
    for column in columns:
        for row in (row for box in column for row in box.rows):
            if row.entry is not None and row.entry.leads and row.entry.pfn not in known:
                known.update(range(row.entry.pfn, row.entry.pfn + row.times))
                wanted.append((row.y, row.entry.pfn, row.times))
    cells: list[Cell] = []
    bottom = HEAD
    for y, pfn, times in sorted(wanted):
        others = [player.space(number).label for number in mapped.get(pfn, []) if number not in ids]
        lines = tuple(frame_lines(pfn, times, player.look(pfn), others, full=shape.full))
        top = max(y - PAD, bottom)
        height = len(lines) * LINE + PAD
        cells.append(Cell(pfn, times, lines, top, height))
        bottom = top + height + GAP
    return cells


def frame_lines(
    pfn: int, times: int, look: FrameLook, others: list[str], *, full: bool
) -> list[str]:
    """The text in the box of a frame."""
    name = f"{pfn:#x}" if times == 1 else f"{pfn:#x} x{times}"
    words = {
        "anon": "exclusive" if look.exclusive else "not exclusive",
        "file": "page cache",
        "shmem": "page cache",
    }
    counts = (
        f"refcount {look.refcount}, mapcount {look.mapcount}"
        if full
        else f"ref {look.refcount} map {look.mapcount}"
    )
    lines = [f"{name} {look.state}", counts]
    if look.state in words:
        lines.append(words[look.state])
    if look.preview:
        lines.append(preview(look.preview, 16 if full else 8))
    if others:
        lines.append(f"also: {', '.join(others)}")
    return lines


def preview(data: bytes, room: int) -> str:
    """The first ``room`` bytes as text, or half as many as numbers where they are not text."""
    if all(32 <= byte < 127 for byte in data):
        return f'"{data[:room].decode("ascii")}"'
    return data[: room // 2].hex(" ")


# ---------------------------------------------------------------- drawing


def _left(side: int, depth: int, shape: Shape) -> tuple[int, int]:
    """Left edge and width of a table."""
    width = shape.column - depth * shape.step - 6
    return (6 + depth * shape.step if side == 0 else shape.width - shape.column), width


def _head(space: SpaceRow, side: int, shape: Shape) -> str:
    left, width = _left(side, 0, shape)
    made = "" if space.users else " (being made or gone)"
    users = ", ".join(space.users) or space.label
    words = f'{esc(users)}{made} <span class="soft">mm#{space.id}</span>'
    return f'<div class="who" style="left:{left}px;top:0;width:{width}px">{words}</div>'


def _table(player: Player, box: Box, side: int, shape: Shape) -> str:
    left, width = _left(side, box.depth, shape)
    level = player.film.machine.levels[box.level]
    caption = f"{level[0]} {box.pfn:#x}" + (
        f", {box.used} of {level[2]} used" if shape.full else ""
    )
    rows = "".join(_row(player, row, shape) for row in box.rows)
    return (
        f'<table class="pt" data-table="{box.pfn}" '
        f'style="left:{left}px;top:{box.y}px;width:{width}px">'
        f"<caption>{esc(caption)}</caption><tbody>{rows}</tbody></table>"
    )


def _row(player: Player, row: Row, shape: Shape) -> str:
    entry = row.entry
    if entry is None:
        return (
            f'<tr class="more"><td colspan="{4 if shape.full else 3}">{row.times} more '
            "entries</td></tr>"
        )
    index = f"[{entry.slot}]" if row.times == 1 else f"[{entry.slot}-{entry.slot + row.times - 1}]"
    letters = entry.look.letters if shape.full else entry.look.letters.replace("-", "")
    address = f"<td>{entry.va:#x}</td>" if shape.full else ""
    key = f"{entry.table}:{entry.slot}"
    return (
        f'<tr data-entry="{key}"><td>{index}</td>{address}<td>{letters}</td>'
        f"<td>{esc(target(player, row, shape))}</td></tr>"
    )


def target(player: Player, row: Row, shape: Shape) -> str:
    """Where the entry leads, or what it is instead."""
    entry = row.entry
    if entry is None:
        return ""
    if entry.kind not in FRAMED:
        return player.note(entry) or entry.kind
    words = {"huge": "huge ", "protnone": "none "} if shape.full else {}
    return (
        words.get(entry.kind, "")
        + f"{entry.pfn:#x}"
        + (f" x{row.times}" if row.times > 1 and shape.full else "")
    )


def _frame(cell: Cell, shape: Shape) -> str:
    left = shape.column + shape.way
    lines = "<br>".join(esc(line) for line in cell.lines)
    return (
        f'<div class="frame" data-frame="{cell.pfn}" '
        f'style="left:{left}px;top:{cell.y}px;width:{shape.frames}px;height:{cell.height}px">'
        f"{lines}</div>"
    )


def _arrows(columns: list[list[Box]], cells: list[Cell], shape: Shape) -> list[str]:
    """Lines from entries to the tables below, at the outer side, and arrows to frames, at the inner
    side."""
    marks = []
    for side, column in enumerate(columns):
        for box in column:
            if box.depth:
                marks.append(_elbow(box, side, shape))
            marks += [
                _arrow(row, cell, side, shape)
                for row in box.rows
                for cell in cells
                if _hits(row, cell)
            ]
    return marks


def _hits(row: Row, cell: Cell) -> bool:
    return (
        row.entry is not None
        and row.entry.leads
        and cell.pfn <= row.entry.pfn < cell.pfn + cell.times
    )


def _elbow(box: Box, side: int, shape: Shape) -> str:
    """From the entry in the table above to the caption of this one."""
    (above, width), (here, own) = _left(side, box.depth - 1, shape), _left(side, box.depth, shape)
    start, margin, end = (
        (above, above - 4, here) if side == 0 else (above + width, above + width + 4, here + own)
    )
    return (
        f'<path class="down" d="M{start} '
        f'{box.parent_y}H{margin}V{box.y + CAPTION // 2}H{end}"></path>'
    )


def _arrow(row: Row, cell: Cell, side: int, shape: Shape) -> str:
    """From an entry to its frame; solid if the entry allows writing, otherwise dashed."""
    x1 = shape.column if side == 0 else shape.width - shape.column
    x2 = x1 + (shape.way if side == 0 else -shape.way)
    y1, y2 = row.y + ROW // 2, cell.y + PAD // 2 + LINE // 2
    half, tip = (shape.way // 2, 6) if side == 0 else (-(shape.way // 2), -6)
    dashed = "" if row.entry is not None and "W" in row.entry.look.letters else " readonly"
    return (
        f'<path class="to{dashed}" d="M{x1} {y1}C{x1 + half} {y1} {x2 - half} {y2} {x2 - tip} '
        f'{y2}"></path>'
        f'<path class="tip" d="M{x2} {y2}l{-tip} -4v8z"></path>'
    )


# ---------------------------------------------------------------- in words


def summary(player: Player, ids: tuple[int, ...]) -> str:
    """The drawing in a sentence."""
    mapped = player.mapped_by()
    names = [player.space(number).label for number in ids]
    own = [[pfn for pfn in sorted(mapped) if number in mapped[pfn]] for number in ids]
    if len(ids) == 1:
        return f"Page tables of {names[0]}, which lead to {_frames(own[0])}."
    both = set(own[0]) & set(own[1])
    left, right = ([pfn for pfn in pfns if pfn not in both] for pfns in own)
    return (
        f"Page tables of {names[0]} and {names[1]}: both lead to {_frames(sorted(both))}; "
        f"only {names[0]} to {_frames(left)}; only {names[1]} to {_frames(right)}."
    )


def _frames(pfns: list[int]) -> str:
    """``the frames 0x112 and 2 more``."""
    if not pfns:
        return "no frame"
    more = f" and {len(pfns) - 4} more" if len(pfns) > 5 else ""
    shown = pfns[:4] if more else pfns
    return f"the frame{'s' * (len(pfns) > 1)} {', '.join(hex(pfn) for pfn in shown)}{more}"


def in_words(player: Player, ids: tuple[int, ...]) -> str:
    """All that the drawing shows, as lines: every table with its entries, then every frame with the
    entries that lead to it."""
    mapped, lines = player.mapped_by(), []
    frames: dict[int, list[str]] = {}
    for number in ids:
        space = player.space(number)
        lines.append(f"{', '.join(space.users) or space.label} (mm#{space.id})")
        for box in _column(player, space, mapped):
            lines.append(
                f"  {player.film.machine.levels[box.level][0]} {box.pfn:#x}, {box.used} used"
            )
            for row in box.rows:
                lines.append(f"    {_row_words(player, row)}")
                if row.entry is not None and row.entry.leads:
                    way = f"{space.label} {row.entry.va:#x} {row.entry.look.letters}"
                    frames.setdefault(row.entry.pfn, []).append(
                        way + (f" x{row.times}" if row.times > 1 else "")
                    )
    for pfn, ways in sorted(frames.items()):
        others = [player.space(n).label for n in mapped.get(pfn, []) if n not in ids]
        lines.append(
            "; ".join(
                [
                    "frame " + ", ".join(frame_lines(pfn, 1, player.look(pfn), others, full=True)),
                    *ways,
                ]
            )
        )
    return "\n".join(lines)


def _row_words(player: Player, row: Row) -> str:
    if row.entry is None:
        return f"{row.times} more entries"
    index = (
        f"[{row.entry.slot}]"
        if row.times == 1
        else f"[{row.entry.slot}-{row.entry.slot + row.times - 1}]"
    )
    return f"{index} {row.entry.va:#x} {row.entry.look.letters} -> {target(player, row, WIDE)}"
