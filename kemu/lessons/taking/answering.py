"""Answers, and what comes of them: said, noted, judged.

    answer VALUE --slip of typing--> nothing has happened
                 --how sure?--> sure | fairly | guess, or any word that goes on
                 --> the reveal runs --> what was said beside what is

An answer is recorded before it is judged.  In an exam, and in a copy without answers, it is only
noted.
"""

from __future__ import annotations

from typing import Any

from kemu.errors import UsageError, blaming
from kemu.language.result import Result
from kemu.lessons.kinds import bug as bugs
from kemu.lessons.taking import driver, feedback
from kemu.lessons.taking.answers import SURE, normal, with_confidence
from kemu.lessons.taking.feedback import Texts, text
from kemu.lessons.taking.messages import say
from kemu.lessons.taking.stay import RECORDED, Stay
from kemu.lessons.taking.visit import OPEN


class Answering(Stay):
    """A stay to which one can say something.  `asked_confidence` is an answer that waits for a word
    such as `sure`; when something else is typed instead, what it came to is `waiting`."""

    asked_confidence = ""

    def answer(self, rest: str) -> Texts:
        """Say something to the step."""
        visit = self.here
        if visit.step.kind not in ("predict", "order", "choice", "answer", "explain", "bug"):
            raise UsageError(
                "answer: this step asks for no answer", hint=feedback.how(visit, self.language)
            )
        if self.exam and visit.state != OPEN:
            visit.state = OPEN
        if visit.state != OPEN:
            raise UsageError(
                "answer: this step is done", hint="task goes on; reset begins it again"
            )
        if visit.step.kind == "explain":
            return self._explained(rest)
        if visit.step.kind == "bug":
            return self._named(rest)
        made, sure = with_confidence(rest)
        visit.confidence = sure or visit.confidence
        with blaming("words"):
            said = visit.read(made)
        if self.exam:
            visit.said = visit.in_words(said)
            visit.state = RECORDED
            self.result()
            return [text("note", say(self.language, "noted", said=visit.said), visit.step.id)]
        if (
            (visit.step.confidence or self.lesson.confidence)
            and not sure
            and visit.step.kind == "predict"
        ):
            self.asked_confidence = made
            return [self.how_sure()]
        return self._judged(said)

    def how_sure(self) -> Result:
        """The question about the answer that waits."""
        visit = self.here
        said = visit.in_words(visit.read(self.asked_confidence))
        return text("note", say(self.language, "how_sure", said=said), visit.step.id)

    def sure(self, _rest: str) -> Texts:
        """Sure of the answer that was given."""
        return self._confident("sure")

    def fairly(self, _rest: str) -> Texts:
        """Fairly sure."""
        return self._confident("fairly")

    def guess(self, _rest: str) -> Texts:
        """A guess."""
        return self._confident("guess")

    def _confident(self, word: str) -> Texts:
        """How sure one is of the answer that was given."""
        if not self.asked_confidence:
            raise UsageError(f"{word}: about which answer?", hint="answer VALUE comes first")
        self.here.confidence = SURE[word]
        made, self.asked_confidence = self.asked_confidence, ""
        return self._judged(self.here.read(made))

    def settle_confidence(self) -> None:
        """Something else was typed where a word was asked for: the answer stands without it."""
        if self.asked_confidence and self.visit is not None:
            made, self.asked_confidence = self.asked_confidence, ""
            self.record("check", text="check")
            judged = self._judged(self.here.read(made))
            self.waiting = [*self.waiting, *judged]

    def _judged(self, said: Any) -> Texts:
        visit = self.here
        shown = feedback.shown(visit.reveal(), visit.step.id)
        if self.lesson.packed:
            visit.said, visit.state = visit.in_words(said), RECORDED
            self.result()
            return [
                text("note", say(self.language, "noted", said=visit.said), visit.step.id),
                *shown,
                *self.goes_on(),
            ]
        visit.settle()
        right = visit.judge(said)
        verdict, *reasons = feedback.answered(visit, right, self.language)
        if visit.state == OPEN:
            return [*shown, verdict, *reasons]
        pictures = feedback.shown(visit.pictures(), visit.step.id)
        self.result()
        return [*shown, verdict, *pictures, *reasons, *self.goes_on()]

    def _explained(self, rest: str) -> Texts:
        visit = self.here
        if not rest:
            raise UsageError(
                "answer: in your own words", hint="answer because the frame has two holders"
            )
        visit.said = rest
        visit.pass_()
        self.result()
        return [
            text("note", say(self.language, "thanks"), visit.step.id),
            *feedback.reasons(visit),
            *self.goes_on(),
        ]

    def _named(self, rest: str) -> Texts:
        visit = self.here
        if not self.blind:
            visit.settle()
        with blaming("words"):
            named = bugs.name(visit, rest)
        if self.blind:
            visit.said, visit.state = f"{visit.said}, {rest}".strip(", "), RECORDED
            self.result()
            visit.state = OPEN
            return [text("note", say(self.language, "noted", said=normal(rest)), visit.step.id)]
        found: Texts = []
        for key, said, right in named:
            words = say(self.language, "found" if right else "not_found", finding=key, said=said)
            found.append(
                text("right" if right else "wrong", words, visit.step.id, 0 if right else 3)
            )
        driver.give(visit, rest)
        visit.said = rest
        self.result()
        return found + self._after_finding()

    def _after_finding(self) -> Texts:
        visit = self.here
        if visit.state != OPEN:
            return [*feedback.reasons(visit), *self.goes_on()]
        missing = [key for key in visit.step.find if key not in visit.found]
        return [
            text("note", say(self.language, "to_find", findings=", ".join(missing)), visit.step.id)
        ]

    def goes_on(self) -> Texts:
        """What was reached, and how to go on."""
        visit = self.here
        words = say(self.language, "goes_on")
        if visit.step.points and not self.blind:
            reached = self.done()[visit.step.id].points(visit.step)
            words = (
                say(self.language, "reached", points=f"{reached:g}", most=visit.step.points)
                + " "
                + words
            )
        return [text("note", words, visit.step.id)]
