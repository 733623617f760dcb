"""All pictures: by the kind of the reading, as text for a terminal, as a diagram, as DOT, and
compared with another moment.

KINDS      type of the subject -> how it is drawn in text, how as a diagram
picture    the primary drawing; for a comparison both moments, with what differs marked at the left
dot        the same facts as DOT
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from kemu import readings as r
from kemu.errors import HostUnavailable
from kemu.views.pictures import dot as dot_text
from kemu.views.pictures import (
    layout,
)
from kemu.views.pictures import (
    plot as graph_plot,
)
from kemu.views.pictures import (
    ram as graph_ram,
)
from kemu.views.pictures import (
    sharing as graph_sharing,
)
from kemu.views.pictures import (
    spaces as graph_spaces,
)
from kemu.views.pictures import (
    tables as graph_tables,
)
from kemu.views.pictures import (
    walk as graph_walk,
)
from kemu.views.pictures.model import Cell, Diagram, Node, compared
from kemu.views.pictures.text import tidy
from kemu.views.style import Style


class Drawn(NamedTuple):
    """How a subject is drawn."""

    terminal: Callable[[Any, Style], list[str]]
    diagram: Callable[[Any], Diagram]


def _said(text: r.Text) -> Diagram:
    """Text where there is no picture."""
    return Diagram("", (Node("text", (Cell("\n".join(text.lines), "head"),), "note"),), ())


KINDS: dict[type[r.Reading], Drawn] = {
    r.WalkGraph: Drawn(graph_walk.terminal, graph_walk.diagram),
    r.PageTables: Drawn(graph_tables.terminal, graph_tables.diagram),
    r.SharingGraph: Drawn(graph_sharing.terminal, graph_sharing.diagram),
    r.MmGraph: Drawn(graph_spaces.mm, graph_spaces.mm_diagram),
    r.RmapGraph: Drawn(graph_spaces.rmap, graph_spaces.rmap_diagram),
    r.FamilyGraph: Drawn(graph_spaces.family, graph_spaces.family_diagram),
    r.MemoryMap: Drawn(graph_ram.mem, graph_ram.mem_diagram),
    r.LayoutReading: Drawn(graph_ram.layout, graph_ram.layout_diagram),
    r.PlotGraph: Drawn(graph_plot.terminal, graph_plot.diagram),
    r.Text: Drawn(lambda text, _style: list(text.lines), _said),
}


def subject(reading: r.Reading, style: Style) -> str:
    """What a picture shows, drawn alone."""
    fitting = _fitting(style)
    return tidy(KINDS[type(reading)].terminal(reading, fitting), fitting)


def _fitting(style: Style) -> Style:
    """The style with a width that suits drawings: 80 to 100 columns, however wide the terminal
    is."""
    return style._replace(width=min(max(style.width, 80), 100))


def picture(reading: r.Picture, style: Style) -> str:
    """The picture for a terminal, or one line if it was written to a file."""
    if reading.written:
        return reading.written
    draw, style = KINDS[type(reading.subject)].terminal, _fitting(style)
    now = draw(reading.subject, style)
    if reading.earlier is None:
        return tidy(now, style)
    narrow = style._replace(width=style.width - 2)
    before, now = (
        KINDS[type(reading.earlier)].terminal(reading.earlier, narrow),
        draw(reading.subject, narrow),
    )
    return tidy(
        [
            f"before, at #{reading.before}  (- is gone, * differs, + is new at #{reading.event})",
            *_marked(before, now, "-"),
            "",
            f"after, at #{reading.event}",
            *_marked(now, before, "+"),
            *([] if before != now else ["nothing in this picture differs"]),
        ],
        style,
    )


def _marked(lines: list[str], others: list[str], alone: str) -> list[str]:
    """The lines with a mark at the left of each that the other drawing does not have."""
    marks = [" "] * len(lines)
    for tag, first, last, start, end in SequenceMatcher(
        None, lines, others, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        openings = {line.split()[0] for line in others[start:end] if line.split()}
        for at in range(first, last):
            also = at - first < end - start or not openings.isdisjoint(lines[at].split()[:1])
            marks[at] = "*" if tag == "replace" and also else alone
    return [f"{mark} {line}" for mark, line in zip(marks, lines, strict=True)]


def diagrams(reading: r.Picture) -> list[tuple[str, Diagram]]:
    """The picture as diagrams, each with a heading: one, or two that are marked."""
    draw = KINDS[type(reading.subject)].diagram
    if reading.earlier is None:
        return [("", draw(reading.subject))]
    before, after = compared(
        KINDS[type(reading.earlier)].diagram(reading.earlier), draw(reading.subject)
    )
    return [
        (f"before, #{reading.before}\n- gone, * differs", before),
        (f"after, #{reading.event}\n+ new, * differs", after),
    ]


def dot(reading: r.Picture) -> str:
    """The picture as DOT."""
    return dot_text.source(*diagrams(reading))


def svg(reading: r.Reading) -> str:
    """A picture, or a reading that one can show, as SVG; "" for any other reading, or without an
    engine."""
    if not isinstance(reading, r.Picture):
        if type(reading) not in KINDS or isinstance(reading, r.Text):
            return ""
        reading = r.Picture("", 0, reading)
    if isinstance(reading.subject, r.PlotGraph):
        return graph_plot.svg(reading.subject)
    try:
        return layout.layout(dot(reading), "svg").decode()
    except HostUnavailable:
        return ""
