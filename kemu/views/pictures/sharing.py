"""sharing: the page tables of several processes, joined at the frames.

Two processes are mirrored, with the frames between them:

    pgd 0xa                                                           pgd 0x1e
    `- [0] pud 0xb                                             pud 0x1f [0] -'
                          +------------------------+
    0x10000 [16]          | frame 0x112 anon       |              [16] 0x10000
    P-UAD---N read-only ->| refcount 2, mapcount 2 |<- read-only P-UAD---N
    write: COPY           | not exclusive          |           write: COPY
                          +------------------------+

Any other number of processes is a list of entries at the left, joined at the frame that they lead
to.
"""

from __future__ import annotations

from collections.abc import Iterable

from kemu.readings import SharingEdge, SharingFrame, SharingGraph, SharingTable
from kemu.views.pictures.model import Cell, Diagram, Edge, Node
from kemu.views.pictures.text import box, columns, cut, hanging, left, plain, right
from kemu.views.style import Style, plural
from kemu.views.tables import legend

OUTCOMES = {
    "write": "in place",
    "reuse": "fault, REUSE",
    "copy": "fault, COPY",
    "fault": "fault, in place",
    "SIGSEGV": "SIGSEGV",
}
"""The effect of a write, in a few words; capitals where copy-on-write decides."""

BOX = 26
"""Width of a frame in columns."""


def terminal(reading: SharingGraph, style: Style) -> list[str]:
    """The picture for a terminal."""
    r = reading
    head = [_headline(r), ""]
    body = _mirror(r, style) if len(r.spaces) == 2 and style.width >= 76 else _list(r, style)
    return [*head, *body, "", *notes(r, style)]


def _headline(r: SharingGraph) -> str:
    names = ", ".join(plain(space.name) for space in r.spaces)
    return f"sharing: {names} ({r.geometry})"


def notes(r: SharingGraph, style: Style) -> list[str]:
    """The text below the picture: what a write would do and why, what is not drawn, the letters."""
    reasons: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for frame in r.frames:
        for edge in frame.edges:
            place = f"{edge.address:#x}" + (
                f" (+{frame.count - 1} pages)" if frame.count > 1 else ""
            )
            reasons.setdefault((edge.outcome, edge.why), []).append(
                (plain(r.spaces[edge.space].name), place)
            )
    lines = ["what a write would do:"] if reasons else []
    for (outcome, why), places in reasons.items():
        lines += hanging(f"  {OUTCOMES[outcome]}: ", why.split(" "), style, " ")
        lines += hanging("    ", [f"{name} {place}" for name, place in places], style)
    return [*lines, *folded(r), *hanging("bits: ", letters(r), style)]


def letters(r: SharingGraph) -> list[str]:
    """What each letter of an entry means."""
    return legend(r.legend).replace("\N{NO-BREAK SPACE}", " ").split(", ")


def folded(r: SharingGraph) -> list[str]:
    """What the picture leaves out or folds."""
    lines = []
    alike = [frame for frame in r.frames if frame.count > 1]
    if alike:
        frames = sum(frame.count for frame in alike)
        lines.append(
            f"folded: {frames} frames that look alike are drawn as "
            f"{plural(len(alike), 'box', 'boxes')}"
        )
    if r.left_out:
        lines.append(
            f"left out: {plural(r.groups_left, 'more group')} with {r.left_out} of the {r.pages} "
            "entries"
        )
    shown = {
        space: sum(table.space == space for table in r.tables) for space in range(len(r.spaces))
    }
    hidden = [(s.name, s.tables - shown[n]) for n, s in enumerate(r.spaces) if s.tables > shown[n]]
    lines += [
        f"left out: {plural(count, 'table')} of {plain(name)} that lead to no box of their own"
        for name, count in hidden
    ]
    return lines


