"""Which lesson is about a command: the one of the shipped lessons that uses it most.

The lessons are read as text, for the commands in their code spans and solutions; nothing here knows
their format beyond `id = "..."` and `title = "..."` at the top.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kemu.lessonpath import lessons_folder

LEAST = 2
"""A command that a lesson names less often is not what it is about."""

NAMED = 100
"""What it counts that the lesson is called like the command."""

_CODE = re.compile(r"`([a-z_-]+)\b|(?:[\"'\[]|; )([a-z_-]+)\b", re.ASCII)
_KEY = re.compile(r'^(id|title) = "(.*)"$', re.MULTILINE)


class LessonUse(NamedTuple):
    """A lesson, and how often it uses each word as a command."""

    id: str
    title: str
    uses: Counter[str]


@cache
def lessons() -> tuple[LessonUse, ...]:
    """All shipped lessons, in order; none where there are none."""
    return tuple(_read(file.read_text(encoding="utf-8")) for file in _files())


@cache
def titles() -> tuple[tuple[str, str], ...]:
    """Id and title of each, from the first lines alone: quick enough for completion."""
    found = []
    for file in _files():
        with file.open(encoding="utf-8") as opened:
            lesson = _read(opened.read(HEAD))
        found.append((lesson.id, lesson.title))
    return tuple(found)


HEAD = 600
"""Width of id and title."""


def _files() -> list[Path]:
    """The lessons in English: a translation has its language before the ending."""
    try:
        folder = lessons_folder()
    except FileNotFoundError:
        return []
    return [file for file in sorted(folder.glob("*/[0-9][0-9]-*.md")) if file.name.count(".") == 1]


def _read(text: str) -> LessonUse:
    head: dict[str, str] = {}
    for key, value in _KEY.findall(text):
        head.setdefault(key, value)
    uses = Counter(first or second for first, second in _CODE.findall(text))
    return LessonUse(head.get("id", ""), head.get("title", ""), uses)


def lesson_about(words: tuple[str, ...]) -> LessonUse | None:
    """The lesson that is about the command with these words."""

    def weight(lesson: LessonUse) -> int:
        slug = lesson.id.rpartition("/")[2]
        return sum(lesson.uses[word] for word in words) + NAMED * (words[0] == slug)

    best = max(lessons(), key=weight, default=None)
    return best if best is not None and weight(best) >= LEAST and best.id else None
