"""Run a line: its commands in order, each through the stages of `perform`.

A front end draws the results of `run` or `each`; nothing here prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from kemu.commands.perform import perform
from kemu.errors import UsageError
from kemu.language.result import FAILED, INTERRUPTED, OK, Complaint, Result
from kemu.language.tokens import split

if TYPE_CHECKING:
    from kemu.experiment.session import Session


def run(session: Session, text: str, *, keep_going: bool = False) -> list[Result]:
    """Run the commands of one line. Stops after the first that fails, unless `keep_going`."""
    return list(each(session, text, keep_going=keep_going))


def each(session: Session, text: str, *, keep_going: bool = False) -> Iterator[Result]:
    """Like `run`, but yield each result as soon as it is available."""
    desk = session.desk
    outermost = not desk.depth
    taken = desk.guide.line(text) if desk.guide is not None and outermost else None
    if taken is not None:
        yield from taken
        return
    try:
        lines = split(text)
    except UsageError as error:
        complaint = Complaint.of(error, len(text) - len(text.lstrip()))
        yield Result.failure(text.strip(), complaint, session.now, session.take_notes())
        return
    for line in lines:
        try:
            results = perform(session, line)
        except UsageError as error:
            complaint = Complaint.of(error, line.tokens[0].column)
            failure = Result.failure(line.source, complaint, session.now, session.take_notes())
            results = [failure] if desk.guide is None else desk.guide.refused(failure)
        for result in results:
            if outermost:
                desk.keep(result)
            yield result
            if result.status == INTERRUPTED or not (result.ok or keep_going):
                return


def with_errno_as_failure(result: Result) -> Result:
    """The result for `--errno-fails`: a simulated errno or signal counts as a failure of the
    command."""
    failed = bool(getattr(result.reading, "errno", 0) or getattr(result.reading, "signal", None))
    return attrs.evolve(result, status=FAILED) if failed and result.status == OK else result