def frame_lines(frame: SharingFrame) -> list[str]:
    """The text in the box of a frame."""
    first = frame.pfns[0]
    counts = f"refcount {frame.refcount}, mapcount {frame.mapcount}"
    if frame.state == "zero":
        return [f"frame {first:#x}: zero page", "never counted", *_many(frame)]
    marks = ["exclusive" if frame.exclusive else "not exclusive"] if frame.state == "anon" else []
    others = [f"also: {other}" for other in frame.others]
    return [f"frame {first:#x} {frame.state}", counts, *marks, *others, *_many(frame)]


def _many(frame: SharingFrame) -> list[str]:
    if frame.count == 1:
        return []
    return [f"+{frame.count - 1} more like it"]


# ---------------------------------------------------------------- two: a mirror


def _mirror(r: SharingGraph, style: Style) -> list[str]:
    side = (style.width - BOX) // 2
    lines = [_pair(_title(r, 0), _title(r, 1), side, style)]
    shown: set[tuple[int, int]] = set()
    for frame in r.frames:
        places = _way(r, frame) - shown
        shown |= places
        fresh = [
            [
                table
                for table in r.tables
                if table.space == n and (table.depth, table.start) in places
            ]
            for n in (0, 1)
        ]
        lines += _trees(fresh[0], fresh[1], side, style)
        lines += _band(frame, side, style)
    return lines if r.frames else [*lines, "", "nothing is mapped"]


def _way(r: SharingGraph, frame: SharingFrame) -> set[tuple[int, int]]:
    """Depth and first address of the tables on the way to the frame's entries: those that both
    sides have are drawn together."""
    places = set()
    for edge in frame.edges:
        known = {table.pfn: table for table in r.tables if table.space == edge.space}
        at = known.get(edge.table)
        while at is not None:
            places.add((at.depth, at.start))
            at = known.get(at.parent)
    return places


def _title(r: SharingGraph, number: int) -> str:
    space = r.spaces[number]
    return f"{plain(space.name)} (pid {space.pid}, mm#{space.mm})"


def _pair(one: str, other: str, side: int, style: Style) -> str:
    return left(one, side, style) + " " * BOX + right(other, side, style)


def _trees(
    one: list[SharingTable], other: list[SharingTable], side: int, style: Style
) -> list[str]:
    """The tables of both sides that are new; those of one depth share a line."""
    lines = []
    for depth in sorted({table.depth for table in (*one, *other)}):
        lefts = [_table(table, style) for table in one if table.depth == depth]
        rights = [_table_mirrored(table, style) for table in other if table.depth == depth]
        for number in range(max(len(lefts), len(rights))):
            pair = [texts[number] if number < len(texts) else "" for texts in (lefts, rights)]
            lines.append(_pair(pair[0], pair[1], side, style))
    return lines


def _table(table: SharingTable, style: Style) -> str:
    if not table.depth:
        return f"{table.level} {table.pfn:#x}"
    return (
        "  " * (table.depth - 1)
        + style.glyphs.last.rstrip()
        + f"[{table.index}] {table.level} {table.pfn:#x}"
    )


def _table_mirrored(table: SharingTable, style: Style) -> str:
    if not table.depth:
        return f"{table.level} {table.pfn:#x}"
    g = style.glyphs
    return f"{table.level} {table.pfn:#x} [{table.index}]{g.rule}{g.knee}" + "  " * (
        table.depth - 1
    )


def _band(frame: SharingFrame, side: int, style: Style) -> list[str]:
    """A frame with its entries at both sides."""
    middle = box(frame_lines(frame), BOX, style)
    sides = [
        [line for e in frame.edges if e.space == n for line in _edge_lines(e, frame, side, style)]
        for n in (0, 1)
    ]
    tall = max(len(middle), *(len(lines) + 1 for lines in sides))
    if tall > len(middle):
        middle = [
            *middle[:-1],
            *[f"{style.glyphs.pipe}{' ' * (BOX - 2)}{style.glyphs.pipe}"] * (tall - len(middle)),
            middle[-1],
        ]
    padded = [["", *lines, *[""] * (tall - 1 - len(lines))] for lines in sides]
    return [
        left(a, side, style) + b + right(c, side, style)
        for a, b, c in zip(padded[0], middle, padded[1], strict=True)
    ]


