"""A lesson as a notebook: its prose in cells of text, its steps in cells of code that ask kemu.

The notebook holds the lesson's text in its first cell of code, so that it needs nothing but an
installed kemu.  What is printed when it is run top to bottom is what the shell prints.  A lesson
that loads files needs them where they are.
"""

from __future__ import annotations

import json
from typing import Any

from kemu.lessons.format.lesson import Lesson, Step
from kemu.lessons.kinds.registry import KINDS

OPEN_HINT = "desk.hint() helps, desk.skip() shows the solution."


def notebook(lesson: Lesson, text: str, student: str = "") -> str:
    """The notebook as JSON (nbformat 4.5)."""
    where = f", path={str(lesson.path)!r}" if lesson.allow else ""
    begin = (
        f"from kemu.lessons.taking.desk import Desk\n\nLESSON = {text!r}\n"
        f"desk = Desk(LESSON, student={student!r}{where})"
    )
    cells = [
        _text("title", f"# {lesson.title}\n\n{lesson.goal}".rstrip()),
        _code("begin", begin, hidden=True),
    ]
    for number, step in enumerate(lesson.steps, 1):
        cells += _step(number, step)
    cells += [_code("end", "desk.end()")]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _step(number: int, step: Step) -> list[dict[str, Any]]:
    """Enter it; look; answer or change and check."""
    name = f"step-{number}"
    todo = KINDS[step.kind].todo.format(hint=OPEN_HINT)
    title = _text(f"{name}-title", f"## {number}. {step.title or step.id}")
    return [title, _code(f"{name}-enter", f"desk.step({number})"), _code(name, todo)]


def _text(name: str, source: str) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "id": name,
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }


def _code(name: str, source: str, *, hidden: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"jupyter": {"source_hidden": True}} if hidden else {}
    lines = source.splitlines(keepends=True)
    return {
        "cell_type": "code",
        "id": name,
        "metadata": metadata,
        "execution_count": None,
        "outputs": [],
        "source": lines,
    }
