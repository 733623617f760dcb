"""Commands that ask why: why, history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kemu import readings
from kemu.errors import UsageError, blaming
from kemu.explain.reason import rule_of
from kemu.language import kinds
from kemu.language.spec import FREE, command, maybe, one
from kemu.language.suggest import did_you_mean, some_of

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.explain.why import Thing

THINGS = {
    "pte": "an entry of a page table: pte TASK ADDRESS",
    "frame": "a field of struct page: frame PFN [FIELD]",
    "vma": "a mapping, or its absence: vma TASK ADDRESS",
    "mm": "a number of an address space: mm TASK FIELD",
    "task": "a field of a task: task TASK [FIELD]",
    "tlb": "a TLB entry of a CPU: tlb ADDRESS [CPU]",
    "counter": "a number of the whole machine: counter NAME",
    "ram": "a word of RAM: ram ADDRESS",
    "field": "a field of what trace prints, in its words: regs of app ax",
}
"""Thing that may be asked about -> syntax."""

FAILURES = {
    "signal": "the newest signal, and the check that sent it",
    "errno": "the newest errno, and the check that gave it",
    "last": "the last command",
}
MOST_WHY, MOST_HISTORY = 6, 200
"""Largest number of events in an answer of `why` and of `history`."""
Written = tuple[int, Any, Any]
"""An event that changed the thing: (number, old value, new value)."""
PATIENCE = 100_000
"""Number of events that `why` searches for earlier changes; `history` searches all events."""
BEGINNINGS = (None, 0, -1)
"""Old values that mark the beginning of a thing's life, where `why` stops; `history` goes on."""

_START = (
    "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; write kid 0x10000 8; "
)
_FIELD = maybe("field", kinds.TextKind("FIELD", "a field of the structure (for tlb, a CPU number)"))
_ARGUMENTS = (maybe("task_", kinds.TASK), maybe("at", kinds.NUMBER), _FIELD)
_THING_TEXT = (
    "pte TASK ADDRESS is the last entry on the walk to the address; frame PFN [FIELD] a field "
    "of struct page (default _refcount); vma TASK ADDRESS [FIELD] the mapping there, or its "
    "absence; mm TASK FIELD a number of the address space, such as MM_ANONPAGES or total_vm; "
    "task TASK [FIELD] a field of the task (default state); tlb ADDRESS the entry in CPU 0's "
    "TLB, tlb ADDRESS 1 in CPU 1's; counter NAME a number of the whole machine, such as "
    "PGFAULT or nr_free_pages. A thing may also be named as in an expression, refcount(0x112), "
    "app.rss, or as trace and context print it: pfn 0x112 _refcount, mm of app total_vm."
)


@command(
    "why",
    arguments=(maybe("what", kinds.ChoiceKind("THING", THINGS | FAILURES)), *_ARGUMENTS),
    effect=FREE,
    summary="why something is as it is: the events, the function, the command, the rule",
    more="Alone, explains the event of this moment, or the failure of the command that ends "
    "here. "
    + _THING_TEXT
    + " signal and errno explain the most recent one: the check that decided, and what would "
    "have made the call succeed; last explains the last command.",
    examples=(
        _START + "why",
        _START + "why pte app 0x10000",
        _START + "why frame pfn(app,0x10000)",
        _START + "why refcount(pfn(app, 0x10000)); why mm of kid total_vm; history kid.rss",
        _START + "read app 0; why signal",
    ),
)
def why(
    session: Session, what: str | None, task_: Task | None, at: int | None, field: str | None
) -> readings.Reading:
    """The events that led to a thing, or the check that failed."""
    if what is None:
        if task_ is not None or at is not None or field is not None:
            raise UsageError(
                "why: of what?", hint="for example: why pte TASK ADDRESS (see: help why)"
            )
        return why_here(session)
    if what in FAILURES:
        from kemu.explain.failures import why_failed

        return why_failed(session, what)
    thing = _thing(session, what, task_, at, field or "")
    return why_thing(session, what, thing)


