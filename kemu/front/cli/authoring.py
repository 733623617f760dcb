"""The subcommands of `kemu lesson` that write files: submit, new, pack, export, translate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.front.cli.words import Words
from kemu.front.folders import state_folder
from kemu.language.result import OK

if TYPE_CHECKING:
    from kemu.front.cli.options import Options
    from kemu.lessons.format.lesson import Lesson

NOTHING: frozenset[str] = frozenset()


def _one_place(read: Words, what: str) -> str:
    if len(read.places) != 1:
        raise UsageError(
            f"lesson {what}: expected one lesson",
            hint=f"kemu lesson {what} FILE.md, or the id of a lesson",
        )
    return read.places[0]


def _write(target: Path, text: str) -> None:
    """Write the whole file. Raises UsageError."""
    from kemu.front.folders import write_atomically

    try:
        write_atomically(target, text)
    except OSError as error:
        raise UsageError(f"lesson: cannot write '{target}': {error.strerror}") from error


def _salt(lesson: Lesson) -> str:
    from kemu.lessons.format.course import course_of

    return course_of(lesson.path.parent).salt


def submit(_options: Options, words: list[str]) -> int:
    """`kemu lesson submit ID`: write the recorded work as one file to hand in."""
    from kemu.lessons.format.course import find_lesson
    from kemu.lessons.format.seeds import seed_for
    from kemu.lessons.grading.transcript import SUFFIX, lines_of
    from kemu.lessons.taking.shelf import Shelf

    read = Words(words, {"-o": ""}, NOTHING)
    lesson = find_lesson(_one_place(read, "submit"))
    shelf = Shelf(state_folder())
    student = shelf.student()
    if not student:
        hint = "kemu lesson student ID, then take the lesson as that student"
        raise UsageError("lesson submit: kemu does not know who you are", hint=hint)
    log = shelf.log()
    records = log.records(lesson.id)
    if log.warning:
        raise UsageError(f"lesson submit: {log.warning}", hint="the file holds your recorded work")
    lines = lines_of(lesson, student, seed_for(_salt(lesson), lesson.id, student), records)
    if len(lines) < 3:
        raise UsageError(
            f"lesson submit: {student} has not begun {lesson.id}",
            hint=f"kemu lesson start {lesson.id}",
        )
    target = Path(read.values["-o"] or f"{lesson.id.replace('/', '-')}-{_safe(student)}{SUFFIX}")
    _write(target, "\n".join(lines) + "\n")
    sys.stdout.write(f"{target}: {len(lines) - 2} records of {student}; hand in this file\n")
    return OK


def _safe(name: str) -> str:
    """The id in a form that fits a file name."""
    return "".join(char if char.isalnum() or char in "-_.@" else "_" for char in name)


def student(_options: Options, words: list[str]) -> int:
    """`kemu lesson student [ID]`: set the student's id, or show it."""
    from kemu.lessons.taking.shelf import Shelf

    shelf = Shelf(state_folder())
    if len(words) > 1:
        raise UsageError(
            f"lesson student: unexpected '{words[1][:40]}'",
            hint="put an id with spaces in quotes",
        )
    if words:
        shelf.be(words[0])
    name = shelf.student()
    sys.stdout.write(
        f"you are {name}\n" if name else "kemu does not know who you are: kemu lesson student ID\n"
    )
    return OK


def new(_options: Options, words: list[str]) -> int:
    """`kemu lesson new COURSE/NAME`: write a lesson template."""
    from kemu.lessons.making.author import new as write_new

    read = Words(words, {"-o": ""}, NOTHING)
    path = write_new(
        _one_place(read, "new"), Path(read.values["-o"]) if read.values["-o"] else None
    )
    sys.stdout.write(
        f"{path}: edit it, then kemu lesson check {path} and kemu lesson preview {path}\n"
    )
    return OK


def preview(options: Options, words: list[str]) -> int:
    """`kemu lesson preview FILE`: show the whole lesson with solutions, as one student sees it."""
    from kemu.experiment.session import Session
    from kemu.front.terminal.output import make_output
    from kemu.lessons.format.course import find_lesson
    from kemu.lessons.format.translate import in_language
    from kemu.lessons.making.author import preview as shown

    read = Words(words, {"--student": "", "--lang": ""}, NOTHING)
    lesson = in_language(find_lesson(_one_place(read, "preview")), read.values["--lang"])
    output, session = make_output(options), Session()
    for result in shown(lesson, read.values["--student"], _salt(lesson)):
        output.show(result, session, "")
    output.flush()
    return OK


def pack(_options: Options, words: list[str]) -> int:
    """`kemu lesson pack [--student] -o FOLDER LESSON...`: write copies to distribute."""
    from kemu.lessons.format.course import find_lesson
    from kemu.lessons.making.pack import pack as write_pack

    read = Words(words, {"-o": ""}, frozenset({"--student"}))
    if not read.places or not read.values["-o"]:
        hint = "kemu lesson pack --student -o OUT lessons/vm/06-fork.md"
        raise UsageError("lesson pack: expected lessons and an output folder", hint=hint)
    for place in read.places:
        files, notes = write_pack(
            find_lesson(place), Path(read.values["-o"]), student="--student" in read.flags
        )
        sys.stdout.write("".join(f"{path}\n" for path in files))
        sys.stderr.write("".join(f"note: {note}\n" for note in notes))
    return OK


def export(_options: Options, words: list[str]) -> int:
    """`kemu lesson export --html|--notebook LESSON`: write a web page or a notebook."""
    from kemu.lessons.format.course import find_lesson
    from kemu.lessons.format.parse import read_text
    from kemu.lessons.format.translate import in_language
    from kemu.lessons.making.export import page
    from kemu.lessons.making.notebook import notebook

    read = Words(
        words, {"-o": "", "--student": "", "--lang": ""}, frozenset({"--html", "--notebook"})
    )
    if len(read.flags) != 1:
        raise UsageError(
            "lesson export: expected --html or --notebook", hint="kemu lesson export --html LESSON"
        )
    plain = find_lesson(_one_place(read, "export"))
    lesson = in_language(plain, read.values["--lang"])
    as_page = "--html" in read.flags
    target = Path(read.values["-o"] or f"{lesson.path.stem}.{'html' if as_page else 'ipynb'}")
    who = read.values["--student"]
    _write(
        target,
        page(lesson, who, _salt(lesson))
        if as_page
        else notebook(lesson, read_text(plain.path), who),
    )
    sys.stdout.write(f"{target}\n")
    return OK


def translate(_options: Options, words: list[str]) -> int:
    """`kemu lesson translate LESSON LANGUAGE`: write a file with all texts to translate; existing
    translations are kept."""
    from kemu.lessons.format.course import find_lesson
    from kemu.lessons.format.translate import LANGUAGE, skeleton, translation_path

    read = Words(words, {"-o": ""}, NOTHING)
    if len(read.places) != 2 or not LANGUAGE.match(read.places[1]):
        hint = "kemu lesson translate lessons/vm/06-fork.md zh-CN"
        raise UsageError("lesson translate: expected a lesson and a language", hint=hint)
    lesson = find_lesson(read.places[0])
    target = (
        Path(read.values["-o"]) if read.values["-o"] else translation_path(lesson, read.places[1])
    )
    _write(target, skeleton(lesson, read.places[1]))
    sys.stdout.write(
        f"{target}: translate the texts, and update the hash of each stale one (kemu lesson "
        "check lists them)\n"
    )
    return OK
