"""The prompt and the toolbar: where the experiment stands, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kemu.session import Session


def prompt(session: Session) -> str:
    """`kemu #12 app> `, or `kemu #41/57 past app> ` where newer events exist."""
    where = f"#{session.now}/{session.end} past" if session.past else f"#{session.now}"
    return f"kemu {where} {session.name_of(session.current_pid)}> "


def toolbar(session: Session) -> str:
    """One line: the event, the current task, the timeline, and whether this is the past."""
    current = session.current
    parts = [
        f"event {session.now} of {session.end}",
        f"{session.name_of(current.pid)} (pid {current.pid})" + (f" waits in {current.blocked_in}" if current.blocked_in else ""),
    ]
    if len(session.timelines) > 1:
        parts.append(f"timeline {session.timeline.number} of {len(session.timelines)}")
    if session.past:
        inside = session.command_at(session.now)
        parts.append(f"PAST, inside '{inside.text}'" if inside else "PAST, between two commands")
    return " " + " | ".join(parts) + " "
