"""`kemu conform`: run recorded programs and report where kemu differs from Linux.

    kemu conform PATH...             run recorded programs, report the first difference
    kemu conform --emit FILE         kemu's own steps, as a recording
    kemu conform --open FILE         the shell, at the step of the first difference
    kemu conform host | fuzz | exec  compare with this computer's kernel

The engine is in kemu/conform/; this module parses the words and shows the results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kemu.conform.bounded import SECONDS, TimeUp, bounded
from kemu.conform.judge import Verdict, emitted, judge, judge_all, programs_below
from kemu.errors import UsageError
from kemu.front.terminal.output import style_of
from kemu.front.terminal.progress import Progress
from kemu.language.result import INTERRUPTED, OK, UNSATISFIED, USAGE
from kemu.readings import Conformance, DifferenceRow
from kemu.views import conform as views
from kemu.views.json import to_data
from kemu.views.style import harmless

if TYPE_CHECKING:
    from kemu.conform.program import Program
    from kemu.front.cli.options import Options

USAGE_TEXT = """\
usage: kemu conform [--all] [--json] [--jobs N] PATH...
       kemu conform --emit FILE         print kemu's own steps in the format of a recording
       kemu conform --open FILE         the shell at the first difference; 'back' steps into it
       kemu conform host FILE...        run programs on this computer's kernel too
       kemu conform fuzz --seed S --count N    random programs on both, until they differ
       kemu conform exec FILE [ARG...]  how both kernels start a program

PATH is a file or a folder of recorded programs (.json, .jsonl, both also with .gz).

  --all       every difference, not only the first one of each program
  --json      one JSON object per program, then one with the totals
  --jobs N    run N processes at a time (default 1)
  --seconds N stop a program after N seconds of CPU time (default 30)

exit codes: 0 all agree, 2 unusable input, 3 a difference or a timeout, 130 Ctrl-C
"""

MOST = {"--jobs": 256, "--seconds": 86_400}
"""Largest value of each numeric option."""


class Asked:
    """The parsed words after `conform`."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.every = False
        self.json = False
        self.help = False
        self.jobs = 1
        self.seconds = int(SECONDS)
        self.emit = ""
        self.open = ""


def main(options: Options) -> int:
    """Run the request and return the exit code. Raises UsageError."""
    if options.words and options.words[0] in ASKING_THE_HOST:
        return ASKING_THE_HOST[options.words[0]](options.words[1:])
    asked = parse(options.words)
    asked.json = asked.json or options.json
    if asked.help:
        sys.stdout.write(USAGE_TEXT)
        return OK
    try:
        return _run(asked, options)
    except UsageError as error:
        sys.stderr.write(f"kemu conform: {error.what}; {error.hint}\n")
        return USAGE


def _host(words: list[str]) -> int:
    from kemu.conform.host import main as asking

    return asking(words)


def _fuzz(words: list[str]) -> int:
    from kemu.conform.fuzz import main as asking

    return asking(words)


def _exec(words: list[str]) -> int:
    from kemu.conform.exec_compare import main as asking

    return asking(words)


ASKING_THE_HOST = {"host": _host, "fuzz": _fuzz, "exec": _exec}
"""Words accepted in place of a path; the module that handles one parses what follows."""


def parse(words: Iterable[str]) -> Asked:
    """Read the words. Raises UsageError."""
    asked, left = Asked(), list(words)
    switches = {"--all": "every", "--json": "json", "--help": "help", "-h": "help"}
    while left:
        word = left.pop(0)
        name, _, value = word.partition("=")
        if word in switches:
            setattr(asked, switches[word], True)
        elif name in ("--jobs", "--seconds", "--emit", "--open"):
            _value(asked, name, value or (left.pop(0) if left else ""))
        elif word.startswith("-"):
            raise UsageError(
                f"conform: unknown option '{word[:40]}'", hint="kemu conform --help lists them"
            )
        else:
            asked.paths.append(word)
    if not (asked.paths or asked.emit or asked.open or asked.help):
        raise UsageError(
            "conform: expected a file or a folder",
            hint="see kemu conform --help",
        )
    return asked


def _value(asked: Asked, name: str, value: str) -> None:
    attribute = name.removeprefix("--")
    if name not in MOST:
        if not value:
            raise UsageError(f"{name}: expected a file name")
        setattr(asked, attribute, value)
    elif value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= MOST[name]:
        setattr(asked, attribute, int(value))
    else:
        raise UsageError(f"{name}: expected a number from 1 to {MOST[name]}, got '{value[:40]}'")