def _edge_lines(edge: SharingEdge, frame: SharingFrame, side: int, style: Style) -> list[str]:
    """Three lines: where the entry is, its bits with an arrow to the frame, what a write would
    do."""
    g = style.glyphs
    place = [f"{edge.address:#x}", f"[{edge.entry.index}]"]
    if frame.count > 1:
        words = f"{frame.count} pages"
        place.append(words if columns(" ".join([*place, words])) < side else f"x{frame.count}")
    bits = f"{edge.entry.letters} {'writable' if edge.writable else 'read-only'}"
    write = f"write: {OUTCOMES[edge.outcome]}"
    rule = g.rule * (side - columns(bits) - 2)
    if edge.space == 0:
        return [" ".join(place), f"{bits} {rule}{g.right}", write]
    arrow = f"{g.left}{rule} {bits}"
    return [" ".join(reversed(place)), arrow, write]


# ---------------------------------------------------------------- any number: a list


def _list(r: SharingGraph, style: Style) -> list[str]:
    lines = [line for n in range(len(r.spaces)) for line in _ways(r, n, style)]
    lines.append("")
    name = min(max(columns(plain(space.name)) for space in r.spaces), 12)
    for frame in r.frames:
        lines += _tied(r, frame, name, style)
    return lines if r.frames else [*lines, "nothing is mapped"]


def _ways(r: SharingGraph, number: int, style: Style) -> Iterable[str]:
    """Title, and a line for each table that holds entries: the tables that lead to it."""
    known = {table.pfn: table for table in r.tables if table.space == number}
    parents = {table.parent for table in known.values()}
    yield _title(r, number)
    for table in sorted(known.values(), key=lambda table: table.start):
        if table.pfn not in parents:
            way, at = [f"{table.level} {table.pfn:#x}"], table
            while at.parent in known:
                way.append(
                    f"{known[at.parent].level} {known[at.parent].pfn:#x} "
                    f"[{at.index}]{style.glyphs.right}"
                )
                at = known[at.parent]
            yield "  " + " ".join(reversed(way))


def _tied(r: SharingGraph, frame: SharingFrame, name: int, style: Style) -> list[str]:
    """The entries at the left, tied together, and the box that they lead to."""
    middle = box(frame_lines(frame), BOX, style)
    room = style.width - BOX - 4
    texts = [
        left(plain(r.spaces[edge.space].name), name, style) + _entry(frame, edge)
        for edge in frame.edges
    ]
    shown = [cut(text, room, style) for text in texts]
    entries = [text + style.glyphs.rule * (room - columns(text)) for text in shown]
    tall = max(len(middle), len(entries) + 1)
    middle = [
        *middle[:-1],
        *[f"{style.glyphs.pipe}{' ' * (BOX - 2)}{style.glyphs.pipe}"] * (tall - len(middle)),
        middle[-1],
    ]
    lines = []
    for at in range(tall):
        number = at - 1
        text = entries[number] if 0 <= number < len(entries) else ""
        lines.append(left(text, room, style) + _tie(number, len(entries), style) + middle[at])
    return lines


def _tie(number: int, count: int, style: Style) -> str:
    """The line that joins entry ``number`` of ``count`` to the box."""
    g = style.glyphs
    if not 0 <= number < count:
        return "    "
    if count == 1:
        return g.rule * 3 + g.right
    knot = g.tees[2] if number == 0 else g.corners[3] if number == count - 1 else g.tees[1]
    return g.rule + knot + (g.rule + g.right if number == 0 else "  ")


def _entry(frame: SharingFrame, edge: SharingEdge) -> str:
    """An entry in one line: where, its bits, what a write does."""
    many = f"+{frame.count - 1}" if frame.count > 1 else ""
    word = {"write": "write ok", "reuse": "w: REUSE", "copy": "w: COPY", "fault": "w: fault"}.get(
        edge.outcome, edge.outcome
    )
    return f" {edge.address:#x}{many} [{edge.entry.index}] {edge.entry.letters} {word} "


