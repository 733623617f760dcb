"""One more kind of step is one class: a kind that this file defines is read, taken, proved, graded,
packed, translated and exported, though nothing else knows it."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from kemu.errors import UsageError
from kemu.lessons.format.lesson import LessonError
from kemu.lessons.format.parse import parse, parse_file
from kemu.lessons.format.schema import EXPRESSION, PROSE, key, text
from kemu.lessons.format.translate import skeleton, sources
from kemu.lessons.grading.grade import grade
from kemu.lessons.grading.transcript import read_transcript
from kemu.lessons.kinds.base import Fault, Kind
from kemu.lessons.kinds.registry import KINDS, register
from kemu.lessons.making.checking import check_files
from kemu.lessons.making.export import page
from kemu.lessons.making.notebook import notebook
from kemu.lessons.making.pack import pack
from kemu.lessons.taking.judge import Fact
from tests.lessons.hands import HEAD, Student
from tests.structure.sources import PACKAGE, ROOT, modules


@attrs.frozen(kw_only=True)
class Claim(Kind):
    """Is a claim about the machine true?"""

    kind = "claim"
    student = "says yes or no"
    passes = "the claim is true and it was yes, or false and it was no"
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {"how": "answer yes, or answer no"},
        "zh-CN": {"how": "answer yes \N{CJK UNIFIED IDEOGRAPH-6216} answer no"},
    }
    asks = compares = True

    holds: str = key(text, holds=EXPRESSION, needed=True, secret=True, default="")
    doubt: str = key(text, holds=PROSE, default="")

    def fact(self, visit):
        return Fact(bool(visit.value("holds", self.holds)))

    def read(self, _visit, typed):
        if typed not in ("yes", "no"):
            raise UsageError(f"answer: expected yes or no, got '{typed}'")
        return typed == "yes"

    def in_words(self, _visit, value):
        return "yes" if value else "no"

    def remarks(self, visit, _language):
        return [visit.text("doubt", self.doubt)] if self.doubt else []

    def solve(self, visit):
        return [f"answer {self.in_words(visit, visit.fact.value)}"]

    def faults(self, _lesson):
        if not self.holds.endswith(")"):
            yield Fault("M04", self.at("holds"), "a claim asks the machine")


BODY = """
```check claim
id = "alive"
points = 2
ask = "Is `app` alive?"
holds = "{holds}"
doubt = "Look at `ps`: there are {{tasks()}} tasks."
hints = ["ps"]
```
"""
FRONT = 'setup = ["spawn app"]\n'


@pytest.fixture
def file(tmp_path):
    register(Claim)
    path = tmp_path / "claim.md"
    path.write_text(HEAD.format(front=FRONT) + BODY.format(holds="alive(app)"))
    yield path
    del KINDS["claim"]


def test_without_its_class_the_kind_does_not_exist():
    with pytest.raises(LessonError, match="unknown kind of step 'claim'"):
        parse(HEAD.format(front=FRONT) + BODY.format(holds="alive(app)"), Path("x.md"))


def test_a_new_kind_is_read_proved_and_looked_at(file):
    assert check_files([file], 3, 2) == (1, [])
    file.write_text(HEAD.format(front=FRONT) + BODY.format(holds="1 == 1"))
    assert [problem.code for problem in check_files([file], 3, 2)[1]] == ["M04"]
    file.write_text(HEAD.format(front=FRONT) + BODY.format(holds="alive(ghost)"))
    assert [problem.code for problem in check_files([file], 3, 2)[1]] == ["P01"]


def test_a_new_kind_is_taken_and_graded(file, tmp_path):
    lesson = parse_file(file)
    ada = Student(lesson)
    assert "answer yes, or answer no" in ada.reads("task")
    assert "expected yes or no" in ada.reads("answer perhaps")
    said = ada.reads("answer no")
    assert "You said no; that is not it. Look at `ps`: there are 4 tasks." in said
    assert "(1 of 1) ps" in ada.reads("hint")
    assert "yes. Yes." in ada.reads("answer yes")
    graded = grade(lesson, read_transcript(ada.hands_in(tmp_path)), "salt")
    assert (graded.score, graded.most, graded.flags) == (2, 2, ())
    assert [(step.kind, step.said, step.tries) for step in graded.steps] == [("claim", "yes", 2)]
    bo = Student(lesson, name="bo")
    assert "It is yes." in bo.reads("skip")


def test_a_new_kind_is_packed_translated_and_exported(file, tmp_path):
    lesson = parse_file(file)
    pack(lesson, tmp_path / "out", student=True)
    packed = (tmp_path / "out" / "claim.md").read_text()
    assert "holds" not in packed
    assert "doubt" in packed
    assert "Noted" in Student(parse(packed, Path("packed.md"))).reads("answer yes")
    assert sources(lesson)["alive.doubt"] == "Look at `ps`: there are {tasks()} tasks."
    assert "```text alive.doubt " in skeleton(lesson, "zh-CN")
    assert "<code>answer yes</code>" in page(lesson)
    assert "desk.answer" in notebook(lesson, file.read_text())


# ---------------------------------------------------------------- the kinds that there are


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_kind_has_its_row_on_the_format_page(name):
    kind = KINDS[name]
    page_text = (ROOT / "docs" / "lesson-format.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {kind.student} | {kind.passes} |" in page_text


def asked_by_name(package=PACKAGE):
    """Comparisons of a `.kind` with the name of a kind of step, outside the kinds themselves."""
    found = []
    for name, module in modules(package).items():
        if not name.startswith("kemu.lessons.") or name.startswith("kemu.lessons.kinds."):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Compare):
                parts = [node.left, *node.comparators]
                asks = any(
                    isinstance(part, ast.Attribute) and part.attr == "kind" for part in parts
                )
                named = {
                    inner.value
                    for part in parts
                    for inner in ast.walk(part)
                    if isinstance(inner, ast.Constant) and inner.value in KINDS
                }
                if asks and named:
                    found.append(f"{name}:{node.lineno} {sorted(named)}")
    return found


BLOCKS = re.compile(r"kemu\.lessons\.(format|making|taking)\.\w+:\d+ \['run'\]\Z")
"""A block between steps is of a kind, too: `run` blocks are not `run` steps."""


def test_no_kind_is_asked_for_by_its_name():
    assert modules()
    assert not [found for found in asked_by_name() if not BLOCKS.match(found)]
    assert len([found for found in asked_by_name() if BLOCKS.match(found)]) <= 2


def test_a_kind_that_is_asked_for_is_found(tmp_path):
    folder = tmp_path / "kemu" / "lessons" / "taking"
    folder.mkdir(parents=True)
    (folder / "m.py").write_text("def f(step):\n    return step.kind in ('choice', 'order')\n")
    assert asked_by_name(tmp_path / "kemu") == ["kemu.lessons.taking.m:2 ['choice', 'order']"]
