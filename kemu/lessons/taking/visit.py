"""One stay in one step: from its own machine to its verdict.

    open --answer--> reveal --> passed | failed (a prediction) | open (try again)
         --check---> passed | open
         --solve---> shown

The same object serves the student, the proof of a lesson and the grader: whoever holds it decides
what is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from kemu.errors import UsageError
from kemu.language.expr import Expression, TaskValue, Value
from kemu.language.tokens import Token
from kemu.lessons.format.lesson import Step
from kemu.lessons.format.names import holds, plain
from kemu.lessons.format.seeds import Draw
from kemu.lessons.kinds import bug as bugs
from kemu.lessons.taking.answers import letters, normal, read_like, read_set, with_confidence
from kemu.lessons.taking.judge import Fact, failure, first_held, place_of, said_as
from kemu.lessons.taking.world import Shown, World, WorldError, unguided

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.spec import Command

OPEN, PASSED, FAILED, SHOWN = "open", "passed", "failed", "shown"
"""States of a visit: `failed` is a prediction, or the last try, that was wrong."""


@attrs.define
class Visit:
    """See the module.  `session` is at the step's start when the visit is made; `order` is the
    drawn order of the options.

    `share` is what part of the points is reached (0 to 1), in `parts` per finding of a bug; `said`
    and `was` are the last answer and what was right."""

    world: World
    step: Step
    session: Session
    values: dict[str, Value]
    lead: list[Shown]
    base: int
    start: int
    order: tuple[int, ...] = ()
    fact: Fact | None = None
    state: str = OPEN
    share: float = 0.0
    tries: int = 0
    hints: int = 0
    answer: Any = None
    said: str = ""
    was: str = ""
    confidence: str = ""
    asked_base: str = ""
    revealed: bool = False
    truths: dict[str, tuple[Value, ...]] = attrs.field(factory=dict)
    found: set[str] = attrs.field(factory=set)
    ran: set[int] = attrs.field(factory=set)
    goals: set[int] = attrs.field(factory=set)
    pending: set[int] = attrs.field(factory=set)
    near: list[str] = attrs.field(factory=list)

    # ---------------------------------------------------------------------------------------- texts

    def text(self, key: str, raw: str) -> str:
        """A text of the step with its values, at this moment.  Raises WorldError."""
        return self.world.rendered(self.session, raw, self.values, self.step.at(key), key)

    def ask(self) -> str:
        """The question."""
        return self.text("ask", self.step.ask)

    def option_texts(self) -> list[str]:
        """The options or items, in the order in which this student sees them."""
        step = self.step
        found = [(option.text, "options") for option in step.options] + [
            (item.text, "items") for item in step.items
        ]
        return [self.text(found[index][1], found[index][0]) for index in self.order]

    def value(self, key: str, expression: str) -> Value:
        """The value of an expression of the step at this moment.  Raises WorldError."""
        return self.world.evaluated(self.session, expression, self.values, self.step.at(key), key)

    # ---------------------------------------------------------------------------------------- facts

    def settle(self) -> None:
        """Ask the machine what is right; once."""
        if self.fact is not None or self.world.lesson.packed:
            return
        with unguided(self.session):
            self.session.goto(self.session.end)
            if self.step.kind == "bug":
                self.truths = bugs.truths(self)
            self.fact = FACTS[self.step.kind](self) if self.step.kind in FACTS else Fact(None)

    def reveal(self) -> list[Shown]:
        """Run the commands that show what is right, and ask."""
        shown: list[Shown] = []
        if not self.revealed:
            self.revealed = True
            shown = self.world.perform(
                self.session, self.step.reveal, self.values, self.step.at("reveal"), "reveal"
            )
            self.settle()
        return shown

    def pictures(self) -> list[Shown]:
        """What is shown beside the fact."""
        if self.world.quiet:
            return []
        return self.world.perform(
            self.session, self.step.show, self.values, self.step.at("show"), "show"
        )

    # -------------------------------------------------------------------------------------- answers

    def read(self, text: str) -> Any:
        """The typed answer as a value.  Raises UsageError for a slip of typing, which is no try."""
        step, made = self.step, with_confidence(text)
        self.confidence = made[1] or self.confidence
        if step.kind in ("choice", "order"):
            return tuple(
                self.order[at]
                for at in letters(
                    made[0], len(self.order), several=step.several or step.kind == "order"
                )
            )
        if step.accept:
            return normal(made[0])
        if step.kind in ("predict", "answer"):
            if step.words:
                return self._word(made[0])
            if step.is_set:
                return read_set(made[0], self.example_set())
            self._ask_base(made[0])
            return read_like(made[0], self.example())
        return text.strip()

    def _ask_base(self, made: str) -> None:
        """Digits alone for what is an address or a like number may be hex without 0x: asked once,
        whatever is right."""
        like = self.example()
        large = isinstance(like, int) and not isinstance(like, bool) and like >= ADDRESS
        if large and made.isascii() and made.isdigit() and made != self.asked_base:
            self.asked_base = made
            hint = f"type 0x{made[:40]} for hex, or the same again for decimal"
            raise UsageError(f"answer: is {made[:40]} decimal or hex?", hint=hint)

    def _word(self, made: str) -> Value | tuple[Value, ...]:
        """The author's word for the one that was typed, in whatever language; of a set all of
        them."""
        keys = [self.text("words", word) for word in self.step.word_keys]
        shown = [self.text("words", word) for word in self.step.words]
        known = (*shown, *(key for key in keys if key not in shown))
        meant = dict(zip(shown, keys, strict=True))
        if self.step.is_set:
            return tuple(meant.get(str(word), word) for word in read_set(made, ("",), known))
        word = read_like(made, "", known)
        return meant.get(str(word), word)

    def example(self) -> Value:
        """A value of the kind that is wanted, before it is known."""
        if self.fact is not None:
            return (
                None
                if isinstance(self.fact.value, tuple) and not isinstance(self.fact.value, TaskValue)
                else self.fact.value
            )
        return kind_of(self)

    def example_set(self) -> tuple[Value, ...]:
        """The same for a set."""
        return (self.example() if self.fact is None else 0,)

    def judge(self, said: Any) -> bool:
        """Is the answer right?  It counts as a try, and the state follows.  The facts must be
        settled."""
        assert self.fact is not None  # noqa: S101 - whoever judges has settled
        right = self.fact.agrees(said)
        self.tries += 1
        self.answer = said
        own = right and self.fact.accepts is not None
        self.said, self.was = self.in_words(said), self.in_words(said if own else self.fact.value)
        if right:
            self.pass_()
        elif self.step.attempts and self.tries >= self.step.attempts:
            self.state = FAILED
        return right

    def accepts(self, said: Value) -> bool:
        """Is this one of the right answers?  `answer` means what was typed."""
        return holds(self.session, self.step.accept, self.values | {"answer": said})

    def in_words(self, value: Any) -> str:
        """An answer as it is shown: letters for options."""
        if self.step.kind in ("choice", "order"):
            shown = sorted(value, key=self.order.index) if self.step.kind == "choice" else value
            return " ".join(chr(ord("a") + self.order.index(index)) for index in shown) or "none"
        return said_as(value)

    def pass_(self) -> None:
        """The step is done."""
        if self.state == OPEN:
            self.state, self.share = PASSED, 1.0

    # --------------------------------------------------------------------------------------- states

    def failures(self) -> list[str]:
        """What of `must` does not hold at this moment, a line each: in the author's words, with
        both sides behind them."""
        found = [(want, failure(self.session, want, self.values)) for want in self.step.must]
        return [
            f"{self.text('must', want.say)} ({sides})" if want.say else sides
            for want, sides in found
            if sides
        ]

    def spoiled(self) -> list[tuple[int, str]]:
        """(event, words) of each `never` that held at some moment since the start."""
        found = []
        for condition in self.step.never:
            event = first_held(self.session, condition, self.values, self.start, self.session.now)
            if event is not None:
                found.append(
                    (event, self.text("never", condition.say) if condition.say else condition.that)
                )
        return found

    def is_of_the_right_kernel(self) -> bool:
        """Did the right kernel make all events since the world before the step?  Planting is a
        command of the timeline."""
        records = self.session.timeline.records
        since = [
            record.text.split()
            for record in records
            if self.base <= record.first <= self.session.now
        ]
        return not any("mutant" in words and "plant" in words for words in since)

    def reached(self) -> list[int]:
        """The goals of an `explore` step that hold now and did not before."""
        new = []
        for index, goal in enumerate(self.step.goals):
            if index not in self.goals and self._goal(goal.that):
                self.goals.add(index)
                new.append(index)
        return new

    def _goal(self, text: str) -> bool:
        try:
            return holds(self.session, text, self.values)
        except UsageError:
            return False

    # ------------------------------------------------------------------------------------- commands

    def before(self, name: str, values: dict[str, Any]) -> None:
        """A command is about to run: which of the wanted ones is it?  Compared are parsed
        arguments, never text."""
        from kemu.commands.run import arguments
        from kemu.commands.table import find
        from kemu.language.tokens import split

        self.pending, self.near = set(), []
        for index, text in enumerate(self.step.commands if self.state == OPEN else ()):
            (line,) = split(self.text("commands", text))
            made = find(line.tokens[0].text)
            if made is None or made.name != name:
                continue
            differing = self._differing(values, arguments(self.session, made, line))
            if differing:
                self.near = self.near or [typed_word(made, name) for name in differing]
            else:
                self.pending.add(index)

    def _differing(self, one: dict[str, Any], other: dict[str, Any]) -> list[str]:
        """The names of the arguments that are not those that are wanted."""
        keys = (one.keys() | other.keys()) - set(self.step.free)
        return sorted(key for key in keys if comparable(one.get(key)) != comparable(other.get(key)))

    def after(self) -> bool:
        """The command has run: is the step done?"""
        self.ran |= self.pending
        self.pending = set()
        wanted = len(self.step.commands) if self.step.all else 1
        return len(self.ran) >= wanted and not self.failures()

    # ------------------------------------------------------------------------------------ solutions

    def solution(self) -> list[str]:
        """The lines that solve the step: commands, then the answer.  The facts must be settled for
        an answer."""
        step = self.step
        if step.kind in ("predict", "answer"):
            self.reveal()
            return [f"answer {self.typed(self.fact.value if self.fact else None)}"]
        if step.kind in ("choice", "order"):
            self.reveal()
            return [f"answer {self.in_words(self.fact.value if self.fact else ())}"]
        if step.kind == "bug":
            return bugs.solution(self)
        commands = step.solution or (step.commands if step.all else step.commands[:1])
        return [self.text("solution", text) for text in commands]

    @staticmethod
    def typed(value: Value | tuple[Value, ...]) -> str:
        """The value as a student would type it."""
        if isinstance(value, tuple) and not isinstance(value, TaskValue):
            return ", ".join(map(plain, value)) or "none"
        return (
            hex(value)
            if isinstance(value, int) and not isinstance(value, bool) and value >= ADDRESS
            else plain(value)
        )


ADDRESS = 0x10000
"""A number from here on is an address or the like: people write it in hex."""


def typed_word(made: Command, name: str) -> str:
    """What a part of a command is called where it is typed: an option by its words, an argument by
    what may stand there."""
    option = next((option for option in made.options if option.name == name), None)
    if option is not None:
        return "/".join(option.words) or name
    kinds = [argument.kind.name for argument in made.arguments if argument.name == name]
    return kinds[0].lower().replace("|", " or ") if name == "what" and kinds else name


def comparable(value: Any) -> Any:
    """An argument without the place where it was typed."""
    if isinstance(value, Expression):
        return tuple((step.op, step.argument, step.arity) for step in value.steps)
    if isinstance(value, Token):
        return value.text
    if type(value) is tuple:
        return tuple(comparable(item) for item in value)
    return value


EXAMPLES: dict[tuple[str, str], Value] = {}
"""A right answer of each prediction that was asked for one, by lesson and step: only what kind of
value it is counts."""


def kind_of(visit: Visit) -> Value:
    """A value of the kind that a prediction wants, before its fact is known: found on a machine of
    its own."""
    key = (visit.world.lesson.hash, visit.step.id)
    if key not in EXAMPLES:
        EXAMPLES[key] = None
        if visit.step.expect:
            session, values = visit.world.future(visit.step)
            EXAMPLES[key] = visit.world.evaluated(
                session, visit.step.expect[0], values, visit.step.at("expect"), "expect"
            )
    return EXAMPLES[key]


# ------------------------------------------------------------------------------------ what is right


def _expected(visit: Visit) -> Fact:
    step = visit.step
    values = tuple(visit.value("expect", text) for text in step.expect)
    wrong = tuple(
        (visit.value("wrong", key), visit.text("wrong", text)) for key, text in step.wrong
    )
    if step.accept:
        return Fact(plain(visit.value("sample", step.sample)), wrong, accepts=visit.accepts)
    return Fact(values if step.is_set else values[0], wrong)


def _chosen(visit: Visit) -> Fact:
    options = visit.step.options
    return Fact(
        tuple(
            index
            for index, option in enumerate(options)
            if visit.value("options", option.right) is True
        )
    )


def _ordered(visit: Visit) -> Fact:
    found = []
    for index, item in enumerate(visit.step.items):
        if item.at:
            where = place(visit, item.at)
            if where is None:
                raise WorldError(
                    "P09", visit.step.at("items"), f"'{item.text}': {item.at} does not happen"
                )
            found.append((where, index))
        elif item.never and place(visit, item.never) is not None:
            raise WorldError(
                "P09", visit.step.at("items"), f"'{item.text}' did happen: {item.never}"
            )
    places = [where for where, _ in found]
    if len(set(places)) < len(places):
        raise WorldError(
            "P09", visit.step.at("items"), "two items stand at the same place of the journal"
        )
    return Fact(tuple(index for _, index in sorted(found)), ordered=True)


def place(visit: Visit, anchor: str) -> Any:
    """Where the anchor stands, from the step's entering on.  Raises WorldError."""
    session, values = visit.session, visit.values
    made = visit.text("items", anchor)
    try:
        return place_of(session, made, values, visit.base, session.end)
    except UsageError as error:
        raise WorldError(
            "M01", visit.step.at("items"), f"{error.what} in {error.text or made}", error.hint
        ) from error