def why_here(session: Session) -> readings.Reading:
    """The failure of the command that ends at this moment, or the event of this moment."""
    from kemu.debugger.standing import event_here, open_here
    from kemu.explain.failures import ended_badly, why_failed

    if ended_badly(session):
        return why_failed(session, "last")
    if not session.now:
        raise UsageError(
            "why: nothing has happened yet (#0)", hint="spawn app makes a process", about="what"
        )
    event, rule = event_here(session)
    record = session.command_of(session.now)
    return readings.Why(
        thing=f"event #{event.number}",
        events=(event,),
        more=0,
        calls=tuple(call.function for call in open_here(session)),
        command=record.text if record else "",
        rule=rule,
    )


def why_thing(session: Session, what: str, thing: Thing) -> readings.Why:
    """The answer about a thing."""
    from kemu.observe.moves import open_names

    found = _chain(session, thing)
    if not found and thing.birth is not None:
        return why_thing(session, what, thing.birth).replace(
            thing=f"{thing.text}: as it was made with"
        )
    if not found:
        return readings.Why(thing.text, (), 0, (), "", _unwritten(what, thing))
    shown = found[:MOST_WHY]
    with session.traveling():
        events = tuple(event_of(session, what, thing, change) for change in shown)[::-1]
    number, old, new = shown[0]
    record = session.command_of(number)
    return readings.Why(
        thing=thing.text,
        events=events,
        more=len(found) - len(shown),
        calls=open_names(session.journal, number),
        command=record.text if record else "",
        rule=rule_of(events[-1], old, new),
    )


def _unwritten(what: str, thing: Thing) -> str:
    """The answer for a thing that no event of this experiment has written."""
    empty = {
        "pte": "never written: no page has been mapped at this address",
        "vma": "no mapping was ever made there",
        "tlb": "no entry: the CPU has not translated an address in this page",
    }
    return (
        empty[what]
        if thing.empty and what in empty
        else "no event has written it: it has its value from the boot"
    )


def _chain(session: Session, thing: Thing) -> list[Written]:
    """The events of the answer, newest first, back to the beginning of the thing's present life.

    If one command both removed the thing and made it again, the chain continues before it."""
    from kemu.explain.why import writers

    found: list[Written] = []
    began = None
    for change in writers(session.journal, thing, session.now, PATIENCE):
        if began is not None and session.command_of(change[0]) != began:
            break
        found.append(change)
        if len(found) > MOST_WHY:
            break
        began = session.command_of(change[0]) if change[1] in BEGINNINGS else None
    return found


def event_of(session: Session, kind: str, thing: Thing, change: Written) -> readings.EventReading:
    """The event in words: for a number, its effect on this thing alone; otherwise as in `trace`."""
    from kemu.observe.events import event_from_here, one_event

    number, old, new = change
    if type(old) is int and type(new) is int and not thing.text.endswith(" flags"):
        return _of_number(session, kind, thing, change)
    if kind in ("task", "mm"):
        return event_from_here(session.kernel, number, session.name_of)
    record = session.command_of(number)
    session.goto(number - 1)
    event = one_event(session.kernel, number, session.name_of, record.last if record else number)
    return (
        event.replace(what=thing.text, field="", old=_text(old), new=_text(new))
        if event.kind == "row"
        else event
    )


def _of_number(session: Session, kind: str, thing: Thing, change: Written) -> readings.EventReading:
    """The event without looking up the owners of other objects, which is fast for any event."""
    from kemu.observe.describe import entry_note
    from kemu.observe.moves import function_of

    number, old, new = change
    what, field = (thing.text, "") if thing.level >= 0 else tuple(thing.text.rsplit(" ", 1))
    texts = (
        (_text(old), _text(new)) if thing.level >= 0 else (_plain(field, old), _plain(field, new))
    )
    note = entry_note(thing.level, old, new) if thing.level >= 0 else ""
    name, path = function_of(session.journal, number)
    return readings.EventReading(number, kind, what, field, *texts, note, name, path)


def _plain(field: str, value: int) -> str:
    """A number in the base that suits the field."""
    from kemu.observe.describe import number_text

    return number_text(field, value)


def _text(value: Any) -> str:
    return hex(value) if isinstance(value, int) else str(value)


