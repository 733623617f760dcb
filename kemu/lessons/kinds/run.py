"""`run`: type a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from kemu.language.expr import Expression
from kemu.language.tokens import Token, split
from kemu.lessons.format.lesson import CONDITIONS, Condition
from kemu.lessons.format.schema import COMMANDS, key, texts, truth
from kemu.lessons.kinds.base import OPEN, PASSED, Kind, Visit

if TYPE_CHECKING:
    from kemu.language.spec import Command


@attrs.define
class Ran:
    """`done`: indices of the commands that have run; `pending`: those that the command at work is;
    `near`: the parts in which it is not one of them, though it has the right word."""

    done: set[int] = attrs.field(factory=set)
    pending: set[int] = attrs.field(factory=set)
    near: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class Run(Kind):
    """One of some commands, or all of them."""

    kind = "run"
    student = "runs a command"
    passes = "its parsed arguments are those of one of `commands` (of every one, with `all = true`)"
    own_keys = "`commands`, `all`, `free` (arguments that may differ), `must`"
    messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "en": {"how": "type the command; it counts as soon as it has run"},
        "zh-CN": {"how": "输入这条命令，运行后即算完成"},
    }
    judges = True
    todo = "# desk.run(...)\n# {hint}"

    commands: tuple[str, ...] = key(texts, (), holds=COMMANDS, needed=True)
    all: bool = key(truth, default=False)
    free: tuple[str, ...] = key(texts, ())
    must: tuple[Condition, ...] = key(CONDITIONS, (), secret=True)

    def leaves(self) -> tuple[str, tuple[str, ...]]:
        """The commands, where no solution is written."""
        if self.makes or self.solution:
            return super().leaves()
        return "commands", self.commands if self.all else self.commands[:1]

    def begin(self) -> Ran:
        """Nothing has run."""
        return Ran()

    def before(self, visit: Visit, name: str, values: dict[str, Any]) -> None:
        """Match the command against the expected ones, by parsed arguments, never text."""
        from kemu.commands.execute import ready
        from kemu.commands.table import find
        from kemu.language.bind import bind

        ran: Ran = visit.memory
        ran.pending, ran.near = set(), []
        for index, text in enumerate(self.commands if visit.state == OPEN else ()):
            (line,) = split(visit.text("commands", text))
            made = find(line.tokens[0].text)
            if made is None or made.name != name:
                continue
            wanted = ready(visit.session, bind(made, line, visit.session))
            differing = sorted(
                part
                for part in (values.keys() | wanted.keys()) - set(self.free)
                if comparable(values.get(part)) != comparable(wanted.get(part))
            )
            if differing:
                ran.near = ran.near or [typed_word(made, part) for part in differing]
            else:
                ran.pending.add(index)

    def after(self, visit: Visit) -> bool:
        """Have enough of them run, this one among them?"""
        ran: Ran = visit.memory
        return bool(ran.pending) and self._enough(visit)

    def _enough(self, visit: Visit) -> bool:
        ran: Ran = visit.memory
        ran.done |= ran.pending
        ran.pending = set()
        wanted = len(self.commands) if self.all else 1
        return len(ran.done) >= wanted and not visit.failures(self.must)

    def nearly(self, visit: Visit) -> list[str]:
        """The parts that differ, if it was no expected command."""
        ran: Ran = visit.memory
        return [] if ran.pending else ran.near

    def check(self, visit: Visit) -> bool:
        """Have enough of them run?"""
        if visit.state == OPEN and self._enough(visit):
            visit.pass_()
        return visit.state == PASSED

    def unmet(self, visit: Visit, language: str) -> list[str]:
        """What of `must` does not hold, else how to answer."""
        return visit.failures(self.must) or [self.say(language, "how")]

    def solve(self, visit: Visit) -> list[str]:
        """The commands, where no solution is written."""
        wanted = self.solution or (self.commands if self.all else self.commands[:1])
        return [visit.text("solution", text) for text in wanted]

    def why_not(self, visit: Visit) -> str:
        """What does not hold, or which command is missing."""
        wanted = f"no command of {', '.join(self.commands)} was run"
        return "; ".join(visit.failures(self.must)) or wanted


def typed_word(made: Command, name: str) -> str:
    """What a part of a command is called where it is typed: an option by its words, an argument by
    what may be there."""
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
