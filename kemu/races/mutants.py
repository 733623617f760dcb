"""Wrong kernels as data: each is a patch in ``wrong/``, a small change to one kernel function in
the form of a patch on a mailing list.

    Name: fork_forgets_wrprotect
    Function: __copy_present_ptes
    Story: fork leaves the parent's entries writable: what the parent writes, the child sees
    Noticed-by: writable_private_pages_are_exclusive

    --- a/kemu/kernel/mm/fork_mm.py
    +++ b/kemu/kernel/mm/fork_mm.py
    @@ -336,3 +336,2 @@ def __copy_present_ptes
         if is_cow_mapping(src_vma.vm_flags) and pte_write(pte):
    -        ptep_set_wrprotect(src_vma.vm_mm, addr, src_pte)
             pte = pte_wrprotect(pte)

A hunk is found by its text, which must occur once in the file; the line numbers may be out of date.
Of the changed file only the named function is compiled (``bodies``).  A kernel that has it in
``bodies`` runs the wrong code, every other kernel the right one.  The function keeps its frame, so
the call tree does not reveal the mutant.

``Noticed-by`` is an invariant, the simple model of memory contents ("model"), the kernel's own
checks ("kernel"), the recorded programs of the real kernel ("conformance"), or only two CPUs at
once ("explorer"): then ``Race`` names the built-in race that shows it.  A test plants each mutant
and compares.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from difflib import get_close_matches, unified_diff
from email.parser import HeaderParser
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import attrs

from kemu.errors import KernelBug, UsageError
from kemu.kernel.init import boot

FOLDER = Path(__file__).parent / "wrong"
EXPLORER = "explorer"


@attrs.frozen
class Mutant:
    """One wrong kernel: the ``function`` of the file ``path`` (kemu/kernel/mm/fork_mm.py), changed
    by ``hunks`` (text, text instead); ``story`` says what it does wrong, ``caught`` what notices
    it, ``race`` the built-in race that shows it, or empty."""

    name: str
    path: str
    function: str
    story: str
    caught: str
    race: str
    hunks: tuple[tuple[str, str], ...]

    @property
    def place(self) -> str:
        """``kemu/kernel/mm/fork_mm.py#__copy_present_ptes``."""
        return f"{self.path}#{self.function}"

    @property
    def module(self) -> ModuleType:
        """The kernel module that is wrong.  ``KernelBug`` if the file is not one."""
        name = self.path.removesuffix(".py").replace("/", ".")
        if not name.startswith(boot.__name__.partition(".init")[0]) or name not in sys.modules:
            raise KernelBug(f"mutant {self.name}: {self.path} is not a file of the kernel")
        return sys.modules[name]


def read(text: str) -> Mutant:
    """The mutant that a patch describes."""
    message = HeaderParser().parsestr(text)
    head = {key: " ".join(value.split()) for key, value in message.items()}
    path = ""
    hunks: list[tuple[str, str]] = []
    for line in str(message.get_payload()).splitlines(keepends=True):
        if line.startswith("+++ b/"):
            path = line[len("+++ b/") :].strip()
        elif line.startswith("@@ "):
            hunks.append(("", ""))
        elif hunks:
            old, new = hunks[-1]
            mark, rest = (line[0], line[1:]) if line.strip() else (" ", "\n")
            hunks[-1] = (old + rest * (mark in " -"), new + rest * (mark in " +"))
    return Mutant(
        head["Name"],
        path,
        head["Function"],
        head["Story"],
        head["Noticed-by"],
        head.get("Race", ""),
        tuple(hunks),
    )


MUTANTS: dict[str, Mutant] = {
    path.stem: read(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.patch"))
}
"""All wrong kernels by name."""


def find(word: str) -> Mutant:
    """The mutant of that name; a number picks one that shows on one CPU, without naming it.
    ``UsageError`` if there is none."""
    if word.isascii() and word.isdigit():
        names = [name for name, mutant in MUTANTS.items() if mutant.caught != EXPLORER]
        return MUTANTS[names[int(word) * 7919 % len(names)]]
    if word not in MUTANTS:
        near = get_close_matches(word, MUTANTS, 1)
        hint = (
            f"did you mean '{near[0]}'?"
            if near
            else "mutant list names them; a number picks one for you to find"
        )
        raise UsageError(f"mutant: no mutant named '{word[:40]}'", hint=hint, about="name")
    return MUTANTS[word]


def source(mutant: Mutant) -> str:
    """The text of the wrong file.  ``KernelBug`` if a hunk does not apply at exactly one place."""
    text = "\n" + inspect.getsource(mutant.module)
    for number, (old, new) in enumerate(mutant.hunks, 1):
        places = text.count("\n" + old)
        if places != 1:
            raise KernelBug(
                f"mutant {mutant.name}: hunk {number} applies at {places} places of {mutant.place}"
            )
        text = text.replace("\n" + old, "\n" + new)
    return text[1:]


def diff(mutant: Mutant) -> tuple[str, ...]:
    """The lines of the unified diff between the right file and the wrong one, as it is now."""
    right, wrong = inspect.getsource(mutant.module), source(mutant)
    lines = unified_diff(
        right.splitlines(),
        wrong.splitlines(),
        f"a/{mutant.path}",
        f"b/{mutant.path}",
        lineterm="",
    )
    return tuple(
        f"{line} def {mutant.function}" if line.startswith("@@") else line for line in lines
    )


def bodies(mutant: Mutant) -> Mapping[FunctionType, CodeType]:
    """The ``Kernel.bodies`` that make a kernel this wrong one."""
    tree = ast.parse(source(mutant))
    definition = next(
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == mutant.function
    )
    definition.decorator_list = []
    tree.body = [definition]
    function: FunctionType = getattr(mutant.module, mutant.function)
    right = function.__code__
    module = compile(tree, right.co_filename, "exec", annotations.compiler_flag, dont_inherit=True)
    code = next(
        const
        for const in module.co_consts
        if isinstance(const, CodeType) and const.co_name == definition.name
    )
    return {function: code}
