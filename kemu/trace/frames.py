"""Call frames: which function of the kernel made an event, and in which file of Linux it is.

``@linux("mm/memory.c")`` does three jobs: it marks in the journal where the function is entered and
left, it says which file has the original, and a test checks the name against
``docs/linux-functions.tsv``.  ``@hardware`` marks what the CPU does by itself (the page walk), so
that the call tree never attributes it to the kernel.

A decorated function has two code objects: the one as written, and one with the same signature that
puts marks around it.  Switching recording swaps them in place, so names that other modules have
imported remain valid.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import attrs

from kemu.trace.barrier import is_recording, on_record_change
from kemu.trace.journal import SLOTS
from kemu.trace.tape import mark

F = TypeVar("F", bound=Callable[..., Any])

HARDWARE = "(hardware)"
CO_VARARGS, CO_VARKEYWORDS = 0x4, 0x8
"""Flags of a code object (also in ``inspect``, which is slow to import)."""


@attrs.frozen
class Function:
    """A function whose calls are recorded; ``path`` is the file of the original in Linux, or
    ``HARDWARE``."""

    fid: int
    name: str
    path: str
    module: str
    line: int
    doc: str


FUNCTIONS: list[Function] = []
"""All decorated functions; the index is the ``fid`` that the marks carry."""

_codes: list[tuple[FunctionType, CodeType, CodeType]] = []
_numbers: dict[FunctionType, int] = {}


def linux(path: str) -> Callable[[F], F]:
    """Declare that the function is Linux's function of the same name in ``path`` (relative to the
    source tree)."""

    def decorate(function: F) -> F:
        return cast(F, _register(cast(FunctionType, function), path))

    return decorate


def hardware(function: F) -> F:
    """Declare that the CPU, not the kernel, does what the function does."""
    return cast(F, _register(cast(FunctionType, function), HARDWARE))


def _register(function: FunctionType, path: str) -> FunctionType:
    fid = len(FUNCTIONS)
    code = function.__code__
    FUNCTIONS.append(
        Function(
            fid,
            function.__name__,
            path,
            function.__module__,
            code.co_firstlineno,
            function.__doc__ or "",
        )
    )
    _codes.append((function, code, _marked(function, fid)))
    _numbers[function] = fid
    if is_recording():
        function.__code__ = _codes[-1][2]
    return function


_templates: dict[tuple[int, tuple[str, ...]], CodeType] = {}
_FID = 0x6B656D75
"""Placeholder for the function's number in a template."""


def _marked(function: FunctionType, fid: int) -> CodeType:
    """Code of the same signature that marks, calls the function as written, and marks again.

    Compiling costs more than everything else here, so it is done once per form of signature; each
    function then gets a copy of the template with its own names and number."""
    code = function.__code__
    if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
        raise TypeError(f"{function.__name__}: a function with a frame takes no *args or **kwargs")
    if function.__closure__:
        raise TypeError(f"{function.__name__}: a function with a frame must be at module level")
    plain = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    as_written = f"_as_written_{fid}"
    function.__globals__[as_written] = plain
    function.__globals__["_mark"] = mark
    named = code.co_argcount + code.co_kwonlyargcount
    template = _template(code.co_argcount, code.co_varnames[code.co_argcount : named])
    return template.replace(
        co_consts=tuple(
            {_FID: fid, ~_FID: ~fid}.get(c, c) if isinstance(c, int) else c
            for c in template.co_consts
        ),
        co_names=tuple(as_written if name == "_as_written" else name for name in template.co_names),
        co_varnames=code.co_varnames[:named],
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )


def _template(positional: int, keywords: tuple[str, ...]) -> CodeType:
    """The marking code for a function of ``positional`` parameters and these keyword-only ones."""
    found = _templates.get((positional, keywords))
    if found is not None:
        return found
    names = [f"a{n}" for n in range(positional)]
    signature = ", ".join(names + (["*", *keywords] if keywords else []))
    arguments = ", ".join(names + [f"{k}={k}" for k in keywords])
    source = (
        f"def marked({signature}):\n"
        f"    _mark({_FID})\n"
        f"    try:\n"
        f"        return _as_written({arguments})\n"
        f"    finally:\n"
        f"        _mark({~_FID})\n"
    )
    tree = ast.parse(source)
    for node in ast.walk(tree):  # all on the first line: the next ones are the body's
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0
    made: dict[str, Any] = {}
    exec(compile(tree, __file__, "exec"), made)
    code = cast(CodeType, made["marked"].__code__)
    _templates[positional, keywords] = code
    return code


class _Bodies:
    """The functions that run the code of a wrong kernel (races/mutants.py): ``in_force`` holds
    that code, ``written`` the original code of each."""

    def __init__(self) -> None:
        self.in_force: Mapping[FunctionType, CodeType] = {}
        self.written: dict[FunctionType, CodeType] = {}


_bodies = _Bodies()


def use_bodies(bodies: Mapping[FunctionType, CodeType]) -> None:
    """From now on the functions in ``bodies`` run that code, all others their own.  Frames are
    still recorded: only the body of a function is replaced.  The code must have the same
    signature."""
    if bodies == _bodies.in_force:
        return
    for function, code in _bodies.written.items():
        _set_body(function, code)
    _bodies.written = {function: body_of(function) for function in bodies}
    _bodies.in_force = dict(bodies)
    for function, code in bodies.items():
        _set_body(function, code)


def body_of(function: FunctionType) -> CodeType:
    """The code of ``function`` without the marks around it."""
    found = _numbers.get(function)
    return function.__code__ if found is None else _codes[found][1]


def _set_body(function: FunctionType, code: CodeType) -> None:
    found = _numbers.get(function)
    if found is None:
        function.__code__ = code
        return
    function.__globals__[f"_as_written_{found}"].__code__ = code
    _codes[found] = (function, code, _codes[found][2])
    if not is_recording():
        function.__code__ = code


def _on_record_change(recording: bool) -> None:
    for function, plain, marked in _codes:
        function.__code__ = marked if recording else plain


on_record_change(_on_record_change)


@attrs.define
class Call:
    """One call; its events are ``first`` + 1 to ``last``."""

    function: Function
    first: int
    last: int
    children: list[Call]
    depth: int


def call_tree(
    marks: Sequence[int], first_mark: int = 0, last_mark: int | None = None
) -> list[Call]:
    """The calls in ``marks[first_mark:last_mark]`` as trees, in order; calls that are still open at
    the end are cut off there."""
    roots: list[Call] = []
    open_calls: list[Call] = []
    at = 0
    for i in range(first_mark, len(marks) if last_mark is None else last_mark, 2):
        at, fid = marks[i] // SLOTS, marks[i + 1]
        if fid >= 0:
            call = Call(FUNCTIONS[fid], at, at, [], len(open_calls))
            (open_calls[-1].children if open_calls else roots).append(call)
            open_calls.append(call)
        elif open_calls:
            open_calls.pop().last = at
    for call in open_calls:
        call.last = at
    return roots
