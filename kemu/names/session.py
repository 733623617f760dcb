"""What names and functions mean in an expression: tasks, their marks and counters, moments, and
functions about memory.

    app               the task              app.heap app.stack app.text  marks of its address space
    app.pid app.rss   its numbers           app.brk app.total_vm ...     any number of its mm_struct
    $pid  $last  $1   the session's values  pfn(app, 0x10000)            a function

A task may be given to a function as a name, as a text or as a pid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from kemu.errors import UsageError
from kemu.language.expr import Expression, TaskValue, Value
from kemu.language.suggest import did_you_mean
from kemu.language.things import MARKS
from kemu.names import fields as _fields  # noqa: F401 - declares its functions
from kemu.names import races as _races  # noqa: F401 - declares its functions
from kemu.names.questions import ANY_NUMBER, FUNCTIONS, Function
from kemu.names.questions import function as _function
from kemu.names.questions import number_of as _number
from kemu.names.questions import task_of as _task

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task


class SessionNames:
    """The names of one session at its present moment (see `expr.Names`)."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def name(self, dotted: str) -> Value:
        """A task, one of its fields, or a mark in time."""
        tasks = self.session.names()
        if dotted in tasks:
            return TaskValue(tasks[dotted], dotted)
        owner, _, field = dotted.rpartition(".")
        if owner in tasks:
            return self._field(self.session.tasks[tasks[owner]], owner, field)
        if dotted in self.session.marks:
            return self.session.marks[dotted]
        known = [*tasks, *self.session.marks, *FUNCTIONS]
        raise UsageError(
            f"expression: nothing is called '{dotted[:40]}'", hint=self._hint(dotted, known)
        )

    def _hint(self, dotted: str, known: list[str]) -> str:
        first, _, field = dotted.partition(".")
        guess = did_you_mean(first, known)
        if guess and field:
            guess = guess[:-2] + f".{field}'?"
        return guess or "see: help expressions"

    def _field(self, task: Task, owner: str, field: str) -> Value:
        own: dict[str, Callable[[], int]] = {
            "pid": lambda: task.pid,
            "ppid": lambda: task.real_parent.pid if task.real_parent else 0,
            "tgid": lambda: task.tgid,
            "rss": lambda: _rss(task),
            "minor": lambda: task.min_flt,
            "major": lambda: task.maj_flt,
            "exit_code": lambda: task.exit_code,
            "exit_status": lambda: _exit_status(task.exit_code),
            "cpu": lambda: task.cpu,
        }
        if field in own:
            return own[field]()
        numbers = _numbers(task.mm)
        if field not in numbers:
            return self._no_field(task, owner, field, [*own, *MARKS, *numbers])
        return numbers[field]

    def _no_field(self, task: Task, owner: str, field: str, known: list[str]) -> Value:
        if task.mm is None:
            raise UsageError(
                f"expression: {owner} has no address space",
                hint="only pid, ppid, minor, major, exit_code, exit_status",
            )
        guess = did_you_mean(field, known)
        raise UsageError(
            f"expression: {owner} has no '{field[:40]}'",
            hint=guess or f"known are {', '.join(known[:12])} ...",
        )

    def variable(self, text: str) -> Value:
        """`$pid`, `$last`, `$1`."""
        values = self.session.debugger.values
        if text == "$pid":
            return self.session.current.pid
        number = text[1:]
        if text == "$last" and self.session.debugger.last is not None:
            return self.session.debugger.last
        if number.isdigit() and len(number) < 8 and 1 <= int(number) <= len(values):
            return values[int(number) - 1]
        known = "known are $pid, $last (of a call or print), and $1 ... from print"
        raise UsageError(f"expression: there is no {text[:40]}", hint=known)

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        """The result of a function of `FUNCTIONS`."""
        return self.function(function, len(arguments)).body(self.session, *arguments)

    def function(self, name: str, count: int) -> Function:
        """The function that takes `count` arguments."""
        found = FUNCTIONS.get(name)
        if found is None:
            guess = did_you_mean(name, FUNCTIONS)
            raise UsageError(
                f"expression: no function '{name[:40]}'", hint=guess or "print functions lists them"
            )
        if not found.least <= count <= found.most:
            raise UsageError(
                f"expression: {name} got {count} arguments", hint=f"it is {found.signature}"
            )
        return found


