"""What the prompt does with the host: `| PROGRAM`, `> FILE`, `! COMMAND` and `py`.

    maps app | head -3        the output, through a program of the host
    calls > story.txt         the output, into a file
    ! ls                      a command of the host's shell
    py                        a Python prompt on the session

Only what a person types at the prompt is read this way: no script, no saved experiment and no
lesson reaches the host so. In an expression `|` and `>` are operators; there put the program or the
file in quotes: `print app.rss > 'rss.txt'`.
"""

from __future__ import annotations

import subprocess
import sys
from code import InteractiveConsole
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from kemu.commands.hostfile import replace_file
from kemu.commands.table import ALIASES, find, known
from kemu.errors import UsageError
from kemu.front.terminal.output import TextOutput
from kemu.language.kinds import ExpressionKind
from kemu.language.result import Complaint, Result
from kemu.language.tokens import Token, split
from kemu.views.style import PLAIN

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.front.terminal.plain import Runner

WIDTH = 100
"""Columns of what goes to a program or a file."""

PYTHON = (
    "Python on this session: kemu.run('...'), kemu.value('app.rss'), kemu.reading('maps app'), "
    "kemu.text('walk app 0x10000'), kemu.tasks; Ctrl-D returns."
)
REFUSED = "a lesson is being taken: |, >, ! and py are not available (leave ends it)"


class Piped(NamedTuple):
    """The commands, and where their output goes: `sign` is | or >, `target` what follows it."""

    commands: str
    sign: str
    target: str
    column: int


def is_for_host(text: str) -> bool:
    """Whether the line starts with `!`, or is `py`."""
    return text.startswith("!") or text.split(" ", 1)[0] == "py"


def on_host(runner: Runner, text: str) -> bool:
    """Do what the line asks of the host; False if it asks nothing."""
    try:
        piped = None if is_for_host(text) else piped_part(text)
        if piped is None and not is_for_host(text):
            return False
        if runner.session.desk.guide is not None:
            complain(runner, UsageError(REFUSED, text=text, length=len(text)), text)
        elif text.startswith("!"):
            shell(text[1:].strip())
        elif piped is None:
            python(runner.session, text.partition(" ")[2].strip())
        else:
            send(runner, piped, text)
    except UsageError as error:
        complain(runner, error, text)
    return True


def complain(runner: Runner, error: UsageError, text: str) -> None:
    """Show the mistake as that of a command."""
    failure = Result.failure(text, Complaint.of(error), runner.session.now, ())
    runner.output.show(failure, runner.session, "")


def piped_part(text: str) -> Piped | None:
    """The line cut at its last `|` or `>`; None if it has none that is not an operator."""
    try:
        lines = split(text)
    except UsageError:
        return None
    if not lines:
        return None
    tokens = lines[-1].tokens
    signs = [at for at, token in enumerate(tokens) if token.text in ("|", ">") and at]
    if not signs:
        return None
    at = signs[0]
    following = tokens[at + 1 :]
    sign = tokens[at]
    if _is_operator(tokens[0], following):
        return None
    if not following:
        what = "a program" if sign.text == "|" else "a file"
        raise UsageError(
            f"{sign.text}: {what} is missing",
            text=text,
            column=sign.column,
            hint=f"for example: maps app {sign.text} {'head' if sign.text == '|' else 'maps.txt'}",
        )
    quoted = len(following) == 1 and following[0].quoted
    target = following[0].value if quoted else text[following[0].column : following[-1].end]
    return Piped(text[: sign.column].rstrip(), sign.text, target, following[0].column)


def _is_operator(first: Token, following: tuple[Token, ...]) -> bool:
    """Whether the sign belongs to an expression: that of a command that takes one, unless a quoted
    word follows."""
    if following and following[0].quoted:
        return False
    word = first.text.partition("/")[0]
    if not known(word):
        return not word.isidentifier()
    made = find(ALIASES.get(word, word))
    return made is not None and any(
        isinstance(argument.kind, ExpressionKind) for argument in made.arguments
    )


def send(runner: Runner, piped: Piped, text: str) -> None:
    """Run the commands; their output goes to the program or the file, complaints to the screen."""
    caught = StringIO()
    shown = runner.output
    runner.output = TextOutput(caught, sys.stderr, PLAIN._replace(width=WIDTH))
    try:
        runner.line(piped.commands)
        runner.output.flush()
    finally:
        runner.output = shown
    if piped.sign == "|":
        subprocess.run(piped.target, shell=True, input=caught.getvalue(), text=True, check=False)  # noqa: S602 - the user typed it, as at a shell's prompt
        return
    try:
        replace_file(piped.target, caught.getvalue().encode(errors="surrogateescape"), ">")
    except UsageError as error:
        raise UsageError(
            error.what,
            text=text,
            column=piped.column,
            length=len(piped.target),
            hint="choose another name, or remove that file with ! first",
        ) from error
    runner.output.say(f"{piped.target}: {len(caught.getvalue().splitlines())} lines")


def shell(command: str) -> None:
    """Run a command of the host's shell. Raises UsageError without one."""
    if not command:
        raise UsageError("!: a command is missing", text="!", hint="for example: ! ls")
    sys.stdout.flush()
    done = subprocess.run(command, shell=True, check=False)  # noqa: S602 - the user typed it, as at a shell's prompt
    if done.returncode:
        sys.stdout.write(f"exit code {done.returncode}\n")


def python(session: Session, code: str) -> None:
    """A Python prompt on the session until Ctrl-D, or the result of one statement."""
    console = InteractiveConsole({"kemu": session, "__name__": "__kemu__"})
    if code:
        console.runsource(code)
        return
    console.interact(banner=PYTHON, exitmsg="back in kemu")
