"""`bug`: what is to be found in a wrong kernel, and whether it was repaired.

    plant, setup, blocks        the history that the wrong kernel made
    event                       the first one after which an invariant does not hold (as
                                `verify every-event` says)
    invariant                   any of those that do not hold there, or at the end of the history
    function                    the kernel function that was at work
    frame                       what the author's expression says
    repair                      no wrong kernel, and the history repeated without anything breaking

An author may say otherwise for bugs that no invariant sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from kemu.errors import UsageError, blaming
from kemu.language.expr import Value
from kemu.language.result import OK, UNSATISFIED
from kemu.lessons.format import schema
from kemu.lessons.format.lesson import CONDITIONS, Condition
from kemu.lessons.format.names import plain
from kemu.lessons.format.schema import (
    EXPRESSION,
    TEMPLATE,
    expressions,
    key,
    named_numbers,
    words_of,
)
from kemu.lessons.kinds.base import OPEN, PASSED, RECORDED, Kind, Taker, Visit
from kemu.lessons.taking.answers import at_part, normal, number_in, same
from kemu.lessons.taking.feedback import reasons, text
from kemu.lessons.taking.history import broken_now, first_broken
from kemu.lessons.taking.judge import Fact, said_as
from kemu.lessons.taking.mistakes import Mistake
from kemu.lessons.taking.world import WorldError

if TYPE_CHECKING:
    from kemu.language.result import Result

FINDINGS = ("event", "invariant", "frame", "function", "repair")
NAMED = ("event", "invariant", "function", "frame")
"""Findings that are said; a repair is done."""


@attrs.define
class Hunt:
    """`truths`: by finding, the values of which any is right; `found`: the findings so far."""

    truths: dict[str, tuple[Value, ...]] = attrs.field(factory=dict)
    found: set[str] = attrs.field(factory=set)


@attrs.frozen(kw_only=True)
class Bug(Kind):
    """Findings about a planted wrong kernel."""

    kind = "bug"
    student = "names what a planted wrong kernel did, or repairs it"
    passes = "each of `find` is right"
    own_keys = (
        "`plant`; `find`: some of event, invariant, function, frame, repair; `parts` (points "
        "for each); `event`, `invariant`, `function`, `frame` where the invariants do not "
        "tell; `must` for the repair"
    )
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {
            "how": "answer {findings}; hint helps",
            "how_repair": "mutant remove, repeat what went wrong, then check",
            "found": "{finding} {said}: yes.",
            "not_found": "{finding} {said}: no.",
            "to_find": "Still to find: {findings}",
            "repaired": "Repaired: nothing breaks any more.",
            "still_wrong": "a wrong kernel is still running: mutant remove makes it right",
            "still_broken": "#{event} still breaks {rules}: undo what the wrong kernel did, and do "
            "it again with the right one",
            "no_finding": "answer: expected what is wrong",
            "no_finding_hint": "{example}",
            "which_finding": "answer: what is '{said}'?",
            "which_finding_hint": "answer {name} ...",
            "no_value_of": "answer: expected a value after {name}",
            "no_value_of_hint": "answer {name} ...",
        },
        "zh-CN": {
            "how": "answer {findings}；hint 查看提示",
            "how_repair": "先 mutant remove，把出错的操作重做一遍，再 check",
            "found": "{finding} {said}：正确。",
            "not_found": "{finding} {said}：不正确。",
            "to_find": "还需要找出：{findings}",
            "repaired": "修复成功：所有不变量都成立。",
            "still_wrong": "有错误的内核还在运行：用 mutant remove 换回正确的内核",
            "still_broken": "#{event} 仍然违反 {rules}：请撤销错误的内核所做的操作，再用正确的内核重做一遍",
            "no_finding": "answer：请说明哪里有错",
            "no_finding_hint": "{example}",
            "which_finding": "answer：'{said}' 指什么？",
            "which_finding_hint": "answer {name} ...",
            "no_value_of": "answer：{name} 后面缺少值",
            "no_value_of_hint": "answer {name} ...",
        },
    }
    asks = judges = True

    plant: str = key(schema.text, "", holds=TEMPLATE, needed=True)
    find: tuple[str, ...] = key(words_of(*FINDINGS), (), needed=True)
    parts: tuple[tuple[str, int], ...] = key(named_numbers(*FINDINGS), ())
    event: tuple[str, ...] = key(expressions, (), holds=EXPRESSION, secret=True)
    invariant: tuple[str, ...] = key(expressions, (), holds=EXPRESSION, secret=True)
    frame: tuple[str, ...] = key(expressions, (), holds=EXPRESSION, secret=True)
    function: tuple[str, ...] = key(expressions, (), holds=EXPRESSION, secret=True)
    must: tuple[Condition, ...] = key(CONDITIONS, (), secret=True)

    @classmethod
    def completed(cls, values: dict[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
        """The parts make the points."""
        if values.get("parts"):
            values["points"] = sum(points for _, points in values["parts"])
        return super().completed(values, raw)

    # ------------------------------------------------------------------------------------- entering

    @property
    def carried(self) -> bool:
        """A wrong kernel leaves nothing to the next step."""
        return False

    @property
    def settles_at_once(self) -> bool:
        """Nothing is revealed here."""
        return True

    def begin(self) -> Hunt:
        """Nothing is found."""
        return Hunt()

    def given_until(self, visit: Visit) -> int:
        """A repair may change the history from its beginning."""
        return visit.base if "repair" in self.find else visit.start

    def may_plant(self, what: str) -> bool:
        """To repair is to remove the wrong kernel."""
        return what == "remove" and "repair" in self.find

    def fact(self, visit: Visit) -> Fact:
        """No one value is right: `truths` are asked.  Raises WorldError where the history shows no
        bug."""
        hunt: Hunt = visit.memory
        hunt.truths = self._truths(visit)
        return Fact(None)

    def _truths(self, visit: Visit) -> dict[str, tuple[Value, ...]]:
        found = {
            name: tuple(visit.value(name, text) for text in getattr(self, name))
            for name in NAMED
            if getattr(self, name)
        }
        wanted = [name for name in self.find if name in NAMED and name not in found]
        if not wanted:
            return found
        if "frame" in wanted:
            what = "frame: no invariant names one"
            raise WorldError("P10", self.at("find"), what, 'write frame = "EXPR"')
        broken = first_broken(visit.session, visit.base)
        if broken is None:
            hint = "run the wrong function in setup or in a run block"
            raise WorldError("P10", self.at("plant"), "nothing breaks in this history", hint)
        rules = tuple(dict.fromkeys((*broken.rules, *broken_now(visit.session))))
        seen: dict[str, tuple[Value, ...]] = {
            "event": (broken.event,),
            "invariant": rules,
            "function": (broken.function,),
        }
        return seen | found

    # ------------------------------------------------------------------------------------ answering

    def how(self, visit: Visit, language: str) -> str:
        """What to name, and how to repair."""
        named = [name for name in self.find if name in NAMED]
        findings = ", ".join(f"{name} ..." for name in named)
        asked = self.say(language, "how", findings=findings) if named else ""
        repair = self.say(language, "how_repair") if "repair" in self.find else ""
        return f"{asked} {repair}".strip()

    def again(self, visit: Visit) -> None:
        """Nothing is found."""
        visit.memory.found.clear()

    def whole(self, rest: str) -> bool:
        """Event numbers may be written as they are shown: #512."""
        return "#" in rest

    def give(self, visit: Visit, typed: str) -> None:
        """Name findings; the points follow."""
        visit.settle()
        named = self.named(visit, typed)
        visit.tries += 1
        self._add(visit, {name for name, _, right in named if right})

    def _add(self, visit: Visit, new: set[str]) -> None:
        hunt: Hunt = visit.memory
        hunt.found |= new
        weights = dict(self.parts) or dict.fromkeys(self.find, 1)
        whole = sum(weights.get(name, 0) for name in self.find)
        reached = sum(weights.get(name, 0) for name in hunt.found)
        visit.share = reached / whole if whole else 1.0
        if not self.missing_of(visit):
            visit.pass_()

    def missing_of(self, visit: Visit) -> list[str]:
        """The findings that are still missing."""
        return [name for name in self.find if name not in visit.memory.found]

    def named(self, visit: Visit, typed: str) -> list[tuple[str, str, bool]]:
        """(finding, what was said, right) of each part of the answer.  Raises UsageError for a slip
        of typing."""
        findings = [name for name in self.find if name in NAMED]
        parts = [part.strip() for part in normal(typed).replace(";", ",").split(",")]
        if not any(parts) or not findings:
            example = f"answer {findings[0]} ..." if findings else "check"
            raise Mistake("no_finding", own=self.messages, example=example)
        truths, said = visit.memory.truths, []
        for part in filter(None, parts):
            try:
                name, value = part_of(part, findings)
            except UsageError as error:
                at_part(error, typed, part)
                raise
            right = any(same(value, truth) for truth in truths.get(name, ()))
            said.append((name, f"#{value}" if name == "event" else said_as(value), right))
        return said

    def heard(self, taker: Taker, rest: str) -> list[Result]:
        """Each part of the answer, and what is still to find."""
        visit = taker.here
        if not taker.blind:
            visit.settle()
        with blaming("words"):
            named = self.named(visit, rest)
        if taker.blind:
            visit.said, visit.state = f"{visit.said}, {rest}".strip(", "), RECORDED
            taker.result()
            visit.state = OPEN
            return [text("note", self.say(taker.language, "noted", said=normal(rest)), self.id)]
        found = []
        for name, said, right in named:
            message = "found" if right else "not_found"
            words = self.say(taker.language, message, finding=name, said=said)
            role, status = ("right", OK) if right else ("wrong", UNSATISFIED)
            found.append(text(role, words, self.id, status))
        self.give(visit, rest)
        visit.said = rest
        taker.result()
        if visit.state != OPEN:
            return [*found, *reasons(visit), *taker.goes_on()]
        return [*found, text("note", self._to_find(visit, taker.language), self.id)]

    def _to_find(self, visit: Visit, language: str) -> str:
        return self.say(language, "to_find", findings=", ".join(self.missing_of(visit)))

    # -------------------------------------------------------------------------------------- verdict

    def check(self, visit: Visit) -> bool:
        """Is the kernel repaired?"""
        if visit.state == OPEN and "repair" in self.find and not self.unrepaired(visit, "en"):
            self._add(visit, {"repair"})
        return visit.state == PASSED

    def unrepaired(self, visit: Visit, language: str) -> list[str]:
        """Why the kernel cannot count as repaired, one line each."""
        session = visit.session
        if session.planted:
            return [self.say(language, "still_wrong")]
        records = [record for record in session.timeline.records if visit.base <= record.first]
        since = [record.text.split() for record in records if record.first <= session.now]
        right = not any("mutant" in words and "plant" in words for words in since)
        broken = None if right else first_broken(session, visit.base)
        if broken is not None:
            rules = ", ".join(broken.rules)
            return [self.say(language, "still_broken", event=broken.event, rules=rules)]
        return visit.failures(self.must)

    def praise(self, visit: Visit, language: str) -> list[str]:
        """A repair is worth a sentence."""
        return [self.say(language, "repaired")] if "repair" in visit.memory.found else []

    def unmet(self, visit: Visit, language: str) -> list[str]:
        """What is to find, or why it is not repaired."""
        if self.missing_of(visit) == ["repair"]:
            return self.unrepaired(visit, language)
        return [self._to_find(visit, language)]

    def solve(self, visit: Visit) -> list[str]:
        """The answers that find everything, and the repair."""
        truths = visit.memory.truths
        named = [f"{name} {plain(truths[name][0])}" for name in self.find if name in truths]
        lines = [f"answer {', '.join(named)}"] if named else []
        return lines + (super().solve(visit) if "repair" in self.find else [])

    def why_not(self, visit: Visit) -> str:
        """What is not repaired, or what was found."""
        if "repair" in self.find:
            return "; ".join(self.unrepaired(visit, "en"))
        return f"found {sorted(visit.memory.found)}"


def part_of(typed: str, findings: list[str]) -> tuple[str, Value]:
    """`event 512`: the finding, and its value.  Raises UsageError."""
    word, _, rest = typed.partition(" ")
    folded = word.casefold()
    name = folded if folded in NAMED else findings[0] if len(findings) == 1 else ""
    if name not in findings:
        said = {"said": typed[:40], "name": findings[0]}
        raise Mistake("which_finding", own=Bug.messages, **said)
    value = rest.strip() if folded == name else typed
    if not value:
        raise Mistake("no_value_of", own=Bug.messages, name=name)
    if name in ("event", "frame"):
        return name, number_in(value.removeprefix("#"))
    return name, value.removesuffix("()")
