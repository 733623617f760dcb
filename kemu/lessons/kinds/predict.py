"""`predict`: commit to a value before the machine can move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from kemu.errors import UsageError
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.names import compiled
from kemu.lessons.format.schema import COMMANDS, key, texts
from kemu.lessons.kinds.answer import Answer
from kemu.lessons.kinds.base import Fault

ASKING = frozenset({"name", "call", "variable"})
"""Steps of a compiled expression that ask for something; one without any is a literal."""


@attrs.frozen(kw_only=True)
class Predict(Answer):
    """An answer that is given once, and then compared with what happens."""

    kind = "predict"
    student = "commits to a value with `answer`, before the machine can move"
    passes = "it equals `expect`, asked after the `reveal`"
    own_keys = "`reveal` (the commands that show what is right), and the keys of `answer`"
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {"how": "answer VALUE commits you; then the machine moves"},
        "zh-CN": {"how": "用 answer 提交你的预测，提交之后机器才会动"},
    }
    commits = True

    reveal: tuple[str, ...] = key(texts, (), holds=COMMANDS, needed=True)

    @classmethod
    def completed(cls, values: dict[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
        """There is one attempt."""
        return super().completed(values, raw) | {"attempts": 1}

    def faults(self, _lesson: Lesson) -> Iterator[Fault]:
        """A prediction must ask the machine."""
        for text in self.expect:
            try:
                literal = not any(step.op in ASKING for step in compiled(text).steps)
            except UsageError:  # M01 says so
                continue
            if literal:
                what = f"expect = {text} is a literal"
                yield Fault(
                    "M04", self.at("expect"), what, "ask the machine, for example data_frames(app)"
                )
