"""Grade what was handed in: do it again, from zero, and see what it comes to.

    transcript --> commands and answers --> the same guide, on machines of the student's own seed
    --> points

Nothing of the transcript is believed but commands and answers: the seed is computed again from the
course's salt, the lesson and the student; states, points and claims are those of the replay.  A run
on the student's own machine remains an honour system: who answers with somebody's help, or tries on
a copy first, cannot be told from who does not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kemu.commands.run import run
from kemu.errors import KemuError, UsageError
from kemu.language.tokens import split
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.grading.transcript import Transcript
from kemu.lessons.kinds.base import OPEN
from kemu.lessons.taking.admit import LESSON_WORD
from kemu.lessons.taking.bounds import seconds
from kemu.lessons.taking.guide import BARE, WORDS, Guide
from kemu.lessons.taking.progress import Done, Record, fold
from kemu.lessons.taking.stay import Rules
from kemu.lessons.taking.world import WorldError, boot, check_size

PATIENCE = 120.0
"""Seconds for one transcript."""

FLAGS: dict[str, str] = {
    "edited": "the file is not as kemu wrote it",
    "claims": "it claims results that its commands and answers do not give",
    "foreign seed": "its seed is not this student's: it was made under another id",
    "older lesson": "it was made with another version of the lesson",
    "older kemu": "it was made with another version of kemu",
    "not in roster": "the student is not in the roster",
    "other lesson": "it is about another lesson",
    "too long": "only the beginning was replayed",
    "not the submitter": "somebody else handed it in",
    "second submission": "another submission of this student has more points",
}
"""What may be doubtful about a submission; the grade is that of the replay all the same."""


@attrs.frozen
class StepGrade:
    """What a step came to."""

    id: str
    kind: str
    points: float
    most: int
    state: str
    said: str = ""
    was: str = ""
    hints: int = 0
    tries: int = 0
    confidence: str = ""


@attrs.frozen
class Grade:
    """What a submission came to. `error` says why there are no points at all; `seconds` is what the
    replay took."""

    path: str
    student: str
    lesson: str
    score: float = 0.0
    most: int = 0
    steps: tuple[StepGrade, ...] = ()
    flags: tuple[str, ...] = ()
    error: str = ""
    seconds: float = 0.0


def grade(
    lesson: Lesson, transcript: Transcript, salt: str = "", roster: Mapping[str, str] | None = None
) -> Grade:
    """The grade of a transcript; `roster` are the known students (None: all are)."""
    begun = time.perf_counter()
    flags = doubts(lesson, transcript, salt, roster)
    made = Grade(
        transcript.path, transcript.student, lesson.id, most=lesson.points, flags=tuple(flags)
    )
    if transcript.lesson != lesson.id:
        return attrs.evolve(made, error=f"it is about {transcript.lesson[:60] or 'no lesson'}")
    try:
        with seconds(PATIENCE, 1, "the replay"):
            done = replay(lesson, transcript, salt)
    except WorldError as error:
        return attrs.evolve(
            made, error=f"the replay fails: {error.text}", seconds=time.perf_counter() - begun
        )
    steps = tuple(_step(lesson, step.id, done[step.id]) for step in lesson.steps)
    if false_claims(lesson, transcript, done):
        flags.append("claims")
    score = round(sum(step.points for step in steps), 2)
    return attrs.evolve(
        made, score=score, steps=steps, flags=tuple(flags), seconds=time.perf_counter() - begun
    )


def doubts(
    lesson: Lesson, transcript: Transcript, salt: str, roster: Mapping[str, str] | None
) -> list[str]:
    """Flags that need no replay."""
    from kemu import __version__

    found = list(transcript.doubts)
    checks = {
        "other lesson": transcript.lesson != lesson.id,
        "not in roster": roster is not None and transcript.student not in roster,
        "foreign seed": transcript.seed != seed_for(salt, lesson.id, transcript.student),
        "older lesson": transcript.hash != lesson.hash,
        "older kemu": transcript.kemu != __version__,
    }
    return found + [flag for flag, doubtful in checks.items() if doubtful]


def replay(lesson: Lesson, transcript: Transcript, salt: str) -> dict[str, Done]:
    """What the commands and answers come to, by step: everything is judged, and in an exam the last
    answer counts.  Raises WorldError."""
    session = boot(lesson.machine)
    rules = Rules(retaken=lesson.mode == "exam")
    guide = Guide(session, lesson, student=transcript.student, salt=salt, run="replay", rules=rules)
    stay = guide.stay
    stay.world.quiet = True
    for record in transcript.records:
        if record["do"] == "enter":
            close(guide)
            index = lesson.index(record["step"])
            if index >= 0:
                stay.enter(index)
        elif stay.visit is not None and record["step"] == stay.visit.step.id:
            repeat(guide, record)
    close(guide)
    return stay.diary.done()


def close(guide: Guide) -> None:
    """The visit ends: in an exam the machine is looked at as it is, whether or not that was asked
    for."""
    stay, visit = guide.stay, guide.stay.visit
    if visit is None or visit.state != OPEN:
        return
    if visit.step.optional:
        visit.step.left(visit)
        stay.result()
    elif stay.rules.retaken and visit.step.judges and stay.session.boundary(stay.session.now):
        guide.word("check", "")


def repeat(guide: Guide, record: Record) -> None:
    """Do what the record says, as the student's hands did.  What cannot be done has no effect, as
    it had none then."""
    session, text = guide.stay.session, str(record.get("text", ""))
    if record["do"] == "command":
        if not _speaks(text):
            run(session, text)
    else:
        word, _, rest = text.partition(" ")
        if word not in WORDS or WORDS[word].kept != record["do"]:
            return
        try:
            guide.word(word, rest.strip())
        except UsageError:  # it was a mistake then, too
            return
    if guide.stay.visit is not None:
        check_size(session, guide.stay.visit.step.line)


def _speaks(text: str) -> bool:
    """Does the line hold a word of lessons?  Such words are records of their own."""
    try:
        return any(line.tokens[0].text in (LESSON_WORD, *BARE) for line in split(text))
    except UsageError:
        return False


def _step(lesson: Lesson, name: str, done: Done) -> StepGrade:
    step = lesson.steps[lesson.index(name)]
    return StepGrade(
        id=step.id,
        kind=step.kind,
        points=done.points(step),
        most=step.points,
        state=done.state,
        said=done.said,
        was=done.was,
        hints=done.hints,
        tries=done.tries,
        confidence=done.confidence,
    )


def false_claims(lesson: Lesson, transcript: Transcript, done: Mapping[str, Done]) -> bool:
    """Does the transcript claim more than the replay has?"""
    claimed = [
        {**record, "lesson": lesson.id, "v": 1}
        for record in transcript.records
        if record["do"] == "result"
    ]
    claims = fold(claimed, lesson)
    return any(
        claims[name].state == "passed" and done[name].share < claims[name].share for name in done
    )


def error_grade(path: str, error: KemuError) -> Grade:
    """The grade of a file that is not a transcript."""
    return Grade(path, "", "", error=error.what if isinstance(error, UsageError) else str(error))


def best_of_each(grades: Sequence[Grade]) -> list[Grade]:
    """The grades, with those marked that another submission of the same student beats."""
    best: dict[str, int] = {}
    for index, one in enumerate(grades):
        if (
            one.student
            and not one.error
            and (one.student not in best or one.score > grades[best[one.student]].score)
        ):
            best[one.student] = index
    beaten = [
        one.student != "" and best.get(one.student, index) != index
        for index, one in enumerate(grades)
    ]
    marked = "second submission"
    return [
        attrs.evolve(one, flags=(*one.flags, marked)) if less else one
        for one, less in zip(grades, beaten, strict=True)
    ]


def as_data(one: Grade) -> dict[str, Any]:
    """The grade as JSON values."""
    return attrs.asdict(one) | {"flags": list(one.flags)}
