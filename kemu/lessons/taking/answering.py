"""Answers: read, noted, judged, and told.

    answer VALUE --slip of typing--> nothing has happened
                 --how sure?--> sure | fairly | guess, or any word that goes on
                 --> the reveal runs --> what was said beside what is

An answer is recorded before it is judged.  In an exam, and in a copy without answers, it is only
noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kemu.errors import blaming
from kemu.lessons.kinds.base import FAILED, OPEN, RECORDED
from kemu.lessons.taking import feedback
from kemu.lessons.taking.answers import SURE, with_confidence
from kemu.lessons.taking.mistakes import Mistake

if TYPE_CHECKING:
    from kemu.language.result import Result
    from kemu.lessons.taking.feedback import Texts
    from kemu.lessons.taking.stay import Stay


class Answering:
    """The answers of a stay.  `asked_confidence` is an answer that waits for a word such as `sure`;
    when something else is typed instead, it is judged, and what is said to it waits in the stay."""

    def __init__(self, stay: Stay) -> None:
        self.stay = stay
        self.asked_confidence = ""

    def answer(self, rest: str) -> Texts:
        """Say something to the step."""
        visit = self.stay.here
        step, rules = visit.step, self.stay.rules
        if rules.retaken:
            visit.state, visit.share, visit.tries = OPEN, 0.0, 0
            step.again(visit)
        if not step.asks:
            raise Mistake("takes_no_answer", how=step.how(visit, self.stay.language))
        if not rules.helped:
            visit.state = OPEN
        if visit.state != OPEN:
            raise Mistake("answered_already")
        found = step.heard(self.stay, rest)
        if found is None:
            found = self._compared(rest)
        if rules.retaken and visit.state == OPEN:
            visit.state = FAILED
            self.stay.result()
        return found

    def _compared(self, rest: str) -> Texts:
        """The answer is compared with a fact."""
        visit = self.stay.here
        made, sure = with_confidence(rest)
        visit.confidence = sure or visit.confidence
        with blaming("words"):
            said = visit.read(made)
        if not self.stay.rules.helped:
            visit.said, visit.state = visit.step.in_words(visit, said), RECORDED
            self.stay.result()
            return [self.stay.note("noted", said=visit.said)]
        asks = visit.step.confidence or self.stay.lesson.confidence
        if asks and not sure and visit.step.commits:
            self.asked_confidence = made
            return [self.how_sure()]
        return self._judged(said)

    def _judged(self, said: Any) -> Texts:
        visit, stay = self.stay.here, self.stay
        shown = feedback.shown(visit.reveal(), visit.step.id)
        if stay.lesson.packed:
            visit.said, visit.state = visit.step.in_words(visit, said), RECORDED
            stay.result()
            return [stay.note("noted", said=visit.said), *shown, *stay.goes_on()]
        visit.settle()
        right = visit.judge(said)
        verdict, *reasons = feedback.answered(visit, right, stay.language)
        if visit.state == OPEN:
            return [*shown, verdict, *reasons]
        pictures = feedback.shown(visit.pictures(), visit.step.id)
        stay.result()
        return [*shown, verdict, *pictures, *reasons, *stay.goes_on()]

    # ------------------------------------------------------------------------------------- how sure

    def how_sure(self) -> Result:
        """The question about the answer that waits."""
        visit = self.stay.here
        said = visit.step.in_words(visit, visit.read(self.asked_confidence))
        return self.stay.note("how_sure", said=said)

    def sure(self, word: str) -> Texts:
        """How sure the student is of the answer that waits.  Raises UsageError."""
        if not self.asked_confidence:
            raise Mistake("which_answer", word=word)
        self.stay.here.confidence = SURE[word]
        made, self.asked_confidence = self.asked_confidence, ""
        return self._judged(self.stay.here.read(made))

    def settle_confidence(self) -> None:
        """Something else was typed where a word was asked for: the answer is judged without it."""
        if self.asked_confidence and self.stay.visit is not None:
            made, self.asked_confidence = self.asked_confidence, ""
            self.stay.record("check", text="check")
            judged = self._judged(self.stay.here.read(made))
            self.stay.waiting = [*self.stay.waiting, *judged]
