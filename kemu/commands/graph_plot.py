"""The values of a plot: expressions evaluated over the events of the experiment.

    graph plot refcount(pfn(app, 0x10000)), free

Samples are taken at the start and end of commands and at up to MOST_SAMPLES events between; the
plot shows the interval. An expression has no value where a name in it does not exist yet; one that
never has a value raises its error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kemu import readings
from kemu.errors import UsageError
from kemu.language.expr import compile_expression, describe
from kemu.language.lexer import Source

if TYPE_CHECKING:
    from kemu.experiment.session import Session

MOST_SAMPLES = 200
"""Largest number of samples, in addition to the ends of commands."""
MOST_SERIES = 12


def plotted(
    session: Session, source: Source, between: tuple[int, int] | None
) -> readings.PlotGraph:
    """The values of the expressions in `source` over the whole experiment, or between two moments.
    Raises UsageError."""
    first, last = sorted(between) if between else (0, session.end)
    if between is not None and last > session.end:
        raise UsageError(
            f"event: no #{last}",
            hint=f"the experiment has events 0 to {session.end}",
            about="diff",
            index=between.index(last),
        )
    sources = _sources(session, source)
    if len(sources) > MOST_SERIES:
        raise UsageError(f"plot: {len(sources)} values are too many", hint=f"at most {MOST_SERIES}")
    step = max((last - first) // MOST_SAMPLES, 1)
    with session.traveling():
        series = _series(session, sources, _moments(session, first, last, step))
    named = sorted(session.marks.items(), key=lambda mark: mark[1])
    marks = tuple((name, event) for name, event in named if first <= event <= last)
    begun = tuple(
        (record.first, record.text)
        for record in session.timeline.records
        if first <= record.first <= last
    )
    return readings.PlotGraph(first, last, step, series, marks, begun)


def _moments(session: Session, first: int, last: int, step: int) -> list[int]:
    borders = {
        event for record in session.timeline.records for event in (record.first, record.last)
    }
    ends = sorted(event for event in borders if first <= event <= last)
    return sorted({*range(first, last + 1, step), *ends[:: len(ends) // MOST_SAMPLES + 1], last})


Evaluate = Callable[["Session"], "int | None"]


def _sources(session: Session, source: Source) -> list[tuple[str, Evaluate]]:
    """(name, value at the moment shown) of each series: the text cut at its commas."""
    found: list[tuple[str, Evaluate]] = []
    for low, high in _cut(source.text, source.start, source.end):
        text = source.text[low:high].strip()
        if text == "rss" and "rss" not in session.names():
            found += [
                (f"rss({session.name_of(pid)})", _rss_of(pid)) for pid in _with_memory(session)
            ]
        elif text == "free" and "free" not in session.names():
            found.append(("free frames", _free))
        else:
            found.append((text, _expression(source.text, low, high)))
    return found


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The parts of `text[start:end]` between commas outside of parentheses and
    quotes."""
    parts, depth, quote, low = [], 0, "", start
    for at in range(start, end):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "," and not depth:
            parts.append((low, at))
            low = at + 1
    return [*parts, (low, end)]


def _expression(text: str, low: int, high: int) -> Evaluate:
    """The compiled expression; it has no value where a name or a frame does not exist."""
    compiled = compile_expression(Source(text, low, high))

    def value(session: Session) -> int | None:
        from kemu.names.session import SessionNames

        found = compiled.evaluate(SessionNames(session))
        if found is not None and not isinstance(found, int):
            raise UsageError(
                f"plot: {describe(found)} is not a number",
                text=text,
                column=low,
                length=max(high - low, 1),
            )
        return None if found is None else int(found)

    return value


def _with_memory(session: Session) -> list[int]:
    """The pids of processes with an mm at this moment, without init unless it is the only one."""
    found = [
        pid
        for pid, task in sorted(session.tasks.items())
        if task.mm is not None and task.tgid == pid
    ]
    return found[1:] or found


def _rss_of(pid: int) -> Evaluate:
    from kemu.observe.tasks import rss_pages

    return lambda session: rss_pages(session.tasks[pid].mm) if pid in session.tasks else None


def _free(session: Session) -> int:
    from kemu.observe.frames import free

    return free(session.kernel).free


def _series(
    session: Session, sources: list[tuple[str, Evaluate]], moments: list[int]
) -> tuple[readings.PlotSeries, ...]:
    """The values at the moments, in order. Raises the error of an expression that has a value at
    none of them."""
    points: list[list[tuple[int, int | None]]] = [[] for _ in sources]
    wrong: list[UsageError | None] = [None] * len(sources)
    valued = [False] * len(sources)
    for event in moments:
        session.goto(event)
        for number, (_, evaluate) in enumerate(sources):
            try:
                with session.looking():
                    value = evaluate(session)
            except UsageError as error:
                value, wrong[number] = None, error
            valued[number] |= value is not None
            if not points[number] or points[number][-1][1] != value:
                points[number].append((event, value))
    for complaint, good in zip(wrong, valued, strict=True):
        if complaint is not None and not good:
            raise complaint
    return tuple(
        readings.PlotSeries(name, tuple(found))
        for (name, _), found in zip(sources, points, strict=True)
    )
