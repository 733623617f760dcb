"""`explore`: play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs

from kemu.errors import UsageError
from kemu.lessons.format import schema
from kemu.lessons.format.names import holds
from kemu.lessons.format.schema import EXPRESSION, PROSE, key, tables
from kemu.lessons.kinds.base import PASSED, Kind, Taker, Visit
from kemu.lessons.taking.feedback import text

if TYPE_CHECKING:
    from kemu.language.result import Result


@attrs.frozen
class Goal:
    """A badge."""

    text: str = key(schema.text, holds=PROSE, needed=True)
    that: str = key(schema.text, holds=EXPRESSION, needed=True)


@attrs.frozen(kw_only=True)
class Explore(Kind):
    """Nothing has to be reached; what is reached is a badge."""

    kind = "explore"
    student = "plays"
    passes = "always; `goals` are badges"
    own_keys = '`goals = [{ text = "...", that = "EXPR" }]`'
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {
            "how": "play as long as you like; check shows what you have found, lesson next goes on",
            "badge": "Found: {text}",
            "badges": "{found} of {count} found",
        },
        "zh-CN": {
            "how": "自由尝试；check 显示你找到了什么，lesson next 进入下一步",
            "badge": "找到了：{text}",
            "badges": "已找到 {found} 个，共 {count} 个",
        },
    }
    graded = False
    judges = optional = True
    todo = "# desk.run(...)\ndesk.check()"

    goals: tuple[Goal, ...] = key(tables(Goal), ())

    def begin(self) -> set[int]:
        """The goals that have been reached."""
        return set()

    def may_plant(self, _what: str) -> bool:
        """Wrong kernels are to play with, too."""
        return True

    def reached(self, visit: Visit) -> list[int]:
        """The goals that hold now and did not before."""
        found: set[int] = visit.memory
        new = [
            index
            for index, goal in enumerate(self.goals)
            if index not in found and self._holds(visit, goal)
        ]
        found |= {*new}
        return new

    def _holds(self, visit: Visit, goal: Goal) -> bool:
        try:
            return holds(visit.session, goal.that, visit.values)
        except UsageError:  # it asks about what is not there yet
            return False

    def looked(self, taker: Taker) -> list[Result]:
        """The new badges, and how many there are."""
        visit = taker.here
        badges = [
            self.say(taker.language, "badge", text=visit.text("goals", self.goals[at].text))
            for at in self.reached(visit)
        ]
        counts = {"found": len(visit.memory), "count": len(self.goals)}
        count = text("note", self.say(taker.language, "badges", **counts), self.id)
        return [*(text("right", words) for words in badges), count, *taker.goes_on()]

    def left(self, visit: Visit) -> None:
        """Passed, whatever was found."""
        self.reached(visit)
        visit.state, visit.share = PASSED, 1.0

    def unproved(self, visit: Visit) -> str:
        """A solution that is written must reach every goal."""
        self.reached(visit)
        if not self.solution or len(visit.memory) == len(self.goals):
            return ""
        return f"reaches {len(visit.memory)} of {len(self.goals)} goals"
