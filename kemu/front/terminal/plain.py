"""The front end without a terminal: `-c`, `run FILE`, standard input.

No banner, no prompt, no paging; it stops at the first command that fails unless `--keep-going`.
prompt-toolkit is never imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kemu import interrupts
from kemu.commands.run import each, with_errno_as_failure
from kemu.commands.settings import preference
from kemu.errors import UsageError
from kemu.front.terminal.output import Output
from kemu.language.result import INTERRUPTED, OK, Quit
from kemu.language.tokens import LONGEST_LINE, split

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.front.cli.options import Options

LONGEST_SHOWN = 60
"""Maximum length shown of a command that was stopped."""


class Runner:
    """Runs lines on one session and shows their results; `status` is the exit code so far.

    `done`: nothing more should run. `stay`: the session is interactive, so a command that fails
    does not end it. `given`: how many results the line has given."""

    def __init__(self, options: Options, session: Session, output: Output) -> None:
        self.options = options
        self.session = session
        self.output = output
        self.status = OK
        self.done = False
        self.stay = False
        self.given = 0

    def line(self, text: str, where: str = "") -> bool:
        """Run one line; False if nothing more should run. `where` is its place in a
        file."""
        self.given = 0
        with interrupts.listening(patient=self.stay):
            for given in each(self.session, text, keep_going=self.options.keep_going):
                strict = preference(self.session, "errno-fails") == "on"
                result = with_errno_as_failure(given) if strict else given
                if isinstance(result.reading, Quit):
                    self.done = True
                self.output.show(result, self.session, where)
                self.given += 1
                if result.status != OK and not self.stay:
                    self.status = self.status or result.status
                    stops = result.status == INTERRUPTED or not self.options.keep_going
                    self.done = self.done or stops
        return not self.done

    def lines(self, lines: Iterable[str], name: str) -> None:
        """Run all lines; `name` is the file that errors name, or empty."""
        for number, text in enumerate(lines, 1):
            where = f"{name}:{number}: " if name else ""
            try:
                if not self.line(text.rstrip("\r\n"), where):
                    break
            except KeyboardInterrupt as stop:
                how_far = (
                    stop.how_far
                    if isinstance(stop, interrupts.Interrupted)
                    else running(text, self.given)
                )
                raise interrupts.Interrupted(where + how_far) from None
        self.output.flush()


def running(text: str, given: int) -> str:
    """The command that runs after `given` results of the line, as typed, or its beginning."""
    try:
        sources = [line.source for line in split(text)] or [text.strip()]
    except UsageError:
        sources = [text.strip()]
    source = sources[min(given, len(sources) - 1)]
    return source if len(source) <= LONGEST_SHOWN else source[: LONGEST_SHOWN - 3] + "..."


def run_script(runner: Runner, path: str) -> None:
    """Run a script, or standard input for `-`."""
    if path == "-":
        runner.lines(sys.stdin, "-")
        return
    runner.lines(read_script(path), path)


def read_script(path: str) -> Iterator[str]:
    """The lines of a script, a piece of each that is longer than a line may be. Raises UsageError
    if it cannot be read or is a device, which may have no end."""
    try:
        if Path(path).is_char_device():
            raise UsageError(
                f"script: '{path}' is a device", hint="name a file of commands, or - for input"
            )
        with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            while line := file.readline(LONGEST_LINE + 2):
                yield line.removesuffix("\r\n") + "\n" if line.endswith("\r\n") else line
    except (OSError, ValueError) as error:
        what = f"script: cannot read '{path}': {getattr(error, 'strerror', None) or error}"
        raise UsageError(what, hint="name a file of commands, or - for standard input") from error
