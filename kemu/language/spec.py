"""One declaration per command: its words, its arguments and their types, help, examples.

    @command(
        "mmap",
        arguments=(TASK, maybe("addr", ADDRESS), one("length", SIZE), one("prot", PROT)),
        options=(flags("flags", MMAP_FLAGS), keyword("file", FILE)),
        group="doing", effect=CHANGE, linux="mmap(2)",
        summary="map memory", more="...", examples=("...", "..."),
    )
    def mmap(session, task, addr, length, prot, flags, file): ...

Parsing, `help`, docs/commands.md, completion and the generator of random command lines all read
this declaration; there is no second place that knows what a command takes. The function gets the
session and one keyword argument per declared name, converted. It returns a reading (data), never
text.

Matching is by *shape* first (does this token look like an address?), from left to right with
optional arguments skipped where what follows needs the token; only then are tokens converted. So
`mmap 4p rw` and `mmap 0x10000 4p rw` need no keyword, and an error can name the argument that
stopped the match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from kemu.errors import UsageError
from kemu.language.suggest import did_you_mean
from kemu.language.tokens import Line, Token

if TYPE_CHECKING:
    from kemu.experiment.session import Session

CHANGE, LOOK, FREE = "change", "look", "free"
"""What a command may do: change the machine (it goes on the timeline), only look at it (any write
to it is a bug), or only move and set what belongs to the session."""

Candidate = tuple[str, str]
"""A completion: the text, and a few words about it."""


class Kind(Protocol):
    """The type of an argument."""

    name: str
    what: str

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Does the token have the shape? With `known` a name must also exist."""

    def convert(self, token: Token, line: Line, session: Session) -> Any:
        """The value. Raises UsageError; one without a place gets the token's."""

    def complete(self, session: Session) -> Iterable[Candidate]:
        """What may stand here, for completion. Changes no state."""


@attrs.frozen
class Argument:
    """A positional argument. `count` is "one", "maybe", "many" (none or more), "some" (one or more)
    or "rest" (raw)."""

    name: str
    kind: Kind
    count: str = "one"
    default: Any = None

    @property
    def needed(self) -> bool:
        """Must it be given?"""
        return self.count in ("one", "some")

    def __str__(self) -> str:
        shown = self.kind.name if self.kind.name.isupper() else self.name.upper()
        shown = getattr(self.kind, "literal", "") or shown
        forms = {
            "maybe": f"[{shown}]",
            "maybe rest": f"[{shown}]",
            "many": f"[{shown}...]",
            "some": f"{shown}...",
        }
        return forms.get(self.count, shown)


@attrs.frozen
class Option:
    """Words behind the arguments, in any order: flag words (`kind` None), or a word and its value,
    or its `values`."""

    name: str
    words: Mapping[str, Any]
    kind: Kind | None = None
    values: int = 1

    def __str__(self) -> str:
        if self.kind is None:
            return (
                f"[{'|'.join(self.words)}]..."
                if len(self.words) <= 3
                else f"[{self.name.upper()}]..."
            )
        return f"[{' '.join([next(iter(self.words)), *[self.kind.name.upper()] * self.values])}]"

    def meaning(self, lead: str = "", between: str = ", ") -> str:
        """What it takes: a value in words, or `lead` and the flag words."""
        return self.kind.what if self.kind else lead + between.join(self.words)


def one(name: str, kind: Kind) -> Argument:
    """A needed argument."""
    return Argument(name, kind)


def maybe(name: str, kind: Kind, default: Any = None) -> Argument:
    """An argument that may be left out."""
    return Argument(name, kind, "maybe", default)


def many(name: str, kind: Kind) -> Argument:
    """None or more arguments of one type, as a list."""
    return Argument(name, kind, "many", ())


def some(name: str, kind: Kind) -> Argument:
    """One or more arguments of one type, as a list."""
    return Argument(name, kind, "some", ())


def rest(name: str, kind: Kind, needed: bool = True) -> Argument:
    """The rest of the command as one raw token."""
    return Argument(name, kind, "rest" if needed else "maybe rest")


def flags(name: str, words: Mapping[str, Any] | Iterable[str]) -> Option:
    """Words of which any number may stand behind the arguments; the command gets a tuple of their
    values."""
    return Option(name, words if isinstance(words, Mapping) else {word: word for word in words})


def keyword(name: str, kind: Kind, word: str = "") -> Option:
    """`word VALUE` behind the arguments; the command gets the value or None."""
    return Option(name, {word or name: None}, kind)


@attrs.frozen
class Command:
    """A declared command. `words` holds the name first, then its aliases."""

    words: tuple[str, ...]
    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    options: tuple[Option, ...]
    group: str
    summary: str
    more: str
    examples: tuple[str, ...]
    linux: str
    effect: str
    host: bool
    session_words: frozenset[str] = frozenset()

    def is_about_session(self, values: Mapping[str, Any]) -> bool:
        """Does the command, for all that it may change the machine, with these arguments only set
        what is the session's?"""
        return not self.session_words.isdisjoint(
            value for value in values.values() if isinstance(value, str)
        )

    @property
    def name(self) -> str:
        """The first of its words."""
        return self.words[0]

    @property
    def synopsis(self) -> str:
        """`mmap [TASK] [ADDR] LENGTH PROT [fixed|...]... [file FILE]`."""
        return " ".join([self.name, *_joined(self.arguments), *map(str, self.options)])

    def option_words(self) -> list[str]:
        """All words that have a meaning behind the arguments."""
        return [word for option in self.options for word in option.words]


