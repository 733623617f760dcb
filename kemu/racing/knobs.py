"""The options of `race`, each declared once: how it is typed, how it is stored, and for which races
it is.

race gets --non-atomic --cpus 3      the words after the command
Options("non-atomic", cpus=3)        the options they set
--non-atomic --cpus 3                how these are written again

This module depends on no command, so that expressions can run races too (`names/races.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs

from kemu.errors import UsageError
from kemu.races.programs import ATOMIC, PLAIN, REFCOUNT

LITMUS, KERNEL = "litmus", "kernel"
COUNT, NUMBER, LOCK, MUTANT = "count", "number", "lock", "mutant"
"""What the value of an option can be; `race` has the types."""


@attrs.frozen(eq=False)
class Knob:
    """An option: words with their values, or one word (with None) that takes a value of this kind.
    `only`: the sort of race that has it."""

    words: Mapping[str, Any]
    kind: str = ""
    only: str = ""
    name: str = ""

    @property
    def word(self) -> str:
        """The word, or the first of them."""
        return next(iter(self.words))

    def written(self, value: Any) -> str:
        """How that value is typed."""
        return (
            f"{self.word} {value}"
            if self.kind
            else next(word for word, meant in self.words.items() if meant == value)
        )

    def read(self, given: Any) -> tuple[Any, ...]:
        """What the command got, as none or one value.  UsageError for words that contradict each
        other."""
        values = (
            dict.fromkeys(given) if isinstance(given, tuple) else () if given is None else (given,)
        )
        if len(values) > 1:
            raise UsageError(
                f"race: {' and '.join(', '.join(self.words).rsplit(', ', 1))} exclude each other"
            )
        return tuple(values)


def _knob(
    words: str | Mapping[str, Any], kind: str = "", only: str = "", default: Any = None
) -> Any:
    knob = Knob({words: None} if isinstance(words, str) else words, kind, only)
    return attrs.field(default=default, metadata={"knob": knob})


@attrs.frozen
class Options:
    """The options, as given; `end`: a replay leaves the machine after its last step, not before
    its first."""

    kind: str = _knob(
        {"--atomic": ATOMIC, "--non-atomic": PLAIN, "--refcount": REFCOUNT}, default=ATOMIC
    )
    unless_zero: bool = _knob({"--unless-zero": True}, only=LITMUS, default=False)
    cpus: int | None = _knob("--cpus", COUNT, LITMUS)
    uses: int | None = _knob("--uses", COUNT, LITMUS)
    count: int | None = _knob("--count", NUMBER, LITMUS)
    bound: int | None = _knob("--bound", COUNT, KERNEL)
    lock: str = _knob("--without-lock", LOCK, default="")
    mutant: str = _knob("--mutant", MUTANT, KERNEL, default="")
    end: bool = _knob({"--end": True}, default=False)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The options from what the command got for each of `KNOBS`; values of other arguments are
        ignored."""
        return cls(**{knob.name: value for knob in KNOBS for value in knob.read(values[knob.name])})

    def given(self) -> dict[Knob, Any]:
        """The options that differ from their defaults, with their values."""
        plain = Options()
        found = {knob: getattr(self, knob.name) for knob in KNOBS}
        return {knob: value for knob, value in found.items() if value != getattr(plain, knob.name)}

    def words(self) -> list[str]:
        """The options as they are written."""
        return [knob.written(value) for knob, value in self.given().items()]

    def only_for(self, sort: str) -> list[str]:
        """The words that were given and apply only to this sort of race: litmus or kernel."""
        return [knob.word for knob in self.given() if knob.only == sort]


_FIELDS: tuple[Any, ...] = attrs.fields(Options)
KNOBS: tuple[Knob, ...] = tuple(
    attrs.evolve(field.metadata["knob"], name=field.name) for field in _FIELDS
)
"""All options; each has the name of its field in `Options`."""
