r"""Diagrams as DOT, by the graphviz package.

A node is a record, a cell a field with a port. Every text goes through `label`: first what does not
print becomes an escape that does (`\n` in a file's name is two letters here), then what a record or
a label reads as its own is protected, then `graphviz.nohtml` keeps a text such as `<b>` from being
taken for HTML. Records, not HTML-like labels: the engines differ there, and one of them prints the
node's name instead. No clusters: their order differs from version to version.

Colour only underlines: a shared frame has a thick border, what allows writing a thick arrow, what a
write would do and what differs are words and marks. The legend below names each colour used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from kemu.views.pictures.model import Diagram, Edge, Node
from kemu.views.pictures.text import plain

FONT = "Courier"
ROLES: dict[str, dict[str, str]] = {
    "table": {},
    "frame": {"style": "rounded,filled", "fillcolor": "#e6f2e6"},
    "shared": {"style": "rounded,filled", "fillcolor": "#fdebd0", "penwidth": "2.5"},
    "task": {"style": "rounded,filled", "fillcolor": "#e8eef7"},
    "mm": {"style": "filled", "fillcolor": "#e8eef7", "penwidth": "2"},
    "note": {"color": "none"},
}
"""How a node of each role differs from the plain record."""

MARKED = {
    "+": {"penwidth": "3", "color": "#1b7837"},
    "-": {"style": "dashed", "penwidth": "2", "color": "#b2182b"},
    "*": {"penwidth": "3", "color": "#8a6d00"},
}
"""How a node or an edge that differs is drawn; the mark itself is in the text."""

WRITES = {"COPY": "#b35900", "REUSE": "#6a3d9a", "in place": "#1b7837"}
"""The colour of an arrow, by what its text says about a write."""

LEGEND = {
    "shared": "shared frame: orange",
    "frame": "other frame: green",
    "task": "task and mm: blue",
    "COPY": "a write copies: orange arrow",
    "REUSE": "a write reuses: violet arrow",
    "in place": "writable: green arrow",
    "+": "new: green border",
    "-": "gone: red border",
    "*": "changed: yellow border",
}
"""What a colour means, by role, words or mark; each is told by shape, words or marks too."""

_SPECIAL = re.compile(r"[\\{}|<> ]")


def label(text: str, *, left: bool = False) -> str:
    r"""``text`` as a label, or as a field of one: each character means itself. Lines are
    left-aligned (they end in ``\l``); a single one is centred, unless ``left``."""
    from graphviz import nohtml

    lines = [_line(plain(line)) for line in text.split("\n")]
    shown: str = nohtml(
        "".join(line + r"\l" for line in lines) if left or len(lines) > 1 else lines[0]
    )
    return shown


def _line(text: str) -> str:
    """A line that neither a record nor an entity can misread; blanks before it are kept."""
    blanks = len(text) - len(text.lstrip(" "))
    return "&#160;" * blanks + _SPECIAL.sub(r"\\\g<0>", text[blanks:].replace("&", "&amp;"))


def record(texts: Iterable[str], down: bool) -> str:
    """The label of a node: a field with a port for each text, one below the other, also where the
    picture grows downwards."""
    from graphviz import nohtml

    fields = "|".join(f"<p{at}> {label(text, left=True)}" for at, text in enumerate(texts))
    shown: str = nohtml(f"{{{fields}}}" if down else fields)
    return shown


def source(*pictures: tuple[str, Diagram]) -> str:
    """DOT of one picture, or of several in one file, each with a heading (the text before it).
    Title and notes that all have in common go below, the others with the heading."""
    from graphviz import Digraph

    graph = Digraph("kemu")
    said = {heading: [diagram.title, *diagram.notes] for heading, diagram in pictures}
    common = [
        line
        for line in dict.fromkeys(pictures[0][1].notes)
        if all(line in lines for lines in said.values())
    ]
    titles = dict.fromkeys(diagram.title for _, diagram in pictures if diagram.title)
    common = [*titles, *common] if len(titles) == 1 else common
    common += legend([diagram for _, diagram in pictures])
    _whole(graph, pictures[0][1].down, common)
    if len(pictures) > 1:
        _headings(
            graph,
            [
                "\n".join([heading, *(line for line in said[heading] if line not in common)])
                for heading in said
            ],
        )
    for number, (_, diagram) in enumerate(pictures):
        names = {node.key: f"n{number}_{at}" for at, node in enumerate(diagram.nodes)}
        if len(pictures) > 1 and names:
            graph.edge(f"h{number}", next(iter(names.values())), style="invis")
        for node in diagram.nodes:
            _node(
                graph,
                node if len(pictures) == 1 else _with_marks(node),
                names[node.key],
                diagram.down,
            )
        ports = {
            (node.key, cell.name): f"{names[node.key]}:p{at}"
            for node in diagram.nodes
            for at, cell in enumerate(node.cells)
        }
        for edge in diagram.edges:
            _edge(graph, edge, ports)
    text: str = graph.source
    return text


def legend(diagrams: Sequence[Diagram]) -> list[str]:
    """A line that names the colours of the pictures; none for a picture without."""
    nodes = [node for diagram in diagrams for node in diagram.nodes]
    edges = [edge for diagram in diagrams for edge in diagram.edges]
    used = {node.role for node in nodes} | {node.mark for node in nodes}
    used |= {_write(edge) for edge in edges} | {edge.mark for edge in edges}
    words = [text for key, text in LEGEND.items() if key in used]
    return [f"colours: {', '.join(words)}"] if words else []


def _write(edge: Edge) -> str:
    """What the text of the arrow says about a write, a key of `WRITES`, or an empty text."""
    found = next((word for word in WRITES if word in edge.text), "")
    return found or ("in place" if edge.thick else "")


def _whole(graph: Any, down: bool, lines: list[str]) -> None:
    """What appears once: direction, fonts, and the title and notes below."""
    below = label("\n".join([*lines, ""]))
    graph.attr(rankdir="TB" if down else "LR", label=below, labeljust="l", labelloc="b")
    graph.attr(fontname=FONT, fontsize="11", nodesep="0.2", ranksep="0.35")
    graph.attr(
        "node", shape="record", fontname=FONT, fontsize="10", height="0.2", margin="0.08,0.04"
    )
    graph.attr("edge", fontname=FONT, fontsize="9", arrowsize="0.7")


def _headings(graph: Any, texts: list[str]) -> None:
    """The headings, in their order; invisible edges put each before its picture."""
    with graph.subgraph() as row:
        row.attr(rank="same")
        for number, text in enumerate(texts):
            row.node(f"h{number}", label(text), shape="plaintext", fontsize="12")
            if number:
                row.edge(f"h{number - 1}", f"h{number}", style="invis")


def _node(graph: Any, node: Node, name: str, down: bool) -> None:
    look = {**ROLES.get(node.role, {}), **MARKED.get(node.mark, {})}
    graph.node(name, record([cell.text for cell in node.cells], down), **look)


def _with_marks(node: Node) -> Node:
    """The node with the mark of each cell before its text, a blank where nothing differs; a node
    that is new or gone is so in all its cells."""
    cells = []
    for cell in node.cells:
        mark = cell.mark or node.mark.replace("*", "") or " "
        cells.append(cell._replace(text=f"{mark} " + cell.text.replace("\n", "\n  ")))
    return node._replace(cells=tuple(cells))


def _edge(graph: Any, edge: Edge, ports: dict[tuple[str, str], str]) -> None:
    tail, head = ports[edge.tail, edge.tail_cell], ports[edge.head, edge.head_cell]
    text = f"{edge.mark} {edge.text}".strip()
    look = {"label": label(text)} if text else {}
    look |= {"color": WRITES[_write(edge)]} if _write(edge) else {}
    look |= {"penwidth": "2"} if edge.thick else {}
    look |= {"style": "dashed"} if edge.dashed or edge.mark == "-" else {}
    look |= {"penwidth": "3"} if edge.mark in ("+", "*") else {}
    look |= {"color": MARKED[edge.mark]["color"]} if edge.mark else {}
    look |= {"minlen": "3"} if edge.wide else {}
    if edge.back:
        graph.edge(head, tail, dir="back", **look)
    else:
        graph.edge(tail, head, **look)
