"""Functions of the expression language that show any field of a thing. The things are those of
`why`, under the same names (`language/things.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from kemu.errors import UsageError
from kemu.language.expr import TaskValue, Value, describe
from kemu.language.suggest import did_you_mean, some_of
from kemu.names.questions import FUNCTIONS, function, number_of, task_of

if TYPE_CHECKING:
    from kemu.experiment.session import Session


@function("frame(PFN[, FIELD])", "a field of the frame's struct page, such as '_refcount'")
def _frame(session: Session, pfn: Value, field: Value = "_refcount") -> Value:
    from kemu.observe.lookup import frame_of

    return _field(frame_of(session.kernel, number_of(pfn, "frame")), _text(field))


@function("vma(TASK, ADDR[, FIELD])", "a field of the mapping there; none without a mapping")
def _vma(session: Session, task: Value, address: Value, field: Value = "vm_start") -> Value:
    owner, at = task_of(session, task), number_of(address, "address")
    tree = owner.mm.mm_mt if owner.mm is not None else ()
    found = next((vma for vma in tree if vma.vm_start <= at < vma.vm_end), None)
    return None if found is None else _field(found, _text(field))


@function("mm(TASK, FIELD)", "a field of the task's mm_struct, or MM_ANONPAGES ...")
def _mm(session: Session, task: Value, field: Value) -> Value:
    from kemu.observe.lookup import counter_of

    owner, name = task_of(session, task), _text(field)
    if owner.mm is None:
        return None
    counted = FUNCTIONS["rss"].body(session, task) if name == "rss" else counter_of(owner.mm, name)
    return _field(owner.mm, name) if counted is None else counted


@function("task(TASK, FIELD)", "a field of the task_struct")
def _task(session: Session, task: Value, field: Value) -> Value:
    return _field(task_of(session, task), _text(field))


@function("counter(NAME)", "a number of the whole machine, such as 'PGFAULT'")
def _counter(session: Session, name: Value) -> Value:
    from kemu.explain.why import counted

    session.kernel.activate()
    known = counted()
    field = _text(name)
    if field not in known:
        guess = did_you_mean(field, known) or f"known are {some_of(sorted(known), 8)}"
        raise UsageError(f"expression: no kernel counter named '{field[:40]}'", hint=guess)
    return _field(known[field], field)


@function("ram(ADDR)", "the word of eight bytes at a physical address")
def _ram(session: Session, address: Value) -> Value:
    from kemu.observe.lookup import word

    return word(session.kernel, number_of(address, "physical address"))


@function("tlb(ADDR[, CPU])", "the frame that a CPU's TLB has for the page, of any task")
def _tlb(session: Session, address: Value, cpu: Value = 0) -> Value:
    from kemu.observe.lookup import tlb_frame

    number = int(cpu) if isinstance(cpu, str) and cpu.isdecimal() else cpu
    return tlb_frame(session.kernel, number_of(address, "address"), number_of(number, "CPU"))


@function("field(NAME, FIELD)", "a field of what trace calls NAME: field('regs of app', 'ax')")
def _named(session: Session, name: Value, field: Value) -> Value:
    from kemu.observe.named import named, value_of

    found = named(session.kernel, _text(name), _text(field), session.name_of)
    if found is None:
        raise UsageError(
            f"expression: trace shows nothing named '{_text(name)[:40]}' at this moment",
            hint="copy a name from a line of trace",
        )
    return _plain(value_of(found, _text(field)))


def _text(value: Value) -> str:
    if isinstance(value, TaskValue):
        return value.name
    if isinstance(value, str):
        return value
    raise UsageError(
        f"expression: {describe(value)} is not a name", hint="put the field in quotes: 'flags'"
    )


def _field(obj: Any, name: str) -> Value:
    known = [field.name for field in attrs.fields(type(obj))]
    if name not in known:
        guess = did_you_mean(name, known) or f"known are {some_of(sorted(known), 8)}"
        raise UsageError(f"expression: {type(obj).__name__} has no '{name[:40]}'", hint=guess)
    return _plain(getattr(obj, name))


def _plain(value: Any) -> Value:
    """The value, if an expression can hold it; otherwise its name as a text."""
    if value is None or isinstance(value, (int, str, bool)):
        return value
    pid = getattr(value, "pid", None)
    return pid if isinstance(pid, int) else str(value)
