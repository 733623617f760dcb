"""`choice`: pick options by their letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from kemu.lessons.format import schema
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.schema import EXPRESSION, PROSE, key, tables, truth
from kemu.lessons.kinds.base import FAILED, Fault, Visit
from kemu.lessons.kinds.lettered import Lettered
from kemu.lessons.taking.judge import Fact


def rightness(value: Any) -> str:
    """An expression that says whether an option is right."""
    return str(value).lower() if isinstance(value, bool) else schema.text(value)


@attrs.frozen
class Option:
    """One option; `right` is an expression; `key` is the text as the author wrote it, whatever
    language is shown."""

    text: str = key(schema.text, holds=PROSE, needed=True)
    right: str = key(rightness, "false", holds=EXPRESSION)
    why: str = key(schema.text, "", holds=PROSE)
    key: str = attrs.field(default=attrs.Factory(lambda self: self.text, takes_self=True))


@attrs.frozen(kw_only=True)
class Choice(Lettered):
    """One option of some, or several."""

    kind = "choice"
    student = "picks letters"
    passes = "just the options that are `right`"
    own_keys = (
        '`options = [{ text = "...", right = "EXPR" or true, why = "..." }]`, `several`, '
        "`shuffle`, `reveal`, `show`"
    )
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {
            "how": "answer LETTER",
            "how_several": "answer LETTERS, for example answer a c",
            "not_all": "You said {said}: right, but not all.",
        },
        "zh-CN": {
            "how": "answer 加上一个字母",
            "how_several": "answer 加上几个字母，例如 answer a c",
            "not_all": "你的答案是 {said}：没有错，但不完整。",
        },
    }

    options: tuple[Option, ...] = key(tables(Option), (), needed=True)
    several: bool = key(truth, default=False)
    shuffle: bool = key(truth, default=True)

    @classmethod
    def for_students(cls, raw: dict[str, Any]) -> dict[str, Any]:
        """The texts of the options, sorted where the student's order is drawn."""
        entries = raw["options"] if isinstance(raw["options"], list) else [raw["options"]]
        found = [entry["text"] for entry in entries]
        found = found if raw.get("shuffle") is False else sorted(found)
        return super().for_students(raw) | {"options": [{"text": text} for text in found]}

    def faults(self, lesson: Lesson) -> Iterator[Fault]:
        """Right options that can be counted without the machine must be as many as one may pick."""
        rights = [option.right for option in self.options]
        found = rights.count("true")
        if lesson.packed or not rights or not {*rights} <= {"true", "false"}:
            return
        if found == 0 or (found > 1 and not self.several):
            wanted = "at least one option" if self.several else "exactly one option"
            what = f"{found} options are right"
            yield Fault("M07", self.at("options"), what, f"{wanted} must be right")

    def listed(self) -> tuple[Option, ...]:
        """The options."""
        return self.options

    def fact(self, visit: Visit) -> Fact:
        """The options whose expression is true."""
        found = [visit.value("options", option.right) is True for option in self.options]
        return Fact(tuple(index for index, is_right in enumerate(found) if is_right))

    def how(self, _visit: Visit, language: str) -> str:
        """One letter or more."""
        return self.say(language, "how_several" if self.several else "how")

    def options_of(self, visit: Visit) -> list[str]:
        """The options as this student sees them."""
        return [visit.text("options", self.options[index].text) for index in visit.order]

    def in_words(self, visit: Visit, value: Any) -> str:
        """The letters in their order."""
        return super().in_words(visit, sorted(value, key=visit.order.index))

    def partly(self, visit: Visit) -> str:
        """All that was chosen is right, but not all that is right was chosen."""
        chosen = visit.answer if visit.state != FAILED else ()
        return "not_all" if chosen and set(chosen) < set(self.right(visit)) else ""

    def remarks(self, visit: Visit, _language: str) -> list[str]:
        """Why the wrongly chosen options (of several: the wrongly left out ones too) are wrong."""
        chosen, rights = visit.answer, self.right(visit)
        judged = [index for index in visit.order if self.several or index in chosen]
        wrongly = [
            self.options[index] for index in judged if (index in chosen) is not (index in rights)
        ]
        return [visit.text("options", option.why) for option in wrongly if option.why]

    def doubts(self, visit: Visit) -> Iterator[Fault]:
        """The right options must be as many as one may pick."""
        count = len(self.right(visit))
        if visit.fact is not None and (not count or (count > 1 and not self.several)):
            what = f"{count} options of {self.id} are right"
            yield Fault("M07", self.at("options"), what)
