"""`lesson` inside the shell: the list, starting a lesson, and the words used in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kemu.commands.table import LESSON_WORDS
from kemu.errors import UsageError, blaming
from kemu.language.result import BAD_LESSON, Complaint, Result
from kemu.language.spec import FREE, Candidate, command, maybe, rest

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.tokens import Line, Token


class LessonWordKind:
    """A word of a lesson, or the id of one."""

    name = "WORD"
    what = "a word such as start, task or hint, or the id of a lesson"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Anything."""
        return True

    def convert(self, token: Token, line: Line, session: Session) -> str:
        """The word as typed."""
        return token.value

    def complete(self, session: Session) -> Iterable[Candidate]:
        """The words that can be used now."""
        words = [
            ("list", "the lessons"),
            ("start", "start one, or continue it"),
            ("student", "say who you are"),
            ("record", "make one from your commands"),
        ]
        if session.desk.guide is None:
            return [*words, *lesson_ids()]
        return [*words, *LESSON_WORDS.items()]


class LessonRestKind(LessonWordKind):
    """What follows the word: an id, an answer."""

    name = "WORDS"
    what = "the rest: an id, an answer"

    def complete(self, session: Session) -> Iterable[Candidate]:
        """The lessons."""
        return lesson_ids()


def lesson_ids() -> list[Candidate]:
    """All lessons with their titles."""
    from kemu.commands.lessonrefs import titles

    return list(titles())


@command(
    "lesson",
    arguments=(maybe("what", LessonWordKind()), rest("words", LessonRestKind(), needed=False)),
    effect=FREE,
    summary="take a guided lesson",
    more="lesson lists the lessons and your progress; lesson start ID starts one or continues it, "
    "with --lang zh-CN in that language if it is translated. In a lesson, task shows the question, "
    "answer records your answer, check tests the state of the machine, hint gives the "
    "next hint, skip shows the solution (the step is then marked as shown), reset starts the step "
    "again, play ... return is free play on a copy, previous goes back, problem writes a report "
    "for the author, leave ends the lesson: these words need no lesson before them. Neither does "
    "an answer that is a number or the letters of options. lesson next goes on, as task does when "
    "the step is done; outside of a lesson it starts the one to go on with. Only the first answer "
    "to a prediction counts; letters and values read off the machine may be tried again, and hints "
    "cost nothing.",
    examples=("lesson", "lesson start 1; task"),
)
def lesson(session: Session, what: str | None, words: str | None) -> Any:
    """List lessons, start one, or run a word of the current one. Returns results, or a list."""
    from kemu.lessons.format.lesson import LessonError
    from kemu.lessons.taking.world import WorldError

    try:
        with blaming("what"):
            return dispatch(session, what or "list", (words or "").strip())
    except LessonError as error:
        invalid = UsageError(
            f"lesson: {error.problems[0]}", hint="kemu lesson check FILE lists all"
        )
        return [
            Result(
                f"lesson {what} {words}",
                status=BAD_LESSON,
                now=session.now,
                error=Complaint.of(invalid),
            )
        ]
    except WorldError as error:
        hint = error.hint or "problem writes a report for the author"
        raise UsageError(f"lesson: line {error.line}: {error.text}", hint=hint) from error


def dispatch(session: Session, what: str, words: str) -> Any:
    """Run the word. Raises UsageError, LessonError, WorldError."""
    from kemu.front.folders import state_folder
    from kemu.lessons.taking.guide import WORDS, Guide
    from kemu.lessons.taking.shelf import Shelf, steps_of

    guide = session.desk.guide if isinstance(session.desk.guide, Guide) else None
    shelf = Shelf(state_folder())
    outside: dict[str, Callable[[], Any]] = {
        "list": lambda: (
            shelf.listing(guide.stay.lesson.id, guide.language) if guide else shelf.listing()
        ),
        "student": lambda: _student(shelf, words),
        "record": lambda: _record(session, words),
        "start": lambda: _start(shelf, session, words),
    }
    if what in outside:
        return outside[what]()
    if what == "check" and words.endswith((".md", "/")):
        raise UsageError(
            "lesson check: files are checked outside the shell",
            hint=f"kemu lesson check {words[:60]}",
        )
    if what == "steps" and guide is not None:
        return steps_of(guide)
    if guide is not None and what in WORDS:
        return guide.word(what, words)
    if what == "next":
        return shelf.begin(session, shelf.following())
    if what in WORDS or what == "steps":
        raise UsageError(
            f"lesson {what}: no lesson has been started",
            hint="lesson start ID starts one; lesson lists them",
        )
    return shelf.begin(session, what, words)


def _start(shelf: Any, session: Session, words: str) -> Any:
    """`lesson start ID [--lang LANGUAGE] [--student ME]`, as on the command line; `--lang` may be
    left out."""
    from kemu.front.cli.words import Words
    from kemu.language.tokens import split

    with blaming("words"):
        given = [token.value for line in split(words)[:1] for token in line.tokens]
        read = Words(given, {"--student": "", "--lang": ""}, frozenset())
    word, language, *more = [*read.places, read.values["--lang"]] if read.places else ["", ""]
    if not word:
        raise UsageError("lesson start: expected a lesson", hint="lesson lists them")
    if any(more):
        raise UsageError(
            f"lesson start: unexpected '{more[0][:40]}'",
            hint="lesson start ID --lang LANGUAGE",
            about="words",
        )
    if read.values["--student"]:
        shelf.be(read.values["--student"])
    with blaming("words"):
        return shelf.begin(session, word, language)


def _record(session: Session, words: str) -> Any:
    """`lesson record begin`, and `lesson record FILE.md`."""
    from pathlib import Path

    from kemu.lessons.making.author import RECORD_MARK, put, recorded
    from kemu.readings import Text

    if session.desk.guide is not None:
        raise UsageError("lesson record: not available inside a lesson", hint="lesson leave")
    if words == "begin":
        session.mark(RECORD_MARK)
        return Text(
            (
                (
                    f"everything up to #{session.now} is the setup; the commands from here on are "
                    f"the solution"
                ),
            )
        )
    if not words:
        raise UsageError(
            "lesson record: expected begin, or a file name",
            hint="type lesson record begin, solve it, then lesson record FILE.md",
        )
    path = Path(words)
    put(path, recorded(session, f"my/{path.stem}"))
    return Text((f"{path}: keep the goals you mean, then kemu lesson check {path}",))


def _student(shelf: Any, words: str) -> Any:
    from kemu.readings import Text

    if words:
        shelf.be(words)
    name = shelf.student()
    return Text(
        (f"you are {name}" if name else "kemu does not know who you are: lesson student ID",)
    )
