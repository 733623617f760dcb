"""Run a line, room by room:

    split     the line into commands, a command into words                language/tokens.py
    resolve   aliases, print/x                                            language/resolve.py
    named     the declaration of the command                              commands/table.py
    bind      words to arguments, arguments to values                     language/bind.py
    execute   sealed, on the timeline or free; the result                 commands/execute.py
    placed    what the user did wrong, in the line as it was typed        language/place.py

What goes wrong inside the machine is part of the reading; what the user did wrong is a `Complaint`
in the result; anything else is a bug of kemu and passes through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from kemu.commands import table
from kemu.commands.execute import execute
from kemu.errors import HostUnavailable, KernelBug, UsageError
from kemu.language import spec
from kemu.language.bind import bind
from kemu.language.place import placed
from kemu.language.resolve import resolve
from kemu.language.result import FAILED, INTERRUPTED, OK, Complaint, Result
from kemu.language.tokens import Line, Token, split
from kemu.readings import Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

PY = "--py"
"""After any command: show the call of `kemu.Session` that does the same."""


def run(session: Session, text: str, *, keep_going: bool = False) -> list[Result]:
    """Run the commands of one line. Stops after the first that fails, unless `keep_going`."""
    return list(each(session, text, keep_going=keep_going))


def each(session: Session, text: str, *, keep_going: bool = False) -> Iterator[Result]:
    """As `run`, but each result is given as soon as it is there."""
    desk = session.desk
    guide = desk.guide
    taken = guide.line(text) if guide is not None and not desk.depth else None
    if taken is not None:
        yield from taken
        return
    try:
        lines = split(text)
    except UsageError as error:
        start = len(text) - len(text.lstrip())
        yield _refused(session, text.strip(), Complaint.of(error, start))
        return
    outermost = not desk.depth
    for line in lines:
        for result in run_line(session, line):
            if outermost:
                desk.keep(result)
            yield result
            if result.status == INTERRUPTED or not (result.ok or keep_going):
                return


def run_line(session: Session, typed: Line) -> Iterable[Result]:
    """Run one command; several results where it stands for several (a file of commands), each as
    soon as it is there."""
    try:
        return perform(session, typed)
    except UsageError as error:
        complaint = Complaint.of(error, typed.tokens[0].column)
        result, guide = _refused(session, typed.source, complaint), session.desk.guide
        return [result] if guide is None else guide.refused(result)


def perform(session: Session, typed: Line, on: str = "") -> Iterable[Result]:
    """Run one command, or the one after `on` (`on 1 `). Raises UsageError with its place in what
    was typed."""
    line, made, words = typed, None, dict[str, Sequence[Token]]()
    guide = session.desk.guide if not on else None
    try:
        line = resolve(typed, session.desk.aliases)
        if guide is not None:
            line = guide.expand(line)
        made = table.named(line.tokens[0].text)
        if line.tokens[-1].text == PY and len(line.tokens) > 1:
            return [_python_call(session, made, line)]
        call = bind(made, line, session)
        words = call.words
        results = execute(session, call, on + line.source)
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
            hint="a mutant is planted; the command is taken back",
        )
    raise placed(mistake, line, words, f"help {made.name} says what it takes" if made else "")


def _python_call(session: Session, made: spec.Command, line: Line) -> Result:
    """The call of `kemu.Session` that does what the command does."""
    text = line.source[: -len(PY)].rstrip()
    method = "reading" if made.effect == spec.LOOK else "run"
    shown = Text(("from kemu import Session", "kemu = Session()", f"kemu.{method}({text!r})"))
    now = session.now
    return Result(line.source, shown, first=now, last=now, now=now)


def _refused(session: Session, text: str, error: Complaint) -> Result:
    now = session.now
    return Result(text, None, "", FAILED, now, now, now, session.take_notes(), error)


def with_errno_as_failure(result: Result) -> Result:
    """The result for `--errno-fails`: a simulated errno or signal counts as a failure of the
    command."""
    failed = bool(getattr(result.reading, "errno", 0) or getattr(result.reading, "signal", None))
    return attrs.evolve(result, status=FAILED) if failed and result.status == OK else result
