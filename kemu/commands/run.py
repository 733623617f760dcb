"""Run a line: words, arguments, function, result.

    line -> tokens -> declaration -> arguments -> (sealed | on the timeline | free) function -> Result

A looking command runs with the machine sealed; a changing one between two commands of the timeline.
What goes wrong inside the machine is part of the reading; what the user did wrong is a `Complaint`
in the result; anything else is a bug of kemu and passes through.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from kemu import interrupts
from kemu.commands import table
from kemu.debugger.stops import stop_after
from kemu.errors import HostUnavailable, KernelBug, UsageError
from kemu.language import spec
from kemu.language.formats import apart
from kemu.language.lexer import Source, number
from kemu.language.result import FAILED, INTERRUPTED, OK, UNSATISFIED, Complaint, Result, Shown
from kemu.language.tokens import Line, Token, split
from kemu.language.typed import as_typed
from kemu.readings import Outcome, Text, Value

if TYPE_CHECKING:
    from kemu.experiment.session import Session


def run(session: Session, text: str, *, keep_going: bool = False) -> list[Result]:
    """Run the commands of one line. Stops behind the first that fails, unless `keep_going`."""
    return list(each(session, text, keep_going=keep_going))


def each(session: Session, text: str, *, keep_going: bool = False) -> Iterator[Result]:
    """As `run`, but each result is given as soon as it is there."""
    taken = (
        session.desk.guide.line(text)
        if session.desk.guide is not None and not session.desk.depth
        else None
    )
    if taken is not None:
        yield from taken
        return
    try:
        lines = split(text)
    except UsageError as error:
        yield _failed(session, text.strip(), error, len(text) - len(text.lstrip()))
        return
    outermost = not session.desk.depth
    for line in lines:
        for result in run_line(session, line):
            if outermost:
                session.desk.keep(result)
            yield result
            if result.status == INTERRUPTED or not (result.ok or keep_going):
                return


def run_line(session: Session, line: Line) -> Iterable[Result]:
    """Run one command; several results where it stands for several (a file of commands), each as
    soon as it is there."""
    typed = line
    try:
        line = expanded(session, line)
        guide = session.desk.guide
        if guide is not None:
            line = guide.expand(line)
        if line.tokens[-1].text == PY and len(line.tokens) > 1:
            return [
                Result(
                    line.source,
                    python_call(line),
                    first=session.now,
                    last=session.now,
                    now=session.now,
                )
            ]
        results = _placed_results(execute(session, line, line.source), line, typed, session)
        return guide.saw(list(results)) if guide is not None else results
    except UsageError as error:
        mistake = error
    except KernelBug as error:
        if not session.planted:
            raise
        mistake = UsageError(
            f"the kernel stopped itself: {error}",
            hint="it is a wrong one (mutant); the command is taken back",
        )
    except HostUnavailable as error:
        mistake = UsageError(str(error))
    placed = as_typed(located(mistake, line, session), line, typed)
    return [_failed(session, typed.source, placed, typed.tokens[0].column)]


def _placed_results(
    results: Iterable[Result], line: Line, typed: Line, session: Session
) -> Iterable[Result]:
    """The results of one command; an error that one of several brings, and that names no place,
    gets one."""
    if not isinstance(results, list):
        return results
    return [
        attrs.evolve(result, error=_complaint_at(result.error, line, typed, session))
        if result.error is not None and not result.error.text
        else result
        for result in results
    ]


def _complaint_at(complaint: Complaint, line: Line, typed: Line, session: Session) -> Complaint:
    error = located(UsageError(complaint.what, hint=complaint.hint), line, session)
    return Complaint.of(as_typed(error, line, typed), typed.tokens[0].column)


PY = "--py"
"""Behind any command: show how a program says the same."""


def python_call(line: Line) -> Text:
    """The call of `kemu.Session` that does what the command does."""
    made = table.find(line.tokens[0].text)
    if made is None:
        raise table.unknown(line.tokens[0].text)
    text = line.source[: -len(PY)].rstrip()
    method = "reading" if made.effect == spec.LOOK else "run"
    return Text(("from kemu import Session", "kemu = Session()", f"kemu.{method}({text!r})"))


def expanded(session: Session, line: Line) -> Line:
    """The command with its first word replaced while that is an alias. Raises UsageError if they go
    round in a circle."""
    seen: set[str] = set()
    while (word := line.tokens[0].text) in session.desk.aliases:
        if word in seen:
            raise UsageError(f"alias: '{word}' stands for itself", hint="alias lists them")
        seen.add(word)
        lines = split(
            " ".join([session.desk.aliases[word], *(token.text for token in line.tokens[1:])])
        )
        if len(lines) != 1:
            raise UsageError(
                f"alias: '{word}' stands for {len(lines)} commands",
                hint=f"make it one: alias {word} COMMAND",
            )
        line = lines[0]
    return apart(line)


def execute(session: Session, line: Line, text: str) -> Iterable[Result]:
    """Run one command; `text` is what goes on the timeline. Raises UsageError where it cannot be
    done."""
    first_word = line.tokens[0]
    made = table.find(first_word.text)
    if made is None:
        error = table.unknown(first_word.text)
        raise UsageError(
            error.what,
            text=line.text,
            column=first_word.column,
            length=len(first_word.text),
            hint=error.hint,
        )
    values = arguments(session, made, line)
    if session.desk.guide is not None:
        session.desk.guide.admit(made, values)
    if made.effect == spec.CHANGE and not made.is_about_session(values):
        return [_change(session, made, values, text)]
    if made.effect == spec.LOOK:
        with session.looking():
            reading = made.function(session, **values)
    else:
        reading = made.function(session, **values)
    if isinstance(reading, (list, Iterator)):
        return reading
    return [_result(session, text, reading, session.now)]


def arguments(session: Session, made: spec.Command, line: Line) -> dict[str, Any]:
    """The converted arguments, with the current task where none is named."""
    values = spec.parse(made, line, session)
    if "task" in values and values["task"] is None:
        values["task"] = session.current
    if made.effect == spec.CHANGE and "task" in values:
        _refuse_unable(session, values["task"], made.name)
    return values


def _refuse_unable(session: Session, task: Any, command: str) -> None:
    """A task that waits inside a call does nothing else until it is woken; signals and looking
    reach it all the same."""
    name = session.name_of(task.pid)
    if command == "kill":
        return
    if task.mm is None and not task.exit_state and command not in ("schedule", "setcpu"):
        raise UsageError(
            f"{name} is a kernel thread: it runs no user code", hint="schedule lets it run"
        )
    if task.exit_state:
        raise UsageError(f"{name} has ended (zombie)", hint="its parent can wait for it")
    if task.blocked_in:
        raise UsageError(
            f"{name} waits in {task.blocked_in}", hint=f"use another task until {name} is woken"
        )


def _change(session: Session, made: spec.Command, values: dict[str, Any], text: str) -> Result:
    """A command runs to its end. At a terminal Ctrl-C in it moves back to the event at which it
    came; a second one, or any in a script, takes the command back."""
    presses: list[int] = []
    with interrupts.running_on(lambda: _press(session, presses, text)), session.changing(text):
        first = session.end
        reading = made.function(session, **values)
    last = session.now
    if getattr(reading, "errno", 0) or getattr(reading, "signal", None):
        session.failed(reading)
    if presses:
        _go_back_to(session, presses[0], first, last)
    elif session.debugger.stops:
        stop_after(session, first)
    result = _result(session, text, reading, first, last)
    if presses:
        return attrs.evolve(result, status=INTERRUPTED)
    return verified(session, result) if session.debugger.verifying else result


def _press(session: Session, presses: list[int], text: str) -> None:
    """Note where Ctrl-C came in a command, and say what becomes of it."""
    presses.append(len(session.journal))
    os.write(
        2,
        f"\nCtrl-C: {text.splitlines()[0][:40]} runs to its end; once more takes it back\n".encode(
            errors="replace"
        ),
    )


def _go_back_to(session: Session, moment: int, first: int, last: int) -> None:
    """Show the moment at which Ctrl-C came."""
    moment = min(max(moment, first), last)
    session.goto(moment)
    session.note(
        f"stopped by Ctrl-C at #{moment}; the command has the events #{first + 1} to #{last}, "
        "continue goes on"
    )


def verified(session: Session, result: Result) -> Result:
    """The result of a changing command with what it broke, for `set verify on`: the first
    violations as notes, and the status."""
    from kemu.invariants import check

    found = check(session.kernel, session.name_of, quiescent=session.boundary(session.now))
    if not found:
        return result
    lines = [f"broken: {violation.invariant}: {violation}" for violation in found[:3]]
    more = [f"and {len(found) - 3} more: verify"] if len(found) > 3 else []
    return attrs.evolve(result, notes=(*result.notes, *lines, *more), status=UNSATISFIED)


def _result(
    session: Session, text: str, reading: Any, first: int, last: int | None = None
) -> Result:
    form, status = "", OK
    if isinstance(reading, Shown):
        reading, form, status = reading.reading, reading.form, reading.status
    if isinstance(reading, (Outcome, Value)):
        session.debugger.answer(reading.value)
    now = session.now
    return Result(
        text, reading, form, status, first, now if last is None else last, now, session.take_notes()
    )


def located(error: UsageError, line: Line, session: Session) -> UsageError:
    """The error with a place and with what to do next. Without a place it is about the argument
    that it names, the word that it quotes, the argument or the word with whose name it opens, or
    the number that it tells; else about the command as a whole."""
    made = table.find(line.tokens[0].text)
    hint = error.hint or (f"help {made.name} says what it takes" if made is not None else "")
    if error.text:
        return UsageError(
            error.what, text=error.text, column=error.column, length=error.length, hint=hint
        )
    word = _blamed(error, line, spec.places(made, line, session) if made is not None else {})
    return UsageError(
        error.what, text=line.text, column=word.column, length=len(word.text), hint=hint
    )


def _blamed(error: UsageError, line: Line, places: dict[str, list[Token]]) -> Token:
    """The word that is wrong."""
    named = places.get(error.about, [])
    quoted = next((token for token in line.tokens[1:] if _quotes(error.what, token.value)), None)
    if error.index < len(named):
        argument = named[error.index]
        return (
            quoted
            if quoted is not None and argument.column <= quoted.column < argument.end
            else argument
        )
    subject = error.what.partition(":")[0]
    opening = places.get(subject, []) or [
        token for token in line.tokens[1:] if token.text == subject
    ]
    told = re.search(r"\b(0x[0-9a-f]+|0|[1-9][0-9]*)\b", error.what)
    meant = next(
        (token for token in line.tokens[1:] if told and _is_number(token, int(told[0], 0))), None
    )
    return quoted or next(iter(opening), None) or meant or line.tokens[0]


def _is_number(token: Token, wanted: int) -> bool:
    """Is the word that number, however it is written?"""
    try:
        return number(Source(token.text, 0, len(token.text)), 0, token.text) == wanted
    except UsageError:
        return False


def _quotes(what: str, word: str) -> bool:
    """Does the message quote the word, or its beginning if it is long?"""
    return bool(word) and (f"'{word}'" in what or (len(word) > 40 and f"'{word[:40]}" in what))


def _failed(session: Session, text: str, error: UsageError, start: int) -> Result:
    now = session.now
    return Result(
        text, None, "", FAILED, now, now, now, session.take_notes(), Complaint.of(error, start)
    )


def with_errno_as_failure(result: Result) -> Result:
    """The result for `--errno-fails`: a simulated errno or signal counts as a failure of the
    command."""
    failed = bool(getattr(result.reading, "errno", 0) or getattr(result.reading, "signal", None))
    return attrs.evolve(result, status=FAILED) if failed and result.status == OK else result
