"""Execute a bound call and wrap its reading in a Result: the last stage before the kernel.

    looks at the machine     with the machine sealed: any write is a bug
    changes it               between two commands of the timeline
    only moves or sets       as it is

At a terminal, Ctrl-C lets a changing command run to its end and then shows the moment of the
interrupt. A second Ctrl-C, or any in a script, undoes the command.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from kemu import interrupts
from kemu.commands.hostfile import forcing
from kemu.debugger.standing import answered, stop_after
from kemu.errors import UsageError
from kemu.language import spec
from kemu.language.kinds import HOST_PATH, GoneTask
from kemu.language.result import INTERRUPTED, OK, UNSATISFIED, Result, Shown
from kemu.language.spec import FORCE, Command

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.language.bind import Call


def execute(session: Session, call: Call, text: str) -> Iterable[Result]:
    """The results of the call; `text` is recorded on the timeline. Raises UsageError."""
    made, values = call.made, ready(session, call)
    if session.desk.guide is not None:
        session.desk.guide.admit(made, values)
    if session.desk.restoring:
        refuse_host_files(made, values)
    if made.effect == spec.CHANGE and not made.is_about_session(values):
        return [_change(session, call, values, text)]
    if made.effect == spec.LOOK:
        with session.looking():
            reading = made.function(session, **values)
    else:
        now, row = session.now, session.debugger.row
        with forcing(FORCE in made.options and bool(values.pop(FORCE.name))):
            reading = made.function(session, **values)
        if session.now != now and session.debugger.row is row:
            session.debugger.open_row(None)
    if isinstance(reading, (list, Iterator)):
        return reading
    return [_result(session, text, reading, session.now, session.now)]


def refuse_host_files(made: Command, values: dict[str, Any]) -> None:
    """Raise UsageError where a command of a saved experiment would use a file of the host, other
    than one that it loads into the machine."""
    used = any(part.kind is HOST_PATH and values.get(part.name) is not None for part in made.parts)
    if used and made.effect != spec.CHANGE:
        raise UsageError(
            f"{made.name}: a saved experiment may not use files of the host",
            hint="kemu run FILE runs it as a script, with all its commands",
        )


def ready(session: Session, call: Call) -> dict[str, Any]:
    """The arguments, with the current task as the default. Raises UsageError if the task cannot
    run the command."""
    task = call.values.get("task")
    if task is None and "task" in call.values:
        call.values["task"] = task = session.current
    gone = isinstance(task, GoneTask)
    if (
        task is not None
        and call.made.effect == spec.CHANGE
        and call.made.name != "kill"
        and not gone
    ):
        _refuse_unable(session, task, call.made.name)
    return call.values


def _refuse_unable(session: Session, task: Task, command: str) -> None:
    """Raise UsageError for a task that has ended, is a kernel thread, or is blocked in a call."""
    name = session.name_of(task.pid)
    what = hint = ""
    if task.exit_state:
        way = "why signal tells why; undo takes it back; " if task.exit_code & 0x7F else ""
        what, hint = f"{name} has ended (zombie)", f"{way}its parent can wait for it"
    elif task.mm is None and command not in ("schedule", "setcpu"):
        what, hint = f"{name} is a kernel thread: it runs no user code", "schedule lets it run"
    elif task.blocked_in:
        what, hint = f"{name} waits in {task.blocked_in}", f"use another task until {name} is woken"
    if what:
        raise UsageError(what, hint=hint, about="task")


def _change(session: Session, call: Call, values: dict[str, Any], text: str) -> Result:
    presses: list[int] = []

    def press() -> None:
        presses.append(len(session.journal))
        shown = text.splitlines()[0][:40]
        said = f"\nCtrl-C: {shown} runs to its end; press again to undo it\n"
        os.write(2, said.encode(errors="replace"))

    with interrupts.running_on(press), session.changing(text):
        session.debugger.hold(None)
        first = session.end
        reading = call.made.function(session, **values)
    last = session.now
    if getattr(reading, "errno", 0) or getattr(reading, "signal", None):
        session.failed(reading)
    if presses:
        moment = min(max(presses[0], first), last)
        session.goto(moment)
        session.note(
            f"stopped by Ctrl-C at #{moment}; the command has the events #{first + 1} to #{last}, "
            "continue goes on"
        )
    elif session.debugger.stops:
        stopped = stop_after(session, first, reading)
        if stopped is not None:
            return _result(session, text, stopped, first, last)
    result = _result(session, text, reading, first, last)
    if presses:
        return attrs.evolve(result, status=INTERRUPTED)
    return _verified(session, result) if session.debugger.verifying else result


def _result(session: Session, text: str, reading: Any, first: int, last: int) -> Result:
    form, status = "", OK
    if isinstance(reading, Shown):
        reading, form, status = reading.reading, reading.form, reading.status
    answered(session, reading)
    return Result(text, reading, form, status, first, last, session.now, session.take_notes())


def _verified(session: Session, result: Result) -> Result:
    """The result with the invariants that the command broke, for `set verify on`: the first three
    as notes, and the status."""
    from kemu.invariants import check

    found = check(session.kernel, session.name_of, quiescent=session.boundary(session.now))
    if not found:
        return result
    lines = [f"broken: {violation.invariant}: {violation}" for violation in found[:3]]
    more = [f"and {len(found) - 3} more: verify"] if len(found) > 3 else []
    return attrs.evolve(result, notes=(*result.notes, *lines, *more), status=UNSATISFIED)
