"""A lesson to distribute: as it is, or for students, without its answers.

A student's copy keeps what a student needs to take the lesson: questions, hints but the last rungs,
reveals, the salt and the hash of the whole file.  It has no solution, no expectation, no condition,
no reason.  kemu then says "noted" instead of right or wrong, and the grader, who has the whole
file, says it later.  Where a later step starts from an earlier solution, those commands must stay
(W06): give such steps a start of their own.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

from kemu.errors import UsageError
from kemu.lessons.format.course import COURSE_FILE
from kemu.lessons.format.lesson import Lesson, Step
from kemu.lessons.format.parse import read_text
from kemu.lessons.format.toml import written
from kemu.lessons.format.translate import translations
from kemu.lessons.kinds.registry import KINDS

FILES = "files"
"""The folder beside lessons that holds what they `load`; it goes with a lesson that may use
files."""
HINTS_KEPT = 2
"""Rungs of the ladder in a student's copy: the idea, and where to look."""
_STEP = re.compile(r"(?ms)^(`{3,}|~{3,})[ \t]*check[ \t]+(\w+)[ \t]*\n(.*?)^\1[ \t]*$")
_SECRET_TEXTS = re.compile(
    r"(?ms)^(`{3,})text "
    r"[^\n]*?\.(explain|why|wrong\.[^\n]*|options\.\d+\.why|must\.\d+|never\.\d+|hints\.(?!1 |2 "
    r")\d+) .*?"
    r"^\1[ \t]*$\n?"
)


def pack(lesson: Lesson, folder: Path, *, student: bool) -> tuple[list[Path], list[str]]:
    """Write the lesson with its course and translations to the folder: the files, and what one
    should know.

    Raises UsageError where that cannot be."""
    text = read_text(lesson.path)
    notes = leftovers(lesson) if student else []
    files = {lesson.path.name: stripped(lesson, text) if student else text}
    course = lesson.path.parent / COURSE_FILE
    if course.is_file():
        files[COURSE_FILE] = read_text(course)
    beside = lesson.path.parent / FILES if lesson.allow else Path()
    for _, path in translations(lesson):
        files[path.name] = _SECRET_TEXTS.sub("", read_text(path)) if student else read_text(path)
    if folder.resolve() == lesson.path.parent.resolve():
        raise UsageError(
            "pack: '{folder}' is the lesson's own folder", hint="choose another one: -o OUT"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
        if beside.name == FILES and beside.is_dir():
            shutil.copytree(beside, folder / FILES, dirs_exist_ok=True)
    except OSError as error:
        raise UsageError(f"pack: cannot write to '{folder}': {error.strerror}") from error
    return [folder / name for name in files], notes


def stripped(lesson: Lesson, text: str) -> str:
    """The text of the lesson without its answers."""
    head, _, body = text.removeprefix("+++").partition("\n+++")
    front = tomllib.loads(head) | {"packed": lesson.hash}

    def step(found: re.Match[str]) -> str:
        raw = tomllib.loads(found[3])
        kept = KINDS[found[2]].for_students(raw)
        if "hints" in kept:
            hints = kept["hints"] if isinstance(kept["hints"], list) else [kept["hints"]]
            kept["hints"] = hints[:HINTS_KEPT]
        made = lesson.steps[lesson.index(str(raw["id"]))]
        if needed_later(lesson, made):
            kept["makes"] = list(made.makes or made.solution)
        return f"{found[1]}check {found[2]}\n{written(kept)}{found[1]}"

    return f"+++\n{written(front)}+++{_STEP.sub(step, body)}"


def needed_later(lesson: Lesson, step: Step) -> bool:
    """Does another step start from what this one's solution makes?"""
    if not step.carried or not (step.makes or step.solution):
        return False
    for later in lesson.steps[lesson.index(step.id) + 1 :]:
        if later.start == "carry":
            return True
        if later.carried:
            return False
    return False


def leftovers(lesson: Lesson) -> list[str]:
    """What stays readable in a student's copy."""
    notes = [
        f"the solution of {step.id} stays in the file, because later steps start from it (give "
        "the next one a start of its own)"
        for step in lesson.steps
        if needed_later(lesson, step)
    ]
    planted = [step for step in lesson.steps if step.plant]
    return notes + [
        f"the wrong kernel of {step.id} is named in the file: plant = {step.plant!r}"
        for step in planted
    ]
