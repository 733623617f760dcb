"""Choose and run the front end that the command line asks for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from kemu.commands.settings import PREFERENCES
from kemu.experiment.session import Session
from kemu.front.terminal.bug import stopped
from kemu.front.terminal.output import TextOutput, make_output
from kemu.front.terminal.plain import Runner, run_script
from kemu.language.result import INTERRUPTED

if TYPE_CHECKING:
    from kemu.front.cli.options import Options


def front_end(options: Options, session: Session | None = None) -> int:
    """Run what the command line asks for, on a new session unless one is given. Return the exit
    code."""
    _tame(sys.stdin)
    from kemu import api

    session = session or api.Session(mem=options.mem, geometry=options.geometry, cpus=options.cpus)
    session.desk.preferences.update(asked_for(options))
    runner = Runner(options, session, make_output(options))
    try:
        _run_all(runner)
    except KeyboardInterrupt as stop:
        runner.output.flush()
        sys.stderr.write(f"{stopped(session, stop)}\n")
        return INTERRUPTED
    return runner.status


def asked_for(options: Options) -> dict[str, str]:
    """The shell settings that the command line asks for."""
    made = {"color": options.color}
    made |= {"characters": "ascii"} if options.ascii else {}
    made |= {} if options.toolbar else {"toolbar": "off"}
    made |= {"errno-fails": "on"} if options.errno_fails else {}
    return {name: value for name, value in made.items() if value != PREFERENCES[name].words[0]}


def _run_all(runner: Runner) -> None:
    options = runner.options
    if isinstance(runner.output, TextOutput):
        runner.output.paged = options.subcommand == "lesson" and _at_terminal(options)
    for text in options.commands:
        if not runner.done:
            runner.lines(text.split("\n"), "")
    for path in options.scripts:
        if not runner.done:
            run_script(runner, path)
    stay = options.interactive or not (options.commands or options.scripts)
    if stay and (options.interactive or not runner.done):
        _stay(runner)


def _stay(runner: Runner) -> None:
    """Run the shell at a terminal, otherwise the lines of standard input."""
    runner.done = False
    if _at_terminal(runner.options):
        from kemu.front.terminal.repl import repl

        repl(runner)
    else:
        runner.lines(sys.stdin, "" if sys.stdin.isatty() else "-")


def _at_terminal(options: Options) -> bool:
    """Whether a user reads and types at a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not options.json


def _tame(stream: TextIO) -> None:
    """Let undecodable bytes pass through instead of raising."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="surrogateescape")
