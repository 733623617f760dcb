"""One declaration per command: its words, its arguments and their types, help, examples.

    @command(
        "mmap",
        arguments=(TASK, maybe("addr", ADDRESS), one("length", SIZE), one("prot", PROT)),
        options=(flags("flags", MMAP_FLAGS), keyword("file", FILE)),
        effect=CHANGE, linux="mmap(2)",
        summary="map memory", more="...", examples=("...", "..."),
    )
    def mmap(session, task, addr, length, prot, flags, file): ...

Parsing, `help`, docs/commands.md, completion and the generator of random command lines all read
this declaration; nothing else knows what a command takes. The function gets the session and one
converted keyword argument per declared name. It returns a reading (data), never text. `bind.py`
matches the words of a line to the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from kemu.language.tokens import Line, Token

if TYPE_CHECKING:
    from kemu.experiment.session import Session

CHANGE, LOOK, FREE = "change", "look", "free"
"""What a command may do: change the machine (it goes on the timeline), only look at it (a write to
it is a bug), or only move the session and change its settings."""

Candidate = tuple[str, str]
"""A completion: the text, and a few words that describe it."""


class Kind(Protocol):
    """The type of an argument."""

    name: str
    what: str

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Does the token have the shape? With `known`, a name must exist too."""

    def convert(self, token: Token, line: Line, session: Session) -> Any:
        """The value. Raises UsageError; an error without a place gets that of the token."""

    def complete(self, session: Session) -> Iterable[Candidate]:
        """What can be typed here, for completion. Changes no state."""


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
        """Is it required?"""
        return self.count in ("one", "some")

    @property
    def label(self) -> str:
        """What help calls it, in the synopsis and in the list: its name in capitals, or the only
        word that can be typed."""
        return getattr(self.kind, "literal", "") or self.name.rstrip("_").upper()

    @property
    def meaning(self) -> str:
        """What the argument takes."""
        return self.kind.what

    def __str__(self) -> str:
        forms = {"maybe": "[{}]", "maybe rest": "[{}]", "many": "[{}...]", "some": "{}..."}
        return forms.get(self.count, "{}").format(self.label)


FEW = 3
"""How many flag words a synopsis lists; more of them are shown under one name."""


@attrs.frozen
class Option:
    """Words after the arguments, in any order: flag words (`kind` None), or a word and its value,
    or its `values`. `what` says what a single flag word means."""

    name: str
    words: Mapping[str, Any]
    kind: Kind | None = None
    values: int = 1
    what: str = ""

    def values_of(self, text: str) -> tuple[Any, ...] | None:
        """The values of a word, or of several joined as in C (MAP_SHARED|MAP_ANONYMOUS); None for
        anything else."""
        if text in self.words:
            return (self.words[text],)
        in_c = getattr(self.words, "in_c", None)
        if self.kind is not None or in_c is None:
            return None
        words = [in_c(part) for part in text.split("|")]
        return tuple(self.words[word] for word in words) if set(words) <= set(self.words) else None

    @property
    def label(self) -> str:
        """What help calls it, in the synopsis and in the list: the word with its value, or the flag
        words, or a name for them if they are many."""
        if self.kind is not None:
            return " ".join([next(iter(self.words)), *[self.kind.name.upper()] * self.values])
        return "|".join(self.words) if len(self.words) <= FEW else self.name.upper()

    @property
    def meaning(self) -> str:
        """What it takes: a value, or words."""
        if self.kind is not None:
            return self.kind.what
        if len(self.words) > FEW:
            return f"words: {' '.join(self.words)}"
        prefix = getattr(self.words, "prefix", "")
        return self.what or " ".join(f"{prefix}{word.upper()}" for word in self.words)

    def __str__(self) -> str:
        return f"[{self.label}]" if self.kind is not None else f"[{self.label}]..."


def one(name: str, kind: Kind) -> Argument:
    """A required argument."""
    return Argument(name, kind)


def maybe(name: str, kind: Kind, default: Any = None) -> Argument:
    """An optional argument."""
    return Argument(name, kind, "maybe", default)


def many(name: str, kind: Kind) -> Argument:
    """Any number of arguments of one type, as a list."""
    return Argument(name, kind, "many", ())


def some(name: str, kind: Kind) -> Argument:
    """One or more arguments of one type, as a list."""
    return Argument(name, kind, "some", ())


def rest(name: str, kind: Kind, needed: bool = True) -> Argument:
    """The rest of the command as one raw token."""
    return Argument(name, kind, "rest" if needed else "maybe rest")


def flags(name: str, words: Mapping[str, Any] | Iterable[str], what: str = "") -> Option:
    """Words that may follow the arguments, any number of them; the command gets a tuple of their
    values. `what`: what they mean, for words that are not Linux's."""
    found = words if isinstance(words, Mapping) else {word: word for word in words}
    return Option(name, found, what=what)


FORCE = flags("force", ("--force",), "replace a file that kemu did not write")
"""An option of every command that writes a file of the host; its function does not see it."""


def keyword(name: str, kind: Kind, word: str = "") -> Option:
    """`word VALUE` after the arguments; the command gets the value or None."""
    return Option(name, {word or name: None}, kind)


@attrs.frozen
class Command:
    """A declared command. `words` holds the name first, then its aliases."""

    words: tuple[str, ...]
    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    options: tuple[Option, ...]
    summary: str
    more: str
    examples: tuple[str, ...]
    linux: str
    effect: str
    host: bool
    session_words: frozenset[str] = frozenset()
    option_words: tuple[str, ...] = attrs.field(init=False)
    """All words that have a meaning after the arguments."""

    @option_words.default
    def _option_words(self) -> tuple[str, ...]:
        return tuple(word for option in self.options for word in option.words)

    def option_of(self, text: str) -> Option | None:
        """The option to which the word belongs."""
        return next((o for o in self.options if o.values_of(text) is not None), None)

    def is_about_session(self, values: Mapping[str, Any]) -> bool:
        """Does the command, which can change the machine, only set something of the session when
        it has these arguments?"""
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

    @property
    def parts(self) -> list[Argument | Option]:
        """Arguments and options, in the order of the synopsis."""
        return [*self.arguments, *self.options]


def _joined(arguments: tuple[Argument, ...]) -> list[str]:
    """The arguments for the synopsis: a word that introduces another (`if CONDITION`) shares its
    brackets."""
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
    summary: str,
    examples: tuple[str, ...],
    arguments: tuple[Argument, ...] = (),
    options: tuple[Option, ...] = (),
    more: str = "",
    linux: str = "",
    effect: str = LOOK,
    host: bool = False,
    writes: bool = False,
    session_words: Iterable[str] = (),
) -> Callable[[Callable[..., Any]], Command]:
    """Declare a command. `host`: it uses files of the host; `writes`: it writes one, and takes
    --force; `session_words`: see `Command.is_about_session`."""

    def declare(function: Callable[..., Any]) -> Command:
        made = Command(
            words,
            function,
            arguments,
            (*options, FORCE) if writes else options,
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
