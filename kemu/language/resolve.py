"""The line that runs: aliases replaced by their commands, `print/x` cut into two words."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.errors import UsageError
from kemu.language.things import as_words
from kemu.language.tokens import Line, Token

WITH_FORMAT = frozenset({"print", "p", "display", "x"})
"""Commands that may carry a format after a slash."""


WITH_THING = frozenset({"why", "history"})
"""Commands about a thing, in any of the forms that name one (`things.py`)."""


def resolve(line: Line, aliases: Mapping[str, str]) -> Line:
    """The command with its aliases expanded. Raises UsageError if an alias refers to itself or
    expands to several commands."""
    typed = meaning = line.tokens[0].text
    seen: set[str] = set()
    while (word := meaning.partition(" ")[0]) in aliases:
        if word in seen:
            raise UsageError(f"alias: '{word}' refers to itself", hint="alias lists the aliases")
        seen.add(word)
        meaning = aliases[word] + meaning[len(word) :]
    if meaning != typed:
        lines = line.instead(meaning)
        if len(lines) != 1:
            raise UsageError(
                f"alias: '{typed}' expands to {len(lines)} commands",
                hint=f"redefine it as one command: alias {typed} COMMAND",
            )
        line = lines[0]
    first = line.tokens[0]
    if first.text in WITH_THING:
        return line._replace(tokens=(first, *as_words(line.tokens[1:])))
    word, slash, form = first.text.partition("/")
    if not slash or word not in WITH_FORMAT:
        return line
    command = Token(word, word, first.column, quoted=False)
    letter = Token(slash + form, slash + form, first.column + len(word), quoted=False)
    return line._replace(tokens=(command, letter, *line.tokens[1:]))
