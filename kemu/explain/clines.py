"""A check of kemu's kernel as Linux writes it, in C.

    if vma is None or vma.vm_start > at                 if (!vma || vma->vm_start > at)
    return -EINVAL if addr & ~PAGE_MASK & U64 else addr return addr & ~PAGE_MASK ? -EINVAL : addr
    error = copy_files(flags, p) or copy_mm(flags, p)   error = copy_files(flags, p) ?: copy_mm(flags, p)

The kernel here is written with Linux's names and in Linux's order, so the two differ in notation
alone: operators, pointers, and the mask that keeps a number to 64 bits. What has no such form (a
helper that Linux has not, a set, a text) has no C either, and then there is none: half a
translation would be taken for Linux's line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from kemu.observe.moves import functions

CANNOT = frozenset(
    {
        "U64",
        "ADVICE",
        "slab_fails",
        "all",
        "any",
        "isinstance",
        "len",
        "list",
        "next",
        "set",
        "sorted",
        "sum",
        "tuple",
    }
)
"""Names that Linux has not: kemu's, and Python's functions."""

OPERATORS: dict[type[ast.AST], tuple[str, int]] = {
    ast.Mult: ("*", 12), ast.FloorDiv: ("/", 12), ast.Mod: ("%", 12), ast.Add: ("+", 11), ast.Sub: ("-", 11),
    ast.LShift: ("<<", 10), ast.RShift: (">>", 10), ast.BitAnd: ("&", 7), ast.BitXor: ("^", 6), ast.BitOr: ("|", 5),
}  # fmt: skip
"""Binary operators, and how strongly they bind in C."""

COMPARISONS: dict[type[ast.AST], tuple[str, int]] = {
    ast.Lt: ("<", 9), ast.LtE: ("<=", 9), ast.Gt: (">", 9), ast.GtE: (">=", 9), ast.Eq: ("==", 8), ast.NotEq: ("!=", 8),
    ast.Is: ("==", 8), ast.IsNot: ("!=", 8),
}  # fmt: skip

NAMES = {"None": "NULL", "True": "true", "False": "false"}
SMALL = 256
"""Numbers from here on are shown in base 16."""

ATOM, UNARY, AND, OR, CHOICE, ASSIGN = 14, 13, 4, 3, 2, 1


class NoCError(Exception):
    """The line has no form in C."""


def as_c(line: str) -> str:
    """The check, as `kemu.explain.checks.condition` gives it, in C; "" where there is no such
    form."""
    try:
        return _line(line)
    except (NoCError, SyntaxError):
        return ""


def _line(line: str) -> str:
    negated = re.match(r"not: (?:if|while) (.*)", line)
    if negated:
        return f"if ({_expression(f'not ({negated[1]})')})"
    check = re.match(r"(?:el)?(if|while) (.*)", line)
    if check:
        return f"{check[1]} ({_expression(check[2])})"
    returned = re.match(r"return (.*)", line)
    if returned:
        return f"return {_value(returned[1])}"
    given = re.match(r"(\w+) = (.*)", line)
    if given is None:
        raise NoCError
    return f"{given[1]} = {_value(given[2])}"


def _expression(text: str) -> str:
    return _text(ast.parse(text.strip(), mode="eval").body, 0, truth=True)


def _value(text: str) -> str:
    return _text(ast.parse(text.strip(), mode="eval").body, 0)


def _text(node: ast.expr, outer: int, *, truth: bool = False) -> str:
    """The expression, in parentheses if it binds less strongly than what is around it. `truth`: it
    is asked whether it is 0."""
    text, own = _written(node, truth)
    return f"({text})" if own < outer else text


def _written(node: ast.expr, truth: bool) -> tuple[str, int]:
    """The expression, and how strongly it binds."""
    if isinstance(node, ast.BoolOp):
        return _joined(node, truth)
    write = FORMS.get(type(node))
    if write is None:
        raise NoCError
    return write(node)


def _name(node: ast.Name) -> tuple[str, int]:
    if _is_own(node.id):
        raise NoCError
    return node.id, ATOM


def _constant(node: ast.Constant) -> tuple[str, int]:
    value = node.value
    if value is None or isinstance(value, bool):
        return NAMES[str(value)], ATOM
    if not isinstance(value, int):
        raise NoCError
    return str(value) if value < SMALL else hex(value), ATOM


def _call(node: ast.Call) -> tuple[str, int]:
    if not isinstance(node.func, ast.Name) or node.keywords or _is_own(node.func.id):
        raise NoCError
    return (
        f"{node.func.id}({', '.join(_text(argument, ASSIGN + 1) for argument in node.args)})",
        ATOM,
    )


def _unary(node: ast.UnaryOp) -> tuple[str, int]:
    negates = isinstance(node.op, ast.Not)
    sign = "!" if negates else "-" if isinstance(node.op, ast.USub) else "~"
    return f"{sign}{_text(node.operand, UNARY, truth=negates)}", UNARY


def _choice(node: ast.IfExp) -> tuple[str, int]:
    test, chosen, other = (
        _text(node.test, CHOICE + 1, truth=True),
        _text(node.body, CHOICE + 1),
        _text(node.orelse, CHOICE),
    )
    return f"{test} ? {chosen} : {other}", CHOICE


def _assigned(node: ast.NamedExpr) -> tuple[str, int]:
    return f"{_text(node.target, ATOM)} = {_text(node.value, ASSIGN)}", ASSIGN


def _is_own(name: str) -> bool:
    return name in CANNOT or is_helper(name)


def is_helper(name: str) -> bool:
    """Is it a part of kemu's kernel that Linux has not as a function? Such names begin with one
    underscore."""
    return name.startswith("_") and not any(known.name == name for known in functions())


def _member(node: ast.Attribute) -> tuple[str, int]:
    """`vma->vm_start`; what `system` holds are Linux's globals."""
    match node.value:
        case ast.Name(id="system"):
            return node.attr, ATOM
        case ast.Attribute(value=ast.Name(id="system"), attr="sysctl"):
            return f"sysctl_{node.attr}", ATOM
    return f"{_text(node.value, ATOM)}->{node.attr}", ATOM


