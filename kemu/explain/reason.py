"""Why one event happened, in a sentence: for `why`, for every stop, and for the report's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kemu.explain.rules import rule_for
from kemu.observe.moves import first_words

if TYPE_CHECKING:
    from kemu.readings import EventReading


def rule_of(event: EventReading, old: Any, new: Any) -> str:
    """Why Linux does what the event did, from `old` to `new`: the sentence of the table, or at
    least the function's own first lines; empty outside of the kernel where the table has none."""
    how = "gone" if not new else "made" if not old else "changed"
    field = event.what.split()[0] if event.kind == "pte" else event.field
    found = rule_for(event.kind, field, event.function, how)
    if found or not event.function:
        return found
    return f"{event.function}: {first_words(event.function)}"
