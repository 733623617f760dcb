"""One command, stage by stage:

    split     words (done)                                                language/tokens.py
    resolve   aliases, print/x                                            language/resolve.py
    named     the declaration of the command                              commands/table.py
    bind      words to arguments, arguments to values                     language/bind.py
    execute   sealed, on the timeline or free; the result                 commands/execute.py
    placed    the place of a user error, in the line as typed               language/place.py

A failure inside the machine is part of the reading; a user error is a `Complaint` in the result;
any other exception is a bug in kemu and propagates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kemu.commands import table
from kemu.commands.execute import execute
from kemu.commands.unknown import is_call
from kemu.errors import HostUnavailable, KernelBug, UsageError
from kemu.language.bind import bind
from kemu.language.place import placed
from kemu.language.resolve import resolve
from kemu.language.result import Result
from kemu.language.shapes import opens_expression
from kemu.language.spec import LOOK
from kemu.language.things import HEADS
from kemu.language.tokens import Line, Token
from kemu.readings import Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

PY = "--py"
"""After any command: show the equivalent call of `kemu.Session`."""


def _printing(line: Line) -> Line:
    """A bare expression, as `print` of it; any other line as it is."""
    first = line.tokens[0]
    if table.known(first.text) or first.quoted:
        return line
    called, opening, _ = first.text.partition("(")
    if opening and called not in HEADS and (table.known(called) or is_call(called)):
        return line
    if opens_expression(first) or (first.text in HEADS and len(line.tokens) > 1):
        return line.after("print")
    return line


def perform(session: Session, typed: Line, on: str = "") -> Iterable[Result]:
    """Run one command; `on` is its prefix if any (`on 1 `). Raises UsageError with its place in the
    typed line."""
    line, made, words = typed, None, dict[str, Sequence[Token]]()
    guide = session.desk.guide if not on else None
    try:
        line = resolve(typed, session.desk.aliases)
        if guide is not None:
            line = guide.expand(line)
        line = _printing(line)
        made = table.named(line.tokens[0].text, line.source)
        if line.tokens[-1].text == PY and len(line.tokens) > 1:
            method = "reading" if made.effect == LOOK else "run"
            call = f"kemu.{method}({line.source[: -len(PY)].rstrip()!r})"
            said = Text(("from kemu import Session", "kemu = Session()", call))
            now = session.now
            return [Result(line.source, said, first=now, last=now, now=now)]
        bound = bind(made, line, session)
        words = bound.words
        results = execute(session, bound, on + line.source)
        return guide.saw(list(results)) if guide is not None else results
    except UsageError as error:
        mistake = error
    except HostUnavailable as error:
        mistake = UsageError(str(error))
    except KernelBug as error:
        if not session.planted:
            raise
        mistake = UsageError(
            f"the kernel stopped itself: {error}",
            hint="a mutant is planted; the command is undone",
        )
    raise placed(mistake, line, words, f"see: help {made.name}" if made else "")
