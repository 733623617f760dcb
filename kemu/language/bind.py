"""From the words of a line to the arguments of its command.

    write app 0x10000 "x"       words
    task addr    data           which word belongs to which argument, by shape
    task_struct, 0x10000, b"x"  the values

Words are first matched by *shape* (does this one look like an address?), from left to right; an
optional argument is skipped if a later one needs the word. Only then are words converted. So `mmap
4p rw` and `mmap 0x10000 4p rw` need no keyword, and an error can name the argument that stopped the
match.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

from kemu.errors import UsageError
from kemu.language.lexer import BadNumber
from kemu.language.shapes import is_name
from kemu.language.spec import Argument, Command, Option
from kemu.language.suggest import did_you_mean
from kemu.language.tokens import Line, Token

if TYPE_CHECKING:
    from kemu.experiment.session import Session


@attrs.frozen
class Call:
    """A command with the value of each argument and option, and the words that gave it."""

    made: Command
    line: Line
    values: dict[str, Any]
    words: dict[str, Sequence[Token]]


def bind(made: Command, line: Line, session: Session) -> Call:
    """The call that the line makes. Raises UsageError with the place."""
    strict = _Match(made, line, session, known=True)
    matched = strict.run()
    if matched is None:
        strict.refuse_units()
        match = _Match(made, line, session, known=False)
        matched = match.run()
    if matched is None:
        # If there is a word too many, an earlier word that names nothing is the mistake.
        blamed = strict if match.expected is None and strict.furthest < match.furthest else match
        raise match.unknown_first() or blamed.error()
    values: dict[str, Any] = {argument.name: argument.default for argument in made.arguments}
    values |= {option.name: () if option.kind is None else None for option in made.options}
    for part, tokens in matched:
        values[part.name] = _convert(part, tokens, line, session)
    return Call(made, line, values, {part.name: tokens for part, tokens in matched})


def _convert(part: Argument | Option, tokens: list[Token], line: Line, session: Session) -> Any:
    """The value of the argument or option. Raises a UsageError that points at the word and begins
    with the argument's name."""
    kind = part.kind
    if kind is None:
        given = [part.values_of(token.text) for token in tokens]  # type: ignore[union-attr]  # only an Option has no kind
        return tuple(value for values in given for value in values or ())
    values = []
    for token in tokens:
        try:
            values.append(kind.convert(token, line, session))
        except UsageError as error:
            if error.text and not isinstance(error, BadNumber):
                raise
            inside = bool(error.text)
            raise UsageError(
                f"{part.name}: {error.what}",
                text=line.text,
                column=error.column if inside else token.column,
                length=error.length if inside else len(token.text),
                hint=error.hint,
            ) from error
    several = part.values > 1 if isinstance(part, Option) else part.count in ("many", "some")
    return tuple(values) if several else values[0]


UNITS = {
    **dict.fromkeys(("page", "pages"), "p"),
    **dict.fromkeys(("byte", "bytes"), " "),
    **dict.fromkeys(("k", "kb", "kib"), "K"),
    **dict.fromkeys(("m", "mb", "mib"), "M"),
    **dict.fromkeys(("g", "gb", "gib"), "G"),
}
"""Units as people write them, and the letter for each."""

Matched = list[tuple[Argument | Option, list[Token]]]


