"""The lessons of a student: which there are, who takes them, what is done; and how one is begun.

STATE/lessons.jsonl      what was done (see `progress`)
STATE/student            who it is
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import attrs

from kemu.errors import UsageError
from kemu.experiment.session import Session
from kemu.lessonpath import lessons_folder
from kemu.lessons.format.course import course_of, find_lesson, lesson_files
from kemu.lessons.format.lesson import Lesson, LessonError
from kemu.lessons.format.parse import parse_file
from kemu.lessons.format.translate import in_language, locale_language, translation_path
from kemu.lessons.taking.feedback import Texts, text
from kemu.lessons.taking.guide import Guide
from kemu.lessons.taking.messages import say
from kemu.lessons.taking.progress import Log, Record, fold
from kemu.readings.lessons import LessonList, LessonRow, LessonSteps, StepRow

STUDENT_FILE = "student"
LONGEST_ID = 80


@attrs.frozen
class Shelf:
    """The lessons of `folder` (None: those that are shipped), and the student whose state is kept
    in `state`."""

    state: Path
    folder: Path | None = None

    def student(self) -> str:
        """Who it is: KEMU_STUDENT, else what was said once, else nobody.  Raises UsageError where
        that cannot be read."""
        named = os.environ.get("KEMU_STUDENT", "").strip()
        if named:
            return checked_student(named)
        path = self.state / STUDENT_FILE
        try:
            return path.read_text(encoding="utf-8").strip()[:LONGEST_ID]
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise UsageError(
                f"student: cannot read '{path}': {reason}",
                hint="remove it, then kemu lesson student ID",
            ) from error

    def be(self, name: str) -> None:
        """Remember who it is.  Raises UsageError for an invalid id, or one that cannot be saved."""
        checked_student(name)
        try:
            self.state.mkdir(parents=True, exist_ok=True)
            (self.state / STUDENT_FILE).write_text(name + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"student: cannot write to '{self.state}': {error.strerror}"
            ) from error

    def log(self) -> Log:
        """The file of what was done."""
        return Log(self.state)

    def begin(self, session: Session, word: str, language: str = "") -> Texts:
        """Begin (or go on with) the lesson that the word means.  Raises UsageError, LessonError,
        WorldError."""
        lesson = in_language(find_lesson(word, self.folder), language)
        log = Log(self.state, lesson.language)
        if isinstance(session.desk.guide, Guide):
            session.desk.guide.word("leave", "")
        salt = course_of(lesson.path.parent).salt
        guide = Guide(
            session,
            lesson,
            student=self.student(),
            salt=salt,
            run=secrets.token_hex(4),
            keep=log.append,
            records=log.records(lesson.id),
        )
        unread = [text("note", log.warning)] if log.warning else []
        found = [
            *self._advice(lesson, log.records()),
            *guide.stay.resume(),
            *unread,
            *guide.stay.waiting,
        ]
        guide.stay.waiting = []
        return found

    def _advice(self, lesson: Lesson, records: list[Record]) -> Texts:
        """A word about lessons that come before, where they are not done."""
        begun = {record["lesson"] for record in records if record["do"] == "result"}
        missing = [wanted for wanted in lesson.requires if wanted not in begun]
        return (
            [text("note", say(lesson.language, "requires", ids=", ".join(missing)))]
            if missing
            else []
        )

    def following(self) -> str:
        """The number of the lesson to go on with: one that was begun, else the first that is not
        done. Raises UsageError when all are done."""
        rows = self.listing().rows
        begun = [row for row in rows if row.state == "begun"]
        left = [*begun, *(row for row in rows if row.state == "new")]
        if not left:
            raise UsageError("lesson next: all lessons are done", hint="lesson lists them")
        return str(left[0].number)

    def listing(self, current: str = "", language: str = "") -> LessonList:
        """All lessons, with what is done of each, in the language (else that of the locale)."""
        language = language or locale_language() or "en"
        log = Log(self.state, language)
        records = log.records()
        rows: list[LessonRow] = []
        problems = [log.warning] if log.warning else []
        for path in lesson_files([self.folder or lessons_folder()]):
            try:
                lesson = parse_file(path)
                if translation_path(lesson, language).is_file():
                    lesson = in_language(lesson, language)
                rows.append(_row(len(rows) + 1, lesson, records))
            except LessonError as error:
                problems.append(f"{error.problems[0]} (kemu lesson check {path.name})")
        return LessonList(tuple(rows), current, tuple(problems), language)


def checked_student(name: str) -> str:
    """The id, or a UsageError."""
    if not name or len(name) > LONGEST_ID or not name.isprintable():
        raise UsageError(
            "student: expected an id such as ab123",
            hint=f"at most {LONGEST_ID} characters, on one line",
        )
    return name


def _row(number: int, lesson: Lesson, records: list[Record]) -> LessonRow:
    done = fold(records, lesson)
    over = sum(reached.state != "open" for reached in done.values())
    points = sum(done[step.id].points(step) for step in lesson.steps)
    count = len(lesson.steps)
    return LessonRow(
        number=number,
        id=lesson.id,
        title=lesson.title,
        minutes=lesson.minutes,
        steps=count,
        done=over,
        points=int(points),
        most=lesson.points,
        state="done" if over == count else "begun" if over else "new",
        requires=lesson.requires,
    )


def steps_of(guide: Guide) -> LessonSteps:
    """The steps of the lesson that is being taken."""
    stay = guide.stay
    done = stay.diary.done()
    rows = [
        StepRow(
            number, step.id, step.kind, now.state, int(now.points(step)), step.points, now.hints
        )
        for number, step in enumerate(stay.lesson.steps, 1)
        for now in (done[step.id],)
    ]
    return LessonSteps(
        stay.lesson.id, stay.lesson.title, tuple(rows), stay.index + 1, stay.language
    )
