"""Small functions put into their callers, for a machine that records nothing.

    as written      vmf.pte = pte_offset_map(vmf.pmd, vmf.address)
    expanded        entry = system.phys.load(vmf.pmd)
                    vmf.pte = ... & entry ... if entry else 0

Linux's headers are full of ``static inline`` functions, and kemu has the same ones by the same names.  In Python a call costs
more than what such a function does.  While changes are recorded that is the price of a frame that can be looked at; work in
bulk would pay it for nothing.  So the modules that bulk work runs through are read again, a call of one of their own functions
is replaced by the function's body, and the result is compiled: the same statements in the same order, without the calls.

Form alone decides.  A function that only chooses what it returns becomes an expression; one whose returns all stand at the
ends of branches becomes statements before the one that begins with its call; everything else stays a call.

The rule that keeps this honest: nothing here knows what a function means.  Expanded code is in force only while nothing is
recorded and no wrong kernel is planted, and the properties that compare recorded with unrecorded runs go through it.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

LARGEST = 300
"""Nodes of the syntax tree above which a function stays a function."""

SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
KEPT = (*SCOPES, ast.FunctionDef, ast.ClassDef, ast.Try, ast.With, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.Import)
"""A function with one of these stays a function."""


def expand(modules: Iterable[ModuleType], names: Mapping[str, type]) -> dict[FunctionType, CodeType]:
    """The code of each function of ``modules`` that becomes another one when calls of their functions are put in.

    ``names`` says what hides behind a name in all of them: with "phys" a PhysMem, the methods in ``system.phys.load(pa)`` and
    ``phys.load(pa)`` are known too."""
    expander = _Expander(modules, names)
    return {function: code for function in expander.written if (code := expander.code(function)) is not None}


class _Definition:
    """A function with everything put in, and what its form allows."""

    def __init__(self, node: ast.FunctionDef, changed: bool) -> None:
        self.node = node
        self.changed = changed
        small = sum(1 for statement in node.body for _ in ast.walk(statement)) <= LARGEST
        self.usable = small and not _has(node.body, KEPT)

    @cached_property
    def choice(self) -> ast.expr | None:
        """It as an expression."""
        return _choice(self.node.body) if self.usable else None

    @cached_property
    def structured(self) -> list[ast.stmt] | None:
        """Its statements with all returns at the ends of branches."""
        return _structured(self.node.body) if self.usable else None


class _Expander:
    """The functions of some modules, as syntax trees, and how far each has been expanded."""

    def __init__(self, modules: Iterable[ModuleType], names: Mapping[str, type]) -> None:
        self.written: dict[FunctionType, ast.FunctionDef] = {}
        self.expanded: dict[FunctionType, _Definition | None] = {}
        self.names = names
        self.number = 0
        known = {cls.__name__: vars(cls) for cls in names.values()}
        for module in modules:
            for node in ast.parse(inspect.getsource(module)).body:
                self._read(node, vars(module))
                if isinstance(node, ast.ClassDef) and node.name in known:
                    for method in node.body:
                        self._read(method, known[node.name])

    def _read(self, node: ast.stmt, space: Mapping[str, Any]) -> None:
        function = space.get(node.name) if isinstance(node, ast.FunctionDef) else None
        if isinstance(node, ast.FunctionDef) and isinstance(function, FunctionType):
            self.written[function] = node

    def of(self, function: FunctionType) -> _Definition | None:
        """``function`` with everything put in; None while that is under way (it calls itself)."""
        if function not in self.expanded:
            self.expanded[function] = None
            node = _copied(self.written[function])
            caller = _Caller(self, function)
            node.body = caller.block(_without_docstring(node.body))
            self.expanded[function] = _Definition(node, caller.changed)
        return self.expanded[function]

    def code(self, function: FunctionType) -> CodeType | None:
        """The new code, None if nothing was put in."""
        found = self.of(function)
        if found is None or not found.changed:
            return None
        bare = _copied(found.node)
        bare.returns, bare.decorator_list = None, []
        for argument in [*bare.args.args, *bare.args.kwonlyargs]:
            argument.annotation = None
        bare.args.defaults = [ast.Constant(None) for _ in bare.args.defaults]
        bare.args.kw_defaults = [default and ast.Constant(None) for default in bare.args.kw_defaults]
        tree = ast.fix_missing_locations(ast.Module([bare], []))  # what was put in counts as the line before it
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
        """What ``node`` becomes: the body of the call that it begins with, then what is left of it."""
        before: list[ast.stmt] = []
        if isinstance(node, ast.Expr | ast.Return | ast.Assign | ast.AnnAssign) and node.value is not None:
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
            node = _Swap(call, made[1]).visit(node)
        return before, node

    def first_call(self, node: ast.expr) -> ast.Call | None:
        """The call of one of ours before which ``node`` evaluates nothing that the call could change."""
        if isinstance(node, ast.Call) and self.has_body(node):
            return node
        for child in _in_order(node):
            found = self.first_call(child)
            if found is not None:
                return found
            if not _is_fixed(child):
                return None
        return None

    def callee(self, node: ast.Call) -> FunctionType | None:
        """The function of ours that is called here by its name, or by the name of the one whose method it is."""
        called = node.func
        if isinstance(called, ast.Attribute):
            owner = called.value.attr if isinstance(called.value, ast.Attribute) else getattr(called.value, "id", "")
            function = getattr(self.expander.names.get(owner.split("__", maxsplit=1)[0], object), called.attr, None)
        elif isinstance(called, ast.Name) and called.id not in self.locals:
            function = self.globals.get(called.id)
        else:
            return None
        return function if isinstance(function, FunctionType) and function in self.expander.written else None

    def definition(self, call: ast.Call) -> tuple[FunctionType, _Definition, dict[str, ast.expr]] | None:
        """The function of ours that is called, and what its parameters get."""
        function = self.callee(call)
        found = self.expander.of(function) if function is not None else None
        given = _bound(call, found.node) if found is not None else None
        return None if function is None or found is None or given is None else (function, found, given)

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
        body = _copied(body)
        stored = _stored(body)
        rename = {name: self.expander.fresh(name) for name in sorted(stored)}
        replace: dict[str, ast.expr] = {}
        before: list[ast.stmt] = []
        for name, argument in given.items():
            if _is_plain(argument) and name not in stored:
                replace[name] = argument
            else:
                target = rename.setdefault(name, self.expander.fresh(name))
                before += self.statement(ast.Assign([ast.Name(target, ast.Store())], argument))
        visitor = _Names(self, rename, replace, function.__globals__)
        body = [visitor.visit(statement) for statement in body]
        self.locals |= set(rename.values())
        value: ast.expr = ast.Constant(None)
        last = body[-1]
        if isinstance(last, ast.Return) and not _has(body[:-1], (ast.Return,)):
            value = last.value or value
            body.pop()
        elif _has(body, (ast.Return,)):
            result = self.expander.fresh("ret")
            self.locals.add(result)
            if not _always_ends(body):
                before.append(ast.Assign([ast.Name(result, ast.Store())], ast.Constant(None)))
            body = [_Returns(result).visit(statement) for statement in body]
            value = ast.Name(result, ast.Load())
        return before + body, value

    def alias(self, name: str, theirs: dict[str, Any]) -> str:
        """The name under which the caller finds what the global ``name`` means in the callee's module."""
        value = theirs.get(name, vars(builtins).get(name))
        mine = self.globals.get(name, vars(builtins).get(name))
        if name not in self.locals and mine is value:
            return name
        theirs_too = f"{name}__in_{theirs['__name__'].replace('.', '_')}"
        self.globals[theirs_too] = value
        return theirs_too

    # ---------------------------------------------------------------- expressions

    def expression(self, node: ast.expr) -> ast.expr:
        """``node`` with the calls of functions that only choose what they return replaced by that choice."""
        changed: ast.expr = _Expressions(self).visit(node)
        return changed

    def as_expression(self, call: ast.Call) -> ast.expr | None:
        """The call as an expression, None if it is none or its arguments would be evaluated at another time."""
        found = self.definition(call)
        if found is None or found[1].choice is None:
            return None
        function, given = found[0], found[2]
        holder = ast.Expr(_copied(found[1].choice))
        rename = {name: self.expander.fresh(name) for name in sorted(_stored([holder]))}
        replace = {name: value for name, value in given.items() if _is_plain(value)}
        costly = {name: value for name, value in given.items() if name not in replace}
        if not _read_after(list(costly.values())):
            return None
        early, calm = list(_before_calls(holder.value)), not _has([holder], (ast.Call,))
        for name, value in costly.items():
            uses = [node for node in ast.walk(holder) if isinstance(node, ast.Name) and node.id == name]
            first = next((node for node in early if isinstance(node, ast.Name) and node.id == name), None)
            if len(uses) == 1 and calm and _is_read(value):
                first = uses[0]
            if first is None or (not _is_read(value) and not _comes_first(holder.value, first)):
                return None
            if len(uses) > 1:
                rename[name] = self.expander.fresh(name)
                _Swap(first, ast.NamedExpr(ast.Name(name, ast.Store()), _Given(value))).visit(holder)
            else:
                _Swap(first, _Given(value)).visit(holder)
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
    """Replaces calls inside an expression, the innermost first; what has a scope of its own is left alone."""

    def __init__(self, caller: _Caller) -> None:
        self.caller = caller

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, SCOPES):
            return node
        self.generic_visit(node)
        return (self.caller.as_expression(node) if isinstance(node, ast.Call) else None) or node


