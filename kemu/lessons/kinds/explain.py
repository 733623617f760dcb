"""`explain`: write free text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs

from kemu.lessons.kinds.base import Kind, Taker, Visit
from kemu.lessons.taking.feedback import reasons, text
from kemu.lessons.taking.mistakes import Mistake

if TYPE_CHECKING:
    from kemu.language.result import Result


@attrs.frozen(kw_only=True)
class Explain(Kind):
    """Words that are collected and never judged."""

    kind = "explain"
    student = "writes free text"
    passes = "always; it is collected, not graded"
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {
            "how": "answer YOUR WORDS",
            "thanks": "Saved. Thank you.",
            "no_words": "answer: expected an answer in your own words",
            "no_words_hint": "answer because the frame has two holders",
        },
        "zh-CN": {
            "how": "answer 加上你的解释",
            "thanks": "已保存，谢谢。",
            "no_words": "answer：请用自己的话回答",
            "no_words_hint": "answer 因为这个页框有两个使用者",
        },
    }
    graded = solvable = False
    asks = True

    def whole(self, _rest: str) -> bool:
        """Words for people may hold anything."""
        return True

    def give(self, visit: Visit, typed: str) -> None:
        """Any words will do."""
        visit.said = typed.strip()
        if visit.said:
            visit.pass_()

    def heard(self, taker: Taker, rest: str) -> list[Result]:
        """Keep the words."""
        if not rest:
            raise Mistake("no_words", own=self.messages)
        visit = taker.here
        visit.said = rest
        visit.pass_()
        taker.result()
        thanks = text("note", self.say(taker.language, "thanks"), self.id)
        return [thanks, *reasons(visit), *taker.goes_on()]

    def unproved(self, _visit: Visit) -> str:
        """There is nothing to prove."""
        return ""
