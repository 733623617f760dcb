"""Commands that show where the kernel is: bt, list, source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kemu import readings
from kemu.debugger.kinds import FUNCTION
from kemu.errors import UsageError
from kemu.language.spec import FREE, command, maybe, one
from kemu.language.suggest import did_you_mean

if TYPE_CHECKING:
    from kemu.experiment.session import Session

_START = (
    "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; "
    "break do_wp_page; write kid 0x10000 8; "
)
WINDOW = 12
"""Lines that `list` shows before and after the current one of a long function."""
WHOLE = 40
"""A function of at most so many lines is shown whole."""


@command(
    "bt",
    "backtrace",
    "where",
    effect=FREE,
    summary="the kernel functions that are open at this moment, the innermost first",
    more="calls shows all calls of a command, list the code of one function.",
    examples=(_START + "bt", _START + "step 3; where"),
    linux="backtrace of gdb(1)",
)
def bt(session: Session) -> readings.Backtrace:
    """The open functions."""
    from kemu.debugger.standing import open_here

    now = session.now
    record = session.command_at(now) or (session.command_of(now) if now else None)
    return readings.Backtrace(
        now=now,
        command=record.text if record else "",
        calls=open_here(session),
    )


@command(
    "list",
    "l",
    arguments=(maybe("function", FUNCTION),),
    effect=FREE,
    summary="the code of a kernel function, with a mark at the current line",
    more="Without a function, the innermost one that is open at this moment (see: bt). The mark "
    "is at the line that made the event of this moment.",
    examples=(_START + "step; list", "list do_wp_page"),
    linux="list of gdb(1)",
)
def list_(session: Session, function: str | None) -> readings.Listing:
    """The lines of the function."""
    import inspect
    import linecache
    from pathlib import Path

    from kemu.debugger.standing import open_here

    stack = open_here(session)
    if function is None and not stack:
        raise UsageError(
            f"list: no kernel function is open at #{session.now}",
            hint="list FUNCTION shows one, such as: list do_wp_page; break FUNCTION stops in it",
        )
    name = stack[-1].function if function is None else function
    known = _named(name)
    here = [one for one in known if any(call.path == one.path for call in stack)]
    chosen = (here or known)[0]
    file = Path(__file__).parents[2] / (chosen.module.replace(".", "/") + ".py")
    code = linecache.getlines(str(file))
    first = chosen.line
    block = inspect.getblock(code[first - 1 :])
    called = any(call.function == chosen.name for call in stack)
    at = 0
    if called and session.debugger.entry_at(session.now) and stack[-1].function == chosen.name:
        at = first + next(i for i, line in enumerate(block) if line.lstrip().startswith("def "))
    elif called:
        from kemu.debugger.codeline import line_of

        at = line_of(session, session.now, chosen.name)
    begin, end = 0, len(block)
    if end > WHOLE and at:
        begin = max(at - first - WINDOW, 0)
        end = min(at - first + WINDOW + 1, end)
    return readings.Listing(
        function=chosen.name,
        path=chosen.path,
        file=f"{chosen.module.replace('.', '/')}.py",
        first=first + begin,
        marked=at,
        lines=tuple(line.rstrip("\n") for line in block[begin:end]),
    )


def _named(name: str) -> list[Any]:
    """The `trace.frames.Function`s of that name. Raises UsageError if there is none."""
    from kemu.observe.moves import functions

    found = [known for known in functions() if known.name == name.removesuffix("()")]
    if not found:
        guess = did_you_mean(name, [known.name for known in functions()])
        hint = (
            guess
            or "for example: source do_wp_page; calls shows the functions that a command called"
        )
        raise UsageError(f"function: no kernel function '{name[:40]}'", hint=hint, about="function")
    return found


@command(
    "source",
    arguments=(one("function", FUNCTION),),
    summary="where a kernel function is in kemu and in Linux, and what it does",
    examples=("source do_wp_page", "source copy_present_ptes"),
)
def source(_session: Session, function: str) -> readings.Text:
    """File and line, the file in Linux, and the docstring of the function."""
    return readings.Text((*about(function), f"list {function.removesuffix('()')} shows its code"))


def about(function: str) -> list[str]:
    """The place and the docstring of a kernel function. Raises UsageError for an unknown one."""
    from kemu.observe.moves import without_marks

    lines: list[str] = []
    for known in _named(function):
        where = "done by the CPU itself" if known.path == "(hardware)" else f"Linux: {known.path}"
        account = [line.strip() for line in without_marks(known.doc).strip().split("\n")]
        lines += [
            f"{known.name}()",
            f"  kemu:  {known.module.replace('.', '/')}.py:{known.line}",
            f"  {where}",
            "",
            *account,
        ]
    return lines
