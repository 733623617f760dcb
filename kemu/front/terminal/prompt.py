"""The prompt and the toolbar: where the experiment is, in words."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kemu.experiment.session import Session

LONGEST_COMMAND = 30


def prompt(session: Session) -> str:
    """`kemu #12 app> `, or `kemu #41/57 past app> ` where newer events exist."""
    where = f"#{session.now}/{session.end} past" if session.past else f"#{session.now}"
    current = session.current_pid
    return f"kemu {where}{f' {session.name_of(current)}' if current else ''}> "


def toolbar(session: Session, width: int = 0) -> str:
    """One line: lesson and step, the event, the current task, the timeline, and whether this is the
    past. What does not fit into `width` (default: the terminal's) is left out, from the end; the
    prompt or `show` tells each fact too."""
    room = (width or shutil.get_terminal_size().columns) - 2
    parts = _facts(session)
    if session.past and len(" | ".join(parts)) > room:
        parts = [part.partition(",")[0] if part.startswith("PAST") else part for part in parts]
    while len(parts) > 1 and len(" | ".join(parts)) > room:
        parts.pop()
    return f" {' | '.join(parts)[:room]} "


def _facts(session: Session) -> list[str]:
    pid = session.current_pid
    current = session.current if pid else None
    waits = f" waits in {current.blocked_in}" if current and current.blocked_in else ""
    task = f"{session.name_of(pid)} (pid {pid}){waits}" if current else "no current task"
    parts = [f"lesson {session.desk.place}"] if session.desk.place else []
    parts += [
        f"event {session.now} of {session.end}",
        task,
    ]
    if session.past:
        inside = session.command_at(session.now)
        text = inside.text if inside else ""
        shown = text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 3] + "..."
        parts.append(f"PAST, inside '{shown}'" if inside else "PAST, between two commands")
    if len(session.timelines) > 1:
        parts.append(f"timeline {session.timeline.number} of {len(session.timelines)}")
    return parts