def check(expression: Expression, session: Session) -> tuple[str, ...]:
    """A line for each name in the expression that means nothing yet, since it may come to exist
    while the expression waits. Something that can never have a value is an error: an unknown
    function, one with too many arguments, or a calculation with numbers alone."""
    names, lines = SessionNames(session), []
    if not any(step.op in ("name", "variable", "call") for step in expression.steps):
        expression.evaluate(names)
    for step in expression.steps:
        word = str(step.argument)
        if step.op == "call":
            try:
                names.function(word, step.arity)
            except UsageError as error:
                raise expression.source.error(
                    error.what, step.column, step.length, error.hint
                ) from error
        owner = word.partition(".")[0]
        if step.op == "name" and not {word, owner} & {*session.names(), *session.marks}:
            guess = did_you_mean(owner, [*session.names(), *session.marks])
            lines.append(
                f"note: nothing is called '{owner[:40]}' yet" + (f" ({guess})" if guess else "")
            )
    return tuple(dict.fromkeys(lines))


def functions_page() -> list[str]:
    """One line per function."""
    return [f"{function.signature:<26} {function.summary}" for function in FUNCTIONS.values()]


def _exit_status(code: int) -> int:
    """What a shell shows as $?: the exit code, or 128 + the signal number."""
    return 128 + (code & 0x7F) if code & 0x7F else code >> 8 & 0xFF


def _numbers(mm: Any) -> dict[str, int]:
    """The fields of an mm_struct that are numbers, and the marks."""
    if mm is None:
        return {}
    fields = {field.name: getattr(mm, field.name) for field in attrs.fields(type(mm))}
    numbers = {name: value for name, value in fields.items() if type(value) is int}
    return numbers | {mark: numbers[field] for mark, field in MARKS.items()}


def _rss(task: Task) -> int:
    if task.mm is None:
        return 0
    return sum(count for counter, count in task.mm.rss_stat.items() if counter != 2)


# ---------------------------------------------------------------- functions


@_function("pfn(TASK, ADDR)", "the frame that the address leads to; none where nothing is mapped")
def _pfn(session: Session, task: Value, address: Value) -> Value:
    from kemu.observe.lookup import physical

    found = physical(
        session.kernel, _task(session, task), _number(address, "address"), session.name_of
    )
    return None if found is None else found >> 12


@_function(
    "pte(TASK, ADDR[, LEVEL])",
    "the last entry on the way, as a number; none where a table is missing",
)
def _pte(session: Session, task: Value, address: Value, level: Value = None) -> Value:
    from kemu.observe.lookup import entry

    if level is not None:
        return FUNCTIONS["entry"].body(session, task, address, level)

    return entry(session.kernel, _task(session, task), _number(address, "address"), session.name_of)


@_function("byte(TASK, ADDR)", "the byte that lies there; none where nothing is mapped")
def _byte(session: Session, task: Value, address: Value) -> Value:
    from kemu.observe.lookup import byte

    return byte(session.kernel, _task(session, task), _number(address, "address"), session.name_of)


@_function("refcount(PFN)", "_refcount of the frame")
def _refcount(session: Session, pfn: Value) -> Value:
    from kemu.observe.lookup import refcount

    return refcount(session.kernel, _number(pfn, "frame"))


@_function("mapcount(PFN)", "how many page-table entries map the frame")
def _mapcount(session: Session, pfn: Value) -> Value:
    from kemu.observe.lookup import mapcount

    return mapcount(session.kernel, _number(pfn, "frame"))


@_function(
    "data_frames(TASK, ...)",
    "different frames that the tasks map together, without the zero page",
    most=ANY_NUMBER,
)
def _data_frames(session: Session, *tasks: Value) -> Value:
    return len(set().union(*(_frames(session, task) for task in tasks)))


@_function("shared(A, B)", "frames that both tasks map, without the zero page")
def _shared(session: Session, one: Value, other: Value) -> Value:
    return len(_frames(session, one) & _frames(session, other))


@_function("table_frames(TASK)", "frames that hold its own page tables")
def _table_frames(session: Session, task: Value) -> Value:
    from kemu.observe.lookup import table_levels

    return len(table_levels(session.kernel, _task(session, task), session.name_of))


@_function("rss(TASK)", "resident pages")
def _rss_of(session: Session, task: Value) -> Value:
    return _rss(_task(session, task))


@_function("faults(TASK)", "minor and major faults so far")
def _faults(session: Session, task: Value) -> Value:
    found = _task(session, task)
    return found.min_flt + found.maj_flt


@_function("alive(TASK)", "true unless it has ended; the name must be known")
def _alive(session: Session, task: Value) -> Value:
    return not _task(session, task).exit_state


@_function("tasks()", "how many tasks there are, the kernel's own included")
def _tasks(session: Session) -> Value:
    return len(session.tasks)


@_function("hex(X)", "the number as a text in base 16")
def _hex(_session: Session, value: Value) -> Value:
    return hex(_number(value, "number"))


def _frames(session: Session, task: Value) -> set[int]:
    """The frames that the task's page tables map in the user half."""
    from kemu.observe.lookup import mapped_frames

    found = _task(session, task)
    return set() if found.mm is None else mapped_frames(session.kernel, found, session.name_of)
