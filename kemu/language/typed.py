"""An error about what stands for a command, told about the line as it was typed.

    alias look walk app         look 3q
    what runs                   walk app 3q        the error is at 3q
    what was typed              look 3q            and so is the caret;
                                ^^^^               where the alias's own words are wrong, it is under the alias

What was typed behind the first word stands at the end of both lines; everything before it comes
from that word. A command within the line (`race "write a 0x10000 q" "exit b"`) is shown in it.
"""

from __future__ import annotations

from typing import NamedTuple

from kemu.errors import UsageError
from kemu.language.tokens import Line, Token


class _Word(NamedTuple):
    """A word of the line that runs, and as it was typed."""

    run: Token
    typed: Token


def as_typed(error: UsageError, line: Line, typed: Line) -> UsageError:
    """The error about `line` as one about `typed`, of which it was made."""
    error = _in_line(error, line)
    if line.text == typed.text:
        return error
    words, head = _words(line, typed), typed.tokens[0]
    column, end = head.column, head.end
    if error.text == line.text:
        column, end = _place(error, line, typed, words)
    hint = error.hint
    if len(words) < len(typed.tokens):
        meaning = line.text[: words[0].run.column if words else None].strip()
        hint = f"{hint} ({head.text} stands for: {meaning})".strip()
    return UsageError(
        error.what, text=typed.text, column=column, length=max(end - column, 1), hint=hint
    )


def _in_line(error: UsageError, line: Line) -> UsageError:
    """An error about a part of the line as one about the line; about anything else as it is."""
    if not error.text or error.text == line.text or line.text.count(error.text) != 1:
        return error
    column = line.text.index(error.text) + error.column
    return UsageError(
        error.what, text=line.text, column=column, length=error.length, hint=error.hint
    )


def _words(line: Line, typed: Line) -> list[_Word]:
    """The words in which both lines end."""
    found: list[_Word] = []
    for run, as_it_was in zip(reversed(line.tokens), reversed(typed.tokens), strict=False):
        if run.text != as_it_was.text:
            break
        found.append(_Word(run, as_it_was))
    return found[::-1]


def _place(error: UsageError, line: Line, typed: Line, words: list[_Word]) -> tuple[int, int]:
    """The first column of the error in what was typed, and the one behind it."""
    behind = line.tokens[-1].end
    if error.column >= behind:
        column = typed.tokens[-1].end + error.column - behind
        return column, column + error.length
    first, last = (
        _inside(at, words) for at in (error.column, min(error.column + error.length, behind) - 1)
    )
    if first is None:
        return typed.tokens[0].column, typed.tokens[0].end
    return first, first + error.length if last is None else last + 1


def _inside(at: int, words: list[_Word]) -> int | None:
    """Where the character in column `at` was typed; None for one that was not."""
    return next(
        (typed.column + at - run.column for run, typed in words if run.column <= at < run.end), None
    )