def _joined(arguments: tuple[Argument, ...]) -> list[str]:
    """The arguments for the synopsis: a word that opens another one (`if EXPR`) stands together
    with it."""
    shown: list[str] = []
    for argument in arguments:
        if argument.count == "maybe rest" and shown and shown[-1].strip("[]").islower():
            shown[-1] = f"{shown[-1][:-1]} {str(argument)[1:]}"
        else:
            shown.append(str(argument))
    return shown


REGISTRY: dict[str, Command] = {}
"""Every command whose module has been imported, by each of its words."""


def command(
    *words: str,
    group: str,
    summary: str,
    examples: tuple[str, ...],
    arguments: tuple[Argument, ...] = (),
    options: tuple[Option, ...] = (),
    more: str = "",
    linux: str = "",
    effect: str = LOOK,
    host: bool = False,
    session_words: Iterable[str] = (),
) -> Callable[[Callable[..., Any]], Command]:
    """Declare a command; `host`: it touches files of the host; `session_words`: see
    `Command.is_about_session`."""

    def declare(function: Callable[..., Any]) -> Command:
        made = Command(
            words,
            function,
            arguments,
            options,
            group,
            summary,
            more,
            examples,
            linux,
            effect,
            host,
            frozenset(session_words),
        )
        for word in words:
            REGISTRY[word] = made
        return made

    return declare


def parse(made: Command, line: Line, session: Session) -> dict[str, Any]:
    """The keyword arguments for the command's function. Raises UsageError with the place."""
    matched = _Match(made, line, session, known=True).run()
    if matched is None:
        failed = _Match(made, line, session, known=False)
        matched = failed.run()
        if matched is None:
            raise failed.unknown_first() or failed.error()
    values: dict[str, Any] = {argument.name: argument.default for argument in made.arguments}
    values |= {option.name: () if option.kind is None else None for option in made.options}
    for part, tokens in matched:
        values[part.name] = _convert(part, tokens, line, session)
    return values


def places(made: Command, line: Line, session: Session) -> dict[str, list[Token]]:
    """The tokens of each argument and option by its name; nothing for a line that cannot be
    parsed."""
    matched = (
        _Match(made, line, session, known=True).run()
        or _Match(made, line, session, known=False).run()
        or []
    )
    return {part.name: tokens for part, tokens in matched}


def _convert(part: Argument | Option, tokens: list[Token], line: Line, session: Session) -> Any:
    kind = part.kind
    if kind is None:
        return tuple(part.words[token.text] for token in tokens)  # type: ignore[union-attr]  # only an Option has no kind
    values = [convert_token(part.name, kind, token, line, session) for token in tokens]
    several = part.values > 1 if isinstance(part, Option) else part.count in ("many", "some")
    return tuple(values) if several else values[0]


_OPENED = re.compile(r"[\w-]+: ")
"""How a message begins that says itself what it is about."""


def convert_token(name: str, kind: Kind, token: Token, line: Line, session: Session) -> Any:
    """The value of one token, or a UsageError that points at it and opens with the argument's
    name."""
    try:
        return kind.convert(token, line, session)
    except UsageError as error:
        if error.text:
            raise
        what = error.what if _OPENED.match(error.what) else f"{name}: {error.what}"
        raise UsageError(
            what, text=line.text, column=token.column, length=len(token.text), hint=error.hint
        ) from error


def _is_needed(part: Argument | Option | None) -> bool:
    return isinstance(part, Argument) and part.needed


Matched = list[tuple["Argument | Option", list[Token]]]


class _Match:
    """Finds which token belongs to which argument, and where the search got stuck."""

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
        """Match the arguments `left` against the tokens from `at` on; None if that cannot be."""
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
        """Where the argument may end that begins at token `at`, the longest first."""
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
        if not token.quoted and token.text in self.made.option_words():
            return False
        return head.kind.fits(token, self.session, self.known)

    def tokens(self, head: Argument, at: int, end: int) -> list[Token]:
        if head.count.endswith("rest") and end > at:
            return [self.line.rest(at)]
        return list(self.line.tokens[at:end])

    def options(self, at: int) -> Matched | None:
        """Match the tokens from `at` on as options; all of them must be some."""
        found: dict[str, tuple[Option, list[Token]]] = {}
        while at < len(self.line.tokens):
            option = self.option(self.line.tokens[at])
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

    def option(self, token: Token) -> Option | None:
        return next((option for option in self.made.options if token.text in option.words), None)

    def stuck(self, wanted: Argument | Option | None, at: int) -> list[int]:
        """Remember the furthest failure; of several there, the last needed argument makes the best
        report, and anything a better one than a single word that may be left out."""
        earlier = self.expected.kind if self.expected is not None and wanted is not None else None
        word: str = getattr(earlier, "literal", "")
        if at > self.furthest or (at == self.furthest and (word or _is_needed(wanted))):
            self.furthest, self.expected = at, wanted
        return []

    def unknown_first(self) -> UsageError | None:
        """The complaint about a first word that has the form of the argument that may be left out
        (the task) and is none of this moment: all that comes behind it was measured against the
        wrong arguments.  None if there is no such word."""
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
        words = self.made.option_words()
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

    def at(self, what: str, column: int, length: int, hint: str) -> UsageError:
        return UsageError(what, text=self.line.text, column=column, length=length, hint=hint)