def _thing(
    session: Session,
    what: str,
    given: Task | None,
    at: int | None,
    field: str,
    *,
    command: str = "why",
) -> Thing:
    """What the words after the command (why, history) mean. Raises UsageError for a thing that is
    not there."""
    from kemu.explain import why as things

    session.kernel.activate()
    if field and what in things.CLASSES:
        _check_field(what, field)
    if what in ("mm", "task"):
        task = given or session.current
        name = session.name_of(task.pid)
        if what == "mm":
            return things.counter(task, field or "total_vm", name)
        return things.of_task(task, field or "state", name)
    if what in ("field", "counter"):
        if what == "field":
            return things.printed(session.kernel, field, session.name_of)
        _check_counter(command, field)
        return things.of_kernel(field)
    return _place(session, what, given, _needed(command, what, at, field), field)


def _needed(command: str, what: str, at: int | None, field: str) -> int:
    """The place of the thing. Raises UsageError if it is missing."""
    if at is None:
        word = "PFN" if what == "frame" else "ADDRESS"
        wrong = f"expected {word}, got '{field[:40]}'" if field else f"{word} is missing"
        hint = f"for example: {command} {what} 0x10000"
        raise UsageError(
            f"{command} {what}: {wrong}", hint=hint, about="field" if field else "what"
        )
    return at


def _place(session: Session, what: str, given: Task | None, at: int, field: str) -> Thing:
    """The thing at a frame or an address."""
    from kemu.explain import why as things

    with blaming("at"):
        if what == "frame":
            return things.frame(at, field or "_refcount")
        if what in ("tlb", "ram"):
            return things.ram(at) if what == "ram" else things.tlb_entry(_cpu(session, field), at)
        task = given or session.current
        name = session.name_of(task.pid)
        return (
            things.entry(task, at, name, field)
            if what == "pte"
            else things.mapping(task, at, field, name)
        )


def _check_field(what: str, field: str) -> None:
    from kemu.explain.why import CLASSES, known_fields

    known = known_fields(what)
    if field not in known:
        guess = did_you_mean(field, known) or f"known are {some_of(sorted(known), 8)}"
        raise UsageError(
            f"field: {CLASSES[what].__name__} has no '{field[:40]}'", hint=guess, about="field"
        )


def _check_counter(command: str, field: str) -> None:
    from kemu.explain.why import counted

    known = counted()
    if not field:
        raise UsageError(
            f"{command} counter: NAME is missing",
            hint=f"for example: {command} counter PGFAULT",
            about="what",
        )
    if field not in known:
        guess = did_you_mean(field, known) or f"known are {some_of(sorted(known), 8)}"
        raise UsageError(
            f"counter: no kernel counter named '{field[:40]}'", hint=guess, about="field"
        )


def _cpu(session: Session, text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and int(text) < session.cpus):
        hint = f"the machine has CPUs 0 to {session.cpus - 1}"
        raise UsageError(f"cpu: no CPU {text[:20]}", hint=hint, about="field")
    return int(text)


@command(
    "history",
    arguments=(one("what", kinds.ChoiceKind("THING", THINGS)), *_ARGUMENTS),
    effect=FREE,
    summary="every value that something had, and what changed it",
    more=_THING_TEXT,
    examples=(_START + "history frame pfn(app,0x10000)", _START + "history pte kid 0x10000"),
)
def history(
    session: Session, what: str, task_: Task | None, at: int | None, field: str | None
) -> readings.History:
    """All changes of a thing up to this moment."""
    from kemu.explain.why import writers

    thing = _thing(session, what, task_, at, field or "", command="history")
    found = list(writers(session.journal, thing, session.now))
    values = []
    with session.traveling():
        for change in found[:MOST_HISTORY]:
            number = change[0]
            event = event_of(session, what, thing, change)
            record = session.command_of(number)
            command = record.text if record else ""
            values.append(
                readings.HistoryValue(
                    number, event.old, event.new, event.function, command, event.note
                )
            )
    return readings.History(thing.text, tuple(values[::-1]), max(len(found) - MOST_HISTORY, 0))
