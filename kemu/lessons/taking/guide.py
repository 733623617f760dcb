"""The words of a lesson at the shell, and what each says back.

    task  next  previous  step N      where to be
    answer  sure  fairly  guess       commit
    check  hint  skip  reset          judge, help, give up, begin again
    play ... return                   free play on a copy
    problem  leave                    a report for the author; the end

What counts is recorded by the stay, what is right is decided by the kind of the step; here it is
only put into words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from kemu.commands.table import LESSON_WORDS, TABLE
from kemu.errors import UsageError
from kemu.experiment.session import Session
from kemu.language.result import FAILED, Complaint, Result
from kemu.language.spec import Command
from kemu.language.tokens import Line
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.kinds.base import OPEN, RECORDED, SHOWN, open_visit
from kemu.lessons.taking import driver, feedback
from kemu.lessons.taking.admit import LESSON_WORD, admit
from kemu.lessons.taking.answering import Answering
from kemu.lessons.taking.answers import SURE, normal
from kemu.lessons.taking.feedback import Texts, text
from kemu.lessons.taking.hosts import Beside
from kemu.lessons.taking.messages import say
from kemu.lessons.taking.mistakes import Mistake
from kemu.lessons.taking.progress import Diary, Record
from kemu.lessons.taking.stay import Rules, Stay
from kemu.lessons.taking.world import WorldError


@contextmanager
def told_in(language: str) -> Iterator[None]:
    """Mistakes in the block are told in the language."""
    try:
        yield
    except Mistake as mistake:
        raise mistake.translated(language) from None


@contextmanager
def as_mistake(language: str) -> Iterator[None]:
    """A lesson that fails while it is taken is told as a mistake, not as a bug in kemu."""
    try:
        with told_in(language):
            yield
    except WorldError as error:
        hint = error.hint or Mistake("report_it").translated(language).what
        failed = Mistake("lesson_fails", line=error.line, text=error.text, hint=hint)
        raise failed.translated(language) from error


class Guide(Beside):
    """Watches a session while a lesson is taken: a stay, its answers, and all words.  `looking`:
    the command that runs is not one of them.  `keep` gets each record, and gives a warning where it
    cannot keep it; `records` are those from before, for this lesson."""

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
        rules: Rules | None = None,
    ) -> None:
        diary = Diary(lesson, run, keep, list(records))
        self.stay = Stay(session, lesson, self, diary, rules, student=student, salt=salt)
        self.answers = Answering(self.stay)
        self.looking = False

    # ----------------------------------------------------------------------------- beside the shell

    @property
    def language(self) -> str:
        """The language of the lesson."""
        return self.stay.language

    def place(self) -> str:
        """Where the student is, for the toolbar."""
        return self.stay.place()

    def words(self) -> list[tuple[str, str]]:
        """The bare words of a lesson, and what they do."""
        return [(word, LESSON_WORDS[word]) for word in sorted(BARE - TABLE.keys())]

    def line(self, text: str) -> list[Result] | None:
        """Free words are not cut at `;` and quotes."""
        visit, typed = self.stay.visit, text.strip()
        if self.answers.asked_confidence and normal(text) in SURE:
            return self.word(SURE[normal(text)], "")
        answerable = (
            visit is not None
            and self.stay.playing is None
            and (visit.state == OPEN or not self.stay.rules.helped)
        )
        bare = visit.step.bare(visit, normal(text)) if visit is not None and answerable else ""
        word, _, rest = ("answer", "", bare) if bare else typed.partition(" ")
        if word == LESSON_WORD:
            word, _, rest = rest.strip().partition(" ")
        whole = word == "problem" or (
            word == "answer" and visit is not None and visit.step.whole(rest)
        )
        if not rest.strip() or not (bare or whole):
            return None
        try:
            with as_mistake(self.stay.language):
                return self.word(word, rest.strip())
        except UsageError as error:
            wrong = typed if bare else rest.strip() if error.about else word
            column, length = text.index(wrong), len(wrong)
            if error.text == wrong:
                column, length = column + error.column, error.length
            place = UsageError(error.what, text=text, column=column, length=length, hint=error.hint)
            complaint = Complaint.of(place, text.index(typed))
            return self.refused(Result(typed, status=FAILED, error=complaint))

    def expand(self, line: Line) -> Line:
        """A bare word of the lesson becomes a sub-command; so does a bare `next` that can be
        nothing else.  Any other command is kept, then run."""
        word = line.tokens[0].text
        if len(line.tokens) == 1 and word == "next" and self._may_go_on():
            return line.after(LESSON_WORD)
        if word in BARE and word not in TABLE:
            return line.after(LESSON_WORD)
        if word not in (LESSON_WORD, "quit", "q", "help"):
            self.stay.typed(line.source)
        return line

    def _may_go_on(self) -> bool:
        """Can `next` only be meant as the lesson's?  The step is done, and there is no next
        event."""
        visit = self.stay.visit
        done = visit is not None and (visit.state != OPEN or self.stay.is_done_already())
        return done and not self.stay.session.past

    def admit(self, made: Command, values: dict[str, Any]) -> None:
        """Raise UsageError where the command may not be used now."""
        self.looking = made.name != LESSON_WORD
        if self.stay.visit is not None:
            with as_mistake(self.stay.language):
                admit(self.stay.visit, made, values)

    def refused(self, result: Result) -> list[Result]:
        """After what was still to be said."""
        waiting, self.stay.waiting = self.stay.waiting, []
        return [*waiting, result]

    def saw(self, results: list[Result]) -> list[Result]:
        """A command has run: the step may be done by it.  An answer that waits goes on waiting, and
        says so."""
        stay = self.stay
        results, stay.waiting = [*stay.waiting, *results], []
        looking, self.looking = self.looking, False
        if looking and self.answers.asked_confidence:
            return [*results, self.answers.how_sure()]
        visit = stay.open_visit
        if visit is None:
            return results
        with as_mistake(self.stay.language):
            if results and results[-1].ok and visit.step.after(visit):
                visit.pass_()
                stay.result()
                if stay.blind:
                    return [*results, stay.note("noted_state")]
                return [*results, *self._done(), *stay.goes_on()]
        near = visit.step.nearly(visit)
        return [*results, stay.note("near", names=", ".join(near))] if near else results

    def _done(self) -> Texts:
        visit = self.stay.here
        words = say(self.stay.language, "done", id=visit.step.id)
        return [text("right", words, visit.step.id), *feedback.reasons(visit)]

    # ---------------------------------------------------------------------------------------- words

    def word(self, word: str, rest: str) -> Texts:
        """Do a word of the lesson.  Raises UsageError."""
        stay, known = self.stay, WORDS.get(word)
        if known is None:
            raise Mistake("unknown_word", word=word[:40], words=", ".join(WORDS))
        if stay.playing is not None and not known.playing:
            raise Mistake("while_playing", word=word)
        if word == "task" and self.answers.asked_confidence:
            return [*self.task(rest), self.answers.how_sure()]
        if not known.waits:
            self.answers.settle_confidence()
        if known.kept:
            stay.record(known.kept, text=f"{word} {rest}".strip())
        waiting, stay.waiting = stay.waiting, []
        try:
            with told_in(stay.language):
                return [*waiting, *known.do(self, rest)]
        except UsageError:
            stay.waiting = waiting
            raise

    def task(self, _rest: str) -> Texts:
        """The question again; where the step is done, the next one."""
        if self.stay.here.state != OPEN and self.stay.playing is None:
            return self.onward("")
        return self.stay.question()

    def onward(self, _rest: str) -> Texts:
        """The next step.  In a guided lesson this one must be done."""
        stay, visit = self.stay, self.stay.visit
        if visit is not None and stay.lesson.mode == "guided":
            done = visit.state != OPEN or visit.step.optional or stay.is_done_already()
            if not done:
                raise Mistake("not_done", id=visit.step.id)
        if visit is not None and visit.state == OPEN and visit.step.optional:
            visit.step.left(visit)
            stay.result()
        if stay.index + 1 < len(stay.lesson.steps):
            return stay.enter(stay.index + 1)
        return stay.finish()

    def previous(self, _rest: str) -> Texts:
        """The step before."""
        stay = self.stay
        index = stay.index - 1 if stay.visit is not None else len(stay.lesson.steps) - 1
        if index < 0:
            raise Mistake("first_step")
        return stay.enter(index)

    def step(self, rest: str) -> Texts:
        """Any step by number or id; in a guided lesson only up to the first that is not done."""
        lesson, done = self.stay.lesson, self.stay.diary.done()
        is_number = rest.isascii() and rest.isdigit() and len(rest) < 6
        index = int(rest) - 1 if is_number else lesson.index(rest)
        if not 0 <= index < len(lesson.steps):
            raise Mistake("no_step", step=rest[:40], count=len(lesson.steps), about="words")
        still_open = [step.id for step in lesson.steps[:index] if done[step.id].state == OPEN]
        if still_open and lesson.mode == "guided":
            raise Mistake("comes_first", id=still_open[0], about="words")
        return self.stay.enter(index)

    # ---------------------------------------------------------------------------- check, hint, skip

    def check(self, _rest: str) -> Texts:
        """Is the step done, as the machine is now?"""
        stay, visit = self.stay, self.stay.here
        step, now = visit.step, stay.session.now
        if visit.state not in (OPEN, RECORDED):
            return [stay.note("done_already")]
        if not step.judges:
            return [text("note", step.how(visit, stay.language), step.id)]
        given = step.given_until(visit)
        if now < given:
            raise Mistake("before_start", now=now, given=given)
        if not stay.session.boundary(now):
            raise Mistake("inside_command")
        if stay.blind:
            visit.state = RECORDED
            stay.result()
            return [stay.note("noted_state")]
        looked = step.looked(stay)
        if looked is not None:
            return looked
        visit.tries += 1
        if not step.check(visit):
            offer = [stay.note("offer")] if visit.tries >= 3 and step.hints else []
            return [*feedback.checked(visit, stay.language), *offer]
        stay.result()
        praise = [text("right", words, step.id) for words in step.praise(visit, stay.language)]
        return [*praise, *self._done(), *stay.goes_on()]

    def hint(self, _rest: str) -> Texts:
        """The next rung of the ladder."""
        visit, count = self.stay.here, len(self.stay.here.step.hints)
        if not self.stay.rules.helped:
            raise Mistake("exam_hint")
        if visit.hints >= count:
            return [self.stay.note("no_hints")]
        visit.hints += 1
        words = visit.text("hints", visit.step.hints[visit.hints - 1])
        told = {"number": visit.hints, "count": count, "text": words}
        return [text("hint", say(self.stay.language, "hint", **told), visit.step.id)]

    def skip(self, _rest: str) -> Texts:
        """Show the solution, and run it; the step is then marked as shown."""
        stay = self.stay
        if not stay.rules.helped:
            raise Mistake("exam_skip")
        if stay.here.state != OPEN:
            return self.onward("")
        found = [stay.note("not_shown")] if stay.lesson.packed else self._solution()
        stay.here.state, stay.here.share = SHOWN, 0.0
        stay.result()
        return [*found, *feedback.reasons(stay.here), *stay.goes_on()]

    def _solution(self) -> Texts:
        """Run the solution on the step's start, so that what is shown is what happens."""
        stay, old = self.stay, self.stay.here
        visit, name = open_visit(stay.world, stay.index), old.step.id
        visit.state, visit.hints, visit.confidence = SHOWN, old.hints, old.confidence
        stay.take(visit)
        found = [stay.note("shown")]
        if visit.step.compares:
            found += feedback.shown(visit.reveal(), name)
            visit.settle()
            visit.was = visit.step.in_words(visit, visit.fact.value if visit.fact else None)
            found.append(text("right", say(stay.language, "shown_value", was=visit.was), name))
            return [*found, *feedback.shown(visit.pictures(), name)]
        for line in visit.step.solve(visit):
            if driver.is_answer(line):
                found.append(text("typed", line, name))
                continue
            line_of_file = visit.step.at("solution")
            done = stay.world.perform(stay.session, (line,), {}, line_of_file, "solution")
            found += feedback.shown(done, name)
        return found

    # -------------------------------------------------------------------------- going away and back

    def reset(self, _rest: str) -> Texts:
        """The step from its start."""
        stay, step = self.stay, self.stay.here.step
        note = [stay.note("reset")]
        counted = stay.diary.done()[step.id].state in ("passed", "failed")
        if step.commits and counted and stay.rules.helped:
            note.append(stay.note("first_counts"))
        self.answers.asked_confidence = ""
        stay.enter(stay.index)
        return [*note, *feedback.task(stay.here, stay.index + 1, stay.language)]

    def play(self, _rest: str) -> Texts:
        """Go on on a copy of the machine."""
        visit = self.stay.here
        if visit.state == OPEN and visit.step.reveal:
            raise Mistake("play_commit")
        self.stay.play()
        return [self.stay.note("play")]

    def return_(self, _rest: str) -> Texts:
        """Back from the copy."""
        self.stay.come_back()
        return [self.stay.note("return")]

    def leave(self, _rest: str) -> Texts:
        """End the lesson; the experiment from before comes back."""
        return self.stay.leave()

    def problem(self, rest: str) -> Texts:
        """A report for the author, to be sent by whatever way there is."""
        from kemu import __version__

        stay = self.stay
        step = stay.visit.step.id if stay.visit else say(stay.language, "the_end")
        example = say(stay.language, "your_words")
        lines = [
            f"lesson   {stay.lesson.id} ({stay.lesson.hash[:12]}), kemu {__version__}",
            f"step     {step}, event #{stay.session.now} of {stay.session.end}",
            f"seed     {stay.seed}",
            f"problem  {rest or example}",
            *[f"typed    {line}" for line in stay.commands[-12:]],
        ]
        to_author = text("note", say(stay.language, "to_author"), step)
        return [text("fact", "\n".join(lines), step), to_author]


