"""Which check made a call fail: the function that decided, and the line of it that did.

The call is run once more beside the journal (`rehearse.py`) with an ear on what each function
returns: the innermost one whose `-errno` was handed up to the system call is the one that decided.
Its line is read from the source:

    if not length:                     the condition over `return -EINVAL`
    error = mprotect_fixup(...)        where a variable is returned, the line that gave it its value
    not: if allowed                    where the function falls through to its end, the check that did not let it go

It is shown as Linux would write it (`clines.py`). The rule that keeps this file honest: the text is
a line of the kernel, never a line about it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from kemu.abi.words import errno_name

if TYPE_CHECKING:
    from kemu.experiment.session import Record, Session


class Check(NamedTuple):
    """A function that returned the error: its name, its place in kemu, and the text of the
    check."""

    function: str
    place: str
    text: str


def find_checks(session: Session, record: Record, errno: int) -> list[Check]:
    """The functions through which the errno went up, the one that decided first."""
    from kemu.debugger.rehearse import perform, rehearsal

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
    """A profile function that keeps the last unbroken chain of returns of the value (alone, or
    first of several), innermost first."""

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
        chain.append((depth, _check(frame, module, f"-{errno_name(-wanted)}")))

    return listen


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back
    return depth


def _check(frame: FrameType, module: str, error: str) -> Check:
    import linecache

    code, line = frame.f_code, frame.f_lineno
    lines = [
        linecache.getline(code.co_filename, number).rstrip()
        for number in range(code.co_firstlineno, line + 1)
    ]
    return Check(code.co_name, f"{module.replace('.', '/')}.py:{line}", condition(lines, error))


def condition(lines: list[str], error: str) -> str:
    """The check behind the last of the lines, which is where a function returned `error`, such as
    "-EINVAL"; the lines are those of the function so far."""
    text = lines[-1].strip()
    if " if " in text:
        return text
    variable = re.match(r"return (\w+)(,|$)", text)
    if variable and variable[1].islower():
        given = [
            line.strip() for line in lines if re.search(rf"\b{variable[1]}\b(, \w+)* = ", line)
        ]
        literal = [line for line in given if error in line]
        if given:
            return _with_condition(lines, (literal or given)[-1])
    return _over(lines, len(lines) - 1) or text


def _with_condition(lines: list[str], given: str) -> str:
    """The line that gave the returned variable its value; where it is the error itself, the
    condition over it."""
    at = max(number for number, line in enumerate(lines) if line.strip() == given)
    over = _over(lines, at) if re.search(r"= .*-E[A-Z]+", given) and " if " not in given else ""
    return over or given


def _over(lines: list[str], at: int) -> str:
    """The condition under which line `at` is reached: the `if` that it stands in, or the last one
    before it that let go."""
    indent = _indent(lines[at])
    for number in range(at - 1, -1, -1):
        line = lines[number].strip()
        if line and not line.startswith(")") and _indent(lines[number]) < indent:
            if line.startswith(("if ", "elif ", "while ")):
                return _joined(lines, number)
            return (
                _fallen_through(lines, at, indent)
                if line.startswith(("def ", "@", '"""')) or line.endswith(":")
                else ""
            )
    return _fallen_through(lines, at, indent)


def _fallen_through(lines: list[str], at: int, indent: int) -> str:
    for number in range(at - 1, -1, -1):
        if _indent(lines[number]) == indent and lines[number].strip().startswith("if "):
            return f"not: {_joined(lines, number)}"
    return ""


def _joined(lines: list[str], at: int) -> str:
    """A condition that may go over several lines."""
    text = ""
    for line in lines[at:]:
        text = f"{text} {line.strip()}".strip()
        if text.endswith(":"):
            break
    return text.rstrip(":")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
