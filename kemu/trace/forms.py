"""What a piece of Python is by its form, for those who rewrite code without knowing what it means
(inline.py).

    if x < 0: return A          choice       A if x < 0 else B
    return B                    structured   the same with every return at the end of a branch

and what is evaluated before what: an expression may only move where nothing that it could change,
or that could change it, is passed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions with names of their own."""


def copied(node: Any) -> Any:
    """A copy of a tree, or of a list of trees."""
    if isinstance(node, list):
        return [copied(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    new = type(node)()
    new.__dict__.update(
        {
            name: copied(part) if isinstance(part, (ast.AST, list)) else part
            for name, part in vars(node).items()
        }
    )
    return new


class Swap(ast.NodeTransformer):
    """Puts ``new`` where the node ``old`` is."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        """``node`` with that done."""
        return self.new if node is self.old else self.generic_visit(node)


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """A function's statements; one at least."""
    first = body[0]
    is_text = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return body[1:] or [ast.Pass()] if is_text else body


def has(body: Sequence[ast.AST], kinds: tuple[type[ast.AST], ...]) -> bool:
    """True if a node of one of ``kinds`` stands anywhere in ``body``."""
    return any(isinstance(node, kinds) for statement in body for node in ast.walk(statement))


def stored(body: Sequence[ast.AST]) -> set[str]:
    """The names that ``body`` assigns."""
    names = (
        node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)
    )
    return {node.id for node in names if not isinstance(node.ctx, ast.Load)}


def bound(call: ast.Call, definition: ast.FunctionDef) -> dict[str, ast.expr] | None:
    """What each parameter gets, in the order of evaluation; None where that is not plain from the
    text."""
    arguments = definition.args
    parameters = [a.arg for a in arguments.args]
    passed = [call.func.value, *call.args] if isinstance(call.func, ast.Attribute) else call.args
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    given = dict(zip(parameters, passed, strict=False)) | {
        k.arg: k.value for k in call.keywords if k.arg is not None
    }
    defaults = dict(
        zip(
            parameters[len(parameters) - len(arguments.defaults) :], arguments.defaults, strict=True
        )
    )
    defaults |= {
        a.arg: d
        for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if d is not None
    }
    for name in [*parameters, *(a.arg for a in arguments.kwonlyargs)]:
        if name not in given:
            if not isinstance(defaults.get(name), ast.Constant):
                return None
            given[name] = defaults[name]
    return given


def structured(body: list[ast.stmt]) -> list[ast.stmt] | None:
    """``body`` with every return at the end of a branch; None if one stands in a loop."""
    found: list[ast.stmt] = []
    for i, node in enumerate(body):
        if isinstance(node, ast.Return):
            return [*found, node]
        if not has([node], (ast.Return,)):
            found.append(node)
            continue
        rest = body[i + 1 :]
        short = not rest or isinstance(rest[0], ast.Return)  # may stand in both branches
        if not isinstance(node, ast.If) or not (
            always_ends(node.body) or always_ends(node.orelse) or short
        ):
            return None
        then = structured(node.body if always_ends(node.body) else [*node.body, *rest])
        other = structured(node.orelse if always_ends(node.orelse) else [*node.orelse, *rest])
        if then is None or other is None:
            return None
        return [*found, ast.If(node.test, then, other)]
    return found or [ast.Pass()]


def always_ends(body: Sequence[ast.stmt]) -> bool:
    """True if control never comes out at the end of ``body``."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return always_ends(last.body) and always_ends(last.orelse)
    return isinstance(last, ast.Return | ast.Raise)


def choice(body: list[ast.stmt]) -> ast.expr | None:
    """``body`` as one expression, if all that it does is choose what it returns."""
    first = body[0]
    if isinstance(first, ast.Return):
        return first.value or ast.Constant(None)
    if isinstance(first, ast.If) and always_ends(first.body):
        then, other = (
            choice(first.body),
            choice([*first.orelse, *body[1:]]) if first.orelse or body[1:] else None,
        )
        return (
            ast.IfExp(first.test, then, other) if then is not None and other is not None else None
        )
    if (
        isinstance(first, ast.Assign)
        and len(body) > 1
        and len(first.targets) == 1
        and isinstance(first.targets[0], ast.Name)
    ):
        rest = copied(choice(body[1:]))
        name = first.targets[0].id
        early = list(before_calls(rest)) if rest is not None else []
        use = next((node for node in early if isinstance(node, ast.Name) and node.id == name), None)
        if rest is None or use is None or name in stored([rest]) or not comes_first(rest, use):
            return None
        changed: ast.expr = Swap(
            use, ast.NamedExpr(ast.Name(name, ast.Store()), first.value)
        ).visit(rest)
        return changed
    return None


# ---------------------------------------------------------------- the order of evaluation


def in_order(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of ``node`` that are evaluated whatever happens, in order."""
    if isinstance(node, ast.BoolOp):
        yield node.values[0]
    elif isinstance(node, ast.IfExp):
        yield node.test
    elif isinstance(node, ast.Compare):
        yield node.left
        yield node.comparators[0]
    elif isinstance(node, ast.Call):
        yield node.func
        yield from node.args
        yield from (keyword.value for keyword in node.keywords)
    elif isinstance(node, ast.NamedExpr):
        yield node.value
    elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Subscript | ast.Tuple):
        yield from (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))


def before_calls(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of ``node``, inner ones first, that are evaluated whatever happens and before
    anything is called."""
    for child in in_order(node):
        yield from before_calls(child)
        if has([child], (ast.Call,)):
            return
    yield node


def comes_first(node: ast.expr, use: ast.expr) -> bool:
    """True if nothing that a call could change is evaluated in ``node`` before ``use``."""
    for part in before_calls(node):
        if part is use:
            return True
        if isinstance(part, ast.Attribute | ast.Subscript | ast.NamedExpr):
            return False
    return False


def is_plain(node: ast.expr) -> bool:
    """A name or a constant: to be written anywhere, any number of times."""
    return isinstance(node, ast.Name | ast.Constant)


def is_fixed(node: ast.expr) -> bool:
    """True if no call can change what ``node`` is."""
    return not has([node], (ast.Call, ast.Attribute, ast.Subscript, ast.NamedExpr, *SCOPES))


def read_after(values: Sequence[ast.expr]) -> bool:
    """True if what is more than a read comes first among ``values``."""
    return all(is_read(value) for value in values[1:])


def is_read(node: ast.expr) -> bool:
    """True if ``node`` only reads and calculates."""
    return not has([node], (ast.Call, ast.NamedExpr, *SCOPES))