def _binary(node: ast.BinOp) -> tuple[str, int]:
    if (
        isinstance(node.op, ast.BitAnd)
        and isinstance(node.right, ast.Name)
        and node.right.id == "U64"
    ):
        return _written(node.left, truth=False)
    if type(node.op) not in OPERATORS:
        raise NoCError
    sign, own = OPERATORS[type(node.op)]
    return f"{_text(node.left, own)} {sign} {_text(node.right, own + 1)}", own


def _joined(node: ast.BoolOp, truth: bool) -> tuple[str, int]:
    """`and`, `or`; where the value counts, `or` is the first that is not 0, for which GNU C has ?:
    without a middle."""
    if isinstance(node.op, ast.Or) and not truth:
        return " ?: ".join(_text(value, CHOICE + 1) for value in node.values), CHOICE
    sign, own = ("&&", AND) if isinstance(node.op, ast.And) else ("||", OR)
    return f" {sign} ".join(
        _text(value, own + (own == OR) * 2, truth=True) for value in node.values
    ), own


def _compared(node: ast.Compare) -> tuple[str, int]:
    """`a <= b < c` is two comparisons in C; a pointer is compared with NULL by asking whether it is
    0."""
    match node:
        case ast.Compare(
            left=left, ops=[ast.Is() | ast.IsNot() as same], comparators=[ast.Constant(value=None)]
        ):
            return (
                (f"!{_text(left, UNARY)}", UNARY)
                if isinstance(same, ast.Is)
                else (_text(left, UNARY), UNARY)
            )
        case ast.Compare(
            left=left, ops=[ast.In() | ast.NotIn() as member], comparators=[ast.Tuple(elts=values)]
        ):
            sign, between, own = (
                ("==", "||", OR) if isinstance(member, ast.In) else ("!=", "&&", AND)
            )
            return f" {between} ".join(
                f"{_text(left, 9)} {sign} {_text(value, 9)}" for value in values
            ), own
    parts, left = [], node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        if type(op) not in COMPARISONS:
            raise NoCError
        sign, own = COMPARISONS[type(op)]
        parts.append(f"{_text(left, own + 1)} {sign} {_text(right, own + 1)}")
        left = right
    return (
        (parts[0], COMPARISONS[type(node.ops[0])][1])
        if len(parts) == 1
        else (" && ".join(parts), AND)
    )


FORMS: dict[type[ast.expr], Callable[[Any], tuple[str, int]]] = {
    ast.Name: _name, ast.Constant: _constant, ast.Attribute: _member, ast.Call: _call, ast.UnaryOp: _unary, ast.BinOp: _binary,
    ast.Compare: _compared, ast.IfExp: _choice, ast.NamedExpr: _assigned,
}  # fmt: skip
"""How each kind of expression is written."""
