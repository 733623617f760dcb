"""`kemu grade`: replay and grade submissions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from kemu.errors import UsageError
from kemu.front.cli.lessons import show_problems
from kemu.front.cli.words import Words
from kemu.language.result import BAD_LESSON, OK, UNSATISFIED
from kemu.lessons.format.lesson import LessonError

if TYPE_CHECKING:
    from kemu.front.cli.options import Options
    from kemu.lessons.grading.grade import Grade

USAGE_TEXT = """\
usage: kemu grade LESSON FILES... [--roster R.csv] [--format text|json|csv|junit|gradescope]
                  [--salt TEXT] [--metadata FILE] [--jobs N] [-o FILE]
       kemu grade LESSON --gradescope-zip OUT.zip [--roster R.csv]

LESSON is a lesson file or the id of a shipped lesson; FILES are transcripts (*.jsonl), or folders
of them.

  --roster FILE     CSV with a column id (and optionally name); lists students without a file too
  --format F        text (the default), json, csv, junit, or gradescope (for one file)
  --salt TEXT       the salt of the course (default: that in course.toml next to the lesson)
  --metadata FILE   Gradescope's submission_metadata.json, which names the submitter
  --jobs N          number of processes
  -o FILE           write to FILE

exit codes: 0 all graded, 2 usage, 3 a file is not a transcript or has flags,
            4 the lesson is invalid
"""

DEFAULTS = {
    "--roster": "",
    "--format": "text",
    "--salt": "",
    "--metadata": "",
    "-o": "",
    "--gradescope-zip": "",
}
"""Options that take a value, with their defaults."""


def main(options: Options) -> int:
    """Run `kemu grade WORDS`; the exit code."""
    if options.help or options.words[:1] in (["--help"], ["-h"]):
        sys.stdout.write(USAGE_TEXT)
        return OK
    try:
        return _grade(options.words)
    except LessonError as error:
        show_problems(error.problems, as_json=False)
        return BAD_LESSON


def _grade(words: list[str]) -> int:
    from kemu.lessons.format.course import course_of, find_lesson
    from kemu.lessons.grading.results import FORMATS
    from kemu.lessons.grading.roll import grade_all, read_roster, submission_files
    from kemu.lessons.making.checking import two_jobs

    read = Words(words, DEFAULTS | {"--jobs": str(two_jobs())}, frozenset(), word="grade")
    if not read.places:
        raise UsageError("grade: expected a lesson", hint="kemu grade --help")
    form = read.values["--format"]
    if form not in FORMATS:
        raise UsageError(f"--format: expected one of {', '.join(FORMATS)}, got '{form[:20]}'")
    lesson = find_lesson(read.places[0])
    roster = Path(read.values["--roster"]) if read.values["--roster"] else None
    known = read_roster(roster) if roster else None
    if read.values["--gradescope-zip"]:
        return _zip(Path(read.values["--gradescope-zip"]), read.places[0], roster)
    files = submission_files([Path(place) for place in read.places[1:]])
    if not files:
        raise UsageError(
            "grade: expected transcripts",
            hint="name files, or a folder with *.jsonl files",
        )
    if form == "gradescope" and len(files) != 1:
        raise UsageError(f"grade: gradescope takes one submission, got {len(files)}")
    salt = read.values["--salt"] or course_of(lesson.path.parent).salt
    grades = grade_all(lesson, files, salt, known, read.number("--jobs", 1, 256))
    grades = _submitted(
        grades[: len(files)] if form == "gradescope" else grades, read.values["--metadata"]
    )
    return _write(grades, form, known or {}, read.values["-o"])


def _submitted(grades: list[Grade], metadata: str) -> list[Grade]:
    """The grades; those that another student submitted are flagged."""
    if not metadata:
        return grades
    from kemu.lessons.grading.gradescope import submitters

    known = submitters(Path(metadata))
    return [
        attrs.evolve(one, flags=(*one.flags, "not the submitter"))
        if one.student and one.student.casefold() not in known
        else one
        for one in grades
    ]


def _write(grades: list[Grade], form: str, names: dict[str, str], target: str) -> int:
    from kemu.lessons.grading.results import WRITERS

    text = WRITERS[form](grades, names)
    if target:
        try:
            Path(target).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"grade: cannot write '{target}': {error.strerror}") from error
    else:
        sys.stdout.write(text)
    return UNSATISFIED if any((one.error and one.path) or one.flags for one in grades) else OK


def _zip(target: Path, word: str, roster: Path | None) -> int:
    from kemu.lessons.format.course import find_lesson
    from kemu.lessons.grading.gradescope import write_zip

    write_zip(target, find_lesson(word), roster)
    sys.stdout.write(
        f"{target}: upload it as the autograder; students hand in the file that lesson submit "
        "writes\n"
    )
    return OK
