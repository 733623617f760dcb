"""A class: the roster, the files that were handed in, and all grades, on several processes."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from kemu.errors import UsageError
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.parse import parse_file
from kemu.lessons.grading.grade import Grade, best_of_each, error_grade, grade
from kemu.lessons.grading.transcript import read_transcript

ID_COLUMNS = ("id", "student", "sid", "user", "login", "email")
MOST_FILES = 100_000


def read_roster(path: Path) -> dict[str, str]:
    """Student ids with their names, in the order of the file.  Raises UsageError if it is not
    a roster."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"roster: cannot read '{path}': {getattr(error, 'strerror', None) or 'not UTF-8'}"
        ) from error
    try:
        rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise UsageError(f"roster: {path}: {error}") from error
    if not rows:
        raise UsageError(
            f"roster: '{path}' is empty",
            hint="a table with a column id, and optionally one named name",
        )
    head = [cell.strip().lower() for cell in rows[0]]
    column = next((head.index(name) for name in ID_COLUMNS if name in head), None)
    if column is None:
        raise UsageError(
            f"roster: '{path}' has no column {ID_COLUMNS[0]}",
            hint=f"its columns are {', '.join(head)[:80]}",
        )
    name = head.index("name") if "name" in head else None
    known = [row for row in rows[1:] if len(row) > column and row[column].strip()]
    return {
        row[column].strip(): row[name].strip() if name is not None and name < len(row) else ""
        for row in known
    }


def submission_files(places: Sequence[Path]) -> list[Path]:
    """The files among and below the places, sorted.  Raises UsageError for a place that is
    missing."""
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            found += sorted(
                path
                for path in place.rglob("*.jsonl")
                if path.is_file() and not path.name.startswith(".")
            )
        elif place.is_file():
            found.append(place)
        else:
            raise UsageError(
                f"grade: '{place}' does not exist", hint="give transcripts, or a folder of them"
            )
    if len(found) > MOST_FILES:
        raise UsageError(f"grade: {len(found)} files are too many (at most {MOST_FILES})")
    return list(dict.fromkeys(found))


def grade_all(
    lesson: Lesson,
    files: Sequence[Path],
    salt: str = "",
    roster: Mapping[str, str] | None = None,
    jobs: int = 1,
) -> list[Grade]:
    """The grades of the files, in their order; after them, for a roster, the students who handed
    in nothing."""
    work = [
        (str(lesson.path), str(path), salt, None if roster is None else dict(roster))
        for path in files
    ]
    if jobs > 1 and len(work) > 1:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(min(jobs, len(work))) as pool:
            grades = list(
                pool.map(
                    grade_one, *zip(*work, strict=True), chunksize=max(1, len(work) // (jobs * 8))
                )
            )
    else:
        grades = [grade_one(*one) for one in work]
    handed_in = {one.student for one in grades}
    absent = [student for student in roster or () if student not in handed_in]
    missing = [
        Grade("", student, lesson.id, most=lesson.points, error="nothing was handed in")
        for student in absent
    ]
    return best_of_each([*grades, *missing])


_LESSONS: dict[str, Lesson] = {}
"""Lessons that this process has read."""


def grade_one(lesson_path: str, path: str, salt: str, roster: Mapping[str, str] | None) -> Grade:
    """The grade of one file."""
    if lesson_path not in _LESSONS:
        _LESSONS[lesson_path] = parse_file(Path(lesson_path))
    lesson = _LESSONS[lesson_path]
    try:
        transcript = read_transcript(Path(path))
    except UsageError as error:
        return attrs.evolve(error_grade(path, error), lesson=lesson.id, most=lesson.points)
    return grade(lesson, transcript, salt, roster)
