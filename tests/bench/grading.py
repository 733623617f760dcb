"""Grading: a class of 300 who took a whole lesson, on two processes.

    python -m tests.bench.grading [--lesson FILE]... [--students 300] [--jobs 2]

Each student takes the lesson with numbers of their own and hands in; then `grade_all` repeats all
of it. Without a lesson the longest of the shipped ones is taken, by its own points. What is timed
is grading alone: on the wall clock, and in CPU time, which says what two cores that have nothing
else to do would take.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from kemu.lessons.format.course import every_lesson
from kemu.lessons.format.parse import parse_file
from kemu.lessons.grading.roll import grade_all
from tests.bench.table import Row, line
from tests.lessons.hands import Student

BAR = 60
"""Seconds for 300 submissions of a full lesson on two cores."""


def submissions(lesson, folder, students):
    """A file for each student, all steps taken."""
    return [
        Student(lesson, name=f"student{number}").takes_all().hands_in(folder)
        for number in range(students)
    ]


def grading_row(lesson, students, jobs):
    """The row of the table, and the grades."""
    with tempfile.TemporaryDirectory() as folder:
        files = submissions(lesson, Path(folder), students)
        begun, used = time.perf_counter(), cpu_of_children()
        grades = grade_all(lesson, files, "salt", jobs=jobs)
        taken, used = time.perf_counter() - begun, cpu_of_children() - used
    whole = used / jobs * 300 / students
    what = f"grading {students} submissions of {lesson.id}, {len(lesson.steps)} steps, {jobs} processes"
    shown = f"{taken:.1f} s, {used:.1f} s of CPU"
    return Row(
        what, shown, "", f"{whole:.0f} s for 300", f"at most {BAR} s for 300", whole <= BAR
    ), grades


def cpu_of_children():
    """Seconds of CPU that ended processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(argv=None):
    """Print the rows."""
    parser = argparse.ArgumentParser(description="Time the grading of a class.")
    parser.add_argument(
        "--lesson", action="append", type=Path, help="a lesson file; may be given several times"
    )
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(argv)
    lessons = [parse_file(path) for path in asked.lesson or ()] or [
        max(every_lesson(), key=lambda lesson: lesson.points)
    ]
    for lesson in lessons:
        row, grades = grading_row(lesson, asked.students, asked.jobs)
        wrong = [grade for grade in grades if grade.score != grade.most or grade.flags]
        print(line(row.cells()), f"({len(wrong)} not full)" if wrong else "")  # noqa: T201 - a script says what it did


if __name__ == "__main__":
    main()
