"""Call frames: which function of the kernel, and which of Linux's files, stands over an event.

``@linux("mm/memory.c")`` does three jobs: it marks in the journal where the function is entered and left, it says where
the original lives, and a test checks the name against ``docs/linux-functions.tsv``.  ``@hardware`` marks what the CPU
does by itself (the page walk), so that the tree never blames the kernel for it.

A decorated function keeps two code objects, the one that was written and one of the same signature that puts marks
around it; switching recording swaps them, so names that other modules have imported stay right.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import attrs

from kemu.trace.barrier import on_record_change, tape
from kemu.trace.journal import SLOTS

F = TypeVar("F", bound=Callable[..., Any])

HARDWARE = "(hardware)"


@attrs.frozen
class Function:
    """A function that leaves frames: ``path`` is the file of the original in Linux, or ``HARDWARE``."""

    fid: int
    name: str
    path: str
    module: str
    line: int
    doc: str


FUNCTIONS: list[Function] = []
"""All decorated functions; the index is the ``fid`` that the marks carry."""

_codes: list[tuple[FunctionType, CodeType, CodeType]] = []


def linux(path: str) -> Callable[[F], F]:
    """Declare that the function is Linux's function of the same name in ``path`` (relative to the source tree)."""

    def decorate(function: F) -> F:
        return cast(F, _register(cast(FunctionType, function), path))

    return decorate


def hardware(function: F) -> F:
    """Declare that the function is done by the CPU, not by the kernel."""
    return cast(F, _register(cast(FunctionType, function), HARDWARE))


def _register(function: FunctionType, path: str) -> FunctionType:
    fid = len(FUNCTIONS)
    code = function.__code__
    FUNCTIONS.append(
        Function(fid, function.__name__, path, function.__module__, code.co_firstlineno, inspect.getdoc(function) or "")
    )
    _codes.append((function, code, _marked(function, fid)))
    if tape.recording:
        function.__code__ = _codes[-1][2]
    return function


def _marked(function: FunctionType, fid: int) -> CodeType:
    """Code of the same signature that marks, calls the function as written, and marks again."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise TypeError(f"{function.__name__}: a function with a frame takes no *args or **kwargs")
    if function.__closure__:
        raise TypeError(f"{function.__name__}: a function with a frame stands at module level")
    plain = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    function.__globals__[f"_as_written_{fid}"] = plain
    function.__globals__["_tape"] = tape
    names = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    signature = ", ".join(names + (["*", *keywords] if keywords else []))
    arguments = ", ".join(names + [f"{k}={k}" for k in keywords])
    source = (
        f"def {function.__name__}({signature}):\n"
        f"    _tape.marks.extend((len(_tape.log), {fid}))\n"
        f"    try:\n"
        f"        return _as_written_{fid}({arguments})\n"
        f"    finally:\n"
        f"        _tape.marks.extend((len(_tape.log), {~fid}))\n"
    )
    made: dict[str, Any] = {}
    exec(compile(source, function.__code__.co_filename, "exec"), made)
    return cast(CodeType, made[function.__name__].__code__)


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


def call_tree(marks: list[int], first_mark: int = 0, last_mark: int | None = None) -> list[Call]:
    """The calls in ``marks[first_mark:last_mark]`` as trees in order; what is still open at the end is cut there."""
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


def open_frames(marks: list[int], first_mark: int, number: int) -> list[Function]:
    """The functions that were open when event ``number`` happened, outermost first.

    ``first_mark`` is an index into ``marks`` at which nothing was open, the start of a command."""
    end = (number - 1) * SLOTS
    stack: list[int] = []
    for i in range(first_mark, len(marks), 2):
        if marks[i] > end:
            break
        fid = marks[i + 1]
        if fid >= 0:
            stack.append(fid)
        elif stack:
            stack.pop()
    return [FUNCTIONS[fid] for fid in stack]
