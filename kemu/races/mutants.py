"""Wrong kernels as data: each mutant is one change of the text of one kernel function, with the
story behind it.

    "fork_forgets_wrprotect": in fork_mm.__copy_present_ptes the line
        ptep_set_wrprotect(src_vma.vm_mm, addr, src_pte)        is missing

``bodies(mutant)`` compiles the changed text in the function's own module; a kernel whose ``bodies``
hold it runs the wrong code, every other kernel the right one.  The function keeps its frame, so the
call tree does not give the mutant away.

``caught`` says who notices: an invariant, the simple model of memory contents ("model"), the
kernel's own checks ("kernel"), the recorded programs of the real kernel ("conformance"), or only
two CPUs at once ("explorer", racy.py).  A test plants each and compares.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from difflib import get_close_matches
from types import CodeType, FunctionType
from typing import cast

import attrs

from kemu.errors import KernelBug, UsageError
from kemu.races import racy
from kemu.races.catalogue import CHANGES


@attrs.frozen
class Mutant:
    """One wrong kernel: ``function`` with ``old`` replaced by ``new``; ``story`` what it does
    wrong, ``caught`` who notices."""

    name: str
    function: FunctionType
    old: str
    new: str
    story: str
    caught: str

    @property
    def place(self) -> str:
        """``kemu/kernel/mm/fork_mm.py#__copy_present_ptes``."""
        return f"{self.function.__module__.replace('.', '/')}.py#{self.function.__name__}"


MUTANTS: dict[str, Mutant] = {change[0]: Mutant(*change) for change in (*CHANGES, *racy.CHANGES)}
"""All wrong kernels by name."""


def find(word: str) -> Mutant:
    """The mutant of that name; a number picks one that shows on one CPU, without telling which.
    ``UsageError`` if there is none."""
    if word.isascii() and word.isdigit():
        names = sorted(name for name, mutant in MUTANTS.items() if mutant.caught != racy.EXPLORER)
        return MUTANTS[names[int(word) * 7919 % len(names)]]
    if word not in MUTANTS:
        near = get_close_matches(word, MUTANTS, 1)
        hint = (
            f"did you mean '{near[0]}'?"
            if near
            else "mutant list names them; a number picks one for you to find"
        )
        raise UsageError(f"mutant: there is no '{word[:40]}'", hint=hint, about="name")
    return MUTANTS[word]


def source(mutant: Mutant) -> str:
    """The text of the wrong function."""
    right = textwrap.dedent(inspect.getsource(mutant.function))
    if right.count(mutant.old) != 1:
        raise KernelBug(
            f"mutant {mutant.name}: its place occurs {right.count(mutant.old)} times in "
            f"{mutant.place}"
        )
    return right.replace(mutant.old, mutant.new)


def bodies(mutant: Mutant) -> Mapping[FunctionType, CodeType]:
    """What ``Kernel.bodies`` must hold for a kernel to be this wrong one."""
    tree = ast.parse(source(mutant))
    definition = cast(ast.FunctionDef, tree.body[0])
    definition.decorator_list = []
    right = mutant.function.__code__
    ast.increment_lineno(tree, right.co_firstlineno - 1)
    module = compile(tree, right.co_filename, "exec", flags=_annotations(), dont_inherit=True)
    code = next(
        const
        for const in module.co_consts
        if isinstance(const, CodeType) and const.co_name == definition.name
    )
    function: FunctionType = attrs.astuple(mutant, recurse=False)[1]
    return {function: code}


def _annotations() -> int:
    """The future that all kernel modules import."""
    import __future__

    return __future__.annotations.compiler_flag