class _Names(ast.NodeTransformer):
    """Gives the callee's names their meaning in the caller: locals a new name, parameters what was given, globals an alias."""

    def __init__(self, caller: _Caller, rename: dict[str, str], replace: dict[str, ast.expr], theirs: dict[str, Any]) -> None:
        self.caller, self.rename, self.replace, self.theirs = caller, rename, replace, theirs

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _Given):
            return node.value
        if not isinstance(node, ast.Name):
            return _shorter(self.generic_visit(node))
        if node.id in self.replace:
            return _copied(self.replace[node.id])
        if node.id in self.rename:
            return ast.Name(self.rename[node.id], node.ctx)
        meaning = self.theirs.get(node.id)
        if type(meaning) is int:
            return ast.Constant(meaning)
        return ast.Name(self.caller.alias(node.id, self.theirs), node.ctx)


def _shorter(node: ast.AST) -> ast.AST:
    """``getattr(x, "name")`` and its like for a name that is known by now, as it would be written by hand."""
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


class _Swap(ast.NodeTransformer):
    """Puts ``new`` where the node ``old`` is."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


# -------------------------------------------------------------------- forms


def _copied(node: Any) -> Any:
    """A copy of a tree, or of a list of trees."""
    if isinstance(node, list):
        return [_copied(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    new = type(node)()
    new.__dict__.update({name: _copied(part) if isinstance(part, (ast.AST, list)) else part for name, part in vars(node).items()})
    return new


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return body[1:] or [ast.Pass()] if is_text else body


def _has(body: Sequence[ast.AST], kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(node, kinds) for statement in body for node in ast.walk(statement))


def _stored(body: Sequence[ast.AST]) -> set[str]:
    """The names that ``body`` assigns."""
    names = (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in names if not isinstance(node.ctx, ast.Load)}


def _bound(call: ast.Call, definition: ast.FunctionDef) -> dict[str, ast.expr] | None:
    """What each parameter gets, in the order of evaluation; None where that is not plain from the text."""
    arguments = definition.args
    parameters = [a.arg for a in arguments.args]
    passed = [call.func.value, *call.args] if isinstance(call.func, ast.Attribute) else call.args
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    given = dict(zip(parameters, passed, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg is not None}
    defaults = dict(zip(parameters[len(parameters) - len(arguments.defaults) :], arguments.defaults, strict=True))
    defaults |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    for name in [*parameters, *(a.arg for a in arguments.kwonlyargs)]:
        if name not in given:
            if not isinstance(defaults.get(name), ast.Constant):
                return None
            given[name] = defaults[name]
    return given


def _structured(body: list[ast.stmt]) -> list[ast.stmt] | None:
    """``body`` with every return at the end of a branch; None if one stands in a loop."""
    found: list[ast.stmt] = []
    for i, node in enumerate(body):
        if isinstance(node, ast.Return):
            return [*found, node]
        if not _has([node], (ast.Return,)):
            found.append(node)
            continue
        rest = body[i + 1 :]
        if not isinstance(node, ast.If) or not (_always_ends(node.body) or _always_ends(node.orelse) or not rest):
            return None
        then = _structured(node.body if _always_ends(node.body) else [*node.body, *rest])
        other = _structured(node.orelse if _always_ends(node.orelse) else [*node.orelse, *rest])
        if then is None or other is None:
            return None
        return [*found, ast.If(node.test, then, other)]
    return found or [ast.Pass()]


def _always_ends(body: Sequence[ast.stmt]) -> bool:
    """True if control never comes out at the end of ``body``."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _always_ends(last.body) and _always_ends(last.orelse)
    return isinstance(last, ast.Return | ast.Raise)


