"""A lesson as data, and what can be wrong with one.

    +++                          front matter (TOML)      Lesson
    prose {expr}                 Block "prose"  \
    ```run                       Block "run"     > lead of the step that follows
    ```show                      Block "show"   /
    ```check predict             Step
    prose                        epilogue: blocks after the last step

Texts are kept as written; `{expr}` in them is evaluated when the student gets there.  Every step
and every key knows its line, so that whatever turns out to be wrong later can be shown in the file.
What a kind of step has besides is its class in `lessons/kinds/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs

from kemu.errors import KemuError
from kemu.lessons.format.schema import (
    COMMANDS,
    EXPRESSION,
    PROSE,
    SOLUTION,
    TEMPLATE,
    Wrong,
    identity,
    key,
    keys,
    named_texts,
    number,
    sequences,
    shown,
    size,
    tables,
    text,
    texts,
    truth,
    version,
    word,
)

FORMAT = 1
"""The version of the format that this kemu reads."""

ERROR, WARNING = "error", "warning"


@attrs.frozen
class Problem:
    """One thing that is wrong with a lesson file: a code of `codes.CODES`, the place, the words,
    and what to do."""

    code: str
    path: str
    line: int
    text: str
    hint: str = ""

    @property
    def severity(self) -> str:
        """`error` or `warning`; codes of warnings begin with W."""
        return WARNING if self.code.startswith("W") else ERROR

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.code} {self.text}" + (
            f" ({self.hint})" if self.hint else ""
        )


class LessonError(KemuError):
    """A lesson cannot be used: `problems` says why."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@attrs.frozen
class Block:
    """A piece between steps: `prose` (Markdown), or commands that are executed and shown (`run`),
    or only shown (`show`)."""

    kind: str
    text: str
    line: int

    def commands(self) -> list[tuple[int, str]]:
        """The lines of a `run` or `show` block that are commands, with their line in the file."""
        lines = enumerate(self.text.split("\n"), self.line + 1)
        return [
            (number, line.strip())
            for number, line in lines
            if line.strip() and not line.strip().startswith("#")
        ]


@attrs.frozen
class Condition:
    """An expression that must (or must never) hold, and words for when it fails; without words both
    sides are shown."""

    that: str = key(text, holds=EXPRESSION, needed=True)
    say: str = key(text, "", holds=PROSE)


CONDITIONS = tables(Condition, plain="that")


@attrs.frozen
class Machine:
    """What the machine of a lesson or step is made with; `mem` in bytes."""

    mem: int = key(size, 64 << 20)
    geometry: str = key(word("x86-64", "x86-64-la57", "sv39"), "x86-64")
    cpus: int = key(number(1, 8), 2)
    lru_batch: bool = key(truth, default=False)


def machine_of(value: Any) -> Machine:
    """What the machine is made with."""
    known = keys(Machine)
    if not isinstance(value, dict) or not value.keys() <= known.keys():
        raise Wrong(f"expected a table with some of {', '.join(known)}, got {shown(value)}")
    return Machine(**{name: known[name].read(item) for name, item in value.items()})


@attrs.frozen(kw_only=True)
class Step:
    """One step: the keys that every kind has.  See docs/lesson-format.md for each; `lines` gives
    the line in the file of each that was written."""

    kind: ClassVar[str] = ""
    line: int
    lead: tuple[Block, ...] = ()
    lines: Mapping[str, int] = attrs.field(factory=dict, eq=False, hash=False)
    reveal: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    """Commands that show what is right, and those that only look beside it, of a kind that has
    them."""

    id: str = key(text, needed=True)
    title: str = key(text, "", holds=PROSE)
    points: int = key(number(0, 1000), 1)
    ask: str = key(text, "", holds=PROSE)
    explain: str = key(text, "", holds=PROSE, secret=True)
    why: str = key(text, "", holds=PROSE, secret=True)
    hints: tuple[str, ...] = key(texts, (), holds=PROSE)
    solution: tuple[str, ...] = key(texts, (), holds=SOLUTION, secret=True)
    not_solution: tuple[tuple[str, ...], ...] = key(sequences, (), holds=SOLUTION, secret=True)
    tags: tuple[str, ...] = key(texts, ())
    attempts: int = key(number(0, 1000), 0)
    setup: tuple[str, ...] = key(texts, (), holds=COMMANDS)
    let: tuple[tuple[str, str], ...] = key(named_texts, ())
    plant: str = key(text, "", holds=TEMPLATE)
    start: str = key(word("carry", "setup", "boot"), "carry")
    carry: bool = key(truth, default=True)
    makes: tuple[str, ...] = key(texts, (), holds=COMMANDS, secret=True)
    machine: Machine | None = key(machine_of, None)  # noqa: RUF009 - it makes a field
    allow: tuple[str, ...] = key(texts, ())
    deny: tuple[str, ...] = key(texts, ())
    locked: tuple[str, ...] = key(texts, ())
    confidence: bool = key(truth, default=False)

    def at(self, name: str) -> int:
        """The line of a key, or of the step where it is not written."""
        return self.lines.get(name, self.line)

    @property
    def carried(self) -> bool:
        """Does the next step go on from what this one made?"""
        return self.carry and not self.plant

    def leaves(self) -> tuple[str, tuple[str, ...]]:
        """(key, commands) of what the step does to the machine from which the next one starts."""
        return ("makes", self.makes) if self.makes else ("solution", self.solution)


@attrs.frozen(kw_only=True)
class Lesson:
    """A lesson file, read.  `hash` is the SHA-256 of its text, in hex (of the text it was packed
    from, where it was packed)."""

    path: Path
    hash: str
    format: int = key(version, FORMAT, needed=True)
    id: str = key(identity, needed=True)
    title: str = key(text, needed=True)
    goal: str = key(text, "")
    minutes: int = key(number(1, 600), 15)
    requires: tuple[str, ...] = key(texts, ())
    teaches: tuple[str, ...] = key(texts, ())
    machine: Machine = key(machine_of, Machine())  # noqa: RUF009 - it makes a field
    vars: tuple[tuple[str, str], ...] = key(named_texts, ())
    setup: tuple[str, ...] = key(texts, ())
    allow: tuple[str, ...] = key(texts, ())
    deny: tuple[str, ...] = key(texts, ())
    mode: str = key(word("guided", "exam", "free"), "guided")
    license: str = key(text, "")
    authors: tuple[str, ...] = key(texts, ())
    next: str = key(text, "")
    language: str = key(text, "en")
    confidence: bool = key(truth, default=False)
    packed: bool = key(text, default=False)
    """In the file: the hash of the lesson that this is the student's copy of."""

    steps: tuple[Step, ...] = ()
    epilogue: tuple[Block, ...] = ()
    lines: Mapping[str, int] = attrs.field(factory=dict, eq=False, hash=False)

    @property
    def points(self) -> int:
        """The most that can be reached."""
        return sum(step.points for step in self.steps)

    def index(self, step_id: str) -> int:
        """The index of the step; -1 if no step has that id."""
        return next((number for number, step in enumerate(self.steps) if step.id == step_id), -1)
