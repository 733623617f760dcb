"""What is said when a command ends by something other than an error of the user: a bug of kemu, or
Ctrl-C."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kemu.interrupts import Interrupted

if TYPE_CHECKING:
    from kemu.experiment.session import Session


def report_bug(error: BaseException, *, debug: bool) -> int:
    """One line about a bug of kemu itself, with the traceback if `debug`; exit code 70."""
    if debug:
        import traceback

        traceback.print_exception(error)
    sys.stderr.write(f"kemu: a bug of kemu, not yours: {type(error).__name__}: {error}\n")
    if not debug:
        sys.stderr.write("  kemu --debug shows the traceback for a report\n")
    return 70


def stopped(session: Session, stop: KeyboardInterrupt) -> str:
    """How far it got, and where the machine is: at an event, or before the command that was
    taken back."""
    where = f"the machine is at #{session.now}" + (f" of {session.end}" if session.past else "")
    if isinstance(stop, Interrupted):
        return f"stopped: {stop.how_far}; {where}"
    return f"stopped; {where}, nothing of the command stays"