class Word(NamedTuple):
    """What a word does; what it is recorded as; is it understood while playing; does an answer that
    waits to hear how sure one is go on waiting?"""

    do: Callable[[Guide, str], Texts]
    kept: str = ""
    playing: bool = False
    waits: bool = False


WORDS: dict[str, Word] = {
    "task": Word(Guide.task, playing=True, waits=True),
    "check": Word(Guide.check, kept="check"),
    "hint": Word(Guide.hint, kept="hint", waits=True),
    "answer": Word(lambda guide, rest: guide.answers.answer(rest), kept="answer", waits=True),
    "skip": Word(Guide.skip, kept="skip"),
    "reset": Word(Guide.reset),
    "play": Word(Guide.play),
    "return": Word(Guide.return_, playing=True),
    "previous": Word(Guide.previous),
    "next": Word(Guide.onward),
    "step": Word(Guide.step),
    "problem": Word(Guide.problem, playing=True, waits=True),
    "leave": Word(Guide.leave, playing=True),
    "sure": Word(lambda guide, _: guide.answers.sure("sure"), kept="confidence", waits=True),
    "fairly": Word(lambda guide, _: guide.answers.sure("fairly"), kept="confidence", waits=True),
    "guess": Word(lambda guide, _: guide.answers.sure("guess"), kept="confidence", waits=True),
}
"""The words of a lesson, all understood after `lesson`."""
BARE = frozenset(WORDS) - {"next", "step"}
"""Those that are understood bare, unless a command has the word."""
