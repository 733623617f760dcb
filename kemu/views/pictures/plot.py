"""plot: values over the events of the experiment, for the terminal and as SVG (without an engine).

    rss(app)  2 |            aaaaaaaaaaaaaa
                |            |
              0 |aaaaaaaaaaaaa
                +--------------------------
                 0                       57

A value holds until it changes, so the line is a staircase. Each series has a letter, in the text
and in the SVG: colour helps, but is never the only sign.
"""

from __future__ import annotations

from html import escape

from kemu.readings import PlotGraph, PlotSeries
from kemu.views.pictures.model import Cell, Diagram, Node
from kemu.views.pictures.text import cut, plain
from kemu.views.style import Style

LETTERS = "abcdefghijklmnopqrstuvwxyz"
HEIGHT = 12
"""Height of the drawing in lines."""
MARGIN = 8


def terminal(reading: PlotGraph, style: Style) -> list[str]:
    """The picture for a terminal."""
    r, g = reading, style.glyphs
    values = [value for series in r.series for _, value in series.points if value is not None]
    if not values:
        return [_title(r), "", "no value at any of these moments", *_legend(r, style)]
    low, high = min(values), max(values)
    if low >= 0 and high:
        low = 0
    width = style.width - MARGIN - 3
    grid = _grid(r, width, low, high)
    lines, ticks = [_title(r), ""], _ticks(low, high)
    for row in range(HEIGHT - 1, -1, -1):
        label = ticks.get(row, "")
        lines.append(f"{label:>{MARGIN}} {g.tees[1] if label else g.pipe}{''.join(grid[row])}")
    lines.append(f"{'':{MARGIN}} {g.corners[2]}{g.rule * width}")
    lines.append(
        f"{'':{MARGIN}}  #{r.first}{('#' + str(r.last)).rjust(width - len(str(r.first)) - 1)}"
    )
    return [*lines, "", *_legend(r, style)]


def _title(r: PlotGraph) -> str:
    sampled = f", looked at every {r.step} events" if r.step > 1 else ""
    return f"values at the events {r.first} to {r.last}{sampled}"


