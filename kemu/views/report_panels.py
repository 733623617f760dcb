"""The other panels of the report: tasks, mappings, all of RAM. The page's script draws the same
(report.js)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kemu.readings import TaskRow, VmaReading
from kemu.readings.memory import MEANINGS
from kemu.readings.report import SpaceRow
from kemu.views.memory import MAP_COLUMNS
from kemu.views.page import esc
from kemu.views.report_player import Player


class Grid(NamedTuple):
    """``columns`` frames on a line, each ``cell`` wide; the ``label`` before it and the ``line`` in
    pixels."""

    columns: int
    cell: int
    label: int
    line: int = 16


WIDE_GRID = Grid(MAP_COLUMNS, 12, 62)
NARROW_GRID = Grid(MAP_COLUMNS // 2, 9, 58)

STATES = {
    "R": "runnable",
    "S": "sleeping",
    "D": "waiting",
    "Z": "zombie",
    "X": "dead",
    "T": "stopped",
}


def tasks(player: Player) -> str:
    """All tasks, one per line."""
    head = "<tr><th>pid<th>name<th>state<th>mm<th>pages<th>rss<th>faults<th>CPU</tr>"
    rows = "".join(_task(task) for task in player.tasks)
    return f'<table class="tasks"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def _task(task: TaskRow) -> str:
    mm = f"mm#{task.mm}" if task.mm else f"(mm#{task.active_mm})" if task.active_mm else "none"
    state = f"waits in {task.blocked_in}" if task.blocked_in else STATES.get(task.state, task.state)
    cpu = f"runs on {task.running_on}" if task.running_on is not None else ""
    cells = (
        task.pid,
        task.name,
        state,
        mm,
        task.size,
        task.rss,
        f"{task.minor} + {task.major}",
        cpu,
    )
    return (
        f'<tr data-pid="{task.pid}">' + "".join(f"<td>{esc(cell)}</td>" for cell in cells) + "</tr>"
    )


def mappings(player: Player, ids: tuple[int, ...]) -> str:
    """The mappings of the address spaces, one table each."""
    return "".join(_mappings(player.space(number), player.vmas(number)) for number in ids)


def _mappings(space: SpaceRow, vmas: tuple[VmaReading, ...]) -> str:
    head = "<tr><th>from<th>to<th>rights<th>pages<th>what</tr>"
    rows = "".join(
        f'<tr data-vma="{space.id}:{vma.start}"><td>{vma.start:#x}</td><td>{vma.end:#x}</td>'
        f"<td>{esc(vma.perm)}</td>"
        f'<td class="n">{vma.pages}</td><td>{esc(vma_what(vma))}</td></tr>'
        for vma in vmas
    )
    who = ", ".join(space.users) or space.label
    return (
        f'<table class="vmas"><caption>{esc(who)} '
        f"(mm#{space.id})</caption><thead>{head}</thead><tbody>{rows}</tbody></table>"
    )


def vma_what(vma: VmaReading) -> str:
    """What is mapped: a file with its offset, a name, or nothing but memory."""
    if not vma.inode:
        return vma.name or "anonymous"
    return vma.name + (f" from {vma.offset:#x}" if vma.offset else "")


# ---------------------------------------------------------------- RAM


class Line(NamedTuple):
    """A line of the map: its first frame, its letters, and how many lines like the one before are
    left out above it."""

    at: int
    letters: str
    skipped: int


def map_lines(letters: dict[int, str], frames: int, columns: int) -> list[Line]:
    """The lines of the map of ``frames`` frames, folded as in `mem`: lines that repeat the one
    above are left out, except the last."""
    lines: list[Line] = []
    for at, text, count in _runs(letters, frames, columns):
        if lines and lines[-1].letters == text:
            lines[-1] = lines[-1]._replace(skipped=lines[-1].skipped + count)
        else:
            lines.append(Line(at, text, count - 1))
    return _with_last(lines, frames, columns)


def _runs(letters: dict[int, str], frames: int, columns: int) -> Iterator[tuple[int, str, int]]:
    """(first frame, letters, lines) of neighbouring lines with the same letters; stretches of free
    lines are not written out."""
    last, after = (frames - 1) // columns, 0
    for line in [*sorted({pfn // columns for pfn in letters} - {last}), last]:
        if line > after:
            yield after * columns, "." * columns, line - after
        span = range(line * columns, min((line + 1) * columns, frames))
        yield line * columns, "".join(letters.get(pfn, ".") for pfn in span), 1
        after = line + 1


def _with_last(lines: list[Line], frames: int, columns: int) -> list[Line]:
    """So far ``skipped`` counts what follows a line: let it count what is left out before one, and
    show the very last."""
    shown = [
        Line(line.at, line.letters, lines[i - 1].skipped if i else 0)
        for i, line in enumerate(lines)
    ]
    if lines[-1].skipped:
        shown.append(
            Line((frames - 1) // columns * columns, lines[-1].letters, lines[-1].skipped - 1)
        )
    return shown


def memory(player: Player, grid: Grid = WIDE_GRID) -> str:
    """All of RAM, one cell per frame; lines that repeat the one above are counted."""
    letters, y, parts = player.letters(), 0, []
    for line in map_lines(letters, player.film.machine.frames, grid.columns):
        if line.skipped:
            parts.append(
                f'<text class="soft" x="{grid.label}" y="{y + 12}">{_more(line.skipped)}</text>'
            )
            y += grid.line
        parts.append(_line(line, y, grid))
        y += grid.line
    size = f"{grid.label + grid.columns * grid.cell + 2} {y + 2}"
    words = legend(player, letters)
    title = f"<title>{esc('RAM, one letter per frame: ' + words)}</title>"
    width, height = size.split()
    svg = (
        f'<svg class="ram" width="{width}" height="{height}" viewBox="0 0 {size}" '
        f'role="img">{title}{"".join(parts)}</svg>'
    )
    return f'{svg}<p class="soft">{esc(words)}</p>'


def _more(count: int) -> str:
    return f"{count} more line{'s' * (count != 1)} like this"


def _line(line: Line, y: int, grid: Grid) -> str:
    """One line: the first frame's number, a box for each run of a letter, the letters."""
    row = line.letters
    parts, start = [f'<text x="0" y="{y + 12}">{line.at:#x}</text>'], 0
    for i in range(1, len(row) + 1):
        if i == len(row) or row[i] != row[start]:
            if row[start] != ".":
                box = (
                    f'x="{grid.label + start * grid.cell}" y="{y}" '
                    f'width="{(i - start) * grid.cell}" height="{grid.line - 1}"'
                )
                parts.append(f'<rect class="{letter_class(row[start])}" {box}></rect>')
            start = i
    places = " ".join(str(grid.label + i * grid.cell + grid.cell // 2) for i in range(len(row)))
    return "".join(parts) + f'<text class="cells" x="{places}" y="{y + 12}">{row}</text>'


def letter_class(letter: str) -> str:
    """The style of a letter."""
    return f"m{letter}" if letter in "KTZFRS" else "mo"


def legend(player: Player, letters: dict[int, str]) -> str:
    """What the letters mean, with the number of frames of each."""
    names = MEANINGS | {letter: space.label for letter, space in player.owners().items()}
    counts = Counter(letters.values())
    counts["."] = player.film.machine.frames - len(letters)
    return "; ".join(
        f"{letter} {name} {counts[letter]}" for letter, name in names.items() if counts[letter]
    )


def memory_in_words(player: Player) -> str:
    """RAM as `mem` writes it."""
    lines = []
    for line in map_lines(player.letters(), player.film.machine.frames, MAP_COLUMNS):
        if line.skipped:
            lines.append(f"     ...  {_more(line.skipped)}")
        lines.append(f"{line.at:>#8x}  {line.letters}")
    return "\n".join(lines)
