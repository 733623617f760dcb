"""What a kind of step is asked, and one visit of a step: from its own machine to its verdict.

    open --answer--> reveal --> passed | failed (a prediction) | open (try again)
         --check---> passed | open
         --solve---> shown

A kind is a class: its fields are the keys of its block, its methods do what only this kind does.
Everything else about a step is asked of `Kind`, never by the name of a kind.  The same visit serves
the student, the proof of a lesson and the grader: its holder decides what is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import attrs

from kemu.language.expr import Value
from kemu.lessons.format.lesson import Condition, Lesson, Step
from kemu.lessons.format.schema import keys
from kemu.lessons.taking.answers import with_confidence
from kemu.lessons.taking.judge import Fact, failure
from kemu.lessons.taking.messages import said_in
from kemu.lessons.taking.world import Shown, World, unguided

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.result import Result

OPEN, PASSED, FAILED, SHOWN, RECORDED = "open", "passed", "failed", "shown", "recorded"
"""States of a visit: `failed` is a prediction, or the last try, that was wrong; `recorded` is what
is not judged here."""


class Fault(NamedTuple):
    """Something wrong with a step: a code of `codes.CODES`, the line, the words, what to do."""

    code: str
    line: int
    text: str
    hint: str = ""


class Taker(Protocol):
    """What a kind needs of the stay in which it is taken (`taking.stay.Stay`)."""

    @property
    def here(self) -> Visit:
        """The visit."""

    @property
    def language(self) -> str:
        """The language of what is said."""

    @property
    def blind(self) -> bool:
        """Is nothing judged here?"""

    def result(self) -> None:
        """Keep what the visit has come to."""

    def goes_on(self) -> list[Result]:
        """Points, and how to go on."""


@attrs.frozen(kw_only=True)
class Kind(Step):
    """One kind of step.  `student` (what the student does), `passes` (when the step is passed) and
    `own_keys` are its rows in docs/lesson-format.md."""

    student: ClassVar[str] = ""
    passes: ClassVar[str] = ""
    own_keys: ClassVar[str] = ""
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """What it says, by language: `how` to answer, and sentences of its own."""
    graded: ClassVar[bool] = True
    """Is there something to get right?  Where not, a step has 0 points unless it says otherwise."""
    asks: ClassVar[bool] = False
    """Does it take `answer`?"""
    compares: ClassVar[bool] = False
    """Is the answer compared with a fact that the machine was asked for?"""
    commits: ClassVar[bool] = False
    """Does the first answer count, whatever is said later?"""
    judges: ClassVar[bool] = False
    """Does `check` look at the machine?"""
    optional: ClassVar[bool] = False
    """Is the step passed whenever the student goes on?"""
    solvable: ClassVar[bool] = True
    """Is there a solution to show?"""
    todo: ClassVar[str] = "# desk.answer(...)\n# {hint}"
    """What to do in a notebook."""

    # -------------------------------------------------------------------------------- from the file

    @classmethod
    def missing(cls, raw: Mapping[str, Any]) -> list[str]:
        """The needed keys that the block does not have."""
        return [name for name, known in keys(cls).items() if known.needed and name not in raw]

    @classmethod
    def completed(cls, values: dict[str, Any], _raw: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the step, from the values that its block gives."""
        if not cls.graded:
            values.setdefault("points", 0)
        if "machine" in values:
            values["start"] = "boot"
        return values

    @classmethod
    def for_students(cls, raw: dict[str, Any]) -> dict[str, Any]:
        """The block without what gives the answer away."""
        return {name: value for name, value in raw.items() if not keys(cls)[name].secret}

    def faults(self, _lesson: Lesson) -> Iterator[Fault]:
        """What cannot be meant, seen without performing the step."""
        return iter(())

    # ------------------------------------------------------------------------------------- entering

    def drawn(self, _seed: str) -> tuple[int, ...]:
        """The order in which the student with that seed sees the options."""
        return ()

    def begin(self) -> Any:
        """What the kind remembers during a visit (`Visit.memory`)."""
        return None

    @property
    def settles_at_once(self) -> bool:
        """Is the machine asked what is right as soon as the step is entered?"""
        return self.compares and not self.reveal

    def fact(self, _visit: Visit) -> Fact:
        """What is right, on the machine after the reveal.  Raises WorldError."""
        return Fact(None)

    def given_until(self, visit: Visit) -> int:
        """The event up to which the machine is given."""
        return visit.start

    # ---------------------------------------------------------------------------------------- texts

    def say(self, language: str, message: str, **values: object) -> str:
        """A sentence of this kind in the language."""
        return said_in(self.messages, language, message, **values)

    def how(self, visit: Visit, language: str) -> str:
        """What to type."""
        return self.say(language, "how")

    def options_of(self, _visit: Visit) -> list[str]:
        """The options to choose from, in the student's order."""
        return []

    def words_of(self, _visit: Visit) -> list[str]:
        """The words that an answer may be, where it must be one of some."""
        return []

    # -------------------------------------------------------------------------------------- answers

    def again(self, visit: Visit) -> None:
        """The next answer takes the place of what was answered before (in an exam)."""

    def whole(self, _rest: str) -> bool:
        """Is the answer free text, not to be cut at `;` and quotes?"""
        return False

    def bare(self, _visit: Visit, _line: str) -> str:
        """The line if it can be nothing but an answer, else an empty text."""
        return ""

    def heard(self, _taker: Taker, _rest: str) -> list[Result] | None:
        """What is said to an answer; None: it is read, judged and told as most kinds do it."""
        return None

    def read(self, _visit: Visit, text: str) -> Any:
        """The typed answer as a value.  Raises UsageError for a typing mistake,
        which does not count."""
        return text.strip()

    def give(self, visit: Visit, text: str) -> None:
        """Judge an answer without a word.  Raises UsageError for a typing mistake."""
        said = visit.read(text)
        visit.reveal()
        visit.settle()
        visit.judge(said)

    def in_words(self, _visit: Visit, value: Any) -> str:
        """An answer as it is shown."""
        return str(value)

    def remarks(self, _visit: Visit, _language: str) -> list[str]:
        """What there is to say about the wrong answer."""
        return []

    def partly(self, _visit: Visit) -> str:
        """The message for a wrong answer that is right but incomplete, or an empty text."""
        return ""

    # ------------------------------------------------------------------------------------- commands

    def may_plant(self, _what: str) -> bool:
        """May the student plant, remove or reveal wrong kernels now?"""
        return False

    def before(self, visit: Visit, name: str, values: dict[str, Any]) -> None:
        """The command of that name is about to run."""

    def after(self, _visit: Visit) -> bool:
        """A command has run: is the step done by it?"""
        return False

    def nearly(self, _visit: Visit) -> list[str]:
        """The parts in which the command that ran is not the one that is wanted."""
        return []

    # -------------------------------------------------------------------------------------- verdict

    def check(self, visit: Visit) -> bool:
        """Is the step done, as the machine is now?"""
        return visit.state == PASSED

    def looked(self, _taker: Taker) -> list[Result] | None:
        """What `check` says where there is nothing to judge; None where there is."""
        return None

    def praise(self, _visit: Visit, _language: str) -> list[str]:
        """What is said first when `check` finds the step done."""
        return []

    def unmet(self, _visit: Visit, _language: str) -> list[str]:
        """What is not yet as it must be, one line each."""
        return []

    def spoiled(self, _visit: Visit) -> list[tuple[int, str]]:
        """(event, words) of each thing that must not happen, and did."""
        return []

    def left(self, visit: Visit) -> None:
        """The student goes on from an optional step."""

    # ------------------------------------------------------------------------------------ solutions

    def solve(self, visit: Visit) -> list[str]:
        """The lines that solve the step."""
        return [visit.text("solution", text) for text in self.solution]

    def unproved(self, visit: Visit) -> str:
        """Why the step is not solved after its solution has been typed, or an empty text."""
        if self.check(visit):
            return ""
        over = f"said {visit.said}, was {visit.was}"
        return f"does not pass: {over if visit.state != OPEN else self.why_not(visit)}"

    def why_not(self, visit: Visit) -> str:
        """Why the step is still open, in a few words."""
        return f"said {visit.said}, was {visit.was}"

    def doubts(self, _visit: Visit) -> Iterator[Fault]:
        """What is wrong with the answers that the author wrote, once the machine has been asked."""
        return iter(())


