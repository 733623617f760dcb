"""Small wrong changes of a Python module, on its syntax tree: what a mutation run plants, one at a
time.

    a < b       ->  a <= b, a >= b          x + y    ->  x - y           f(x)        ->  (nothing)
    a == b      ->  a != b                  x | y    ->  x & y           n = 3       ->  (nothing)
    a and b     ->  a or b                  x += 1   ->  x -= 1          return x    ->  return None
    not a       ->  a                       1, True  ->  2, False        if a:       ->  if not a:

Left alone: docstrings, annotations, imports, decorators, texts, what follows ``raise``, and the
module level.  The changed tree keeps its line numbers, so what a program says of its own lines
stays true.
"""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

COMPARE = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.BitXor: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


class Change(NamedTuple):
    """One wrong change: the ``number``-th of ``path``, at ``line`` of ``function``, and what it
    does there."""

    path: str
    number: int
    line: int
    function: str
    what: str


class Site(NamedTuple):
    """A place in a tree: the parent's field (and index, or None) whose value is replaced by
    ``new``; which says ``what``."""

    node: ast.AST
    field: str
    index: int | None
    new: object
    what: str


def changes(path, text):
    """Every change of the module, in the order of its text."""
    tree = ast.parse(text)
    return [
        Change(path, number, site_line(site), function, site.what)
        for number, (function, site) in enumerate(sites(tree))
    ]


def changed(text, number):
    """The module's tree with change ``number`` made."""
    tree = ast.parse(text)
    for at, (_, site) in enumerate(sites(tree)):
        if at == number:
            _make(site)
            return ast.fix_missing_locations(tree)
    raise IndexError(number)


def site_line(site):
    value = getattr(site.node, site.field)
    value = value if site.index is None else value[site.index]
    return getattr(value, "lineno", None) or site.node.lineno


def _make(site):
    if site.index is None:
        setattr(site.node, site.field, site.new)
    else:
        getattr(site.node, site.field)[site.index] = site.new


def sites(tree) -> Iterator[tuple[str, Site]]:
    """(function, place) of every change."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                for site in _statement(statement, node):
                    yield node.name, site


def _statement(node, parent):
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    yield from _removal(node, parent)
    if isinstance(node, ast.Raise | ast.Assert):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "type_comment"):
            continue
        if field == "test":
            negated = ast.copy_location(ast.UnaryOp(ast.Not(), value), value)
            yield Site(node, field, None, negated, f"condition {ast.unparse(value)} turned round")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.stmt):
                yield from _statement(child, node)
            elif isinstance(child, ast.expr):
                yield from _expression(child)
    if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield Site(
            node,
            "op",
            None,
            ARITHMETIC[type(node.op)](),
            f"{ast.unparse(node)}: the other operator",
        )


def _removal(node, parent):
    """Without the statement, or without what it returns."""
    if isinstance(node, ast.Return) and node.value is not None and not _is_nothing(node.value):
        yield Site(
            node,
            "value",
            None,
            ast.copy_location(ast.Constant(None), node),
            f"{ast.unparse(node)}: returns None",
        )
    if isinstance(
        node, ast.Expr | ast.Assign | ast.AugAssign | ast.Break | ast.Continue | ast.Raise
    ):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and any(other is node for other in block):
                index = next(i for i, other in enumerate(block) if other is node)
                text = ast.unparse(node).split("\n")[0]
                yield Site(
                    parent, field, index, ast.copy_location(ast.Pass(), node), f"{text}: missing"
                )


def _is_nothing(node):
    """True for a constant that counts as false: None instead would mean the same to most
    callers."""
    return isinstance(node, ast.Constant) and not node.value


def _expression(top):
    """The changes inside an expression; each needs the parent in which its node hangs."""
    for node in ast.walk(top):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            for other in COMPARE[type(node.ops[0])]:
                yield Site(node, "ops", 0, other(), f"{ast.unparse(node)}: {other.__name__}")
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            new = ARITHMETIC[type(node.op)]
            yield Site(node, "op", None, new(), f"{ast.unparse(node)}: {new.__name__}")
        elif isinstance(node, ast.BoolOp):
            new = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield Site(node, "op", None, new, f"{ast.unparse(node)}: {type(new).__name__}")
        for field, value in ast.iter_fields(node):
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                new = _replacement(child)
                if new is not None:
                    yield Site(
                        node,
                        field,
                        index,
                        new,
                        f"{ast.unparse(child)} is {ast.unparse(new)} in {ast.unparse(node)}",
                    )


def _replacement(node):
    """Another constant, or what a ``not`` stands before."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return copy.deepcopy(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.copy_location(ast.Constant(not node.value), node)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return ast.copy_location(ast.Constant(node.value + 1), node)
    return None