def _choice(body: list[ast.stmt]) -> ast.expr | None:
    """``body`` as one expression, if all that it does is choose what it returns."""
    first = body[0]
    if isinstance(first, ast.Return):
        return first.value or ast.Constant(None)
    if isinstance(first, ast.If) and _always_ends(first.body):
        then, other = _choice(first.body), _choice([*first.orelse, *body[1:]]) if first.orelse or body[1:] else None
        return ast.IfExp(first.test, then, other) if then is not None and other is not None else None
    if isinstance(first, ast.Assign) and len(body) > 1 and len(first.targets) == 1 and isinstance(first.targets[0], ast.Name):
        rest = _copied(_choice(body[1:]))
        name = first.targets[0].id
        early = list(_before_calls(rest)) if rest is not None else []
        use = next((node for node in early if isinstance(node, ast.Name) and node.id == name), None)
        if rest is None or use is None or name in _stored([rest]) or not _comes_first(rest, use):
            return None
        changed: ast.expr = _Swap(use, ast.NamedExpr(ast.Name(name, ast.Store()), first.value)).visit(rest)
        return changed
    return None


# -------------------------------------------------------------------- the order of evaluation


def _in_order(node: ast.expr) -> Iterator[ast.expr]:
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


def _before_calls(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of ``node``, inner ones first, that are evaluated whatever happens and before anything is called."""
    for child in _in_order(node):
        yield from _before_calls(child)
        if _has([child], (ast.Call,)):
            return
    yield node


def _comes_first(node: ast.expr, use: ast.expr) -> bool:
    """True if nothing that a call could change is evaluated in ``node`` before ``use``."""
    for part in _before_calls(node):
        if part is use:
            return True
        if isinstance(part, ast.Attribute | ast.Subscript | ast.NamedExpr):
            return False
    return False


def _is_plain(node: ast.expr) -> bool:
    """A name or a constant: to be written anywhere, any number of times."""
    return isinstance(node, ast.Name | ast.Constant)


def _is_fixed(node: ast.expr) -> bool:
    """True if no call can change what ``node`` is."""
    return not _has([node], (ast.Call, ast.Attribute, ast.Subscript, ast.NamedExpr, *SCOPES))


def _read_after(values: Sequence[ast.expr]) -> bool:
    """True if what is more than a read comes first among ``values``."""
    return all(_is_read(value) for value in values[1:])


def _is_read(node: ast.expr) -> bool:
    """True if ``node`` only reads and calculates."""
    return not _has([node], (ast.Call, ast.NamedExpr, *SCOPES))
