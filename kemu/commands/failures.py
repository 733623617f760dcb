"""Why a signal came, why a call failed: the check that decided, and what would have made it succeed.

A signal tells itself: its siginfo is in the journal. For an errno the call is run once more beside the journal
(`rehearse.py`) with an ear on what each function returns: the innermost one whose `-errno` was handed up to the system call
is the one that decided, and the line that it returned from is the check.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from kemu import readings
from kemu.commands.uapi import ERRNO_TEXT, code_name, errno_name, signal_name
from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.session import Record, Session

ADVICE: dict[tuple[str, str], str] = {
    ("mmap", "ENOMEM"): "map less, free mappings first (munmap), or raise the limit: setrlimit",
    ("mmap", "EINVAL"): "length above 0, address and offset multiples of the page size, private or shared",
    ("mmap", "EEXIST"): "another address, or fixed instead of fixed_noreplace",
    ("mmap", "EACCES"): "a file that is open for what the protection asks",
    ("mmap", "EPERM"): "an address at or above the lowest one that may be mapped",
    ("munmap", "EINVAL"): "an address that is a multiple of the page size, and a length above 0",
    ("mprotect", "ENOMEM"): "a range that is mapped without a gap: see maps",
    ("mprotect", "EACCES"): "a right that the mapping may have (a shared file opened for writing to get W)",
    ("mprotect", "EINVAL"): "an address that is a multiple of the page size",
    ("wait4", "ECHILD"): "a child that has not been waited for: see tree",
    ("fork", "ENOMEM"): "end a process or unmap memory first, or start with more --mem",
    ("exec", "ENOEXEC"): "a file that opens with an ELF header or with #!",
    ("exec", "ENOENT"): "load the file first: load HOSTFILE as PATH",
    ("kill", "ESRCH"): "a process that exists: see ps",
}
"""What would have made the call succeed, by call and errno."""


class Check(NamedTuple):
    """A function that returned the error: its name, its place in kemu, and the text of the check."""

    function: str
    place: str
    text: str


def why_failed(session: Session, what: str) -> readings.Reading:
    """The answer to `why signal`, `why errno` and `why last`."""
    record, reading = _last_failure(session, what)
    if record is None:
        raise UsageError(f"why {what}: nothing has failed at this moment", hint="why pte ADDRESS asks about an entry")
    if getattr(reading, "errno", 0):
        return _why_errno(session, record, reading)
    return _why_signal(session, record, reading.pid)


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


def _why_signal(session: Session, record: Record, pid: int) -> readings.Why:
    from kemu.observe.events import one_event
    from kemu.observe.moves import open_names
    from kemu.observe.why import last_signal

    found = last_signal(session.journal, record.first, record.last)
    if found is None:
        raise UsageError("why signal: the command sent none", hint="why errno, or why last")
    number, info = found
    calls = open_names(session.journal, number)
    rule, advice = _signal_words(session, record, info, pid)
    with session.traveling():
        event = one_event(session.kernel, number, session.name_of)
    return readings.Why(
        thing=f"{signal_name(info.signo)} ({code_name(info.signo, info.code)})",
        events=(event.replace(note=""),),
        more=0,
        calls=calls,
        command=record.text,
        rule=rule,
        advice=advice,
        place=next((name for name in reversed(calls) if name.startswith(("bad_area", "do_sigbus"))), ""),
    )


def _signal_words(session: Session, record: Record, info: Any, pid: int) -> tuple[str, str]:
    """The rule, with the access and the mapping in question, and the advice."""
    from kemu.observe.rules import SIGNALS

    rule, advice = SIGNALS.get(code_name(info.signo, info.code), ("", ""))
    if not info.addr and not info.error_code:
        return rule, advice
    access = "fetch" if info.error_code & 16 else "write" if info.error_code & 2 else "read"
    with session.traveling():
        session.goto(record.first)
        where = _mapping_text(session, pid, info.addr)
    return f"{access} at {info.addr:#x}: {rule}{where}", advice


def _mapping_text(session: Session, pid: int, address: int) -> str:
    """The mapping at the address, or the nearest ones, in the task's address space."""
    task = session.tasks.get(pid)
    if task is None or task.mm is None:
        return ""
    mm = task.mm
    regions = [(vma.vm_start, vma.vm_end, vma.vm_flags) for vma in mm.mm_mt]
    for start, end, flags in regions:
        if start <= address < end:
            letters = "".join(letter if flags >> bit & 1 else "-" for bit, letter in enumerate("rwx"))
            return f" ({start:#x}-{end:#x} is {letters})"
    below = [f"{start:#x}-{end:#x}" for start, end, _ in regions if end <= address][-1:]
    above = [f"{start:#x}-{end:#x}" for start, end, _ in regions if start > address][:1]
    return f" (nearest: {', '.join(below + above)})" if below or above else ""


# ---------------------------------------------------------------- errno


def _why_errno(session: Session, record: Record, reading: Any) -> readings.Why:
    checks = find_checks(session, record, reading.errno)
    name = errno_name(reading.errno)
    decided = checks[0] if checks else None
    rule = f"{decided.function} returned -{name}: {decided.text}" if decided else ERRNO_TEXT.get(reading.errno, "")
    return readings.Why(
        thing=f"{reading.call} -> -{name} ({ERRNO_TEXT.get(reading.errno, '')})",
        events=(),
        more=0,
        calls=tuple(check.function for check in reversed(checks)),
        command=record.text,
        rule=rule,
        advice=ADVICE.get((reading.call, name), ""),
        place=decided.place if decided else "",
    )


def find_checks(session: Session, record: Record, errno: int) -> list[Check]:
    """The functions through which the errno went up, the one that decided first."""
    from kemu.commands.rehearse import perform, rehearsal

    chain: list[tuple[int, Check]] = []
    with rehearsal(session, record):
        kept = sys.getprofile()
        sys.setprofile(_listener(chain, -errno))
        try:
            perform(session, record)
        finally:
            sys.setprofile(kept)
    checks: list[Check] = []
    for _, check in chain:
        if not checks or checks[-1].function != check.function:
            checks.append(check)
    return checks


def _listener(chain: list[tuple[int, Check]], wanted: int) -> Callable[[FrameType, str, Any], None]:
    """A profile function that keeps the last unbroken chain of returns of the value (alone, or first of several), innermost
    first."""

    def listen(frame: FrameType, event: str, value: Any) -> None:
        if isinstance(value, tuple) and value:
            value = value[0]
        if event != "return" or type(value) is not int or value != wanted:
            return
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("kemu.kernel."):
            return
        depth = _depth(frame)
        if chain and chain[-1][0] != depth + 1:
            chain.clear()
        chain.append((depth, _check(frame, module)))

    return listen


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back
    return depth


def _check(frame: FrameType, module: str) -> Check:
    """The line that returned, or the condition over it."""
    import linecache

    code, line = frame.f_code, frame.f_lineno
    text = linecache.getline(code.co_filename, line).strip()
    above = linecache.getline(code.co_filename, line - 1).strip()
    if " if " not in text and above.startswith(("if ", "elif ")):
        text = above.rstrip(":")
    return Check(code.co_name, f"{module.replace('.', '/')}.py:{line}", text)
