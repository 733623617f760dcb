"""Where a mistake is, in the line as it was typed.

    alias look walk app       look 3q
    what runs                 walk app 3q  the error is at 3q
    what was typed            look 3q      and so is the caret;
                              ^^^^         if the alias's own words are wrong, it is under the alias

The place is data: an error has a place of its own, or names the argument that it is about; an error
with neither is about the command as a whole. A place in a line that was rewritten (`Line.origin`)
is translated to a place in the line as it was typed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kemu.errors import UsageError
from kemu.language.tokens import Line, Token


def placed(
    error: UsageError, line: Line, words: Mapping[str, Sequence[Token]], hint: str
) -> UsageError:
    """The error, with its place in what was typed. `words`: the words of each argument, by its
    name; `hint`: for an error without one. An error about some other text keeps its place."""
    text, column, length = error.text, error.column, error.length
    named = words.get(error.about) or words.get(f"{error.about}_", ())
    if error.index < len(named) and text in ("", named[error.index].value):
        word = named[error.index]
        if text and text in word.text:
            column += word.column + word.text.index(text)
        else:
            column, length = word.column, len(word.text)
        text = line.text
    elif not text:
        text, column, length = line.text, line.tokens[0].column, len(line.tokens[0].text)
    hint = error.hint or hint
    if text != line.text:
        return UsageError(error.what, text=text, column=column, length=length, hint=hint)
    while line.origin is not None:
        before, head = line.origin.line, line.origin.line.tokens[0]
        if line.origin.meaning:
            hint = f"{hint} ({head.text} is an alias of: {line.origin.meaning})".strip()
        if column >= line.origin.since:
            column += line.origin.column - line.origin.since
        else:
            column, length = head.column, len(head.text)
        line = before
    return UsageError(error.what, text=line.text, column=column, length=length, hint=hint)
