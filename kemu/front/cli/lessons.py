"""`kemu lesson`: the subcommands for students, authors and instructors.

    kemu lesson                      the lessons, and your progress
    kemu lesson start ID             start one
    kemu lesson check PATH...        find mistakes (linter and proof)

The engine is in kemu/lessons/; this module parses the words and shows the results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.front.cli import authoring
from kemu.front.cli.words import Words
from kemu.language.result import BAD_LESSON, OK, USAGE
from kemu.lessons.format.lesson import ERROR, LessonError, Problem
from kemu.lessons.taking.world import WorldError
from kemu.views.style import harmless

if TYPE_CHECKING:
    from kemu.front.cli.options import Options

USAGE_TEXT = """\
usage: kemu lesson [list]                          the lessons, and your progress
       kemu lesson start ID [--student ME] [--lang L]   start one (an id, its last word, its
                                                   number, or a file)
       kemu lesson student [ID]                    set your id, which numbers and submissions use
       kemu lesson submit ID [-o FILE]             write your work as one file, to hand in

       kemu lesson new COURSE/NAME [-o FILE]       write a lesson template
       kemu lesson check [--seeds N] [--students N] [--jobs N] [--json] PATH...
                                                   find mistakes, and prove lessons over many seeds
       kemu lesson preview FILE [--student ID] [--lang L]     the whole lesson, with solutions
       kemu lesson pack [--student] -o FOLDER LESSON...       copies to distribute; --student
                                                   leaves out the answers
       kemu lesson export --html|--notebook LESSON [-o FILE] [--student ID] [--lang L]
       kemu lesson translate LESSON LANGUAGE [-o FILE]        a file with the texts to translate

What you do in the shell can become a lesson too: lesson record begin, then lesson record FILE.md.

exit codes: 0 ok, 2 usage, 3 a check is not satisfied, 4 a lesson file is invalid
"""


def main(options: Options) -> int:
    """Run `kemu lesson WORDS`; the exit code."""
    words = options.words
    if words[:1] in (["--help"], ["-h"]) or options.help:
        sys.stdout.write(USAGE_TEXT)
        return OK
    word = words[0] if words else "list"
    found = HANDLERS.get(word)
    if found is None:
        raise UsageError(
            f"lesson: unknown word '{word[:40]}'",
            hint=f"the words are {', '.join(HANDLERS)} (kemu lesson --help)",
        )
    try:
        return found(options, words[1:])
    except LessonError as error:
        show_problems(error.problems, as_json=False)
        return BAD_LESSON
    except WorldError as error:
        sys.stderr.write(f"line {error.line}: {error.code} {error.text}\n")
        return BAD_LESSON


def check(_options: Options, words: list[str]) -> int:
    """`kemu lesson check`: return 4 if a lesson has errors."""
    from kemu.lessons.making.checking import check_files, two_jobs
    from kemu.lessons.making.proof import SEEDS, STUDENTS

    defaults = {"--seeds": str(SEEDS), "--students": str(len(STUDENTS)), "--jobs": str(two_jobs())}
    read = Words(words, defaults, frozenset({"--json"}))
    if not read.places:
        raise UsageError(
            "lesson check: expected a file or a folder",
            hint="kemu lesson check lessons/",
        )
    count, problems = check_files(
        [Path(place) for place in read.places],
        read.number("--seeds", 1, 1000),
        read.number("--students", 0, len(STUDENTS)),
        read.number("--jobs", 1, 64),
    )
    as_json = "--json" in read.flags
    show_problems(problems, as_json=as_json)
    wrong = sum(problem.severity == ERROR for problem in problems)
    if not as_json:
        said = f"{count} lesson{'s' * (count != 1)}: " + (
            f"{wrong} mistake{'s' * (wrong != 1)}" if wrong else "no mistakes"
        )
        others = len(problems) - wrong
        sys.stdout.write(said + (f", {others} to look at" if others else "") + "\n")
    if not count:
        sys.stderr.write("no lesson files found; a lesson begins with a +++ line\n")
        return USAGE
    return BAD_LESSON if wrong else OK


def show_problems(problems: list[Problem], *, as_json: bool) -> None:
    """One line per problem: errors on standard error, or JSON on standard output."""
    for problem in problems:
        if as_json:
            named = {
                "code": problem.code,
                "severity": problem.severity,
                "path": problem.path,
                "line": problem.line,
            }
            sys.stdout.write(
                json.dumps(named | {"text": problem.text, "hint": problem.hint}, ensure_ascii=False)
                + "\n"
            )
        else:
            sys.stderr.write(harmless(str(problem)) + "\n")


def listing(options: Options, words: list[str]) -> int:
    """`kemu lesson list`: the lessons and the student's progress."""
    if words:
        raise UsageError(
            f"lesson list: unexpected '{words[0][:40]}'",
            hint="kemu lesson list, or kemu --json lesson list",
        )
    return _in_shell(options, "lesson")


def start(options: Options, words: list[str]) -> int:
    """`kemu lesson start ID`: open the shell in the lesson."""
    read = Words(words, {"--student": "", "--lang": ""}, frozenset())
    if len(read.places) != 1:
        raise UsageError("lesson start: expected one lesson", hint="kemu lesson lists them")
    if read.values["--student"]:
        from kemu.front.folders import state_folder
        from kemu.lessons.taking.shelf import Shelf

        Shelf(state_folder()).be(read.values["--student"])
    options.interactive = True
    named = read.places[0].replace("\\", "\\\\").replace('"', '\\"')
    return _in_shell(options, f'lesson start "{named}" {read.values["--lang"]}'.rstrip())


def _in_shell(options: Options, line: str) -> int:
    """Run the line as the shell would."""
    from kemu.front.cli.front import front_end

    options.commands = [line]
    return front_end(options)


HANDLERS: dict[str, Callable[[Options, list[str]], int]] = {
    "list": listing,
    "start": start,
    "student": authoring.student,
    "submit": authoring.submit,
    "new": authoring.new,
    "check": check,
    "preview": authoring.preview,
    "pack": authoring.pack,
    "export": authoring.export,
    "translate": authoring.translate,
}