@attrs.define
class Visit:
    """One visit of one step.  `session` is at the step's start when the visit is made; `order` is
    the drawn order of the options, `memory` what the kind remembers.

    `share` is what part of the points is reached (0 to 1); `said` and `was` are the last answer and
    what was right."""

    world: World
    step: Kind
    session: Session
    values: dict[str, Value]
    lead: list[Shown]
    base: int
    start: int
    order: tuple[int, ...] = ()
    memory: Any = None
    fact: Fact | None = None
    revealed: bool = False
    state: str = OPEN
    share: float = 0.0
    tries: int = 0
    hints: int = 0
    answer: Any = None
    said: str = ""
    was: str = ""
    confidence: str = ""

    def text(self, key: str, raw: str) -> str:
        """A text of the step with its values, at this moment.  Raises WorldError."""
        return self.world.rendered(self.session, raw, self.values, self.step.at(key), key)

    def value(self, key: str, expression: str) -> Value:
        """The value of an expression of the step at this moment.  Raises WorldError."""
        return self.world.evaluated(self.session, expression, self.values, self.step.at(key), key)

    def pictures(self) -> list[Shown]:
        """What is shown beside the fact."""
        return [] if self.world.quiet else self.perform("show", self.step.show)

    def perform(self, key: str, commands: tuple[str, ...]) -> list[Shown]:
        """Run commands of the step.  Raises WorldError."""
        return self.world.perform(self.session, commands, self.values, self.step.at(key), key)

    def settle(self) -> None:
        """Ask the machine what is right; once."""
        if self.fact is None and not self.world.lesson.packed:
            with unguided(self.session):
                self.session.goto(self.session.end)
                self.fact = self.step.fact(self)

    def reveal(self) -> list[Shown]:
        """Run the commands that show what is right, and ask; once."""
        if self.revealed:
            return []
        self.revealed = True
        shown = self.perform("reveal", self.step.reveal)
        self.settle()
        return shown

    def read(self, text: str) -> Any:
        """The typed answer as a value, a last word such as `sure` set apart.  Raises UsageError for
        a typing mistake, which does not count."""
        made, sure = with_confidence(text)
        self.confidence = sure or self.confidence
        return self.step.read(self, made)

    def failures(self, wanted: tuple[Condition, ...]) -> list[str]:
        """The conditions that do not hold at this moment, one line each: in the author's words,
        with both sides after them."""
        language = self.world.lesson.language
        found = [(each, failure(self.session, each, self.values, language)) for each in wanted]
        return [
            f"{self.text('must', each.say)} ({sides})" if each.say else sides
            for each, sides in found
            if sides
        ]

    def judge(self, said: Any) -> bool:
        """Is the answer right?  It counts as a try, and the state follows.  The facts must be
        settled."""
        assert self.fact is not None  # noqa: S101 - whoever judges has settled
        right = self.fact.agrees(said)
        self.tries += 1
        self.answer = said
        own = right and self.fact.accepts is not None
        self.said = self.step.in_words(self, said)
        self.was = self.step.in_words(self, said if own else self.fact.value)
        if right:
            self.pass_()
        elif self.step.attempts and self.tries >= self.step.attempts:
            self.state = FAILED
        return right

    def pass_(self) -> None:
        """The step is done."""
        if self.state == OPEN:
            self.state, self.share = PASSED, 1.0


def open_visit(world: World, index: int) -> Visit:
    """A visit of step `index` on a machine of its own.  Raises WorldError."""
    return enter(world, index, world.before(index))


def enter(world: World, index: int, session: Session) -> Visit:
    """The visit that begins with the session at the world before the step."""
    step = world.lesson.steps[index]
    assert isinstance(step, Kind)  # noqa: S101 - the parser makes no other steps
    base = session.end
    lead, values = world.enter(session, step)
    visit = Visit(world, step, session, values, lead, base, session.end, step.drawn(world.seed))
    visit.memory = step.begin()
    if step.settles_at_once:
        visit.settle()
    return visit
