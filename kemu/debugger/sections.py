"""What can be shown after a change or a move, and which sections are on: the part of `context`
without a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kemu.experiment.session import Session

HOWS = {
    "off": "nothing",
    "line": "the essentials in one line",
    "short": "the essentials",
    "full": "everything",
    "all": "all sections",
}
"""How much of a change is shown."""

SECTIONS = {
    "changes": "what changed, old -> new",
    "calls": "the kernel functions",
    "picture": "the page in question, before and after",
    "display": "what display shows",
}
"""What of it."""

SHORT = {
    "vma": {"", "vm_start", "vm_end", "vm_flags"},
    "pte": {""},
    "frame": {"_refcount", "_mapcount"},
    "mm": {"mm_users", "mm_count", "total_vm", "map_count", "brk", "pgtables_bytes"},
    "task": {"exit_state", "pid", "real_parent", "mm", "blocked_in"},
}
"""Kinds of changes that the short form shows, each with its fields."""


def sections(session: Session) -> frozenset[str]:
    """The sections that are shown now."""
    if session.desk.context == "off":
        return frozenset()
    if session.desk.context == "line":
        return frozenset(("changes", "display"))
    return frozenset(session.desk.preferences.get("sections", " ".join(SECTIONS)).split())
