"""What is shown after a command that changed the machine: the net change, old -> new, short or in full.

*Short* keeps what a story about address spaces needs (mappings, entries, counts of frames, births and deaths of tasks) and
leaves out switching between tasks, the TLB and plumbing; *full* is `diff` of the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.commands import kinds
from kemu.commands.spec import FREE, command, maybe
from kemu.readings import Change, FieldChange, Text

if TYPE_CHECKING:
    from kemu.session import Session

HOWS = ("off", "short", "full")
MOST_EVENTS = 20_000
"""A command with more events is not compared by itself; `diff` does it when asked."""
SHORT_LINES = 10

SHORT = {
    "vma": {"", "vm_start", "vm_end", "vm_flags"},
    "pte": {""},
    "frame": {"_refcount", "_mapcount"},
    "mm": {"mm_users", "mm_count", "total_vm", "map_count", "brk", "pgtables_bytes"},
    "task": {"exit_state", "pid", "real_parent", "mm", "blocked_in"},
}
"""Kinds that the short form shows, each with its fields."""


def change_of(session: Session, text: str, first: int, last: int, how: str) -> Change | Text | None:
    """The net change of the events (first, last] that belong to the command `text`; None if there is nothing to say."""
    if how == "off" or first >= last:
        return None
    if last - first > MOST_EVENTS:
        return Text((f"#{first} -> #{last}: {last - first} events; diff {first} {last} compares them",))
    from kemu.observe.difference import diff

    with session.traveling():
        found = diff(session.kernel, first, last, session.name_of)
    if how == "full":
        return Change(command=text, first=first, last=last, difference=found)
    return _short(Change(command=text, first=first, last=last, difference=found))


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
    """Is it in `SHORT`, an entry of the last level, a frame that was mapped or unmapped, not a detail of a birth or death?"""
    if change.field not in SHORT.get(change.kind, ()):
        return False
    if change.kind == "pte":
        return change.what.startswith("pte ")
    if change.kind == "frame":
        return change.what in mapped
    return change.kind == "vma" or change.field in ("pid", "exit_state") or "none" not in (change.old, change.new)


@command(
    "context",
    arguments=(maybe("how", kinds.WordKind("HOW", HOWS)),),
    group="time",
    effect=FREE,
    summary="show the last change, or choose how much is shown after each",
    more="off, short or full. At a terminal short is the default, elsewhere off.",
    examples=("spawn app; context", "context short; spawn app; fork as kid"),
)
def context(session: Session, how: str | None) -> Change | Text:
    """The change of the last command, or the new setting."""
    if how is not None:
        session.context = how
        return Text((f"context: {how}",))
    first, last = session.last_command()
    record = session.command_of(last) if last else None
    return change_of(session, record.text if record else "", first, last, "full") or Text(("nothing has changed yet",))
