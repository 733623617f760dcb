"""tables: the tree of page tables, each table with its frame of RAM.

    pgd  frame 0xa, 1 entry
    `- [0] PWUAD---- > pud  frame 0xb, 1 entry
       `- [0] PWUAD---- > pmd ...

Empty runs are one line. Neighbouring leaves with the same bits are one line, as are neighbouring
tables that are equal down to the last bit: a gigabyte of memory fits a screen. What was folded is
counted below.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import NamedTuple

from kemu.readings import EntryRun, PageTables, TableReading
from kemu.views.pictures.model import Cell, Diagram, Edge, Node
from kemu.views.pictures.text import hanging, plain
from kemu.views.style import Style, plural
from kemu.views.tables import leads_to, legend

FRAMES = 2
"""Maximum number of frames that a folded line names."""
ALIKE = 4
"""Up to this many leaves with the same bits are shown one by one."""
MOST_ROWS = 16
"""Maximum lines of one table; the rest are counted."""


class Row(NamedTuple):
    """One line of a table: the runs that it shows, all alike. With ``left_out`` it shows
    runs of any kind."""

    runs: tuple[EntryRun, ...]
    left_out: bool = False

    @property
    def entries(self) -> int:
        """Entries of the table that it shows."""
        return sum(run.count for run in self.runs)

    @property
    def table(self) -> TableReading | None:
        """The table below, if it leads to one."""
        return None if self.left_out else self.runs[0].table


@cache
def _look(run: EntryRun) -> object:
    """Runs with the same look are drawn as one line."""
    if run.table is not None:
        return run.entry.letters if run.entry else "", _shape(run.table)
    return (run.entry.letters, run.entry.kind, run.entry.note) if run.entry else ""


def _shape(table: TableReading) -> object:
    """What is where in a table, whichever frames it leads to."""
    alike = ((look, list(runs)) for look, runs in groupby(table.runs, key=_look))
    return tuple((runs[0].first, sum(run.count for run in runs), look) for look, runs in alike)


def rows(table: TableReading) -> list[Row]:
    """The lines of a table: a few pages one by one, many that are alike as one."""
    found = []
    for _, alike in groupby(table.runs, key=_look):
        row = Row(tuple(alike))
        single = row.runs[0].entry is not None and row.table is None and row.entries <= ALIKE
        found += [Row((run,)) for run in _one_by_one(row, ALIKE)] if single else [row]
    if len(found) <= MOST_ROWS:
        return found
    rest = tuple(run for row in found[MOST_ROWS - 2 : -1] for run in row.runs)
    return [*found[: MOST_ROWS - 2], Row(rest, left_out=True), found[-1]]


def _one_by_one(row: Row, most: int) -> Iterator[EntryRun]:
    """The first pages of the runs, each as a separate run."""
    for run in row.runs[:most]:
        for at in range(min(run.count, most)):
            size, entry = (run.end - run.start) // run.count, run.entry
            pfn = entry.pfn + at * (size >> 12) if entry and entry.pfn is not None else None
            start = run.start + at * size
            yield EntryRun(run.first + at, 1, start, start + size, entry and entry.replace(pfn=pfn))


def _index(row: Row) -> str:
    first, last = row.runs[0].first, row.runs[-1].first + row.runs[-1].count - 1
    return f"[{first}]" if first == last else f"[{first}..{last}]"


def row_text(row: Row, arrow: str) -> str:
    """A line without its place in the tree."""
    run, index = row.runs[0], _index(row)
    if row.left_out:
        used = sum(part.count for part in row.runs if part.entry)
        return f"{index} {used} entries of different kinds, not drawn"
    if run.entry is None:
        return f"{index} empty"
    if row.table is not None:
        also = f" and {len(row.runs) - 1} more like it" if len(row.runs) > 1 else ""
        return f"{index} {run.entry.letters} {arrow} {_name(row.table)}{also}"
    return f"{index} {run.start:#x} {run.entry.letters} {arrow} {_leaves(row)}"


def _leaves(row: Row) -> str:
    first = row.runs[0].entry
    if first is None or row.entries == 1 or first.pfn is None:
        text = leads_to(first) if first else ""
        return text + (f", {row.entries} times" if row.entries > 1 else "")
    pfns = [
        hex(run.entry.pfn)
        for run in _one_by_one(row, FRAMES)
        if run.entry and run.entry.pfn is not None
    ]
    kind = "huge pages" if first.kind == "huge" else "pages"
    note = f" ({first.note})" if first.note else ""
    return (
        f"{row.entries} {kind}{note}: "
        f"{', '.join(pfns[:FRAMES])}{', ...' if row.entries > FRAMES else ''}"
    )


def _name(table: TableReading) -> str:
    return f"{table.level}, frame {table.pfn:#x}, {plural(table.used, 'entry', 'entries')}"


def terminal(reading: PageTables, style: Style) -> list[str]:
    """The picture for a terminal."""
    r = reading
    if r.root is None:
        return [f"{plain(r.name)} (pid {r.pid}) has no page tables"]
    lines = [_headline(r), "", _name(r.root)]
    lines += _below(r.root, "", style)
    return [*lines, "", *notes(r), *hanging("bits: ", _legend(r).split(", "), style)]


def _legend(r: PageTables) -> str:
    return legend(r.legend).replace("\N{NO-BREAK SPACE}", " ")


def _headline(r: PageTables) -> str:
    count = f"{plural(r.tables, 'table')}, {plural(r.leaves, 'leaf', 'leaves')}"
    return f"page tables of {plain(r.name)} (pid {r.pid}, mm#{r.mm}), {r.geometry}: {count}"


def _below(table: TableReading, indent: str, style: Style) -> Iterator[str]:
    g, found = style.glyphs, rows(table)
    for number, row in enumerate(found):
        last = number == len(found) - 1
        yield indent + (g.last if last else g.branch) + row_text(row, g.right)
        if row.table is not None:
            yield from _below(row.table, indent + ("   " if last else g.bar), style)


def notes(r: PageTables) -> list[str]:
    """What was folded."""
    if r.root is None:
        return []
    tables, pages = _drawn(r.root)
    parts = [plural(r.tables - tables, "table")] if r.tables > tables else []
    parts += [plural(r.leaves - pages, "leaf", "leaves")] if r.leaves > pages else []
    return [f"folded: {' and '.join(parts)} into lines of others that look alike"] if parts else []


def _drawn(table: TableReading) -> tuple[int, int]:
    """Tables and leaves that have a line of their own."""
    tables, pages = 1, 0
    for row in rows(table):
        if row.table is not None:
            below = _drawn(row.table)
            tables, pages = tables + below[0], pages + below[1]
        elif not row.left_out and row.runs[0].entry is not None:
            pages += 1
    return tables, pages


def diagram(reading: PageTables) -> Diagram:
    """Each table a record, an arrow from each entry to the table below."""
    nodes: list[Node] = []
    edges: list[Edge] = []
    if reading.root is not None:
        _draw(reading.root, nodes, edges)
    return Diagram(
        _headline(reading),
        tuple(nodes),
        tuple(edges),
        (*notes(reading), "bits: " + _legend(reading)),
    )


def _draw(table: TableReading, nodes: list[Node], edges: list[Edge]) -> str:
    """Add the table and all below it; its key."""
    key = f"table {table.pfn:#x}"
    cells = [Cell(f"{table.level}, frame {table.pfn:#x}", "head")]
    nodes.append(Node(key, (), "table"))
    at = len(nodes) - 1
    for row in rows(table):
        name = f"e{row.runs[0].first}"
        cells.append(Cell(_cell_text(row), name))
        if row.table is not None:
            edges.append(Edge(key, name, _draw(row.table, nodes, edges), "head"))
    nodes[at] = Node(key, tuple(cells), "table")
    return key


def _cell_text(row: Row) -> str:
    """A line; where an arrow leads to a table, the table itself says what it is."""
    if row.table is None:
        return row_text(row, "to")
    letters = row.runs[0].entry.letters if row.runs[0].entry else ""
    return f"{_index(row)} {letters}" + (
        f"\nand {len(row.runs) - 1} tables more like it" if len(row.runs) > 1 else ""
    )
