"""Run the commands on standard input in a session of this process alone, and print what each showed
and the state after it, as JSON."""

from __future__ import annotations

import json
import sys

from kemu import Session
from kemu.errors import UsageError


def after(session: Session, line: str) -> tuple[str, str, int, int]:
    """What the command shows, and the state after it."""
    try:
        shown = session.text(line)
    except UsageError as error:
        shown = f"{error.what} ({error.hint})"
    return shown, session.state_hash(), session.now, session.end


if __name__ == "__main__":
    alone = Session(**json.loads(sys.argv[1]))
    json.dump([after(alone, line) for line in json.load(sys.stdin)], sys.stdout)