def _ticks(low: int, high: int) -> dict[int, str]:
    """The numbers at the axis: every value if there are few, otherwise the lowest, the middle and
    the highest."""
    values = range(low, high + 1) if high - low <= 6 else (low, (low + high) // 2, high)
    return {_row(value, low, high): str(value) for value in values}


def _grid(r: PlotGraph, width: int, low: int, high: int) -> list[list[str]]:
    """Lines of letters, the lowest first; ``*`` where two series meet."""
    grid = [[" "] * width for _ in range(HEIGHT)]
    for number, series in enumerate(r.series):
        before: int | None = None
        for column in range(width):
            value = _at(series, r.first + (r.last - r.first) * column // max(width - 1, 1))
            row = None if value is None else _row(value, low, high)
            if row is not None:
                for between in (
                    range(min(row, before), max(row, before) + 1) if before is not None else (row,)
                ):
                    _put(grid, between, column, LETTERS[number % 26])
            before = row
    return grid


def _put(grid: list[list[str]], row: int, column: int, letter: str) -> None:
    there = grid[row][column]
    grid[row][column] = letter if there in (" ", letter) else "*"


def _row(value: int, low: int, high: int) -> int:
    return HEIGHT // 2 if high == low else round((value - low) * (HEIGHT - 1) / (high - low))


def _at(series: PlotSeries, event: int) -> int | None:
    """The value at an event."""
    value = None
    for at, now in series.points:
        if at > event:
            break
        value = now
    return value


def _legend(r: PlotGraph, style: Style) -> list[str]:
    """The letters, first and last values, and the moments with a name."""
    lines = []
    for number, series in enumerate(r.series):
        values = [value for _, value in series.points if value is not None]
        ends = f"{values[0]} at first, {values[-1]} at last" if values else "never has a value"
        about = ends + (f", between {min(values)} and {max(values)}" if values else "")
        lines.append(
            cut(f"{LETTERS[number % 26]}  {plain(series.name)}: {about}", style.width, style)
        )
    lines += ["*  more than one of them"] if len(r.series) > 1 else []
    return [*lines, *(f"#{event}  mark {plain(name)}" for name, event in r.marks)]


def diagram(reading: PlotGraph) -> Diagram:
    """DOT has no plots; this is a table of the changes: event and value of each series."""
    nodes = []
    for number, series in enumerate(reading.series):
        cells = [Cell(f"{LETTERS[number % 26]}: {series.name}", "head")]
        shown = (
            series.points
            if len(series.points) <= 24
            else (*series.points[:12], *series.points[-11:])
        )
        cells += [
            Cell(f"#{event}: {'no value' if value is None else value}", f"at {event}")
            for event, value in shown
        ]
        if len(shown) < len(series.points):
            cells.insert(13, Cell(f"{len(series.points) - len(shown)} changes more", "fold"))
        nodes.append(Node(f"series {series.name}", tuple(cells), "frame"))
    return Diagram(_title(reading), tuple(nodes), (), down=True)


# ---------------------------------------------------------------- SVG

WIDE, HIGH, LEFT, TOP, BELOW = 720, 360, 70, 40, 50
COLOURS = ("#1b5e9c", "#b3471d", "#2c7a3f", "#7a3f8f", "#8a6d00", "#444444")
DASHES = ("", "8 4", "2 4", "10 4 2 4", "4 4", "1 6")


def svg(reading: PlotGraph) -> str:
    """The plot as a whole SVG document: no script, nothing to fetch, and a title and a description
    for readers who cannot see it."""
    r = reading
    values = [value for series in r.series for _, value in series.points if value is not None] or [
        0
    ]
    low, high = min(0, *values), max(*values, 1)
    body = [*_axes(r, low, high), *_steps(r, low, high), *_names(r)]
    tall = HIGH + 22 * len(r.series)
    said = "; ".join(
        f"{series.name}: " + ", ".join(f"{v} from #{e}" for e, v in series.points[:40])
        for series in r.series
    )
    return "\n".join(
        [
            (
                f'<svg class="kemu" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {tall}" '
                f'width="100%" style="max-width:{WIDE}px" role="img">'
            ),
            f"<title>{_esc(_title(r))}</title>",
            f"<desc>{_esc(said)}</desc>",
            f'<rect width="{WIDE}" height="{tall}" fill="white"/>',
            '<g font-family="Courier,monospace" font-size="12" fill="black">',
            *body,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _esc(text: str) -> str:
    return escape(plain(text))


def _x(r: PlotGraph, event: int) -> float:
    return LEFT + (WIDE - LEFT - 30) * (event - r.first) / max(r.last - r.first, 1)


def _y(value: int, low: int, high: int) -> float:
    return HIGH - BELOW - (HIGH - BELOW - TOP) * (value - low) / max(high - low, 1)


MOST_TICKS = 6
"""A scale up to this long has a number at each step; a longer one at its ends and in the middle."""


def _axes(r: PlotGraph, low: int, high: int) -> list[str]:
    """Both axes with their numbers, the title, and a line at each named moment."""
    bottom, right = HIGH - BELOW, WIDE - 30
    made = [
        f'<text x="{LEFT}" y="22">{_esc(_title(r))}</text>',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="black"/>',
    ]
    for value in (
        range(low, high + 1) if high - low <= MOST_TICKS else sorted({low, (low + high) // 2, high})
    ):
        y = _y(value, low, high)
        made.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#cccccc" stroke-width="0.7"/>')
        made.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    events = sorted({r.first, (r.first + r.last) // 2, r.last})
    made += [
        f'<text x="{_x(r, event):.1f}" y="{bottom + 16}" text-anchor="middle">#{event}</text>'
        for event in events
    ]
    for name, event in r.marks:
        x = _x(r, event)
        made.append(f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="black" stroke-dasharray="2 3"/>')
        made.append(f'<text x="{x + 3:.1f}" y="{bottom + 32}">{_esc(name)}</text>')
    return made


def _steps(r: PlotGraph, low: int, high: int) -> list[str]:
    """A staircase for each series, with its letter at the right end; series that end together share
    a place."""
    made, ends = [], dict[str, str]()
    for number, series in enumerate(r.series):
        path, value = "", None
        for event, now in [*series.points, (r.last, _at(series, r.last))]:
            x = f"{_x(r, event):.1f}"
            if value is not None:
                path += f"H{x}"
            if now is not None:
                path += ("V" if value is not None else f"M{x} ") + f"{_y(now, low, high):.1f}"
            value = now
        look = f'stroke="{COLOURS[number % 6]}" stroke-dasharray="{DASHES[number % 6]}"'
        made.append(f'<path d="{path or "M0 0"}" fill="none" stroke-width="2" {look}/>')
        if value is not None:
            place = f"{_y(value, low, high) + 4:.1f}"
            ends[place] = ends.get(place, "") + LETTERS[number % 26]
    return [
        *made,
        *(f'<text x="{WIDE - 26}" y="{place}">{letters}</text>' for place, letters in ends.items()),
    ]


def _names(r: PlotGraph) -> list[str]:
    made = []
    for number, series in enumerate(r.series):
        y = HIGH + 22 * number
        look = f'stroke="{COLOURS[number % 6]}" stroke-dasharray="{DASHES[number % 6]}"'
        made.append(f'<path d="M{LEFT} {y}h40" stroke-width="2" {look}/>')
        made.append(
            f'<text x="{LEFT + 50}" y="{y + 4}">{LETTERS[number % 26]}  {_esc(series.name)}</text>'
        )
    return made
