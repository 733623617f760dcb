"""Messages for a command that is ended by a bug in kemu or by Ctrl-C."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kemu.interrupts import Interrupted

if TYPE_CHECKING:
    from kemu.experiment.session import Session


def report_bug(error: BaseException, *, debug: bool) -> int:
    """Report a bug in kemu in one line, with the traceback if `debug`. Return exit code 70."""
    if debug:
        import traceback

        traceback.print_exception(error)
    sys.stderr.write(f"kemu: a bug in kemu, not in your input: {type(error).__name__}: {error}\n")
    if not debug:
        sys.stderr.write("  kemu --debug shows the traceback for a report\n")
    return 70


def stopped(session: Session, stop: KeyboardInterrupt) -> str:
    """How far the command got, and where the machine is: at an event, or before the undone
    command."""
    where = f"the machine is at #{session.now}" + (f" of {session.end}" if session.past else "")
    if isinstance(stop, Interrupted):
        return f"stopped: {stop.how_far}; {where}"
    return f"stopped; {where}, the command is undone"
