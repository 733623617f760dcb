"""Transcripts in Markdown pages, as data.

    <!-- transcript: fork and copy-on-write -->
    ```console
    $ kemu -c 'spawn app; ps'          a command line: run from the root of the project
    ...                                what it prints, standard output and error in order
    $ kemu                             alone: the prompt follows
    kemu> spawn app                    the commands of one session ...
    ...                                ... each followed by exactly what it prints
    kemu> quit
    ```

A line ``...`` within what is printed stands for any lines, none too; a command whose whole output
is ``...`` would claim nothing and is refused. Colour and prompts are no part of a transcript: kemu
prints none when its input is no terminal.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field

from tests.structure.files import markdown
from tests.structure.sources import ROOT

MARKER = re.compile(r"<!--\s*transcript:\s*(.*?)\s*-->")
SHELL, PROMPT = "$ ", "kemu> "
ANY = "..."


class BadTranscriptError(AssertionError):
    """The block is not written as the module says."""


@dataclass
class Command:
    """One typed line and the lines that the page says it prints. ``session`` are the lines typed
    before it at the prompt."""

    line: int
    text: str
    session: list[str] | None
    expected: list[str] = field(default_factory=list)


@dataclass
class Transcript:
    """A marked block: ``page:line`` of its marker, its title, its commands."""

    where: str
    title: str
    commands: list[Command]


def transcripts(root=ROOT):
    """Every marked block of every page."""
    return [found for page, text in markdown(root) for found in parse(text, str(page))]


def parse(text, page):
    """The marked blocks of one page; a marker without a block, or a block without a command, is
    refused."""
    lines = text.splitlines()
    found = []
    for at, line in enumerate(lines):
        marker = MARKER.fullmatch(line)
        if marker:
            where = f"{page}:{at + 1}"
            found.append(Transcript(where, marker[1], _commands(*_block(lines, at, where), where)))
    return found


def _block(lines, marker, where):
    """The lines inside the fence that opens right after the marker (empty lines between them are
    fine), and where they begin."""
    start = next((i for i in range(marker + 1, len(lines)) if lines[i].strip()), None)
    if start is None or lines[start] != "```console":
        raise BadTranscriptError(f"{where}: no ```console block follows the marker")
    end = next((i for i in range(start + 1, len(lines)) if lines[i] == "```"), None)
    if end is None:
        raise BadTranscriptError(f"{where}: the block is not closed")
    return lines[start + 1 : end], start + 2


def _commands(lines, first, where):
    commands, session = [], None
    for number, line in enumerate(lines, first):
        if line.startswith(SHELL):
            session = [] if line == SHELL + "kemu" else None
            if session is None:
                commands.append(Command(number, line.removeprefix(SHELL), None))
        elif line.startswith(PROMPT):
            if session is None:
                raise BadTranscriptError(
                    f"{where}: line {number}: a prompt without '$ kemu' before it"
                )
            commands.append(Command(number, line.removeprefix(PROMPT), list(session)))
            session.append(commands[-1].text)
        elif not commands:
            raise BadTranscriptError(f"{where}: line {number}: output before any command")
        else:
            commands[-1].expected.append(line)
    if not commands:
        raise BadTranscriptError(f"{where}: the transcript is empty")
    for command in commands:
        if command.expected and all(line == ANY for line in command.expected):
            raise BadTranscriptError(f"{where}: line {command.line}: '...' alone claims nothing")
    return commands


def output(command, program=(sys.executable, "-m", "kemu")):
    """The lines that the command prints. In a session: what it adds to the output of the lines
    before it."""
    if command.session is None:
        words = shlex.split(command.text)
        if words[:1] != ["kemu"]:
            raise BadTranscriptError(f"line {command.line}: only kemu is run, not {words[:1]}")
        return _run([*program, *words[1:]], "")
    before = _run(_session(program), _typed(command.session)) if command.session else []
    after = _run(_session(program), _typed([*command.session, command.text]))
    if after[: len(before)] != before:
        raise AssertionError(
            f"line {command.line}: the lines before it print something else when this one follows"
        )
    return after[len(before) :]


def _session(program):
    return [*program, "run", "--keep-going", "-"]


def _typed(lines):
    return "".join(line + "\n" for line in lines)


def _run(words, typed):
    """Lines of standard output and error together, in the order in which they were written, without
    spaces at their ends."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        words,
        input=typed.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=environment,
        check=False,
        timeout=120,
    )
    return [line.rstrip() for line in done.stdout.decode("utf-8", "replace").splitlines()]


def agrees(expected, printed):
    """True if the lines are the same, where a line ``...`` of the page stands for any lines."""
    expected = [line.rstrip() for line in expected]
    pattern = "".join(r"(?:.*\n)*" if line == ANY else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None
