"""The report: what the session did, as one HTML file that plays.

    report -o story.html            all of this timeline
    report 120 480 -o story.html    the commands between two moments

It only collects and writes: `observe` provides the content of the page, `views` draws it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu import __version__
from kemu.commands.hostfile import replace_file
from kemu.errors import UsageError
from kemu.front.terminal.complaint import render as render_complaint
from kemu.front.terminal.output import to_text
from kemu.language import kinds
from kemu.language.spec import FREE, command, keyword, maybe
from kemu.observe.report import Script, film
from kemu.readings import Text
from kemu.readings.report import Film, Played
from kemu.views.report import report as page
from kemu.views.style import UNICODE, Style, plural

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.result import Result

STYLE = Style(80, UNICODE, colour=False)
"""How outputs are drawn in the page."""

MOST_EVENTS = 20_000
"""Maximum number of events in a report."""

TITLE = "kemu session"


@command(
    "report",
    arguments=(maybe("first", kinds.MOMENT), maybe("last", kinds.MOMENT)),
    options=(
        keyword("file", kinds.HOST_PATH, "-o"),
        keyword("title", kinds.TextKind("TEXT", "a title")),
    ),
    effect=FREE,
    host=True,
    writes=True,
    summary="the session as one HTML file that plays",
    more="Every event with the functions that were open, what changed, the page tables of two "
    "processes joined at the frames "
    "they share, mappings, RAM, tasks, the reasons, and the commands with their answers. The file "
    "needs no network. With one "
    f"moment it begins there, with two it shows the commands between them; at most {MOST_EVENTS} "
    "events. See docs/report.md.",
    examples=(
        "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; report -o story.html",
        "spawn app; mark before; fork as kid; report before end -o fork.html title 'One fork'",
    ),
)
def report(
    session: Session, first: int | None, last: int | None, file: str | None, title: str | None
) -> Text:
    """Write the file. Return one line that sums up its content."""
    if file is None:
        raise UsageError(
            "report: expected an output file", hint="for example: report -o story.html"
        )
    return Text((write_report(session, file, title or TITLE, first, last),))


def write_report(
    session: Session, path: str, title: str, first: int | None = None, last: int | None = None
) -> str:
    """Write the report of the commands in (first, last]. Return one line that sums it up. Raises
    UsageError."""
    begin, end = whole_commands(session, first or 0, session.end if last is None else last)
    if end - begin > MOST_EVENTS:
        part = f"report {begin} {begin + MOST_EVENTS} -o {path}"
        hint = (
            f"at most {MOST_EVENTS}; choose a part: {part} (kemu report: --first {begin} --last "
            f"{begin + MOST_EVENTS})"
        )
        raise UsageError(f"report: {end - begin} events are too many for one page", hint=hint)
    return write_page([film_of(session, script_of(session, title, begin, end), begin, end)], path)


def film_of(session: Session, script: Script, first: int, last: int) -> Film:
    """The film of whole commands."""
    with session.traveling():
        return film(session.kernel, first, last, script, session.name_of)


def write_page(films: list[Film], path: str) -> str:
    """Write the page. Return one line that sums it up. Raises UsageError."""
    data = page(films, __version__).encode("utf-8")
    replace_file(path, data, "report")
    counts = (sum(len(made.events) for made in films), sum(len(made.commands) for made in films))
    return (
        f"{path}: {plural(counts[0], 'event')}, {plural(counts[1], 'command')}, {len(data)} bytes"
    )


def whole_commands(session: Session, first: int, last: int) -> tuple[int, int]:
    """The range widened to whole commands. Raises UsageError for moments that do not exist."""
    for about, event in (("first", first), ("last", last)):
        if event > session.end:
            raise UsageError(
                f"event: no #{event}",
                hint=f"the experiment has events 0 to {session.end}",
                about=about,
            )
    first, last = min(first, last), max(first, last)
    around = (session.command_at(first), session.command_at(last))
    return around[0].first if around[0] else first, around[1].last if around[1] else last


def script_of(session: Session, title: str, first: int = 0, last: int | None = None) -> Script:
    """The commands of this timeline in [first, last] with their answers, and its marks."""
    end = session.end if last is None else last
    commands = [entry for entry in played(session) if entry.first >= first and entry.last <= end]
    marks = sorted(
        ((name, at) for name, at in session.marks.items() if first <= at <= end),
        key=lambda mark: mark[1],
    )
    return Script(title, tuple(commands), tuple(marks))


def played(session: Session) -> list[Played]:
    """The commands that belong to this timeline, in the order in which they were given.

    Output about moments that now belong to another timeline is left out. A restored command, whose
    answer is no longer known, has an empty one."""
    records = {(record.text, record.first, record.last) for record in session.timeline.records}
    found: list[Played] = []
    for result in session.desk.shown:
        key = (result.command, result.first, result.last)
        if key in records:
            found = [entry for entry in found if entry.now <= result.first]
            found.append(_played(result, result.last))
            records.discard(key)
        elif result.first == result.last and result.now <= session.end:
            found.append(_played(result, result.now))
    missing = [Played(text, first, last, last, "", ok=True) for text, first, last in records]
    return sorted([*found, *missing], key=lambda entry: entry.last)


def _played(result: Result, now: int) -> Played:
    """A command with all that it showed; its events, or the moment at which it ran."""
    texts = [to_text(result, STYLE), *result.notes]
    if result.error is not None:
        texts.append(render_complaint(result.error))
    first, last = (result.first, result.last) if result.last > result.first else (now, now)
    return Played(
        result.command, first, last, now, "\n".join(text for text in texts if text), result.ok
    )
