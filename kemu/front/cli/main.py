"""The entry point: parse the command line, choose a front end, return an exit code.

    kemu                     the shell (with a pipe as input: a plain loop)
    kemu -c 'CMD; CMD'       commands; may be given several times
    kemu run FILE            a script; `-` reads standard input

The options are parsed by hand: importing argparse takes a third as long as a bare interpreter's
start. Nothing but this file, errors.py and front/cli/options.py is imported for `--help`.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from kemu.errors import UsageError
from kemu.front.cli.options import Options

USAGE = """\
usage: kemu [OPTIONS]                    the shell; if the input is a pipe, run its commands
       kemu [OPTIONS] -c COMMANDS ...    run commands, separated by ';'
       kemu [OPTIONS] run FILE           run a script; '-' is standard input
       kemu demo                         a minute of fork and copy-on-write, without typing
       kemu doctor                       what this machine offers to kemu
       kemu report SCRIPT -o FILE.html   run a script and write an HTML page that plays it
       kemu conform PATH...              compare with the real kernel (kemu conform --help)
       kemu lesson [WORDS]               take, write and check lessons (kemu lesson --help)
       kemu grade LESSON FILES...        grade what students handed in (kemu grade --help)

  -c COMMANDS       run these; may be given several times
  -i                stay in the shell afterwards
  --keep-going      continue after a failed command; the exit code is then 1
  --json            one JSON object per command on standard output (docs/json.md)
  --errno-fails     a simulated errno or signal makes the exit code 1
  --color WHEN      auto (the default), always or never
  --ascii           draw with ASCII characters only
  --mem SIZE        RAM of the machine, such as 64M (the default) or 1G
  --geometry NAME   page tables: x86-64 (the default), x86-64-la57, sv39
  --cpus N          number of CPUs (2)
  --no-toolbar      no status line at the bottom of the shell
  --debug           show tracebacks
  -h, --help        this page;  inside kemu: help
  --version         the version

exit codes: 0 ok, 1 a command failed, 2 usage, 3 a lesson, check or comparison is not satisfied,
            4 a lesson file is invalid, 70 a bug in kemu, 130 Ctrl-C
"""

SUBCOMMANDS = {
    "doctor": "kemu.front.cli.doctor",
    "demo": "kemu.front.cli.demo",
    "conform": "kemu.front.cli.conform",
    "report": "kemu.front.cli.reporting_script",
    "lesson": "kemu.front.cli.lessons",
    "grade": "kemu.front.cli.grading",
}
"""Words with their own `main(options) -> int`, and its module."""

OWN_WORDS = frozenset({"conform", "lesson", "grade", "report"})
"""Those that parse the words after them."""

NOT_BESIDE = {"commands": "-c", "running": "run", "interactive": "-i"}
"""Options that say what to run and have no effect with such a word."""

NO_JSON = frozenset({"doctor", "report", "grade"})
"""Words whose output is not the results of commands."""

_FLAGS = {
    "-i": ("interactive", True),
    "--keep-going": ("keep_going", True),
    "--json": ("json", True),
    "--errno-fails": ("errno_fails", True),
    "--ascii": ("ascii", True),
    "--no-toolbar": ("toolbar", False),
    "--debug": ("debug", True),
    "-h": ("help", True),
    "--help": ("help", True),
    "--version": ("version", True),
}
_VALUES = {
    "-c": "command",
    "--color": "color",
    "--mem": "mem",
    "--geometry": "geometry",
    "--cpus": "cpus",
}
_WHENS = ("auto", "always", "never")


def main(argv: list[str] | None = None) -> int:
    """Run kemu with the words `argv` and return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    _open_closed_streams()
    try:
        options = parse(words)
    except UsageError as error:
        return _complain(error)
    return _guarded(options)