FACTS: dict[str, Callable[[Visit], Fact]] = {
    "predict": _expected,
    "answer": _expected,
    "choice": _chosen,
    "order": _ordered,
}


def open_visit(world: World, index: int) -> Visit:
    """A visit of step `index` on a machine of its own.  Raises WorldError."""
    session = world.before(index)
    return enter(world, index, session)


def shuffled(world: World, step: Step) -> tuple[int, ...]:
    """The order in which the student sees options or items: drawn for each text, so that it depends
    neither on their order in the file nor on the language."""
    keys = [option.key for option in step.options] + [item.key for item in step.items]
    if step.kind != "order" and not step.shuffle:
        return tuple(range(len(keys)))
    return tuple(
        sorted(
            range(len(keys)),
            key=lambda at: (Draw(world.seed, f"{step.id}\0{keys[at]}").below(1 << 64), at),
        )
    )


def enter(world: World, index: int, session: Session) -> Visit:
    """The visit that begins with the session at the world before the step."""
    step = world.lesson.steps[index]
    base = session.end
    lead, values = world.enter(session, step)
    visit = Visit(world, step, session, values, lead, base, session.end, shuffled(world, step))
    if not step.reveal and (step.kind in FACTS or step.kind == "bug"):
        visit.settle()
    return visit
