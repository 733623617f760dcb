"""One system call on behalf of a command, and its reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kemu.abi.words import ERRNO_TEXT, STOPPING, code_name, errno_name, signal_name
from kemu.explain.checks import decision
from kemu.readings import AccessOutcome, Outcome

if TYPE_CHECKING:
    from kemu.experiment import session as s

ERROR_LETTERS = "PWURI"
"""Bits 0 to 4 of the page-fault error code: present, write, user, reserved, instruction fetch."""


WAY_OUT = "why signal tells why; undo takes it back"
"""The note after a command that killed its process."""


def call(
    session: s.Session,
    task: s.Task,
    name: str,
    *arguments: Any,
    shown: Sequence[str] = (),
    is_address: bool = False,
) -> Outcome:
    """Let the task make the system call. `shown`: its arguments as the user wrote them;
    `is_address`: whether the result is one. A call that fails is repeated outside the journal to
    find the line that decided."""
    cpu, before = session.cpu_for(task), session.end

    def perform() -> s.Outcome:
        return session.performer.syscall(task, name, *arguments, cpu=cpu)

    outcome = perform()
    decided = decision(session, before, name, outcome.errno, perform) if outcome.errno else None
    note_completed(session, outcome)
    note_signal(session, task, outcome)
    return Outcome(
        pid=task.pid,
        name=session.name_of(task.pid),
        call=name,
        arguments=tuple(shown),
        value=outcome.value,
        errno=outcome.errno,
        error=errno_name(outcome.errno) if outcome.errno else "",
        why=(decided.why if decided else "") or ERRNO_TEXT.get(outcome.errno, ""),
        is_address=is_address,
        blocked=outcome.blocked,
        minor=outcome.minor,
        major=outcome.major,
        decision=decided,
    )


def note_completed(session: s.Session, outcome: s.Outcome) -> None:
    """Add a note for each call of another task that returned because of this one."""
    for done in outcome.completed:
        answer = str(done.value) if done.value >= 0 else f"-{errno_name(-done.value)}"
        session.note(f"{session.name_of(done.pid)} is woken: {done.call} -> {answer}")


def note_signal(session: s.Session, task: s.Task, outcome: s.Outcome) -> None:
    """Add a note about the signal that the task took on return from the call."""
    if outcome.signal is not None:
        end = "; it is dead" if outcome.signal.killed else ""
        session.note(f"{session.name_of(task.pid)} takes {signal_name(outcome.signal.signo)}{end}")
        if outcome.signal.killed:
            session.note(WAY_OUT)


def note_no_stop(session: s.Session, task: s.Task, signal: int) -> None:
    """Add a note if Linux would stop the task on this signal, which kemu does not."""
    if signal in STOPPING and task.sighand.action.get(signal, "default") == "default":
        session.note(f"{session.name_of(task.pid)} goes on: kemu has no job control")


def reading_of_access(
    session: s.Session,
    task: s.Task,
    outcome: s.Outcome,
    *,
    kind: str,
    address: int,
    size: int,
    effect: str,
) -> AccessOutcome:
    """The reading of an access by user code; `effect`: what it did to the pages, in words."""
    signal = outcome.signal
    if signal and signal.killed:
        session.note(WAY_OUT)
    return AccessOutcome(
        pid=task.pid,
        name=session.name_of(task.pid),
        kind=kind,
        address=address,
        size=size,
        data=outcome.data,
        minor=outcome.minor,
        major=outcome.major,
        signal=signal_name(signal.signo) if signal else "",
        code=code_name(signal.signo, signal.code) if signal else "",
        fault_address=signal.addr if signal else 0,
        error_code=error_letters(signal.error_code) if signal else "",
        killed=bool(signal and signal.killed),
        blocked=outcome.blocked,
        effect=effect,
    )


def error_letters(code: int) -> str:
    """`PWU` for the error code 7."""
    return "".join(letter for bit, letter in enumerate(ERROR_LETTERS) if code >> bit & 1)
