"""Why a signal came, why a call failed: the check that decided, and what would have made it
succeed.

A signal is explained by its siginfo, which is in the journal. A call that failed is made once more
outside the journal (`checks.py`), to see which line of which function decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kemu import readings
from kemu.abi.words import code_name, signal_name
from kemu.errors import UsageError
from kemu.explain.advice import ADVICE

if TYPE_CHECKING:
    from kemu.experiment.session import Record, Session


def why_failed(session: Session, what: str) -> readings.Reading:
    """The answer to `why signal`, `why errno` and `why last`."""
    if what == "signal":
        return why_signal(session, 0, session.now)
    record, reading = _last_failure(session, what)
    if record is None:
        raise UsageError(
            f"why {what}: nothing has failed up to this moment",
            hint="why pte ADDRESS asks about an entry",
        )
    if getattr(reading, "errno", 0):
        return _why_errno(record, reading)
    return why_signal(session, record.first, record.last)


def ended_badly(session: Session) -> bool:
    """Whether the newest command ends at this moment, and gave an errno or a signal."""
    record, _ = _last_failure(session, "last")
    return record is not None and record.last == session.now


def _last_failure(session: Session, what: str) -> tuple[Record | None, Any]:
    """The newest command up to this moment that failed in the wanted way, and its reading."""
    for record, reading in reversed(session.failures):
        if record.last > session.now or record not in session.timeline.records:
            continue
        if what != "last" and bool(getattr(reading, "errno", 0)) is not (what == "errno"):
            continue
        newest = [known for known in session.timeline.records if known.last <= session.now][-1]
        if what == "last" and newest != record:
            break
        return record, reading
    return None, None


# ---------------------------------------------------------------- signals


def why_signal(session: Session, first: int, last: int) -> readings.Why:
    """Why the newest signal was sent in the events (first, last]."""
    from kemu.explain.why import last_signal
    from kemu.observe.events import one_event
    from kemu.observe.moves import open_names

    found = last_signal(session.journal, first, last)
    if found is None:
        raise UsageError(
            "why signal: none was sent up to this moment", hint="why errno, or why last"
        )
    number, info = found
    calls = open_names(session.journal, number)
    record = session.command_of(number)
    with session.traveling():
        event = one_event(session.kernel, number, session.name_of)
        rule, advice = _signal_words(session, number, info, calls)
    return readings.Why(
        thing=f"{signal_name(info.signo)} ({code_name(info.signo, info.code)})",
        events=(event.replace(note=""),),
        more=0,
        calls=calls,
        command=record.text if record else "",
        rule=rule,
        advice=advice,
        place=_decider(calls, code_name(info.signo, info.code)),
    )


DECIDERS = frozenset(
    {
        "bad_area_nosemaphore",
        "bad_area_access_error",
        "do_sigbus",
        "oom_kill_process",
        "do_notify_parent",
    }
)
"""Functions that decide that a signal is sent."""


def _decider(calls: tuple[str, ...], code: str) -> str:
    known = next((name for name in reversed(calls) if name in DECIDERS), "")
    sender = [name for name in calls if name not in SENDERS]
    trap = "the CPU: a general protection fault" if code == "SI_KERNEL" else ""
    return known or (sender[-1] if sender else trap)


SENDERS = frozenset(
    {
        "force_sig_fault",
        "force_sig_info_to_task",
        "send_sig",
        "__send_signal_locked",
        "do_send_sig_info",
    }
)
"""Functions that only pass a signal on."""


def _signal_words(
    session: Session, number: int, info: Any, calls: tuple[str, ...]
) -> tuple[str, str]:
    """The rule, with the access and the mapping in question, and the advice. Moves the session to
    the moment before the event."""
    from kemu.explain.rules import signal_rule

    session.goto(number - 1)
    target = _target(session, number)
    code = code_name(info.signo, info.code)
    rule, advice = signal_rule(
        signal_name(info.signo), code, info.addr, calls, _vma_flags(target, info.addr)
    )
    if info.pid and code in ("SI_USER", "SI_TKILL"):
        return f"{session.name_of(info.pid)} (pid {info.pid}) sent it: {rule}", advice
    if not info.addr and not info.error_code:
        return rule, advice
    access = "fetch" if info.error_code & 16 else "write" if info.error_code & 2 else "read"
    return f"{access} at {info.addr:#x}: {rule}{_mapping_text(target, info.addr)}", advice


def _target(session: Session, number: int) -> Any:
    """The task that got the signal: its list of pending signals grew, or its group's did."""
    obj: Any = session.journal.event(number)[0]
    return next(
        (task for task in session.tasks.values() if obj is task or obj is task.signal), None
    )


def _vma_flags(task: Any, address: int) -> int | None:
    """`vm_flags` of the mapping at the address; None where there is none."""
    if task is None or task.mm is None:
        return None
    return next(
        (vma.vm_flags for vma in task.mm.mm_mt if vma.vm_start <= address < vma.vm_end), None
    )


def _mapping_text(task: Any, address: int) -> str:
    """The mapping at the address, or the nearest ones, in the task's address space."""
    if task is None or task.mm is None:
        return ""
    regions = [(vma.vm_start, vma.vm_end, vma.vm_flags) for vma in task.mm.mm_mt]
    for start, end, flags in regions:
        if start <= address < end:
            letters = "".join(
                letter if flags >> bit & 1 else "-" for bit, letter in enumerate("rwx")
            )
            return f" ({start:#x}-{end:#x} is {letters})"
    below = [f"{start:#x}-{end:#x}" for start, end, _ in regions if end <= address][-1:]
    above = [f"{start:#x}-{end:#x}" for start, end, _ in regions if start > address][:1]
    return f" (nearest: {', '.join(below + above)})" if below or above else ""


# ---------------------------------------------------------------- errno


def _why_errno(record: Record, reading: readings.Outcome) -> readings.Why:
    """What was kept about the line that decided the failed call; without a journal, the description
    of the errno."""
    decided = reading.decision
    at = f"{decided.function} in {decided.path}" if decided and decided.path else ""
    return readings.Why(
        thing=f"{reading.call} -> -{reading.error} ({reading.errno})",
        events=(),
        more=0,
        calls=decided.calls if decided else (),
        command=record.text,
        rule=reading.why,
        advice=decided.instead if decided else ADVICE.get(reading.error, ""),
        place=f"{decided.place}" + (f" ({at})" if at else "") if decided else "",
    )