class _Match:
    """Finds which token belongs to which argument, or where the search got stuck."""

    def __init__(self, made: Command, line: Line, session: Session, known: bool) -> None:
        self.made = made
        self.line = line
        self.session = session
        self.known = known
        self.furthest = -1
        self.expected: Argument | Option | None = None

    def run(self) -> Matched | None:
        return self.arguments(self.made.arguments, 1)

    def arguments(self, left: tuple[Argument, ...], at: int) -> Matched | None:
        """Match the arguments `left` against the tokens from `at` on; None if they do not match."""
        if not left:
            return self.options(at)
        head, tail = left[0], left[1:]
        for end in self.ends(head, at):
            following = self.arguments(tail, end)
            if following is not None:
                taken = self.tokens(head, at, end)
                return [(head, taken), *following] if taken else following
        return None

    def ends(self, head: Argument, at: int) -> list[int]:
        """Where an argument that begins at token `at` may end, the longest match first."""
        last = len(self.line.tokens)
        if head.count.endswith("rest"):
            return [last] if at < last or head.count == "maybe rest" else self.stuck(head, at)
        longest = at
        while longest < last and self.fits(head, self.line.tokens[longest]):
            longest += 1
            if head.count in ("one", "maybe"):
                break
        shortest = at + head.needed
        if longest == at:
            self.stuck(head, at)
        return list(range(longest, shortest - 1, -1))

    def fits(self, head: Argument, token: Token) -> bool:
        if not token.quoted and self.made.option_of(token.text) is not None:
            return False
        return head.kind.fits(token, self.session, self.known)

    def tokens(self, head: Argument, at: int, end: int) -> list[Token]:
        if head.count.endswith("rest") and end > at:
            column = self.line.tokens[at].column
            text = self.line.text[column : self.line.tokens[-1].end]
            return [Token(text, text, column, quoted=False)]
        return list(self.line.tokens[at:end])

    def options(self, at: int) -> Matched | None:
        """Match the tokens from `at` on as options, all of them."""
        found: dict[str, tuple[Option, list[Token]]] = {}
        while at < len(self.line.tokens):
            option = self.made.option_of(self.line.tokens[at].text)
            if option is None:
                self.stuck(None, at)
                return None
            at += option.kind is not None
            end = at + option.values
            if end > len(self.line.tokens):
                self.stuck(option, len(self.line.tokens))
                return None
            found.setdefault(option.name, (option, []))[1].extend(self.line.tokens[at:end])
            at = end
        return list(found.values())

    def stuck(self, wanted: Argument | Option | None, at: int) -> list[int]:
        """Remember the furthest failure. Of several at the same place, the last required argument
        makes the best report, and an optional single word the worst."""
        earlier = self.expected.kind if self.expected is not None and wanted is not None else None
        word: str = getattr(earlier, "literal", "")
        if at > self.furthest or (
            at == self.furthest and (word or (isinstance(wanted, Argument) and wanted.needed))
        ):
            self.furthest, self.expected = at, wanted
        return []

    def unknown_first(self) -> UsageError | None:
        """The error for a first word that has the shape of an optional argument (the task) but
        names nothing at this moment, so that everything after it was matched against the wrong
        arguments. None if there is no such word."""
        first = self.made.arguments[0] if self.made.arguments else None
        if first is None or first.count != "maybe" or self.furthest < 2:
            return None
        token = self.line.tokens[1]
        if not self.fits(first, token):
            return None
        try:
            first.kind.convert(token, self.line, self.session)
        except UsageError as error:
            wanted = (
                self.expected.kind
                if self.expected and self.furthest == len(self.line.tokens) == 2
                else None
            )
            other = f", and it is not {wanted.what}" if wanted else ""
            return self.at(
                f"{first.name}: {error.what}{other}", token.column, len(token.text), error.hint
            )
        return None

    def error(self) -> UsageError:
        usage = f"usage: {self.made.synopsis}"
        wanted, tokens = self.expected, self.line.tokens
        name = wanted.name if wanted else ""
        what = wanted.kind.what if wanted and wanted.kind else ""
        if self.furthest >= len(tokens):
            return self.at(f"{name}: missing; expected {what}", tokens[-1].end, 1, usage)
        token = tokens[self.furthest]
        words = self.made.option_words
        instead = self.instead_of(token)
        if instead:
            what = f"{self.made.name}: unexpected '{token.text}'"
            return self.at(what, token.column, len(token.text), instead)
        if wanted is not None and token.text in words:
            return self.at(
                f"{name}: missing; expected {what}", token.column, len(token.text), usage
            )
        guess = "" if token.text in words else did_you_mean(token.text, words)
        if wanted is None or guess:
            return self.at(
                f"{self.made.name}: unexpected '{token.text}'",
                token.column,
                len(token.text),
                guess or usage,
            )
        return self.at(
            f"{name}: expected {what}, got '{token.text}'", token.column, len(token.text), usage
        )

    def refuse_units(self) -> None:
        """Raise UsageError for a unit that was typed apart from its number."""
        for before, token in pairwise(self.line.tokens):
            letter = UNITS.get(token.text.lower(), "")
            if letter and before.text.isdecimal():
                hint = f"a number and its unit are one word: {before.text}{letter.strip()}"
                what = f"{self.made.name}: unexpected '{token.text}'"
                raise self.at(what, token.column, len(token.text), hint)

    def instead_of(self, token: Token) -> str:
        """What to write instead of a name without `as`; empty for anything else."""
        before = self.line.tokens[self.furthest - 1]
        if "as" in self.made.option_words and is_name(token) and before.text != "as":
            named = f"{self.made.name} {before.text} as {token.text}"
            return (
                f"a name follows the word as: {named if self.furthest > 1 else self.made.synopsis}"
            )
        return ""

    def at(self, what: str, column: int, length: int, hint: str) -> UsageError:
        return UsageError(what, text=self.line.text, column=column, length=length, hint=hint)
