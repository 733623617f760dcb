"""What is shown after a command that changed the machine: sections that can be chosen, each short
or in full.

    changes    the net change, old -> new
    calls      where in the kernel it happened
    picture    the page in question, VMA / entry / frame, before and after
    display    the expressions of `display`

*Short* shows mappings, entries, counts of frames, and births and deaths of tasks; it omits task
switches, the TLB and lists. *Full* is `diff` of the command, with its call tree. Empty sections are
omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kemu.debugger.sections import HOWS, SECTIONS, SHORT, sections
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import FREE, command, many
from kemu.language.suggest import did_you_mean
from kemu.readings import CallTree, Change, FieldChange, Reading, Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

MOST_EVENTS = 20_000
"""The changes of a command with more events are shown only by `diff`."""
SHORT_LINES = 10


def shown_after(session: Session, text: str, first: int, last: int) -> Iterator[Reading]:
    """The readings to show after the command `text` with the events (first, last], by section."""
    wanted = sections(session) if first < last else frozenset[str]()
    if session.debugger.held is not None:
        return  # at a stop: the place is the result, and the change of the whole command a secret
    if wanted and first < session.now < last:
        from kemu.debugger.standing import moment

        yield moment(session, first)
        return
    found: list[Reading | None] = []
    if "changes" in wanted:
        found.append(change_of(session, text, first, last, session.desk.context))
    if "calls" in wanted and session.desk.context == "full":
        found.append(_calls(session, first, last))
    if "picture" in wanted:
        from kemu.commands.picturing import picture_of

        found.append(picture_of(session, text, first, last))
    if "display" in wanted and session.debugger.displays:
        from kemu.debugger.stops import displays

        found.append(Text(displays(session)))
    yield from (reading for reading in found if reading is not None)


def _calls(session: Session, first: int, last: int) -> CallTree | None:
    """The call tree of the command; None for more than MOST_EVENTS events."""
    from kemu.observe import calls as tree

    if last - first > MOST_EVENTS:
        return None
    with session.traveling():
        return tree.calls(session.kernel, first, last, session.name_of, with_events=False)


def change_of(session: Session, text: str, first: int, last: int, how: str) -> Change | Text | None:
    """The net change of the events (first, last] that belong to the command `text`; None if there
    is nothing to say."""
    if how == "off" or first >= last:
        return None
    if last - first > MOST_EVENTS:
        return Text(
            (f"#{first} -> #{last}: {last - first} events; diff {first} {last} compares them",)
        )
    from kemu.observe.difference import diff

    with session.traveling():
        found = diff(session.kernel, first, last, session.name_of)
    full = Change(command=text, first=first, last=last, difference=found)
    return full if how == "full" else _in_one_line(full) if how == "line" else _short(full)


LINE_WIDTH = 110
"""Columns of the one line of `context line`; what does not fit is counted."""


def _in_one_line(full: Change) -> Text | None:
    """The short change in one line: the thing, its old and its new value."""
    changes = full.difference.changes
    mapped = {change.what for change in changes if change.field == "_mapcount"}
    parts = [_words(change) for change in changes if _matters(change, mapped)]
    line = f"#{full.first} -> #{full.last}  "
    for number, part in enumerate(parts):
        left = len(parts) - number
        if number and len(line) + len(part) > LINE_WIDTH:
            return Text((f"{line}and {left} more: context",))
        line += part + ("; " if left > 1 else "")
    return Text((line,)) if parts else None


def _words(change: FieldChange) -> str:
    what = change.what if change.kind in ("pte", "frame") else change.what.removeprefix("mm of ")
    return f"{what} {change.field} {change.old} -> {change.new}".replace("  ", " ")


def _short(full: Change) -> Change | None:
    """The change cut down to what `SHORT` names, and to `SHORT_LINES`."""
    changes = full.difference.changes
    mapped = {change.what for change in changes if change.field == "_mapcount"}
    kept = tuple(change for change in changes if _matters(change, mapped))
    if not kept:
        return None
    cut = kept[:SHORT_LINES]
    more = len(kept) - len(cut)
    notes = (f"  {more} more: diff {full.first} {full.last}",) if more else ()
    return full.replace(difference=full.difference.replace(changes=cut), notes=notes)


def _matters(change: FieldChange, mapped: set[str]) -> bool:
    """Whether a short change shows it: a field in `SHORT` that is a last-level entry, a frame that
    was mapped or unmapped, or not a detail of a birth or death."""
    if change.field not in SHORT.get(change.kind, ()):
        return False
    if change.kind == "pte":
        return change.what.startswith("pte ")
    if change.kind == "frame":
        return change.what in mapped
    return (
        change.kind == "vma"
        or change.field in ("pid", "exit_state")
        or "none" not in (change.old, change.new)
    )


@command(
    "context",
    arguments=(
        many(
            "words",
            kinds.ChoiceKind(
                "WHAT", {**HOWS, **SECTIONS}, "off, line, short, full, all, or names of sections"
            ),
        ),
    ),
    effect=FREE,
    summary="show the last change, or choose what is shown after each change",
    more="off, line (one line), short or full choose the amount; the names of sections (changes, "
    "calls, picture, display), or all, choose the content. The default is short at a terminal, "
    "otherwise off. After a move, calls lists the functions that were entered; after a "
    "command, only full shows the call tree. context alone shows the last change in full; "
    "show context shows the choice.",
    examples=(
        "spawn app; context",
        "context short changes picture; spawn app; fork as kid; show context",
        "context line; spawn app; mmap app 0x10000 1p rw; write app 0x10000 7",
    ),
)
def context(session: Session, words: tuple[str, ...]) -> Change | Text:
    """The change of the last command, or the new choice."""
    if words:
        choose(session, words)
        return Text((f"context: {chosen(session)}",))
    first, last = session.last_command()
    record = session.command_of(last) if last else None
    return change_of(session, record.text if record else "", first, last, "full") or Text(
        ("nothing has changed yet",)
    )


def choose(session: Session, words: Iterable[str]) -> None:
    """Set the amount and the sections; sections alone switch `off` to `short`. Raises UsageError
    for any other word."""
    known = [*HOWS, *SECTIONS]
    for index, word in enumerate(words):
        if word not in known:
            raise UsageError(
                f"context: expected {', '.join(known)}, got '{word[:40]}'",
                hint=did_you_mean(word, known),
                about="words",
                index=index,
            )
    hows = [word for word in words if word in HOWS and word != "all"]
    wanted = [word for word in SECTIONS if word in words or "all" in words]
    if hows:
        session.desk.show_context(hows[-1])
    elif session.desk.context == "off":
        session.desk.show_context("short")
    if wanted:
        session.desk.preferences["sections"] = " ".join(wanted)


def chosen(session: Session) -> str:
    """`short: changes picture`, or `off`."""
    found = sections(session)
    return (
        session.desk.context
        if not found
        else f"{session.desk.context}: {' '.join(name for name in SECTIONS if name in found)}"
    )
