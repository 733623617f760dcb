"""`kemu report SCRIPT -o FILE`: run a script, or play a lesson, and write its report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.front.cli.reporting_lesson import lesson_report
from kemu.front.terminal.complaint import render as render_complaint
from kemu.front.terminal.plain import Runner, read_script
from kemu.front.terminal.reporting import write_report

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.front.cli.options import Options
    from kemu.language.result import Result

USAGE = """\
usage: kemu [OPTIONS] report SCRIPT -o FILE.html [--title TEXT] [--first EVENT] [--last EVENT]
       kemu report LESSON.md -o FILE.html

Run the script ('-' is standard input) and write what happened as one HTML file that plays: it needs
no network and no server. The title is TEXT, or the first line of the script if it is a comment.
A command that fails ends the script; the report then shows everything up to there, and the exit
code is 1. A lesson is played with its solutions, step by step. With --first and --last the report
shows the commands between two events.
"""


class Failures:
    """An output that shows nothing but errors: the page shows the rest."""

    typed = ""

    def show(self, result: Result, _session: Session, where: str) -> None:
        """Write the error to standard error."""
        if result.error is not None:
            sys.stderr.write(render_complaint(result.error, where) + "\n")

    def say(self, text: str) -> None:
        """Write a line for the user."""
        sys.stderr.write(text + "\n")

    def flush(self) -> None:
        """Nothing is buffered."""


def main(options: Options) -> int:
    """Run a script and write its report. Return 0, or 1 if one of its commands failed. Raises
    UsageError."""
    from kemu.experiment.session import Session

    if {"-h", "--help"} & set(options.words):
        sys.stdout.write(USAGE)
        return 0
    script, asked = _words(options.words)
    path, title = asked["-o"], asked["--title"]
    if script.endswith(".md"):
        return lesson_report(script, path)
    first, last = (_event(asked[name], name) for name in ("--first", "--last"))
    if first is not None and last is not None and first > last:
        raise UsageError(f"report: --first {first} is after --last {last}", hint=HOW)
    lines = list(sys.stdin if script == "-" else read_script(script))
    session = Session(mem=options.mem, geometry=options.geometry, cpus=options.cpus)
    runner = Runner(options, session, Failures())
    runner.lines(lines, script)
    sys.stdout.write(
        write_report(session, path, title or _title(lines, script), first, last) + "\n"
    )
    return runner.status


def _words(words: list[str]) -> tuple[str, dict[str, str]]:
    """The script, and the values of the options. Raises UsageError."""
    found = {"-o": "", "--title": "", "--first": "", "--last": ""}
    scripts, left = [], list(words)
    while left:
        word = left.pop(0)
        if word in found:
            if not left:
                raise UsageError(f"report: expected a value after {word}", hint=HOW)
            found[word] = left.pop(0)
        elif word.startswith("-") and word != "-":
            raise UsageError(f"report: unknown option '{word[:40]}'", hint=HOW)
        else:
            scripts.append(word)
    if len(scripts) != 1 or not found["-o"]:
        raise UsageError("report: expected one script and -o FILE.html", hint=HOW)
    return scripts[0], found


def _event(text: str, name: str) -> int | None:
    """The number of an event, or None where none is given. Raises UsageError."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise UsageError(
            f"report: {name}: expected the number of an event, got '{text[:40]}'", hint=HOW
        )
    return int(text)


HOW = "kemu report SCRIPT -o FILE.html [--title TEXT] [--first EVENT] [--last EVENT]"


def _title(lines: list[str], script: str) -> str:
    """The script's first line if it is a comment, otherwise its name."""
    first = lines[0].strip() if lines else ""
    return first.lstrip("# ") if first.startswith("#") and first.strip("# ") else Path(script).name
