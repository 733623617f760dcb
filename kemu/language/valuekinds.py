"""Types of arguments that are numbers and words: what every other type is built from.

Nothing is guessed: the shape of a token alone (`shapes`) says which of these it can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from kemu.abi.words import SYNONYMS
from kemu.errors import UsageError
from kemu.language.expr import Value, compile_expression, describe
from kemu.language.lexer import BadNumber, Source, shorten
from kemu.language.shapes import is_expression, is_name
from kemu.language.suggest import did_you_mean, some_of
from kemu.language.tokens import Line, Token

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.spec import Candidate

SEE_EXPRESSIONS = "see: help expressions"


def evaluate(token: Token, line: Line, session: Session) -> Value:
    """The value of the token as an expression."""
    from kemu.names.session import SessionNames

    return compile_expression(Source(line.text, token.column, token.end)).evaluate(
        SessionNames(session)
    )


class Offered:
    """A kind whose values only the machine knows; `completion/offers.py` looks there."""

    def complete(self, session: Session) -> Iterable[Candidate]:
        """Nothing by itself."""
        return ()


class NumberKind(Offered):
    """A number or an expression, within bounds."""

    def __init__(
        self, name: str, what: str, low: int, high: int, hint: str = SEE_EXPRESSIONS
    ) -> None:
        self.name = name
        self.what = what
        self.low = low
        self.high = high
        self.hint = hint

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """An expression."""
        return is_expression(token)

    def convert(self, token: Token, line: Line, session: Session) -> int:
        """The number. Raises UsageError, with a place unless the number is out of bounds."""
        try:
            value = evaluate(token, line, session)
        except BadNumber as error:
            raise BadNumber(
                f"expected {self.what}, got '{shorten(token.text)}'",
                text=line.text,
                column=error.column,
                length=error.length,
                hint=self.hint,
            ) from error
        if not isinstance(value, int) or isinstance(value, bool):
            hint = (
                "nothing is mapped there: walk shows which tables exist"
                if value is None
                else self.hint
            )
            raise UsageError(f"expected {self.what}, got {describe(value)}", hint=hint)
        if value < self.low:
            raise UsageError(
                f"{shorten(str(value))} is below {self.low}", hint=self._hint_for(value)
            )
        if value > self.high:
            raise UsageError(
                f"{_either_base(value)} is above {_either_base(self.high)}",
                hint=self._hint_for(value),
            )
        return value

    def _hint_for(self, value: int) -> str:
        """The hint for a number that is out of bounds."""
        if self.high == 2**64 - 1 and -(2**63) <= value < 0:
            return (
                f"as an unsigned 64-bit number it is {value + 2**64:#x}; write that if you mean it"
            )
        if self.hint != SEE_EXPRESSIONS:
            return self.hint
        if self.high < 1 << 16:
            return f"from {self.low} to {self.high}"
        return f"write {self.low} or more" if value < self.low else f"at most {self.high:#x}"


def _either_base(value: int) -> str:
    """A count in base 10, anything larger in base 16."""
    return str(value) if value < 1 << 16 else f"{value:#x}"


class WordKind:
    """One word of a fixed set, or its number if the words stand for numbers. `prefix`: what Linux
    writes before the word."""

    def __init__(
        self,
        name: str,
        words: Mapping[str, Any] | Iterable[str],
        what: str = "",
        fold: bool = False,
        *,
        prefix: str = "",
    ) -> None:
        self.name = name
        self.source = words
        self.words = dict(words) if isinstance(words, Mapping) else {word: word for word in words}
        self.what = what or f"one of {', '.join(self.words)}"
        self.fold = fold
        self.prefix = prefix

    @property
    def literal(self) -> str:
        """The word, if it is the only one that can be typed."""
        return next(iter(self.words)) if len(self.words) == 1 else ""

    def key(self, token: Token) -> str:
        """The word as the table spells it."""
        if not self.fold:
            in_c = getattr(self.source, "in_c", lambda name: SYNONYMS.get(name, name))
            return str(in_c(token.text))
        word = token.text.upper()
        return word.removeprefix("SIG")

    def keys(self, token: Token) -> list[str]:
        """The words of several flags, as C joins them."""
        parts = token.text.split("|")
        return [self.key(Token(part, part, token.column, quoted=False)) for part in parts]

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """A word of the set; without `known`, any plain word, unless the set has only one."""
        return not token.quoted and (
            set(self.keys(token)) <= set(self.words)
            or (not known and is_name(token) and not self.literal)
        )

    def convert(self, token: Token, line: Line, session: Session) -> Any:
        """The word's value."""
        keys = self.keys(token)
        key = next((key for key in keys if key not in self.words), keys[0])
        if key not in self.words:
            guess = did_you_mean(key, self.words)
            known = (
                ""
                if next(iter(self.words), "") in self.what
                else f"known are {some_of(self.words)}"
            )
            raise UsageError(
                f"expected {self.what}, got '{shorten(token.text)}'", hint=guess or known
            )
        values = [self.words[key] for key in keys]
        return reduce(or_, values) if len(values) > 1 else values[0]

    def complete(self, session: Session) -> Iterable[Candidate]:
        """The words, with their values."""
        return [
            (word, f"{self.prefix}{word.upper()}" if self.prefix else self.name)
            for word in self.words
        ]


class ChoiceKind(WordKind):
    """One word of a fixed set, each with a few words that completion shows."""

    def __init__(self, name: str, about: Mapping[str, str], what: str = "") -> None:
        super().__init__(name, tuple(about), what)
        self.about = dict(about)

    def complete(self, session: Session) -> Iterable[Candidate]:
        """The words, with what completion shows for each."""
        return list(self.about.items())


class PrefixKind(ChoiceKind):
    """A choice that may be abbreviated, as in gdb; of several words that fit, the first."""

    def key(self, token: Token) -> str:
        """The whole word."""
        return next((word for word in self.words if word.startswith(token.text)), token.text)


class NumberedKind(WordKind):
    """A word that stands for a number, or a number within `bounds` (inclusive)."""

    def __init__(
        self,
        name: str,
        words: Mapping[str, int],
        what: str,
        bounds: tuple[int, int],
        *,
        fold: bool = False,
        prefix: str = "",
    ) -> None:
        super().__init__(name, words, what, fold, prefix=prefix)
        self.low, self.high = bounds

    @property
    def literal(self) -> str:
        """None: a number can be typed too."""
        return ""

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """A word of the set, or an expression."""
        return super().fits(token, session, known) or is_expression(token)

    def convert(self, token: Token, line: Line, session: Session) -> int:
        """The number."""
        if is_expression(token):
            return NumberKind(self.name, self.what, self.low, self.high).convert(
                token, line, session
            )
        number: int = super().convert(token, line, session)
        return number
