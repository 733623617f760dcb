"""Commands about the shell itself: print, alias, run, quit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from kemu import interrupts
from kemu.commands import table
from kemu.commands.hostfile import read_lines
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.expr import Expression, TaskValue
from kemu.language.formats import FORMATTED, write
from kemu.language.result import INTERRUPTED, Quit, Result
from kemu.language.spec import FREE, command, maybe, one, rest
from kemu.language.suggest import did_you_mean
from kemu.language.tokens import Line, Token, split
from kemu.readings import Text, Value

if TYPE_CHECKING:
    from kemu.experiment.session import Session

DEEPEST_RUN = 16
"""Greatest nesting depth of scripts."""


@command(
    "print",
    "p",
    arguments=(rest("expression", FORMATTED),),
    effect=FREE,
    summary="the value of an expression",
    more="Numbers are shown in both bases if they differ; print/x, print/d, print/t ... "
    "choose one (see: help formats). The first value is kept as $1, the next as $2. print "
    "functions lists the functions. See: help expressions.",
    examples=("print 3p + 0x10", "spawn app; print app.stack", "print/x 12288"),
)
def print_(session: Session, expression: Expression) -> Value | Text:
    """The value; it is remembered as $N and $last."""
    from kemu.names.session import SessionNames, functions_page

    if (
        expression.source.text[expression.source.start : expression.source.end].strip()
        == "functions"
    ):
        return Text(tuple(functions_page()))
    with session.looking():
        value = expression.evaluate(SessionNames(session))
    session.debugger.values.append(value)
    plain = value.pid if isinstance(value, TaskValue) else value
    return Value(f"${len(session.debugger.values)} = {write(value, expression.form)}", plain)


class AliasKind(kinds.NameKind):
    """A word that becomes an alias."""

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Any word; `convert` explains why one cannot be an alias."""
        return True

    def convert(self, token: Token, line: Line, session: Session) -> str:
        """The word. Raises UsageError if it cannot be one."""
        if not kinds.is_name(token):
            raise UsageError(
                f"'{token.text[:40]}' cannot be an alias",
                hint="an alias starts with a letter: alias look walk app 0x10000",
            )
        return super().convert(token, line, session)


@command(
    "alias",
    arguments=(maybe("name", AliasKind()), rest("command", kinds.COMMAND, needed=False)),
    effect=FREE,
    summary="define a short word for a command",
    more="Without arguments, lists the aliases. Words typed after the alias are appended to "
    "its command. In the shell at a terminal, aliases are kept for later sessions; unalias "
    "removes them.",
    examples=("alias look walk app 0x10000", "alias"),
)
def alias(session: Session, name: str | None, command: Line | None) -> Text:
    """Make an alias, or list them."""
    known = session.desk.aliases
    if name is None:
        return Text(
            tuple(f"{word} = {meaning}" for word, meaning in known.items()) or ("no aliases",)
        )
    if command is None:
        if name not in known:
            raise UsageError(
                f"no alias named '{name}'",
                hint=did_you_mean(name, known) or f"define it: alias {name} COMMAND",
                about="name",
            )
        return Text((f"{name} = {known[name]}",))
    if name in table.TABLE or name in table.ALIASES:
        raise UsageError(
            f"'{name}' is a command, not an alias", hint="choose another word", about="name"
        )
    meaning = command.source
    if (
        len(meaning) > 1
        and meaning[0] == meaning[-1]
        and meaning[0] in "\"'"
        and meaning[0] not in meaning[1:-1]
    ):
        meaning = meaning[1:-1].strip()
    if len(split(meaning)) != 1:
        raise UsageError(
            f"alias: '{name}' must mean exactly one command",
            hint=f"for example: alias {name} walk app 0x10000",
            about="command",
        )
    known[name] = meaning
    return Text((f"{name} = {meaning}",))


@command(
    "unalias",
    arguments=(one("name", kinds.NAME),),
    effect=FREE,
    summary="remove an alias",
    examples=("alias look walk app 0x10000; unalias look", "alias a ps; unalias a; alias"),
)
def unalias(session: Session, name: str) -> Text:
    """Remove the alias."""
    if name not in session.desk.aliases:
        raise UsageError(
            f"no alias named '{name}'",
            hint=did_you_mean(name, session.desk.aliases) or "alias lists them",
            about="name",
        )
    del session.desk.aliases[name]
    return Text((f"{name} is no longer an alias",))


@command(
    "run",
    arguments=(one("path", kinds.HOST_PATH),),
    effect=FREE,
    host=True,
    summary="run the commands in a file",
    more=(
        "A line has one or more commands; # starts a comment. Stops after the first command "
        "that fails."
    ),
    examples=(
        "spawn app; fork as kid; save story.kemu; goto 0; run story.kemu",
        "spawn app; save app.kemu; goto 0; run app.kemu; ps",
    ),
)
def run_(session: Session, path: str) -> Iterator[Result]:
    """The results of the commands in the file, each as soon as it is available."""
    if session.desk.depth >= DEEPEST_RUN:
        raise UsageError(
            f"run: more than {DEEPEST_RUN} files deep", hint="does a file run itself?", about="path"
        )
    return _results(session, path, read_lines(path, "run"))


def _results(session: Session, path: str, lines: list[str]) -> Iterator[Result]:
    from kemu.commands.run import each

    with session.desk.inside_file():
        for number, text in enumerate(lines, 1):
            with _how_far(f"{path}:{number}"):
                for result in each(session, text):
                    yield result if result.ok else _placed_in_file(result, f"{path}:{number}: ")
                    if not result.ok or result.status == INTERRUPTED:
                        return


@contextmanager
def _how_far(where: str) -> Iterator[None]:
    """Add the place in a file to a Ctrl-C raised in the block."""
    try:
        yield
    except KeyboardInterrupt as stop:
        more = f": {stop.how_far}" if isinstance(stop, interrupts.Interrupted) else ""
        raise interrupts.Interrupted(f"at {where}{more}") from None


def _placed_in_file(result: Result, where: str) -> Result:
    """The failed result, with file and line in its error, added only once."""
    if result.error is None or where in result.error.what:
        return result
    return attrs.evolve(result, error=attrs.evolve(result.error, what=where + result.error.what))


@command(
    "quit",
    "q",
    effect=FREE,
    summary="leave kemu",
    examples=("quit", "ps; quit"),
)
def quit_(_session: Session) -> Quit:
    """Ask the front end to end."""
    return Quit()
