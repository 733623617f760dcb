"""The lesson about a command: the shipped lesson that uses it most.

Lessons are searched as text for commands in code spans and solutions; this module depends on
their format only for `id = "..."` and `title = "..."` at the top.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kemu.lessonpath import lessons_folder

LEAST = 2
"""Fewest uses of a command by a lesson that is about it."""

NAMED = 100
"""Weight of a lesson that has the name of the command."""

_CODE = re.compile(r"`([a-z_-]+)\b|(?:[\"'\[]|; )([a-z_-]+)\b", re.ASCII)
_KEY = re.compile(r'^(id|title) = "(.*)"$', re.MULTILINE)


class LessonUse(NamedTuple):
    """A lesson, and how often it uses each word as a command."""

    id: str
    title: str
    uses: Counter[str]


@cache
def lessons() -> tuple[LessonUse, ...]:
    """All shipped lessons, in order; empty if the folder is missing."""
    return tuple(_read(file.read_text(encoding="utf-8")) for file in _files())


@cache
def titles() -> tuple[tuple[str, str], ...]:
    """Id and title of each, from the first HEAD characters, which is fast enough for completion."""
    found = []
    for file in _files():
        with file.open(encoding="utf-8") as opened:
            lesson = _read(opened.read(HEAD))
        found.append((lesson.id, lesson.title))
    return tuple(found)


HEAD = 600
"""Characters at the start of a lesson that hold its id and title."""


def _files() -> list[Path]:
    """The English lessons; a translation has its language before the extension."""
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
    """The lesson about the command with these words, or None."""

    def weight(lesson: LessonUse) -> int:
        slug = lesson.id.rpartition("/")[2]
        return sum(lesson.uses[word] for word in words) + NAMED * (words[0] == slug)

    best = max(lessons(), key=weight, default=None)
    return best if best is not None and weight(best) >= LEAST and best.id else None