# ---------------------------------------------------------------- as a diagram


def diagram(reading: SharingGraph) -> Diagram:
    """Tables as records. Two processes are drawn on either side of the frames, any other number at
    the left."""
    r, two = reading, len(reading.spaces) == 2
    nodes, edges = [], []
    for number, _ in enumerate(r.spaces):
        nodes += _space_nodes(r, number)
        edges += _table_edges(r, number, two and number == 1)
    for frame in r.frames:
        key = frame_key(frame)
        cells = [Cell(line, str(row)) for row, line in enumerate(frame_lines(frame))]
        nodes.append(
            Node(
                key, tuple(cells), "shared" if len({e.space for e in frame.edges}) > 1 else "frame"
            )
        )
        edges += [_frame_edge(edge, frame, key, two) for edge in frame.edges]
    reasons = dict.fromkeys(
        f"write: {OUTCOMES[edge.outcome]}: {edge.why}" for frame in r.frames for edge in frame.edges
    )
    return Diagram(
        _headline(r),
        tuple(nodes),
        tuple(edges),
        (*reasons, *folded(r), "bits: " + ", ".join(letters(r))),
    )


def frame_key(frame: SharingFrame) -> str:
    """A frame is one node; the zero page is drawn once for each page that it backs."""
    return f"frame {frame.pfns[0]:#x}" + (
        f" {frame.edges[0].address:#x}" if frame.state == "zero" else ""
    )


def _space_nodes(r: SharingGraph, number: int) -> list[Node]:
    """The tables of a process, each with the entries that are drawn."""
    rows: dict[int, dict[int, Cell]] = {
        table.pfn: {} for table in r.tables if table.space == number
    }
    for table in r.tables:
        if table.space == number and table.parent in rows:
            rows[table.parent][table.index] = Cell(f"[{table.index}]", f"e{table.index}")
    for frame in r.frames:
        for edge in frame.edges:
            if edge.space == number:
                many = f" and {frame.count - 1} more" if frame.count > 1 else ""
                text = f"[{edge.entry.index}] {edge.address:#x}{many}\n{edge.entry.letters}"
                text += f"\n{_words(edge)}" if len(r.spaces) != 2 else ""
                rows[edge.table][edge.entry.index] = Cell(text, f"e{edge.entry.index}")
    nodes = []
    for table in r.tables:
        if table.space == number:
            head = (
                "" if table.depth else f"{_title(r, number)}\n"
            ) + f"{table.level}\nframe {table.pfn:#x}"
            cells = [cell for _, cell in sorted(rows[table.pfn].items())]
            nodes.append(Node(_table_key(number, table.pfn), (Cell(head, "head"), *cells), "table"))
    return nodes


def _table_key(number: int, pfn: int) -> str:
    return f"space {number} table {pfn:#x}"


def _table_edges(r: SharingGraph, number: int, mirrored: bool) -> list[Edge]:
    return [
        Edge(
            _table_key(number, table.parent),
            f"e{table.index}",
            _table_key(number, table.pfn),
            "head",
            back=mirrored,
        )
        for table in r.tables
        if table.space == number and table.depth
    ]


def _frame_edge(edge: SharingEdge, frame: SharingFrame, key: str, labelled: bool) -> Edge:
    """The arrow from an entry. With two processes it carries the text; with more the entry does, or
    labels would cross."""
    tail, cell = _table_key(edge.space, edge.table), f"e{edge.entry.index}"
    if not labelled:
        return Edge(tail, cell, key, "0", thick=edge.writable, wide=True)
    what = _words(edge)
    if frame.state != "zero":
        mark = (
            {True: ", excl", False: ", not excl"}[frame.exclusive] if frame.state == "anon" else ""
        )
        what += f"\nref {frame.refcount} map {frame.mapcount}{mark}"
    return Edge(tail, cell, key, "0", what, back=edge.space == 1, thick=edge.writable)


def _words(edge: SharingEdge) -> str:
    return f"{'writable' if edge.writable else 'read-only'}\nwrite: {OUTCOMES[edge.outcome]}"
