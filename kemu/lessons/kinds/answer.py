"""`answer`: read a value off the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from kemu.language.expr import TaskValue, Value
from kemu.lessons.format.names import holds, plain
from kemu.lessons.format.schema import (
    BELIEFS,
    COMMANDS,
    EXPRESSION,
    PROSE,
    expressions,
    key,
    named_texts,
    text,
    texts,
)
from kemu.lessons.kinds.base import Fault, Kind, Visit
from kemu.lessons.taking.answers import normal, read_like, read_set, with_confidence
from kemu.lessons.taking.judge import Fact, said_as
from kemu.lessons.taking.mistakes import Mistake

ADDRESS = 0x10000
"""A number from here on is an address or the like: people write it in hex."""


@attrs.define
class Asked:
    """`base`: the digits of which it was asked whether they are hex."""

    base: str = ""


@attrs.frozen(kw_only=True)
class Answer(Kind):
    """A value, a set of values, or (`accept`) any of many right ones."""

    kind = "answer"
    student = "reads a value off the machine"
    passes = "it equals `expect`, in any base"
    own_keys = (
        "`expect` (an expression; a list is a set), `wrong` (expression = what to say to a "
        "student who believes it), `words` (the words that are accepted), `show` (commands "
        "that only look, run after the answer). Where many answers are right: `accept` (an "
        "expression in which `answer` is what was typed) and `sample` (one right answer)"
    )
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {"how": "answer VALUE"},
        "zh-CN": {"how": "answer 加上你的答案"},
    }
    asks = compares = True

    words: tuple[str, ...] = key(texts, (), holds=PROSE)
    wrong: tuple[tuple[str, str], ...] = key(named_texts, (), holds=BELIEFS, secret=True)
    expect: tuple[str, ...] = key(expressions, (), holds=EXPRESSION, needed=True, secret=True)
    accept: str = key(text, "", holds=EXPRESSION, secret=True)
    sample: str = key(text, "", holds=EXPRESSION, secret=True)
    show: tuple[str, ...] = key(texts, (), holds=COMMANDS)
    is_set: bool = False
    word_keys: tuple[str, ...] = ()
    """The words as the author wrote them, whatever language is shown."""

    # -------------------------------------------------------------------------------- from the file

    @classmethod
    def missing(cls, raw: Mapping[str, Any]) -> list[str]:
        """`accept` with a `sample` may take the place of `expect`."""
        found = [name for name in super().missing(raw) if name != "expect" or "accept" not in raw]
        return [*found, *(["sample"] if "accept" in raw and "sample" not in raw else [])]

    @classmethod
    def completed(cls, values: dict[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
        """A list to expect is a set."""
        values["is_set"] = isinstance(raw.get("expect"), list)
        values["word_keys"] = values.get("words", ())
        return super().completed(values, raw)

    # ------------------------------------------------------------------------------------- entering

    def begin(self) -> Asked:
        """The question about the base is asked once."""
        return Asked()

    def fact(self, visit: Visit) -> Fact:
        """What the expressions give."""
        values = tuple(visit.value("expect", each) for each in self.expect)
        wrong = tuple(
            (visit.value("wrong", belief), visit.text("wrong", about))
            for belief, about in self.wrong
        )
        if self.accept:

            def accepts(said: Value) -> bool:
                return holds(visit.session, self.accept, visit.values | {"answer": said})

            return Fact(plain(visit.value("sample", self.sample)), wrong, accepts=accepts)
        return Fact(values if self.is_set else values[0], wrong)

    # -------------------------------------------------------------------------------------- answers

    def words_of(self, visit: Visit) -> list[str]:
        """The words, in the language that is shown."""
        return [visit.text("words", word) for word in self.words]

    def bare(self, _visit: Visit, line: str) -> str:
        """A number, or one of the words of the step."""
        named = {normal(word).casefold() for word in (*self.words, *self.word_keys)}
        is_named = with_confidence(line)[0].casefold() in named
        return line if line[:1].isdigit() or is_named else ""

    def read(self, visit: Visit, typed: str) -> Any:
        """A value of the kind that is wanted."""
        if self.accept:
            return normal(typed)
        if self.words:
            return self._word(visit, typed)
        if self.is_set:
            return read_set(typed, (self.example(visit) if visit.fact is None else 0,))
        like, asked = self.example(visit), visit.memory
        large = isinstance(like, int) and not isinstance(like, bool) and like >= ADDRESS
        if large and typed.isascii() and typed.isdigit() and typed != asked.base:
            asked.base = typed
            raise Mistake("base", said=typed[:40])
        return read_like(typed, like)

    def _word(self, visit: Visit, typed: str) -> Value | tuple[Value, ...]:
        """The author's word for the one that was typed, in whatever language; of a set all of
        them."""
        names = [visit.text("words", word) for word in self.word_keys]
        shown = self.words_of(visit)
        known = (*shown, *(name for name in names if name not in shown))
        meant = dict(zip(shown, names, strict=True))
        if self.is_set:
            return tuple(meant.get(str(word), word) for word in read_set(typed, ("",), known))
        word = read_like(typed, "", known)
        return meant.get(str(word), word)

    def example(self, visit: Visit) -> Value:
        """A value of the kind that is wanted, before it is known: found on a machine of its own."""
        if visit.fact is not None:
            value = visit.fact.value
            return None if isinstance(value, tuple) and not isinstance(value, TaskValue) else value
        name = (visit.world.lesson.hash, self.id)
        if name not in EXAMPLES:
            EXAMPLES[name] = None
            if self.expect:
                session, values = visit.world.future(self)
                EXAMPLES[name] = visit.world.evaluated(
                    session, self.expect[0], values, self.at("expect"), "expect"
                )
        return EXAMPLES[name]

    def in_words(self, _visit: Visit, value: Any) -> str:
        """As a value in a sentence."""
        return said_as(value)

    def remarks(self, visit: Visit, _language: str) -> list[str]:
        """The author's words about the belief that leads to this answer."""
        belief = visit.fact.belief(visit.answer) if visit.fact is not None else ""
        return [belief] if belief else []

    # ------------------------------------------------------------------------------------ solutions

    def solve(self, visit: Visit) -> list[str]:
        """The answer as a student would type it."""
        visit.reveal()
        value = visit.fact.value if visit.fact else None
        if isinstance(value, tuple) and not isinstance(value, TaskValue):
            return [f"answer {', '.join(map(plain, value)) or 'none'}"]
        large = isinstance(value, int) and not isinstance(value, bool) and value >= ADDRESS
        return [f"answer {hex(value) if large else plain(value)}"]  # type: ignore[arg-type]  # a large value is a number

    def doubts(self, visit: Visit) -> Iterator[Fault]:
        """Wrong answers that are right, or the same."""
        fact = visit.fact
        if fact is None or not fact.wrong:
            return
        beliefs = [belief for belief, _ in self.wrong]
        for (value, _), belief in zip(fact.wrong, beliefs, strict=True):
            if fact.agrees(value):
                what = f"the wrong answer {belief} is {said_as(value)}, which is right"
                yield Fault("P06", self.at("wrong"), what)
        values = [said_as(value) for value, _ in fact.wrong]
        twice = next((at for at, value in enumerate(values) if value in values[:at]), None)
        if twice is not None:
            first = beliefs[values.index(values[twice])]
            what = f"two wrong answers are {values[twice]}: {first} and {beliefs[twice]}"
            yield Fault("W05", self.at("wrong"), what)


EXAMPLES: dict[tuple[str, str], Value] = {}
"""A right answer of each prediction that was asked for one, by lesson and step: only what kind of
value it is counts."""
