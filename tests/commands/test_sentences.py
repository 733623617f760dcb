"""The sentence on each line of the kernel that fails: it is there, it can be filled in, and it reads
as English."""

from __future__ import annotations

import ast
import importlib
import re
import string
from functools import cache
from pathlib import Path
from types import FunctionType, SimpleNamespace

import pytest

import kemu.kernel
from kemu.explain.sentences import Filler, Sentence, sentences

KERNEL = Path(kemu.kernel.__file__).parent
FILES = sorted(KERNEL.rglob("*.py"))
FAILURE = re.compile(r"E[A-Z0-9]+|VM_FAULT_SIG\w+")
HANDS_ON = {"vmf_error"}
"""Functions that give the error that they were given another name."""


def module_of(path):
    return importlib.import_module(
        ".".join(("kemu", "kernel", *path.relative_to(KERNEL).with_suffix("").parts))
    )


@cache
def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def fails(node):
    """Does the value of the expression name an errno or a signal of its own?"""
    if isinstance(node, ast.Compare | ast.Call):
        return False
    if isinstance(node, ast.Dict):
        return any(fails(value) for value in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return isinstance(node.operand, ast.Name) and bool(FAILURE.fullmatch(node.operand.id))
    if isinstance(node, ast.Name):
        return bool(re.fullmatch(r"VM_FAULT_SIG\w+", node.id))
    return any(fails(child) for child in ast.iter_child_nodes(node))


def failing_lines(path):
    """(function, line) of the statements that give up."""
    for function in functions(path):
        for node in ast.walk(function):
            if isinstance(node, ast.Return | ast.Assign) and node.value and fails(node.value):
                yield function.name, node.lineno


def written(path):
    """(function, line, sentence), once for a statement."""
    last = None
    for line, sentence in sorted(sentences(str(path)).items()):
        if sentence is not last:
            last = sentence
            inside = [f for f in functions(path) if f.lineno <= line <= (f.end_lineno or 0)]
            yield max(inside, key=lambda f: f.lineno), line, sentence


def fields(text):
    return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]


def test_the_kernel_has_its_failures():
    assert sum(1 for path in FILES for _ in failing_lines(path)) > 250
    assert sum(1 for path in FILES for _ in written(path)) > 300


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(KERNEL)))
def test_each_line_that_fails_says_why(path):
    said = sentences(str(path))
    silent = [
        f"{function}:{line}"
        for function, line in failing_lines(path)
        if line not in said and function not in HANDS_ON
    ]
    assert not silent


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(KERNEL)))
def test_a_sentence_names_what_its_function_knows(path):
    """Parameters, variables that have a value there, names of the module; and of a structure, what
    it has."""
    module = vars(module_of(path))
    for function, line, sentence in written(path):
        arguments = {
            one.arg: one.annotation for one in function.args.args + function.args.kwonlyargs
        }
        local = arguments.keys() | {
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and node.lineno <= line
        }
        assert not fields(sentence.instead)
        for field in fields(sentence.why):
            name, *attributes = field.split(".")
            assert name in local or name in module
            if name not in local and not attributes:
                assert isinstance(module[name], int | FunctionType)
            annotation = arguments.get(name)
            if attributes and isinstance(annotation, ast.Name) and annotation.id in module:
                assert attributes[0] in known(module[annotation.id])


def known(structure):
    fields_of = (vars(one).get("__annotations__", {}) for one in structure.__mro__)
    return set(dir(structure)).union(*fields_of)


NOT_ENGLISH = re.compile(
    r"(?<!there )\b(is|are) no\b|\bnone is\b|\bstands?\b|\bbehind\b|\s\s|[.;:,]$"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(KERNEL)))
def test_a_statement_that_calls_the_one_who_knows_returns(path):
    """A sentence is filled in before its line and, if the function returns there, after it again:
    elsewhere the call has not been made yet."""
    for function, line, sentence in written(path):
        (node,) = (
            one for one in ast.walk(function) if isinstance(one, ast.stmt) and one.lineno == line
        )
        called = {
            one.func.id
            for one in ast.walk(node)
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
        }
        assert isinstance(node, ast.Return) or not called & set(fields(sentence.why))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(KERNEL)))
def test_a_sentence_is_short_english(path):
    """It goes on after `mmap -> -EINVAL (22): `, and the advice after `instead`."""
    for sentence in set(sentences(str(path)).values()):
        assert sentence.why
        for text in filter(None, sentence):
            assert not NOT_ENGLISH.search(text)
            assert not re.match(r"[A-Z][a-z]", text)
            assert len(text) <= 100


def test_a_sentence_belongs_to_its_statement(tmp_path):
    path = tmp_path / "f.py"
    path.write_text(
        "def f(a):\n"
        "    if a:\n"
        "        return -1  #: {a} is too much -> less\n"
        "    #: it goes on\n"
        "    #: over two lines -> more\n"
        "    return (\n"
        "        a\n"
        "    )\n"
    )
    assert sentences(str(path)) == {
        3: Sentence("{a} is too much", "less"),
        **dict.fromkeys((6, 7, 8), Sentence("it goes on over two lines", "more")),
    }
    assert sentences(str(tmp_path / "none.py")) == {}


def test_the_braces_of_a_sentence():
    said = {"f": Sentence("no page is free", "wait")}
    vma = SimpleNamespace(vm_start=0x1000, vm_end=0x3000, vm_mm=SimpleNamespace(count=3))

    def f():
        """A function of the kernel."""

    names = {"f": f, "g": f, "vma": vma, "one": 1, "two": 2, "at": 4096}
    filler = Filler(names, lambda name: said.get(name, Sentence("")))
    for text, filled in (
        ("{at:#x} and {vma.vm_mm.count}", "0x1000 and 3"),
        ("{one:pages}, {two:pages}", "1 page, 2 pages"),
        ("{vma:range}", "0x1000-0x3000"),
    ):
        assert filler.filled(Sentence(text, "x")) == (filled, "x")
    assert filler.filled(Sentence("{f}{g}")) == ("no page is free", "")
    assert filler.filled(Sentence("{f}")) == ("no page is free", "wait")
    assert filler.filled(Sentence("{f}", "map less")) == ("no page is free", "wait")
    assert filler.filled(Sentence("{g}", "map less")) == ("", "map less")
    for wrong in ("{missing}", "{vma.nothing}", "{vma[0]}"):
        with pytest.raises((KeyError, AttributeError)):
            filler.filled(Sentence(wrong))
