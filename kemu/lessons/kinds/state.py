"""`state`: bring the machine to a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from kemu.lessons.format.lesson import CONDITIONS, Condition
from kemu.lessons.format.schema import key
from kemu.lessons.kinds.base import OPEN, PASSED, Kind, Visit
from kemu.lessons.taking.judge import first_held


@attrs.frozen(kw_only=True)
class State(Kind):
    """What must hold now, and what must never have held."""

    kind = "state"
    student = "brings the machine to a state, then `check`"
    passes = "every `must` holds, and no `never` held at any event of the step"
    own_keys = '`must`, `never`: expressions, or `{ that = "EXPR", say = "words when it fails" }`'
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {"how": "change the machine, then check"},
        "zh-CN": {"how": "改变机器的状态，然后输入 check"},
    }
    judges = True
    todo = "# desk.run(...)\n# {hint}\ndesk.check()"

    must: tuple[Condition, ...] = key(CONDITIONS, (), needed=True, secret=True)
    never: tuple[Condition, ...] = key(CONDITIONS, (), secret=True)

    def check(self, visit: Visit) -> bool:
        """All of `must`, none of `never`."""
        if visit.state == OPEN and not self.unmet(visit, "") and not self.spoiled(visit):
            visit.pass_()
        return visit.state == PASSED

    def unmet(self, visit: Visit, _language: str) -> list[str]:
        """What of `must` does not hold."""
        return visit.failures(self.must)

    def spoiled(self, visit: Visit) -> list[tuple[int, str]]:
        """(event, words) of each `never` that held at some moment since the start."""
        found = []
        for condition in self.never:
            now = visit.session.now
            event = first_held(visit.session, condition, visit.values, visit.start, now)
            if event is not None:
                said = visit.text("never", condition.say) if condition.say else condition.that
                found.append((event, said))
        return found

    def why_not(self, visit: Visit) -> str:
        """What does not hold, and what spoiled it."""
        spoiled = [f"#{event}: {words}" for event, words in self.spoiled(visit)]
        return "; ".join([*self.unmet(visit, ""), *spoiled])
