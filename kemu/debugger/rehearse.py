"""Run a command of the past once more, to look at it closely, and take all of it back.

    journal   ....... first [the command] last .......      stays as it is
    scratch                 [the same command]              recorded separately, undone at the end

The state is brought to where the command began, a second journal takes what it does now, and at the
end that journal is undone and thrown away (`Session.beside`). The same command in the same state
does the same, so this shows what happened, or, with a switch of the kernel set differently, what
*would* have happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kemu.experiment.session import Record, Session
    from kemu.language.tokens import Line


def perform(session: Session, record: Record) -> Any:
    """Run the command of the record, inside `Session.beside` its first event, and return its
    reading."""
    from kemu.language.tokens import split

    (line,) = split(record.text)
    return perform_line(session, line)


def perform_line(session: Session, line: Line) -> Any:
    """Run one command outside the journal and return its reading."""
    from kemu.commands.execute import ready
    from kemu.commands.table import named
    from kemu.language.bind import bind

    if line.tokens[0].text == "on":
        inner = line._replace(tokens=line.tokens[2:])
        with session.on_cpu(int(line.tokens[1].value, 0)):
            return perform_line(session, inner)
    call = bind(named(line.tokens[0].text), line, session)
    return call.made.function(session, **ready(session, call))
