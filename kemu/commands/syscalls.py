"""Commands that only make a system call, generated from the rows of kemu/abi.

    addr, length, prot, fd ...   as typed
    a buffer                     the task's stack unless into ADDR is given
    data                         first stored by the task on its stack
    a task                       its pid

`own_body` declares the commands that do more than the call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from kemu.abi.calls import BY_WORD, CALLS
from kemu.abi.row import NEEDED, Arg, Call
from kemu.commands.buffer import buffer_of, check_size, filled_buffer, pages_of, seen
from kemu.commands.calls import call
from kemu.language import kinds
from kemu.language.spec import CHANGE, Argument, Command, Kind, Option, command, keyword, maybe, one
from kemu.language.spec import flags as flag_words
from kemu.readings import DataOutcome, Outcome

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

TASK = maybe("task", kinds.TASK)
KINDS: dict[str, Kind] = {
    "addr": kinds.ADDRESS,
    "buffer": kinds.ADDRESS,
    "length": kinds.SIZE,
    "count": kinds.SIZE,
    "prot": kinds.PROT,
    "fd": kinds.FD,
    "offset": kinds.OFFSET,
    "extent": kinds.OFFSET,
    "file_size": kinds.OFFSET,
    "limit": kinds.LIMIT,
    "task": kinds.PID,
    "data": kinds.DATA,
    "path": kinds.PATH,
    "title": kinds.TITLE,
}


def kind_of(arg: Arg) -> Kind:
    """The kind that reads the argument in the shell."""
    if arg.kind == "choice":
        prefix = getattr(arg.words, "prefix", "")
        return kinds.NumberedKind(
            arg.name.upper(), arg.words or {}, arg.what, arg.bounds, prefix=prefix
        )
    if arg.kind == "number":
        return kinds.NumberKind(arg.name.upper(), arg.what, *arg.bounds)
    return KINDS[arg.kind]


def parts(row: Call) -> tuple[tuple[Argument, ...], tuple[Option, ...]]:
    """Arguments and options of the row's command."""
    arguments, options = [TASK], []
    for arg in row.args:
        if arg.kind == "flags":
            options.append(flag_words(arg.name, arg.words or {}))
        elif arg.option:
            options.append(keyword(arg.name, kind_of(arg)))
        elif arg.default is NEEDED:
            arguments.append(one(arg.name, kind_of(arg)))
        else:
            arguments.append(maybe(arg.name, kind_of(arg), arg.default))
    return tuple(arguments), tuple(options)


def own_body(
    word: str,
    arguments: tuple[Argument, ...] | None = None,
    options: tuple[Option, ...] | None = None,
) -> Callable[[Callable[..., Any]], Command]:
    """Declare the command of a row whose body follows; the arguments are the row's unless given."""
    row = BY_WORD[word]
    regular = parts(row)
    return command(
        word,
        *row.also,
        arguments=regular[0] if arguments is None else arguments,
        options=regular[1] if options is None else options,
        effect=CHANGE,
        summary=row.summary,
        more=row.more,
        examples=row.examples,
        linux=(row.linux or f"{row.name}(2)")
        + (f"; errors {', '.join(row.errnos.split())}" if row.errnos else ""),
    )


def number(session: Session, task: Task, row: Call, arg: Arg, given: dict[str, Any]) -> Any:
    """The value passed to the kernel for an argument. Raises UsageError if it is too large."""
    value = arg.default if given[arg.name] is None else given[arg.name]
    if arg.kind == "flags":
        return reduce(or_, value, 0)
    if arg.kind == "length" and arg.most:
        pages_of(value, row.word or row.name)
    elif arg.kind == "count":
        check_size(value)
    elif arg.kind == "task":
        return value.pid
    elif arg.kind == "data":
        return filled_buffer(session, task, value)
    elif arg.kind == "buffer" and value is None:
        return buffer_of(task, arg.size if isinstance(arg.size, int) else given[arg.size])
    return 0 if value is None else value


def perform(session: Session, task: Task, row: Call, given: dict[str, Any]) -> Outcome:
    """Make the call. The reading includes the bytes that the kernel stored, if any."""
    values = {}
    for arg in row.args:
        values[arg.name] = number(session, task, row, arg, given)
        if arg.kind == "data":
            values["size"] = len(given[arg.name])
    for arg in row.args:
        if arg.kind == "choice" and values[arg.name] in row.remarks:
            session.note(row.remarks[values[arg.name]])
    answer = call(session, task, row.name, *row.passed(values), is_address=row.returns == "address")
    if not row.fills:
        return answer
    fixed = next((arg.size for arg in row.args if isinstance(arg.size, int) and arg.size), 0)
    stored = 0 if answer.errno else fixed or answer.value
    data = seen(session, task, values[row.fills], stored)
    address = values.get("addr", values[row.fills])
    return DataOutcome(**answer.values(), address=address, data=data)


def _declare(row: Call) -> None:
    def run(session: Session, *, task: Task, **given: Any) -> Outcome:
        return perform(session, task, row, given)

    own_body(row.word or row.name)(run)


for _row in CALLS:
    if not _row.module:
        _declare(_row)