def _run(asked: Asked, options: Options) -> int:
    if asked.emit:
        return _emit(programs_below([asked.emit]), asked.seconds)
    if asked.open:
        return _open(programs_below([asked.open]), asked, options)
    programs = programs_below(asked.paths)
    found: list[Verdict] = []
    try:
        with Progress(sys.stderr, len(programs)) as progress:
            for verdict in judge_all(
                programs, asked.jobs, None if asked.every else 1, asked.seconds
            ):
                progress.clear()
                _show(verdict, asked, options)
                found.append(verdict)
                progress.step()
    except KeyboardInterrupt:
        _sums(found, asked)
        sys.stdout.flush()
        sys.stderr.write(f"stopped: {len(found)} of {len(programs)} programs compared\n")
        return INTERRUPTED
    return _sums(found, asked)


def _emit(programs: list[Program], seconds: int) -> int:
    """Print each program with kemu's own steps, one per line."""
    for program in programs:
        try:
            with bounded(seconds):
                data = emitted(program)
        except TimeUp:
            raise UsageError(
                f"{program.source}: stopped after {seconds} s",
                hint="raise the limit with --seconds",
            ) from None
        sys.stdout.write(json.dumps(data) + "\n")
    return OK


def _show(verdict: Verdict, asked: Asked, options: Options) -> None:
    """Print one program: as a JSON object, or, if it differs, as text."""
    rows = rows_of(verdict)
    if asked.json:
        data = {
            "program": verdict.name,
            "source": verdict.source,
            "operations": verdict.operations,
            "stopped": verdict.stopped,
        }
        sys.stdout.write(json.dumps({**data, "differences": [to_data(row) for row in rows]}) + "\n")
        return
    style = style_of(sys.stdout, options.color, ascii_only=options.ascii)
    if verdict.stopped:
        sys.stdout.write(harmless(f"{verdict.name}: stopped after {asked.seconds} s") + "\n")
    for row in rows:
        text = views.difference_row(row, style)
        sys.stdout.write(harmless(text, colour=style.colour) + "\n")


def _sums(found: list[Verdict], asked: Asked) -> int:
    reading = conformance(found, ())
    if asked.json:
        data = to_data(reading)
        sys.stdout.write(
            json.dumps(
                {key: data[key] for key in ("programs", "operations", "agree", "differ", "stopped")}
            )
            + "\n"
        )
    else:
        sys.stdout.write(views.summary(reading) + "\n")
    return UNSATISFIED if reading.differ or reading.stopped else OK


def rows_of(verdict: Verdict) -> tuple[DifferenceRow, ...]:
    """The differences of one program, as readings."""
    return tuple(
        DifferenceRow(verdict.name, one.step, str(one.op), one.where, str(one.linux), str(one.kemu))
        for one in verdict.differences
    )


def conformance(found: list[Verdict], rows: tuple[DifferenceRow, ...]) -> Conformance:
    """The totals over all programs, with `rows`."""
    differ, stopped = (
        sum(bool(verdict.differences) for verdict in found),
        sum(verdict.stopped for verdict in found),
    )
    operations = sum(verdict.operations for verdict in found)
    return Conformance(len(found), operations, len(found) - differ - stopped, differ, stopped, rows)


def _open(programs: list[Program], asked: Asked, options: Options) -> int:
    """Open the shell at the first difference of the first program that differs."""
    from kemu.conform.reopen import open_program
    from kemu.front.cli.front import front_end

    chosen = (
        programs[0]
        if len(programs) == 1
        else next((p for p in programs if judge(p).differences), programs[-1])
    )
    try:
        with bounded(asked.seconds):
            opened = open_program(chosen)
    except TimeUp:
        raise UsageError(
            f"{chosen.source}: stopped after {asked.seconds} s",
            hint="raise the limit with --seconds",
        ) from None
    out = sys.stderr if options.json or not sys.stdout.isatty() else sys.stdout
    question = f": {chosen.question}" if chosen.question else ""
    out.write(harmless(chosen.name + question) + "\n")
    if opened.difference is not None:
        out.write(
            f"{harmless(str(opened.difference))}\nthe machine is at the end of step {opened.step}; "
            "back steps into it\n"
        )
    else:
        out.write(f"no difference: the machine is at the end of the last step, {opened.step}\n")
    options.interactive = True
    return front_end(options, opened.session)
