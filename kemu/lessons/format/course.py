"""Where lessons are: files, courses, and how lessons hang together.

    lessons/vm/course.toml        title, salt, order = ["01-born", ...], weights = { "01-born" = 2 }
    lessons/vm/01-born.md         a lesson
    lessons/vm/01-born.zh-CN.md   its texts in another language (see `translate`)

A lesson is meant by its id (vm/born), by the end of its id, by its number in the course, or by a
path.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from kemu.errors import UsageError
from kemu.language.suggest import did_you_mean
from kemu.lessonpath import lessons_folder
from kemu.lessons.format.lesson import Lesson, LessonError, Problem
from kemu.lessons.format.parse import parse_file, read_text

COURSE_FILE = "course.toml"
TRANSLATION = re.compile(r"\.([a-z]{2,3}(?:-[A-Za-z]{2,4})?)\.md\Z")
MOST_FILES = 1000


@attrs.frozen
class Course:
    """What course.toml says; an empty one where there is none. `weights` by file stem."""

    folder: Path
    title: str = ""
    salt: str = ""
    order: tuple[str, ...] = ()
    weights: tuple[tuple[str, float], ...] = ()


def course_of(folder: Path) -> Course:
    """The course of the folder.  Raises LessonError for a file that cannot be read as one."""
    path = folder / COURSE_FILE
    if not path.is_file():
        return Course(folder)
    text = read_text(path)
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"line (\d+)", str(error))
        what = f"TOML: {str(error).split(' (at')[0]}"
        raise LessonError(
            [Problem("L03", str(path), int(found[1]) if found else 1, what)]
        ) from error
    return _checked(path, raw, folder)


def _checked(path: Path, raw: dict[str, Any], folder: Path) -> Course:
    known = {
        "title": str,
        "salt": str,
        "order": list,
        "weights": dict,
        "license": str,
        "authors": list,
        "language": str,
    }
    for key, value in raw.items():
        if key not in known:
            raise LessonError(
                [
                    Problem(
                        "L04", str(path), 1, f"unknown key '{key[:40]}'", did_you_mean(key, known)
                    )
                ]
            )
        if not isinstance(value, known[key]):
            raise LessonError(
                [
                    Problem(
                        "L06",
                        str(path),
                        1,
                        f"{key}: expected {known[key].__name__}, got {value!r:.40}",
                    )
                ]
            )
    weights = raw.get("weights", {})
    if not all(
        isinstance(value, (int, float)) and not isinstance(value, bool)
        for value in weights.values()
    ):
        raise LessonError([Problem("L06", str(path), 1, "weights: expected numbers")])
    order = tuple(str(name) for name in raw.get("order", ()))
    pairs = tuple((name, float(value)) for name, value in weights.items())
    return Course(folder, raw.get("title", ""), raw.get("salt", ""), order, pairs)


def lesson_files(places: Iterable[Path]) -> list[Path]:
    """The lesson files among and below the places, in the order of their courses; a translation
    means its lesson.  Raises UsageError for a missing place."""
    found: list[Path] = []
    for place in places:
        if place.is_file():
            found.append(_translated(place))
        elif place.is_dir():
            folders = sorted({path.parent for path in place.rglob("*.md") if _is_lesson(path)})
            for folder in folders:
                found += in_order(folder)
        else:
            raise UsageError(
                f"lesson: '{place}' does not exist",
                hint="name a lesson file or a folder of lessons",
            )
    return list(dict.fromkeys(found))[:MOST_FILES]


def _translated(path: Path) -> Path:
    """The lesson beside a translation; any other file itself."""
    lesson = path.with_name(TRANSLATION.sub(".md", path.name))
    return lesson if lesson.is_file() else path


def _is_lesson(path: Path) -> bool:
    """Does the file begin like a lesson, and is it no translation?"""
    if TRANSLATION.search(path.name) or path.name.startswith("."):
        return False
    try:
        with path.open("rb") as file:
            return file.read(3) == b"+++"
    except OSError:
        return False


def in_order(folder: Path) -> list[Path]:
    """The lessons of one folder: those that course.toml names first, in its order."""
    files = sorted(path for path in folder.glob("*.md") if _is_lesson(path))
    try:
        order = course_of(folder).order
    except LessonError:
        order = ()
    return sorted(
        files,
        key=lambda path: (order.index(path.stem) if path.stem in order else len(order), path.name),
    )


def every_lesson(folder: Path | None = None) -> list[Lesson]:
    """All lessons that can be read, in order."""
    found = []
    for path in lesson_files([folder or lessons_folder()]):
        try:
            found.append(parse_file(path))
        except LessonError:
            continue
    return found


def find_lesson(word: str, folder: Path | None = None) -> Lesson:
    """The lesson that the word means.  Raises UsageError if there is none, LessonError if it cannot
    be read."""
    path = Path(word)
    if word.endswith(".md") or path.is_file():
        if not path.is_file():
            raise UsageError(
                f"lesson: file '{word[:80]}' does not exist", hint="lesson lists the lessons"
            )
        return parse_file(path)
    lessons = every_lesson(folder)
    exact = [lesson for lesson in lessons if lesson.id == word]
    near = exact or [
        lesson for lesson in lessons if word in (lesson.id.split("/")[-1], lesson.path.stem)
    ]
    if len(near) == 1:
        return near[0]
    if word.isdigit() and 1 <= int(word) <= len(lessons):
        return lessons[int(word) - 1]
    guess = did_you_mean(word, [lesson.id for lesson in lessons])
    hint = guess or "lesson lists the lessons; a file is given by its path"
    raise UsageError(f"lesson: no lesson '{word[:40]}'", hint=hint)


def together(lessons: Sequence[Lesson], known: Iterable[str] = ()) -> Iterator[Problem]:
    """What is wrong between lessons: ids, requirements, course files; `known` are ids that exist
    elsewhere."""
    by_id: dict[str, Lesson] = {}
    for lesson in lessons:
        if lesson.id in by_id:
            where = f"the other is {by_id[lesson.id].path}"
            yield Problem(
                "M11",
                str(lesson.path),
                lesson.lines.get("id", 1),
                f"a second lesson '{lesson.id}'",
                where,
            )
        by_id.setdefault(lesson.id, lesson)
    ids = {*by_id, *known}
    for lesson in lessons:
        for wanted in (*lesson.requires, *((lesson.next,) if lesson.next else ())):
            if wanted not in ids:
                key = "requires" if wanted in lesson.requires else "next"
                hint, line = did_you_mean(wanted, ids), lesson.lines.get(key, 1)
                yield Problem("M08", str(lesson.path), line, f"no lesson '{wanted}'", hint)
    yield from _circles(by_id)
    yield from _unnamed(lessons)


def _circles(by_id: dict[str, Lesson]) -> Iterator[Problem]:
    """Each circle of requirements once, at the first of its lessons."""
    done: set[str] = set()
    for start in by_id:
        path: list[str] = []
        stack = [(start, 0)]
        while stack:
            name, depth = stack.pop()
            del path[depth:]
            if name in path:
                circle = path[path.index(name) :]
                lesson = by_id[circle[0]]
                if not done.intersection(circle):
                    line = lesson.lines.get("requires", 1)
                    yield Problem("M09", str(lesson.path), line, " requires ".join([*circle, name]))
                done |= set(circle)
                continue
            if name in by_id and name not in done:
                path.append(name)
                stack += [(wanted, depth + 1) for wanted in by_id[name].requires]
        done.add(start)


def _unnamed(lessons: Sequence[Lesson]) -> Iterator[Problem]:
    for folder in sorted({lesson.path.parent for lesson in lessons}):
        try:
            course = course_of(folder)
        except LessonError as error:
            yield from error.problems
            continue
        stems = {lesson.path.stem for lesson in lessons if lesson.path.parent == folder}
        if not course.order:
            continue
        for lesson in lessons:
            if lesson.path.parent == folder and lesson.path.stem not in course.order:
                yield Problem(
                    "M11", str(lesson.path), 1, f"{COURSE_FILE} does not name it in its order"
                )
        for name in course.order:
            if name not in stems and not (folder / f"{name}.md").is_file():
                yield Problem(
                    "M11", str(folder / COURSE_FILE), 1, f"order names '{name}', which is not there"
                )
