"""A student in a lesson: which step, whose machine, what is kept.

    start --> enter step --> commands, hints, answers --> done --> task (the next) ... --> the end
                 ^  reset                |  play ... return: on a copy, nothing counts
                 `-- previous, step N <--'

Each step puts its own machine into the session (`Session.become`); when the lesson is left, what
was there before comes back.  Everything that counts is recorded before anything else happens, so
that a kill at any moment loses at most the command that was running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.kinds.base import OPEN, RECORDED, SHOWN, Visit, open_visit
from kemu.lessons.taking import driver, feedback
from kemu.lessons.taking.feedback import Texts, text
from kemu.lessons.taking.messages import say
from kemu.lessons.taking.mistakes import Mistake
from kemu.lessons.taking.world import World

if TYPE_CHECKING:
    from kemu.experiment.desk import Guide
    from kemu.experiment.session import Session, Snapshot
    from kemu.language.result import Result
    from kemu.lessons.taking.progress import Diary


@attrs.frozen
class Rules:
    """How a lesson is taken. `blind`: answers are noted, not judged; `helped`: hints and solutions
    may be asked for; `retaken`: an answer takes the place of the one before, and a visit ends
    judged."""

    blind: bool = False
    helped: bool = True
    retaken: bool = False


def rules_of(lesson: Lesson) -> Rules:
    """How a student takes the lesson: an exam tells nothing, a copy without answers cannot."""
    exam = lesson.mode == "exam"
    return Rules(blind=exam or lesson.packed, helped=not exam)


class Stay:
    """See the module.  `guide` watches the session; `waiting` is what is to be said with what is
    shown next; `commands` are those of the present visit."""

    def __init__(
        self,
        session: Session,
        lesson: Lesson,
        guide: Guide,
        diary: Diary,
        rules: Rules | None = None,
        *,
        student: str = "",
        salt: str = "",
    ) -> None:
        self.session = session
        self.lesson = lesson
        self.guide = guide
        self.diary = diary
        self.rules = rules or rules_of(lesson)
        self.student = student
        self.seed = seed_for(salt, lesson.id, student)
        self.world = World(lesson, self.seed)
        self.waiting: Texts = []
        self.index = -1
        self.visit: Visit | None = None
        self.commands: list[str] = []
        self.before = session.snapshot()
        self.playing: Snapshot | None = None
        self.over = False

    # --------------------------------------------------------------------------------- where we are

    @property
    def language(self) -> str:
        """The language of what is said."""
        return self.lesson.language

    @property
    def blind(self) -> bool:
        """Is nothing judged here?"""
        return self.rules.blind

    @property
    def here(self) -> Visit:
        """The visit.  Raises UsageError after the end."""
        if self.visit is None:
            raise Mistake("it_is_over")
        return self.visit

    @property
    def open_visit(self) -> Visit | None:
        """The visit, if it is open and not played with."""
        visit = self.visit
        return visit if visit and visit.state == OPEN and self.playing is None else None

    def place(self) -> str:
        """Where the student is, for the toolbar."""
        if self.visit is None:
            return f"{self.lesson.id} end"
        mark = " play" if self.playing else " done" if self.visit.state != OPEN else ""
        return f"{self.lesson.id} {self.index + 1}/{len(self.lesson.steps)}{mark}"

    def is_done_already(self) -> bool:
        """Was the step done in an earlier visit?"""
        return self.visit is not None and self.diary.done()[self.visit.step.id].state != OPEN

    # ---------------------------------------------------------------------------------------- words

    def note(self, message: str, **values: object) -> Result:
        """A sentence of the engine about the present step."""
        step = self.visit.step.id if self.visit is not None else ""
        return text("note", say(self.language, message, **values), step)

    def question(self) -> Texts:
        """What there is to read before the question, and the question."""
        visit = self.here
        found = [
            *feedback.shown(visit.lead, visit.step.id),
            *feedback.task(visit, self.index + 1, self.language),
        ]
        told = self.rules.helped and self.is_done_already()
        return [*found, self.note("was_done")] if told else found

    def goes_on(self) -> Texts:
        """What was reached, and how to go on."""
        step = self.here.step
        words = say(self.language, "goes_on")
        if step.points and not self.blind:
            points = f"{self.diary.done()[step.id].points(step):g}"
            words = f"{say(self.language, 'reached', points=points, most=step.points)} {words}"
        return [text("note", words, step.id)]

    def score(self) -> str:
        """Points so far."""
        done = self.diary.done()
        points = f"{sum(done[step.id].points(step) for step in self.lesson.steps):g}"
        told = {"title": self.lesson.title, "points": points, "most": self.lesson.points}
        return say(self.language, "over", **told)

    # ------------------------------------------------------------------------------------- entering

    def resume(self) -> Texts:
        """Enter the first step that is not done."""
        done = self.diary.done()
        states = [done[step.id].state for step in self.lesson.steps]
        index = states.index(OPEN) if OPEN in states else 0
        found = [text("title", self.lesson.title)]
        if self.lesson.goal and index == 0:
            found.append(text("prose", self.lesson.goal))
        entered = [record for record in self.diary.records if record["do"] == "enter"]
        if {record.get("hash") for record in entered} - {self.lesson.hash}:
            found.append(self.note("stale"))
        return [*found, *self.enter(index)]

    def enter(self, index: int) -> Texts:
        """Put the machine of the step into the session, and show what there is to read."""
        visit = open_visit(self.world, index)
        moved = self._other_machine(visit, index)
        self.index, self.over, self.playing, self.commands = index, False, None, []
        self.take(visit)
        self.record("enter", seed=self.seed, hash=self.lesson.hash, student=self.student)
        return [*moved, *self.question()]

    def _other_machine(self, visit: Visit, index: int) -> Texts:
        """A note where the step does not go on from the machine that the student sees."""
        if self.visit is None or index == self.index or visit.base == self.session.end:
            return []
        goes_back = visit.step.start == "carry" and any(
            step.carried for step in self.lesson.steps[:index]
        )
        words = say(self.language, "goes_back" if goes_back else "other_machine", event=visit.start)
        return [text("note", words, visit.step.id)]

    def take(self, visit: Visit) -> None:
        """The session goes on as the visit's machine, and the visit as the session's."""
        self.visit = visit
        self.session.become(visit.session.snapshot())
        visit.session = self.session
        self.session.desk.follow(self.guide)

    # -------------------------------------------------------------------------- going away and back

    def play(self) -> None:
        """Go on on a copy of the machine."""
        visit = self.here
        kept = self.session.snapshot()
        copy = open_visit(self.world, self.index)
        if visit.revealed:
            copy.reveal()
        driver.work(copy, self.commands)
        self.session.become(copy.session.snapshot())
        self.session.desk.follow(self.guide)
        self.playing = kept

    def come_back(self) -> None:
        """Leave the copy.  Raises UsageError."""
        if self.playing is None:
            raise Mistake("not_playing")
        kept, self.playing = self.playing, None
        self.session.become(kept)

    def finish(self) -> Texts:
        """After the last step: the epilogue, and what was reached."""
        session = self.world.after_all()
        parts = feedback.shown(self.world.lead(session, self.lesson.epilogue, self.world.values))
        self.visit, self.over, self.index = None, True, len(self.lesson.steps)
        self.session.become(session.snapshot())
        self.session.desk.follow(self.guide)
        found = [*parts, text("title", self.score())]
        return [*found, self.note("next", id=self.lesson.next)] if self.lesson.next else found

    def leave(self) -> Texts:
        """End the lesson; the experiment from before comes back."""
        number = min(self.index + 1, len(self.lesson.steps))
        where = {"number": number, "count": len(self.lesson.steps), "id": self.lesson.id}
        self.visit = None
        self.session.desk.follow(None)
        self.session.become(self.before)
        if self.over:
            return [text("note", self.score())]
        return [self.note("left", title=self.lesson.title, **where)]

    # --------------------------------------------------------------------------------- what is kept

    def typed(self, source: str) -> None:
        """Keep a command that is about to run."""
        if self.visit is not None and self.playing is None:
            self.commands.append(source)
        self.record("command", text=source)

    def record(self, deed: str, **more: Any) -> None:
        """Keep what was done in this step."""
        if self.visit is None or self.playing is not None:
            return
        trouble = self.diary.add(self.visit.step.id, deed, **more)
        if trouble:
            self.waiting = [*self.waiting, text("note", trouble)]

    def result(self) -> None:
        """Keep what the visit has come to."""
        visit = self.here
        state = RECORDED if self.blind and visit.state != SHOWN else visit.state
        said = {
            "said": visit.said,
            "was": "" if self.blind else visit.was,
            "confidence": visit.confidence,
        }
        counted = {"tries": visit.tries, "hints": visit.hints}
        share = 0.0 if self.blind else visit.share
        self.record("result", state=state, share=share, **counted, **said)
