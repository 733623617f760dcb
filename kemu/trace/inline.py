"""Small functions put into their callers.

    as written      vmf.pte = pte_offset_map(vmf.pmd, vmf.address)
    expanded        entry = system.phys.load(vmf.pmd)
                    vmf.pte = ... & entry ... if entry else 0

Linux's headers are full of ``static inline`` functions, and kemu has the same ones by the same
names.  In Python a call costs more than what such a function does.  So the modules that bulk work
runs through are read again, a call of one of their own functions is replaced by the function's
body, and the result is compiled: the same statements in the same order, without the calls.  While
changes are recorded, functions that leave frames stay functions, so that they can be looked at.

Form alone decides.  A function that only chooses what it returns becomes an expression; one whose
returns all stand at the ends of branches becomes statements before the one that begins with its
call; everything else stays a call.

The rule that keeps this honest: nothing here knows what a function means.  Expanded code is in
force only while no wrong kernel is planted, and the tests hold it against the written one.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

from kemu.trace.forms import (
    SCOPES,
    Swap,
    always_ends,
    before_calls,
    bound,
    choice,
    comes_first,
    copied,
    has,
    in_order,
    is_fixed,
    is_plain,
    is_read,
    read_after,
    stored,
    structured,
    without_docstring,
)
from kemu.trace.kept import Expanded

LARGEST = 450
"""Nodes of the syntax tree above which a function stays a function."""

KEPT = (
    *SCOPES,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Try,
    ast.With,
    ast.Yield,
    ast.YieldFrom,
    ast.Global,
    ast.Nonlocal,
    ast.Import,
)
"""A function with one of these stays a function."""


Names = Mapping[str, Mapping[str, Any]]
"""Which methods has what hides behind a name."""


def expand(
    modules: Iterable[ModuleType], names: Names, kept: AbstractSet[FunctionType] = frozenset()
) -> Expanded:
    """The functions of ``modules`` with calls of their own functions put in.

    ``names`` says which methods has what hides behind a name in all of them: with "phys" those of a
    PhysMem, the ones in ``system.phys.load(pa)`` and ``phys.load(pa)`` are known too.  Calls of
    ``kept`` functions stay calls."""
    expander = _Expander(modules, names, kept)
    for function in expander.written:
        code = expander.code(function)
        if code is not None:
            expander.codes.append((function.__module__, function.__qualname__, code))
    return expander.codes, expander.aliases


class _Definition:
    """A function with everything put in, and what its form allows."""

    def __init__(self, node: ast.FunctionDef, changed: bool) -> None:
        self.node = node
        self.changed = changed
        small = sum(1 for statement in node.body for _ in ast.walk(statement)) <= LARGEST
        self.usable = small and not has(node.body, KEPT)

    @cached_property
    def choice(self) -> ast.expr | None:
        """It as an expression."""
        return choice(self.node.body) if self.usable else None

    @cached_property
    def structured(self) -> list[ast.stmt] | None:
        """Its statements with all returns at the ends of branches."""
        return structured(self.node.body) if self.usable else None


class _Expander:
    """The functions of some modules, as syntax trees, and how far each has been expanded."""

    def __init__(
        self, modules: Iterable[ModuleType], names: Names, kept: AbstractSet[FunctionType]
    ) -> None:
        self.codes: list[tuple[str, str, CodeType]] = []
        self.aliases: list[tuple[str, str, str, str]] = []
        self.kept = kept
        self.written: dict[FunctionType, ast.FunctionDef] = {}
        self.expanded: dict[FunctionType, _Definition | None] = {}
        self.names = names
        self.number = 0
        methods = {id(method) for space in names.values() for method in space.values()}
        for module in modules:
            for node in ast.parse(inspect.getsource(module)).body:
                self._read(node, vars(module))
                if isinstance(node, ast.ClassDef):
                    space = vars(vars(module)[node.name])
                    for method in node.body:
                        if (
                            isinstance(method, ast.FunctionDef)
                            and id(space.get(method.name)) in methods
                        ):
                            self._read(method, space)

    def _read(self, node: ast.stmt, space: Mapping[str, Any]) -> None:
        function = space.get(node.name) if isinstance(node, ast.FunctionDef) else None
        if isinstance(node, ast.FunctionDef) and isinstance(function, FunctionType):
            self.written[function] = node

    def of(self, function: FunctionType) -> _Definition | None:
        """``function`` with everything put in; None while that is under way (it calls itself)."""
        if function not in self.expanded:
            self.expanded[function] = None
            node = copied(self.written[function])
            caller = _Caller(self, function)
            node.body = caller.block(without_docstring(node.body))
            self.expanded[function] = _Definition(node, caller.changed)
        return self.expanded[function]

    def code(self, function: FunctionType) -> CodeType | None:
        """The new code, None if nothing was put in."""
        found = self.of(function)
        if found is None or not found.changed:
            return None
        bare = copied(found.node)
        bare.returns, bare.decorator_list = None, []
        for argument in [*bare.args.args, *bare.args.kwonlyargs]:
            argument.annotation = None
        bare.args.defaults = [ast.Constant(None) for _ in bare.args.defaults]
        bare.args.kw_defaults = [
            default and ast.Constant(None) for default in bare.args.kw_defaults
        ]
        tree = ast.fix_missing_locations(
            ast.Module([bare], [])
        )  # what was put in counts as the line before it
        written = function.__code__
        module = compile(tree, written.co_filename, "exec", dont_inherit=True)
        made = next(c for c in module.co_consts if isinstance(c, CodeType))
        return made.replace(co_firstlineno=written.co_firstlineno, co_qualname=written.co_qualname)

    def fresh(self, stem: str) -> str:
        """A name that nobody uses."""
        self.number += 1
        return f"{stem.split('__', maxsplit=1)[0] or '_'}__{self.number}"


class _Caller:
    """One function while others are put into it."""

    def __init__(self, expander: _Expander, function: FunctionType) -> None:
        self.expander = expander
        self.globals = function.__globals__
        self.changed = False
        self.locals = set(function.__code__.co_varnames)

    # ---------------------------------------------------------------- statements

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """``body`` with calls put in."""
        return [new for statement in body for new in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """What ``node`` becomes: the body of the call that it begins with, then what is left of
        it."""
        before: list[ast.stmt] = []
        if (
            isinstance(node, ast.Expr | ast.Return | ast.Assign | ast.AnnAssign)
            and node.value is not None
        ):
            before, node.value = self.leading(node.value)
        elif isinstance(node, ast.If):
            before, node.test = self.leading(node.test)
        elif isinstance(node, ast.For):
            before, node.iter = self.leading(node.iter)
        elif isinstance(node, ast.AugAssign):
            node.value = self.expression(node.value)
        elif isinstance(node, ast.While):
            node.test = self.expression(node.test)
        if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try):
            node.body = self.block(node.body)
        if isinstance(node, ast.If | ast.For | ast.While | ast.Try):
            node.orelse = self.block(node.orelse)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.Name):
            return before or [ast.Pass()]
        return [*before, node]

    def leading(self, node: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """The statements of the calls that ``node`` begins with, and what is left of it."""
        node = self.expression(node)
        before: list[ast.stmt] = []
        while (call := self.first_call(node)) is not None:
            made = self.as_statements(call)
            if made is None:
                break
            before += made[0]
            node = Swap(call, made[1]).visit(node)
        return before, node

    def first_call(self, node: ast.expr) -> ast.Call | None:
        """The call of one of ours before which ``node`` evaluates nothing that the call could
        change."""
        if isinstance(node, ast.Call) and self.has_body(node):
            return node
        for child in in_order(node):
            found = self.first_call(child)
            if found is not None:
                return found
            if not is_fixed(child):
                return None
        return None

    def callee(self, node: ast.Call) -> FunctionType | None:
        """The function of ours that is called here by its name, or by the name of the one whose
        method it is."""
        called = node.func
        if isinstance(called, ast.Attribute):
            owner = (
                called.value.attr
                if isinstance(called.value, ast.Attribute)
                else getattr(called.value, "id", "")
            )
            function = self.expander.names.get(owner.split("__", maxsplit=1)[0], {}).get(
                called.attr
            )
        elif isinstance(called, ast.Name) and called.id not in self.locals:
            function = self.globals.get(called.id)
        else:
            return None
        if not isinstance(function, FunctionType) or function in self.expander.kept:
            return None
        return function if function in self.expander.written else None

    def definition(
        self, call: ast.Call
    ) -> tuple[FunctionType, _Definition, dict[str, ast.expr]] | None:
        """The function of ours that is called, and what its parameters get."""
        function = self.callee(call)
        found = self.expander.of(function) if function is not None else None
        given = bound(call, found.node) if found is not None else None
        return (
            None if function is None or found is None or given is None else (function, found, given)
        )

    def has_body(self, call: ast.Call) -> bool:
        """True if the call can become statements."""
        found = self.definition(call)
        return found is not None and found[1].structured is not None

    def as_statements(self, call: ast.Call) -> tuple[list[ast.stmt], ast.expr] | None:
        """The call as statements, and its value after them."""
        found = self.definition(call)
        if found is None or found[1].structured is None:
            return None
        function, given, body = found[0], found[2], found[1].structured
        self.changed = True
        body = copied(body)
        assigned = stored(body)
        rename = {name: self.expander.fresh(name) for name in sorted(assigned)}
        replace: dict[str, ast.expr] = {}
        before: list[ast.stmt] = []
        for name, argument in given.items():
            if is_plain(argument) and name not in assigned:
                replace[name] = argument
            else:
                target = rename.setdefault(name, self.expander.fresh(name))
                before += self.statement(ast.Assign([ast.Name(target, ast.Store())], argument))
        visitor = _Names(self, rename, replace, function.__globals__)
        body = [visitor.visit(statement) for statement in body]
        self.locals |= set(rename.values())
        value: ast.expr = ast.Constant(None)
        last = body[-1]
        if isinstance(last, ast.Return) and not has(body[:-1], (ast.Return,)):
            value = last.value or value
            body.pop()
        elif has(body, (ast.Return,)):
            result = self.expander.fresh("ret")
            self.locals.add(result)
            if not always_ends(body):
                before.append(ast.Assign([ast.Name(result, ast.Store())], ast.Constant(None)))
            body = [_Returns(result).visit(statement) for statement in body]
            value = ast.Name(result, ast.Load())
        return before + body, value

    def alias(self, name: str, theirs: dict[str, Any]) -> str:
        """The name under which the caller finds what the global ``name`` means in the callee's
        module."""
        value = theirs.get(name, vars(builtins).get(name))
        mine = self.globals.get(name, vars(builtins).get(name))
        if name not in self.locals and mine is value:
            return name
        theirs_too = f"{name}__in_{theirs['__name__'].replace('.', '_')}"
        if theirs_too not in self.globals:
            self.globals[theirs_too] = value
            where = theirs["__name__"] if name in theirs else "builtins"
            self.expander.aliases.append((self.globals["__name__"], theirs_too, where, name))
        return theirs_too

    # ---------------------------------------------------------------- expressions

    def expression(self, node: ast.expr) -> ast.expr:
        """``node`` with the calls of functions that only choose what they return replaced by that
        choice."""
        changed: ast.expr = _Expressions(self).visit(node)
        return changed

    def as_expression(self, call: ast.Call) -> ast.expr | None:
        """The call as an expression, None if it is none or its arguments would be evaluated at
        another time."""
        found = self.definition(call)
        if found is None or found[1].choice is None:
            return None
        function, given = found[0], found[2]
        holder = ast.Expr(copied(found[1].choice))
        rename = {name: self.expander.fresh(name) for name in sorted(stored([holder]))}
        replace = {name: value for name, value in given.items() if is_plain(value)}
        costly = {name: value for name, value in given.items() if name not in replace}
        if not read_after(list(costly.values())):
            return None
        early, calm = list(before_calls(holder.value)), not has([holder], (ast.Call,))
        for name, value in costly.items():
            uses = [
                node for node in ast.walk(holder) if isinstance(node, ast.Name) and node.id == name
            ]
            first = next(
                (node for node in early if isinstance(node, ast.Name) and node.id == name), None
            )
            if len(uses) == 1 and calm and is_read(value):
                first = uses[0]
            if first is None or (not is_read(value) and not comes_first(holder.value, first)):
                return None
            if len(uses) > 1:
                rename[name] = self.expander.fresh(name)
                Swap(first, ast.NamedExpr(ast.Name(name, ast.Store()), _Given(value))).visit(holder)
            else:
                Swap(first, _Given(value)).visit(holder)
        _Names(self, rename, replace, function.__globals__).visit(holder)
        self.locals |= set(rename.values())
        self.changed = True
        return holder.value


# -------------------------------------------------------------------- transformers


class _Given(ast.expr):
    """An argument, in the caller's names already: the renaming of the callee's passes it by."""

    def __init__(self, value: ast.expr) -> None:
        super().__init__()
        self.value = value


class _Expressions(ast.NodeTransformer):
    """Replaces calls inside an expression, the innermost first; what has a scope of its own is left
    alone."""

    def __init__(self, caller: _Caller) -> None:
        self.caller = caller

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, SCOPES):
            return node
        self.generic_visit(node)
        return (self.caller.as_expression(node) if isinstance(node, ast.Call) else None) or node


class _Names(ast.NodeTransformer):
    """Gives the callee's names their meaning in the caller: locals a new name, parameters what was
    given, globals an alias."""

    def __init__(
        self,
        caller: _Caller,
        rename: dict[str, str],
        replace: dict[str, ast.expr],
        theirs: dict[str, Any],
    ) -> None:
        self.caller, self.rename, self.replace, self.theirs = caller, rename, replace, theirs

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _Given):
            return node.value
        if not isinstance(node, ast.Name):
            return _shorter(self.generic_visit(node))
        if node.id in self.replace:
            return copied(self.replace[node.id])
        if node.id in self.rename:
            return ast.Name(self.rename[node.id], node.ctx)
        meaning = self.theirs.get(node.id)
        if type(meaning) is int:
            return ast.Constant(meaning)
        return ast.Name(self.caller.alias(node.id, self.theirs), node.ctx)


def _shorter(node: ast.AST) -> ast.AST:
    """``getattr(x, "name")`` and its like for a name that is known by now, as it would be written
    by hand."""
    call = node.value if isinstance(node, ast.Expr) else node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or len(call.args) < 2:
        return node
    name = call.args[1]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return node
    if call is node and call.func.id == "getattr" and len(call.args) == 2:
        return ast.Attribute(call.args[0], name.value, ast.Load())
    if call is not node and call.func.id == "setattr":
        return ast.Assign([ast.Attribute(call.args[0], name.value, ast.Store())], call.args[2])
    return node


class _Returns(ast.NodeTransformer):
    """Turns ``return x`` into ``result = x``."""

    def __init__(self, result: str) -> None:
        self.result = result

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return ast.Assign([ast.Name(self.result, ast.Store())], node.value or ast.Constant(None))
