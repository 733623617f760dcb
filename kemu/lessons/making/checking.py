"""`lesson check`: read, lint, prove, and compare with translations; all problems of all files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kemu.lessons.format.course import course_of, every_lesson, lesson_files, together
from kemu.lessons.format.lesson import Lesson, LessonError, Problem
from kemu.lessons.format.parse import parse_file
from kemu.lessons.making.lint import lint
from kemu.lessons.making.proof import SEEDS, STUDENTS, prove, seeds_for


def check_files(
    places: Sequence[Path], seeds: int = SEEDS, students: int = len(STUDENTS), jobs: int = 1
) -> tuple[int, list[Problem]]:
    """How many lessons were looked at, and what is wrong with them.  Raises UsageError for a place
    that is missing."""
    files = lesson_files(places)
    lessons: list[Lesson] = []
    problems: list[Problem] = []
    for path in files:
        try:
            lesson = parse_file(path)
        except LessonError as error:
            problems += error.problems
            continue
        lessons.append(lesson)
    known = _known_beside(files)
    problems += together(lessons, known)
    for found in _each(lessons, seeds, students, jobs):
        problems += found
    order = {str(path): number for number, path in enumerate(files)}
    return len(files), sorted(
        problems,
        key=lambda problem: (order.get(problem.path, len(files)), problem.path, problem.line),
    )


def _known_beside(files: Sequence[Path]) -> set[str]:
    """Ids that a lesson may require: those that are shipped, and those beside it."""
    folders = {path.parent for path in files}
    found = {lesson.id for folder in folders for lesson in every_lesson(folder)}
    try:
        return found | {lesson.id for lesson in every_lesson()}
    except FileNotFoundError:
        return found


def _each(lessons: Sequence[Lesson], seeds: int, students: int, jobs: int) -> list[list[Problem]]:
    work = [(lesson.path, seeds, students) for lesson in lessons]
    if jobs > 1 and len(work) > 1:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(min(jobs, len(work))) as pool:
            return list(pool.map(check_one, *zip(*work, strict=True)))
    return [check_one(*one) for one in work]


def check_one(path: Path, seeds: int, students: int) -> list[Problem]:
    """What is wrong with one lesson that can be read, and with its translations."""
    from kemu.lessons.format.translate import check_translations

    lesson = parse_file(path)
    found = lint(lesson)
    if not lesson.packed and not any(problem.severity == "error" for problem in found):
        try:
            salt = course_of(path.parent).salt
        except LessonError:
            salt = ""
        found += prove(lesson, seeds_for(lesson, seeds, STUDENTS[:students], salt))
    return found + check_translations(lesson)


def two_jobs() -> int:
    """Processes to use: one a CPU, at most four."""
    return min(os.cpu_count() or 1, 4)