def _guarded(options: Options) -> int:
    """Run the chosen front end. Without --debug no exception escapes."""
    try:
        status = _front_end(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 130
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except UsageError as error:
        return _complain(error)
    except Exception as error:  # noqa: BLE001 - the one place for what nobody expected
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE and error.filename is None:
            return _no_room(error)
        from kemu.front.terminal.bug import report_bug

        return report_bug(error, debug=options.debug)
    return status


_CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a stream that cannot take the output; a command that writes a file reports its own."""


def _no_room(error: OSError) -> int:
    """Report that the output cannot be written, which is not a bug in kemu."""
    _silence_stdout()
    with suppress(OSError):  # if standard error fails too, only the exit code tells
        sys.stderr.write(
            f"kemu: cannot write the output: {error.strerror}\n  free some space, or "
            "redirect the output\n"
        )
        sys.stderr.flush()
    return 1


def _open_closed_streams() -> None:
    """Replace a stream that was closed before the start (`>&-`) by /dev/null."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - pathlib would cost time at every start


def _complain(error: UsageError) -> int:
    sys.stderr.write(f"kemu: {error.what}\n  {error.hint or 'kemu --help lists the options'}\n")
    return 2


def _silence_stdout() -> None:
    """The reader of the output is gone: keep the interpreter's last flush from failing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _front_end(options: Options) -> int:
    if options.help:
        sys.stdout.write(USAGE)
        return 0
    if options.version:
        from kemu import __version__

        sys.stdout.write(f"kemu {__version__}\n")
        return 0
    if options.subcommand:
        from importlib import import_module

        status: int = import_module(SUBCOMMANDS[options.subcommand]).main(options)
        return status
    from kemu.front.cli.front import front_end

    return front_end(options)


def parse(words: list[str]) -> Options:
    """Read the command line. Raises UsageError."""
    options = Options()
    left = list(words)
    while left:
        word = left.pop(0)
        if word in _FLAGS:
            setattr(options, *_FLAGS[word])
        elif word.split("=", 1)[0] in _VALUES:
            _value(options, word, left)
        elif options.running and (word == "-" or not word.startswith("-")):
            options.scripts.append(word)
        elif word == "run":
            options.running = True
        elif word in SUBCOMMANDS and not options.subcommand:
            options.subcommand = word
            if word in OWN_WORDS:
                options.words, left = left, []
        else:
            raise _unknown(word)
    if options.running and not (options.scripts or options.help):
        raise UsageError(
            "run: expected a file name",
            hint="kemu run FILE, or kemu run - for standard input",
        )
    if options.subcommand:
        _check_beside(options)
    return options


def _check_beside(options: Options) -> None:
    """Refuse options that would have no effect."""
    word = options.subcommand
    idle = [option for name, option in NOT_BESIDE.items() if getattr(options, name)]
    idle += ["--json"] if options.json and word in NO_JSON else []
    if idle:
        raise UsageError(
            f"{idle[0]} has no effect with {word}", hint=f"kemu {word} alone, or kemu --help"
        )


def _value(options: Options, word: str, left: list[str]) -> None:
    name, _, value = word.partition("=")
    if "=" not in word:
        if not left:
            raise UsageError(f"expected a value after {name}")
        value = left.pop(0)
    if name == "-c":
        options.commands.append(value)
    elif name == "--color":
        if value not in _WHENS:
            raise UsageError(f"--color: expected auto, always or never, got '{value}'")
        options.color = value
    elif name == "--geometry":
        options.geometry = value
    elif name == "--mem":
        options.mem = _number(name, value, "a size such as 64M or 1G")
        if options.mem < LEAST_MEM:
            raise UsageError(
                f"--mem: {value[:40]} is too small",
                hint="the minimum is 8M, the default 64M",
            )
    else:
        options.cpus = _number(name, value, f"a number from 1 to {MOST_CPUS}")
        if not 1 <= options.cpus <= MOST_CPUS:
            raise UsageError(f"--cpus: expected a number from 1 to {MOST_CPUS}, got '{value[:40]}'")


LEAST_MEM, MOST_CPUS = 8 << 20, 8
"""The options of boot, which checks them itself."""


def _number(name: str, text: str, what: str) -> int:
    from kemu.language.lexer import Source, number

    try:
        return number(Source(text, 0, len(text)), 0, text)
    except UsageError as error:
        raise UsageError(f"{name}: expected {what}, got '{text[:40]}'") from error


def _unknown(word: str) -> UsageError:
    from kemu.commands.table import ALIASES, TABLE
    from kemu.language.suggest import did_you_mean

    known = [*_FLAGS, *_VALUES, *SUBCOMMANDS, "run"]
    guess = did_you_mean(word, known)
    if word in TABLE or word in ALIASES:
        guess = f"it is a command of the shell: kemu -c '{word} ...'"
    return UsageError(f"'{word[:40]}' is neither an option nor a command of kemu", hint=guess)
