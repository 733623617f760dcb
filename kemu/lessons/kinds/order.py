"""`order`: put events in the order of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from kemu.errors import UsageError
from kemu.lessons.format import schema
from kemu.lessons.format.schema import PROSE, TEMPLATE, key, tables
from kemu.lessons.kinds.base import Visit
from kemu.lessons.kinds.lettered import Lettered
from kemu.lessons.taking.judge import Fact, place_of
from kemu.lessons.taking.world import WorldError


@attrs.frozen
class Item:
    """One event: its place in the journal, or none for what did not happen."""

    text: str = key(schema.text, holds=PROSE, needed=True)
    at: str = key(schema.text, "", holds=TEMPLATE)
    never: str = key(schema.text, "", holds=TEMPLATE)
    key: str = attrs.field(default=attrs.Factory(lambda self: self.text, takes_self=True))


@attrs.frozen(kw_only=True)
class Order(Lettered):
    """Events in order, without those that did not happen."""

    kind = "order"
    student = "puts events in order: `answer c a b`"
    passes = "the order is the journal's, and what did not happen is left out"
    own_keys = (
        '`items = [{ text = "...", at = "enter FUNCTION" }, ...]`; also `leave FUNCTION`, '
        '`event WORD`, `until EXPR`. An item without `at` did not happen; `never = "enter '
        'FUNCTION"` lets the proof check that. `reveal`, `show`'
    )
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {
            "how": "answer LETTERS in the order in which it happens, for example answer b a c; "
            "leave out what does not happen",
            "in_place": "The first {count} are right.",
            "in_place_one": "The first is right.",
            "never": "{letters} did not happen.",
        },
        "zh-CN": {
            "how": "按发生的先后输入字母，例如 answer b a c；没有发生的不要写",
            "in_place": "前 {count} 个正确。",
            "in_place_one": "第一个正确。",
            "never": "{letters} 没有发生。",
        },
    }

    items: tuple[Item, ...] = key(tables(Item), (), needed=True)

    @classmethod
    def for_students(cls, raw: dict[str, Any]) -> dict[str, Any]:
        """The texts of the items, sorted."""
        entries = raw["items"] if isinstance(raw["items"], list) else [raw["items"]]
        found = sorted(entry["text"] for entry in entries)
        return super().for_students(raw) | {"items": [{"text": text} for text in found]}

    def listed(self) -> tuple[Item, ...]:
        """The items."""
        return self.items

    def fact(self, visit: Visit) -> Fact:
        """The items in the order of their places in the journal.  Raises WorldError P09."""
        line, found = self.at("items"), []
        for index, item in enumerate(self.items):
            if item.at:
                where = self._place(visit, item.at)
                if where is None:
                    raise WorldError("P09", line, f"'{item.text}': {item.at} does not happen")
                found.append((where, index))
            elif item.never and self._place(visit, item.never) is not None:
                raise WorldError("P09", line, f"'{item.text}' did happen: {item.never}")
        if len({where for where, _ in found}) < len(found):
            raise WorldError("P09", line, "two items are at the same place in the journal")
        return Fact(tuple(index for _, index in sorted(found)), ordered=True)

    def _place(self, visit: Visit, anchor: str) -> Any:
        """Where the anchor is, from the step's entering on.  Raises WorldError."""
        made = visit.text("items", anchor)
        try:
            return place_of(visit.session, made, visit.values, visit.base, visit.session.end)
        except UsageError as error:
            what = f"{error.what} in {error.text or made}"
            raise WorldError("M01", self.at("items"), what, error.hint) from error

    def options_of(self, visit: Visit) -> list[str]:
        """The items as this student sees them."""
        return [visit.text("items", self.items[index].text) for index in visit.order]

    def remarks(self, visit: Visit, language: str) -> list[str]:
        """How well the order begins, and which of its events never happened."""
        right = self.right(visit)
        pairs = list(zip(visit.answer, right, strict=False))
        first = next((at for at, (said, was) in enumerate(pairs) if said != was), len(pairs))
        message = "in_place_one" if first == 1 else "in_place"
        found = [self.say(language, message, count=first)] if first else []
        never = [self.letter(visit, item) for item in visit.answer if item not in right]
        return [*found, *([self.say(language, "never", letters=", ".join(never))] if never else [])]
