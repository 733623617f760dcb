"""The words of a lesson at the shell, and what each says back.

    task  next  previous  step N      where to be
    answer  sure  fairly  guess       commit
    check  hint  skip  reset          judge, help, give up, begin again
    play ... return                   free play on a copy
    problem  leave                    a report for the author; the end

The rule that keeps this file honest: what counts is recorded by `stay`, what is right is decided by
`visit`; here it is only put into words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kemu.errors import UsageError
from kemu.language.result import FAILED, Complaint, Result
from kemu.language.spec import Command
from kemu.language.tokens import Line, split
from kemu.lessons.taking import driver, feedback
from kemu.lessons.taking.admit import LESSON_WORD, given_until
from kemu.lessons.taking.answering import Answering
from kemu.lessons.taking.answers import normal, with_confidence
from kemu.lessons.taking.feedback import Texts, text
from kemu.lessons.taking.messages import say
from kemu.lessons.taking.stay import RECORDED
from kemu.lessons.taking.visit import OPEN, PASSED, SHOWN, open_visit
from kemu.lessons.taking.world import WorldError

KEPT = {
    "answer": "answer", "check": "check", "hint": "hint", "skip": "skip",
    "sure": "confidence", "fairly": "confidence", "guess": "confidence",
}  # fmt: skip
"""Words that are recorded, and as what."""
WHILE_PLAYING = frozenset({"return", "task", "leave", "problem"})
STILL_OPEN = frozenset({"sure", "fairly", "guess", "answer", "task", "hint", "problem"})
"""Words at which an answer that waits to hear how sure one is goes on waiting; looking does not
disturb it either."""


@contextmanager
def as_usage() -> Iterator[None]:
    """A lesson that fails while it is taken is told as a mistake, not as a bug of kemu."""
    try:
        yield
    except WorldError as error:
        raise UsageError(
            f"lesson: line {error.line}: {error.text}", hint=error.hint or "problem writes a report"
        ) from error


def _quoted(error: UsageError, typed: str) -> str:
    """The part of what was typed that the message quotes, or nothing."""
    found = re.search("'(.+)'", error.what)
    return found[1] if found and found[1] in typed else ""


class Guide(Answering):
    """A stay with all its words.  `looking`: the command that runs is none of them."""

    looking = False

    # ----------------------------------------------------------------------------- beside the shell

    def line(self, text: str) -> list[Result] | None:
        """Free words are not cut at `;` and quotes."""
        bare, typed = self._bare_answer(text), text.strip()
        word, _, rest = ("answer", "", bare) if bare else typed.partition(" ")
        if word == LESSON_WORD:
            word, _, rest = rest.strip().partition(" ")
        if not rest.strip() or not (bare or self._is_free(word, rest)):
            return None
        try:
            with as_usage():
                return self.word(word, rest.strip())
        except UsageError as error:
            wrong = _quoted(error, typed) or (
                typed if bare else rest.strip() if error.about else word
            )
            place = UsageError(
                error.what, text=text, column=text.index(wrong), length=len(wrong), hint=error.hint
            )
            return [Result(typed, status=FAILED, error=Complaint.of(place, text.index(typed)))]

    def _bare_answer(self, text: str) -> str:
        """The line if it can be meant as nothing but the answer: letters of a choice, a number, one
        of the step's words."""
        visit, made = self.visit, normal(text)
        if visit is None or self.playing is not None or (visit.state != OPEN and not self.exam):
            return ""
        if visit.order:
            if (
                made.isascii()
                and made.isdigit()
                and len(made) < 3
                and 1 <= int(made) <= len(visit.order)
            ):
                return made
            letters = [char for char in made.casefold() if char not in " ,"]
            known = {chr(ord("a") + index) for index in range(len(visit.order))}
            return (
                made
                if letters
                and set(letters) <= known
                and len(set(letters)) == len(letters)
                and len(made) < 60
                else ""
            )
        if visit.step.kind not in ("predict", "answer"):
            return ""
        named = {normal(word).casefold() for word in (*visit.step.words, *visit.step.word_keys)}
        return made if made[:1].isdigit() or with_confidence(made)[0].casefold() in named else ""

    def _is_free(self, word: str, rest: str) -> bool:
        """Words for people, and event numbers as they are shown: #512."""
        kind = self.visit.step.kind if self.visit is not None else ""
        return word == "problem" or (
            word == "answer" and (kind == "explain" or (kind == "bug" and "#" in rest))
        )

    def expand(self, line: Line) -> Line:
        """As in `stay`; a bare `next` that can be nothing else is the lesson's."""
        if [token.text for token in line.tokens] == ["next"] and self._may_go_on():
            (line,) = split(f"{LESSON_WORD} next")
        return super().expand(line)

    def _may_go_on(self) -> bool:
        """Can `next` only be meant as the lesson's?  The step is done, and there is no next
        event."""
        visit = self.visit
        return (
            visit is not None
            and not self.session.past
            and (visit.state != OPEN or self.is_done_already())
        )

    def admit(self, made: Command, values: dict[str, Any]) -> None:
        """As in any step."""
        self.looking = made.name != LESSON_WORD
        with as_usage():
            super().admit(made, values)

    def saw(self, results: list[Result]) -> list[Result]:
        """A command has run: a `run` step may be done by it.  An answer that waits goes on waiting,
        and says so."""
        results, self.waiting = [*self.waiting, *results], []
        looking, self.looking = self.looking, False
        if looking and self.asked_confidence:
            return [*results, self.how_sure()]
        visit = self.visit
        if (
            visit is None
            or self.playing is not None
            or visit.state != OPEN
            or visit.step.kind != "run"
        ):
            return results
        with as_usage():
            done = bool(results) and results[-1].ok and bool(visit.pending) and visit.after()
            if done:
                return [*results, *self._passed()]
        if visit.near and not visit.pending:
            results.append(
                text("note", say(self.language, "near", names=", ".join(visit.near)), visit.step.id)
            )
        return results

    def _passed(self) -> Texts:
        visit = self.here
        visit.pass_()
        self.result()
        if self.blind:
            return [text("note", say(self.language, "noted_state"), visit.step.id)]
        done = text("right", say(self.language, "done", id=visit.step.id), visit.step.id)
        return [done, *feedback.reasons(visit), *self.goes_on()]

    # ---------------------------------------------------------------------------------------- words

    def word(self, word: str, rest: str) -> Texts:
        """Do a word of the lesson.  Raises UsageError."""
        if word not in ACTIONS:
            raise UsageError(
                f"lesson: '{word[:40]}' is no word of a lesson",
                hint=f"words are {', '.join(ACTIONS)}",
            )
        if self.playing is not None and word not in WHILE_PLAYING:
            raise UsageError(f"{word}: not while you play", hint="return goes back to the step")
        if word == "task" and self.asked_confidence:
            return [*self.task(rest), self.how_sure()]
        if word not in STILL_OPEN:
            self.settle_confidence()
        if word in KEPT and self.visit is not None:
            self.record(KEPT[word], text=f"{word} {rest}".strip())
        waiting, self.waiting = self.waiting, []
        action: Callable[[str], Texts] = getattr(self, ACTIONS[word])
        try:
            return [*waiting, *action(rest)]
        except UsageError as error:
            if not waiting:
                raise
            return [
                *waiting,
                Result(f"{word} {rest}".strip(), status=FAILED, error=Complaint.of(error)),
            ]

    def task(self, _rest: str) -> Texts:
        """The question again; where the step is done, the next one."""
        visit = self.here
        if visit.state != OPEN and self.playing is None:
            return self.onward("")
        return [
            *feedback.shown(visit.lead, visit.step.id),
            *feedback.task(visit, self.index + 1, self.language),
            *self.again(),
        ]

    def onward(self, _rest: str) -> Texts:
        """The next step.  In a guided lesson this one must be done."""
        if self.lesson.mode == "guided" and self.visit is not None and not self._may_leave():
            raise UsageError(
                f"next: step {self.here.step.id} is not done", hint="check, hint, or skip"
            )
        if (
            self.visit is not None
            and self.visit.state == OPEN
            and self.visit.step.kind == "explore"
        ):
            self.badges()
        if self.index + 1 < len(self.lesson.steps):
            return self.enter(self.index + 1)
        return self.finish()

    def _may_leave(self) -> bool:
        visit = self.here
        return (
            visit.state != OPEN
            or visit.step.kind == "explore"
            or self.done()[visit.step.id].state != "open"
        )

    def badges(self) -> None:
        """An `explore` step is over: it is passed, whatever was found."""
        visit = self.here
        visit.reached()
        visit.state, visit.share = PASSED, 1.0
        self.result()

    def previous(self, _rest: str) -> Texts:
        """The step before."""
        index = self.index - 1 if self.visit is not None else len(self.lesson.steps) - 1
        if index < 0:
            raise UsageError("previous: this is the first step")
        return self.enter(index)

    def step(self, rest: str) -> Texts:
        """Any step by number or id; in a guided lesson only up to the first that is not done."""
        index = (
            int(rest) - 1
            if rest.isascii() and rest.isdigit() and len(rest) < 6
            else self.lesson.index(rest)
        )
        if not 0 <= index < len(self.lesson.steps):
            raise UsageError(
                f"step: there is no '{rest[:40]}'", hint=f"steps are 1 to {len(self.lesson.steps)}"
            )
        done = self.done()
        open_before = next(
            (step.id for step in self.lesson.steps[:index] if done[step.id].state == "open"), ""
        )
        if open_before and self.lesson.mode == "guided":
            raise UsageError(
                f"step: {open_before} comes first", hint="task shows it; skip shows its solution"
            )
        return self.enter(index)

    def finish(self) -> Texts:
        """Behind the last step: the epilogue, and what was reached."""
        session = self.world.after_all()
        parts = feedback.shown(self.world.lead(session, self.lesson.epilogue, self.world.values))
        self.visit, self.over, self.index = None, True, len(self.lesson.steps)
        self.session.become(session.snapshot())
        self.session.desk.follow(self)
        found = [*parts, text("title", self.score())]
        if self.lesson.next:
            found.append(text("note", say(self.language, "next", id=self.lesson.next)))
        return found

    def score(self) -> str:
        """Points so far."""
        done = self.done()
        reached = sum(done[step.id].points(step) for step in self.lesson.steps)
        return say(
            self.language,
            "over",
            title=self.lesson.title,
            points=f"{reached:g}",
            most=self.lesson.points,
        )

    # ---------------------------------------------------------------------------- check, hint, skip

    def check(self, _rest: str) -> Texts:
        """Is the step done, as the machine stands now?"""
        visit = self.here
        if visit.state not in (OPEN, RECORDED):
            return [text("note", say(self.language, "done_already"), visit.step.id)]
        if visit.step.kind in ("predict", "answer", "choice", "order", "explain"):
            return [text("note", feedback.how(visit, self.language), visit.step.id)]
        if self.session.now < given_until(visit):
            what = f"check: #{self.session.now} lies before this step, which starts at #{given_until(visit)}"
            raise UsageError(what, hint="goto end, or reset")
        if not self.session.boundary(self.session.now):
            raise UsageError(
                "check: this moment lies inside a command", hint="goto end, or where a command ends"
            )
        if self.blind:
            visit.state = RECORDED
            self.result()
            return [text("note", say(self.language, "noted_state"), visit.step.id)]
        if visit.step.kind == "explore":
            return self._explored()
        visit.tries += 1
        if not driver.check(visit):
            found = feedback.checked(visit, self.language)
            if visit.tries >= 3 and visit.step.hints:
                found.append(text("note", say(self.language, "offer"), visit.step.id))
            return found
        self.result()
        said = (
            [text("right", say(self.language, "repaired"), visit.step.id)]
            if "repair" in visit.found
            else []
        )
        return [
            *said,
            *feedback.finished(visit, self.language)[:1],
            *feedback.reasons(visit),
            *self.goes_on(),
        ]

    def _explored(self) -> Texts:
        visit = self.here
        new = visit.reached()
        found = [
            text(
                "right",
                say(self.language, "badge", text=visit.text("goals", visit.step.goals[at].text)),
            )
            for at in new
        ]
        count = say(self.language, "badges", found=len(visit.goals), count=len(visit.step.goals))
        return [*found, text("note", count, visit.step.id), *self.goes_on()]

    def hint(self, _rest: str) -> Texts:
        """The next rung of the ladder."""
        visit = self.here
        if self.exam:
            raise UsageError("hint: there are none in an exam")
        if visit.hints >= len(visit.step.hints):
            return [text("note", say(self.language, "no_hints"), visit.step.id)]
        visit.hints += 1
        words = visit.text("hints", visit.step.hints[visit.hints - 1])
        ladder = say(
            self.language, "hint", number=visit.hints, count=len(visit.step.hints), text=words
        )
        return [text("hint", ladder, visit.step.id)]

    def skip(self, _rest: str) -> Texts:
        """Show the solution, and run it; the step is then marked as shown."""
        visit = self.here
        if self.exam:
            raise UsageError("skip: not in an exam", hint="next goes on")
        if visit.state != OPEN:
            return self.onward("")
        found = [text("note", say(self.language, "shown"), visit.step.id)]
        if self.lesson.packed:
            found = [text("note", say(self.language, "not_shown"), visit.step.id)]
        else:
            found += self._solution()
        visit.state, visit.share = SHOWN, 0.0
        self.result()
        return [*found, *feedback.reasons(visit), *self.goes_on()]

    def _solution(self) -> Texts:
        """Run the solution on the step's start, so that what is shown is what happens."""
        visit = open_visit(self.world, self.index)
        old = self.here
        visit.state, visit.hints, visit.confidence = SHOWN, old.hints, old.confidence
        self.visit = visit
        self.take(visit)
        found: Texts = []
        if visit.step.kind in ("predict", "answer", "choice", "order"):
            found += feedback.shown(visit.reveal(), visit.step.id)
            visit.settle()
            visit.was = visit.in_words(visit.fact.value if visit.fact else None)
            found.append(
                text("right", say(self.language, "shown_value", was=visit.was), visit.step.id)
            )
            return [*found, *feedback.shown(visit.pictures(), visit.step.id)]
        for line in visit.solution():
            if driver.is_answer(line):
                found.append(text("typed", line, visit.step.id))
                continue
            done = self.world.perform(
                self.session, (line,), {}, visit.step.at("solution"), "solution"
            )
            found += feedback.shown(done, visit.step.id)
        return found

    # -------------------------------------------------------------------------- going away and back

    def reset(self, _rest: str) -> Texts:
        """The step from its start."""
        step = self.here.step
        note = [text("note", say(self.language, "reset"), step.id)]
        if (
            step.kind == "predict"
            and self.done()[step.id].state in ("passed", "failed")
            and not self.exam
        ):
            note.append(text("note", say(self.language, "first_counts"), step.id))
        self.asked_confidence = ""
        self.enter(self.index)
        return [*note, *feedback.task(self.here, self.index + 1, self.language)]

    def play(self, _rest: str) -> Texts:
        """Go on on a copy of the machine."""
        visit = self.here
        if visit.state == OPEN and visit.step.reveal:
            raise UsageError("play: commit first", hint="answer ...; afterwards you may play")
        kept = self.session.snapshot()
        copy = open_visit(self.world, self.index)
        if visit.revealed:
            copy.reveal()
        driver.work(copy, self.commands)
        self.session.become(copy.session.snapshot())
        self.session.desk.follow(self)
        self.playing = kept
        return [text("note", say(self.language, "play"), visit.step.id)]

    def return_(self, _rest: str) -> Texts:
        """Back from the copy."""
        if self.playing is None:
            raise UsageError("return: you are not playing", hint="play goes on on a copy")
        kept, self.playing = self.playing, None
        self.session.become(kept)
        return [text("note", say(self.language, "return"), self.here.step.id)]

    def leave(self, _rest: str) -> Texts:
        """End the lesson; the experiment from before comes back."""
        number = min(self.index + 1, len(self.lesson.steps))
        where = {"number": number, "count": len(self.lesson.steps), "id": self.lesson.id}
        words = say(self.language, "left", title=self.lesson.title, **where)
        self.visit = None
        self.session.desk.follow(None)
        self.session.become(self.before)
        return [text("note", words if not self.over else self.score())]

    def problem(self, rest: str) -> Texts:
        """A report for the author, to be sent by whatever way there is."""
        from kemu import __version__

        step = self.visit.step.id if self.visit else "the end"
        lines = [
            f"lesson   {self.lesson.id} ({self.lesson.hash[:12]}), kemu {__version__}",
            f"step     {step}, event #{self.session.now} of {self.session.end}",
            f"seed     {self.seed}",
            (
                "problem  "
                f"{rest or '(say it in your own words: problem the question has two answers)'}"
            ),
            *[f"typed    {line}" for line in self.commands[-12:]],
        ]
        return [
            text("fact", "\n".join(lines), step),
            text("note", say(self.language, "to_author"), step),
        ]


ACTIONS: dict[str, str] = {
    "task": "task",
    "check": "check",
    "hint": "hint",
    "answer": "answer",
    "skip": "skip",
    "reset": "reset",
    "play": "play",
    "return": "return_",
    "previous": "previous",
    "next": "onward",
    "step": "step",
    "problem": "problem",
    "leave": "leave",
    "sure": "sure",
    "fairly": "fairly",
    "guess": "guess",
}
"""The words, and the methods that do them."""
