"""A picture as nodes and edges, independent of engines: DOT is written from it, and two moments are
compared by it.

    Node  a box of cells, one below the other; a cell has a name, so that an edge can begin or
          end at it
    Edge  from a cell to a cell, with words on it

A key means the same thing at every moment (a frame by its
number, a table by its frame and owner), never a place in the picture. So `compared` can mark what
is new (+), gone (-) and different (*) by keys alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Cell(NamedTuple):
    """One field of a node: its text (lines divided by newlines), its name within the node, and its
    mark."""

    text: str
    name: str
    mark: str = ""


class Node(NamedTuple):
    """A box. ``role`` says what it is (table, frame, shared, task, mm, vma, anon, file, note):
    views differ by shape and line, never by colour alone."""

    key: str
    cells: tuple[Cell, ...]
    role: str
    mark: str = ""


class Edge(NamedTuple):
    """An arrow from cell ``tail_cell`` of node ``tail`` to a cell of ``head``. ``back``: it is laid
    out from head to tail; ``dashed``: a relation, not a pointer; ``thick``: allows writing;
    ``wide``: many of them cross, so they need room."""

    tail: str
    tail_cell: str
    head: str
    head_cell: str
    text: str = ""
    back: bool = False
    dashed: bool = False
    thick: bool = False
    wide: bool = False
    mark: str = ""


class Diagram(NamedTuple):
    """A whole picture. ``notes``: lines below it; ``down``: it grows downwards, not to the
    right."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...] = ()
    down: bool = False


def compared(before: Diagram, after: Diagram) -> tuple[Diagram, Diagram]:
    """The two pictures with marks: ``-`` on what is only in the first, ``+`` on what is only in the
    second, ``*`` on what is in both and differs."""
    return _marked(before, after, "-"), _marked(after, before, "+")


def _marked(one: Diagram, other: Diagram, alone: str) -> Diagram:
    theirs = {node.key: node for node in other.nodes}
    lines = {_ends(edge): edge for edge in other.edges}
    nodes = tuple(_marked_node(node, theirs.get(node.key), alone) for node in one.nodes)
    edges = tuple(
        edge._replace(mark=_mark(edge, lines.get(_ends(edge)), alone)) for edge in one.edges
    )
    return one._replace(nodes=nodes, edges=edges)


def _marked_node(node: Node, other: Node | None, alone: str) -> Node:
    if other is None:
        return node._replace(mark=alone)
    texts = {cell.name: cell.text for cell in other.cells}
    cells = tuple(
        cell._replace(mark=_mark(cell.text, texts.get(cell.name), alone)) for cell in node.cells
    )
    changed = any(cell.mark for cell in cells) or node.cells != other.cells
    return node._replace(cells=cells, mark="*" if changed else "")


def _mark(one: object, other: object | None, alone: str) -> str:
    return alone if other is None else "" if one == other else "*"


def _ends(edge: Edge) -> tuple[str, str, str, str]:
    return edge.tail, edge.tail_cell, edge.head, edge.head_cell
