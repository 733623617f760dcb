"""A student in a lesson: which step, whose machine, what is kept.

    start --> enter step --> commands, hints, answers --> done --> task (the next) ... --> the end
                 ^  reset                |  play ... return: on a copy, nothing counts
                 `-- previous, step N <--'

It stands beside one session (`experiment.desk.Guide`).  Each step puts its own machine into it
(`Session.become`); when the lesson is left, what was there before comes back.  Everything that
counts is recorded before anything else happens, so that a kill at any moment loses at most the
command that was running.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kemu.commands.table import TABLE
from kemu.errors import UsageError
from kemu.experiment.session import Session, Snapshot
from kemu.language.tokens import Line, split
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.taking import feedback
from kemu.lessons.taking.admit import LESSON_WORD, Watch
from kemu.lessons.taking.feedback import Texts, text
from kemu.lessons.taking.messages import say
from kemu.lessons.taking.progress import Done, Record, fold
from kemu.lessons.taking.visit import OPEN, SHOWN, Visit, open_visit
from kemu.lessons.taking.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDED = "recorded"
WORDS = frozenset({
    "task", "check", "hint", "answer", "skip", "reset", "play", "return",
    "previous", "problem", "leave", "sure", "fairly", "guess",
})  # fmt: skip
"""Words of a lesson that are understood bare, unless a command has the word."""


class Stay(Watch):
    """See the module.  `keep` gets each record, and gives a warning where it cannot keep it;
    `records` are those from before, for this lesson; `waiting` is what is to be said with what is
    shown next."""

    def __init__(
        self,
        session: Session,
        lesson: Lesson,
        *,
        student: str = "",
        salt: str = "",
        run: str = "",
        keep: Callable[[Record], str] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        self.session = session
        self.lesson = lesson
        self.student = student
        self.seed = seed_for(salt, lesson.id, student)
        self.world = World(lesson, self.seed)
        self.run = run
        self.keep = keep
        self.waiting: Texts = []
        self.records: list[Record] = list(records)
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
    def exam(self) -> bool:
        """Is nothing told, and the last answer counts?"""
        return self.lesson.mode == "exam"

    @property
    def here(self) -> Visit:
        """The visit.  Raises UsageError behind the end."""
        if self.visit is None:
            raise UsageError("lesson: it is over", hint="lesson leave, or lesson step 1")
        return self.visit

    def done(self) -> dict[str, Done]:
        """What is reached so far, by step."""
        return fold(self.records, self.lesson)

    def place(self) -> str:
        """Where the student is, for the toolbar."""
        if self.visit is None:
            return f"{self.lesson.id} end"
        mark = " play" if self.playing else " done" if self.visit.state != OPEN else ""
        return f"{self.lesson.id} {self.index + 1}/{len(self.lesson.steps)}{mark}"

    # ------------------------------------------------------------------------------------- entering

    def resume(self) -> Texts:
        """Enter the first step that is not done."""
        done = self.done()
        index = next(
            (
                number
                for number, step in enumerate(self.lesson.steps)
                if done[step.id].state == "open"
            ),
            0,
        )
        found = [text("title", self.lesson.title)]
        if self.lesson.goal and index == 0:
            found.append(text("prose", self.lesson.goal))
        hashes = {record.get("hash") for record in self.records if record["do"] == "enter"}
        if hashes - {self.lesson.hash}:
            found.append(text("note", say(self.language, "stale")))
        return [*found, *self.enter(index)]

    def enter(self, index: int) -> Texts:
        """Put the machine of the step into the session, and show what there is to read."""
        step = self.lesson.steps[index]
        visit = open_visit(self.world, index)
        moved = self._other_machine(visit, index)
        self.index, self.visit, self.over, self.playing, self.commands = (
            index,
            visit,
            False,
            None,
            [],
        )
        self.take(visit)
        entered = {"seed": self.seed, "hash": self.lesson.hash, "student": self.student}
        self.record("enter", **entered)
        return [
            *moved,
            *feedback.shown(visit.lead, step.id),
            *feedback.task(visit, index + 1, self.language),
            *self.again(),
        ]

    def _other_machine(self, visit: Visit, index: int) -> Texts:
        """A note where the step does not go on from the machine that the student sees."""
        if self.visit is None or index == self.index or visit.base == self.session.end:
            return []
        goes_back = visit.step.start == "carry" and any(
            step.carried for step in self.lesson.steps[:index]
        )
        words = say(self.language, "goes_back" if goes_back else "other_machine", event=visit.start)
        return [text("note", words, visit.step.id)]

    def is_done_already(self) -> bool:
        """Was the step done in an earlier visit?"""
        return self.visit is not None and self.done()[self.visit.step.id].state != OPEN

    def again(self) -> Texts:
        """A note where the step was done before."""
        if not self.is_done_already() or self.exam:
            return []
        return [text("note", say(self.language, "was_done"), self.lesson.steps[self.index].id)]

    def take(self, visit: Visit) -> None:
        """The session goes on as the visit's machine, and the visit as the session's."""
        self.session.become(visit.session.snapshot())
        visit.session = self.session
        self.session.desk.follow(self)

    # --------------------------------------------------------------------------------- what is kept

    def record(self, deed: str, **more: Any) -> None:
        """Keep what was done in this step."""
        if self.visit is None or self.playing is not None:
            return
        record = {
            "v": 1,
            "run": self.run,
            "lesson": self.lesson.id,
            "step": self.visit.step.id,
            "do": deed,
        } | more
        self.records.append(record)
        trouble = self.keep(record) if self.keep is not None else ""
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
        self.record(
            "result", state=state, share=0.0 if self.blind else visit.share, **counted, **said
        )

    @property
    def blind(self) -> bool:
        """Is there no judging here?"""
        return self.exam or self.lesson.packed

    # ----------------------------------------------------------------------------- beside the shell

    def words(self) -> list[tuple[str, str]]:
        """The bare words of a lesson."""
        return [(word, self.lesson.title) for word in sorted(WORDS - TABLE.keys())]

    def expand(self, line: Line) -> Line:
        """A bare word of the lesson becomes a sub-command; any other command is kept, then run."""
        word = line.tokens[0].text
        if word in WORDS and word not in TABLE:
            (line,) = split(f"{LESSON_WORD} {line.source}")
        elif word not in (LESSON_WORD, "quit", "q", "help"):
            self._command(line.source)
        return line

    def _command(self, source: str) -> None:
        if self.visit is None:
            return
        if self.playing is None:
            self.commands.append(source)
        self.record("command", text=source)
