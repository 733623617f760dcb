"""A lesson as data, and what can be wrong with one.

    +++                          front matter (TOML)      Lesson
    prose {expr}                 Block "prose"  \
    ```run                       Block "run"     > lead of the step that follows
    ```show                      Block "show"   /
    ```check predict             Step
    prose                        epilogue: blocks behind the last step

Texts are kept as written; `{expr}` in them is evaluated when the student gets there.  Every step
and every key knows its line, so that whatever turns out to be wrong later can be shown in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from kemu.errors import KemuError

FORMAT = 1
"""The version of the format that this kemu reads."""

KINDS = ("predict", "run", "state", "bug", "order", "choice", "answer", "explain", "explore")
FINDINGS = ("event", "invariant", "frame", "function", "repair")
"""What a `bug` step may want to be found."""

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
    """A lesson cannot be used: what is wrong with it stands in `problems`."""

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

    that: str
    say: str = ""


@attrs.frozen
class Option:
    """One option of a choice; `right` is an expression; `key` is the text as the author wrote it,
    whatever language is shown."""

    text: str
    right: str = "false"
    why: str = ""
    key: str = attrs.field(default=attrs.Factory(lambda self: self.text, takes_self=True))


@attrs.frozen
class Item:
    """One event of an `order` step: where it stands in the journal, or nothing for what did not
    happen."""

    text: str
    at: str = ""
    never: str = ""
    key: str = attrs.field(default=attrs.Factory(lambda self: self.text, takes_self=True))


@attrs.frozen
class Goal:
    """A badge of an `explore` step."""

    text: str
    that: str


@attrs.frozen
class Machine:
    """What the machine of a lesson or step is made with; `mem` in bytes."""

    mem: int = 64 << 20
    geometry: str = "x86-64"
    cpus: int = 2
    lru_batch: bool = False


@attrs.frozen(kw_only=True)
class Step:
    """One step.  See docs/lesson-format.md for each key; `lines` gives the line in the file of each
    that was written."""

    kind: str
    id: str
    line: int
    lead: tuple[Block, ...] = ()
    lines: Mapping[str, int] = attrs.field(factory=dict, eq=False, hash=False)
    title: str = ""
    points: int = 1
    ask: str = ""
    hints: tuple[str, ...] = ()
    solution: tuple[str, ...] = ()
    not_solution: tuple[tuple[str, ...], ...] = ()
    explain: str = ""
    tags: tuple[str, ...] = ()
    attempts: int = 0
    setup: tuple[str, ...] = ()
    let: tuple[tuple[str, str], ...] = ()
    plant: str = ""
    start: str = "carry"
    carry: bool = True
    makes: tuple[str, ...] = ()
    machine: Machine | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    reveal: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    is_set: bool = False
    accept: str = ""
    sample: str = ""
    wrong: tuple[tuple[str, str], ...] = ()
    why: str = ""
    words: tuple[str, ...] = ()
    word_keys: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    confidence: bool = False
    commands: tuple[str, ...] = ()
    all: bool = False
    free: tuple[str, ...] = ()
    must: tuple[Condition, ...] = ()
    never: tuple[Condition, ...] = ()
    options: tuple[Option, ...] = ()
    several: bool = False
    shuffle: bool = True
    items: tuple[Item, ...] = ()
    find: tuple[str, ...] = ()
    parts: tuple[tuple[str, int], ...] = ()
    event: tuple[str, ...] = ()
    invariant: tuple[str, ...] = ()
    frame: tuple[str, ...] = ()
    function: tuple[str, ...] = ()
    goals: tuple[Goal, ...] = ()

    def at(self, key: str) -> int:
        """The line of a key, or of the step where it is not written."""
        return self.lines.get(key, self.line)

    @property
    def carried(self) -> bool:
        """Does the next step go on from what this one made?"""
        return self.carry and self.kind != "bug" and not self.plant


@attrs.frozen(kw_only=True)
class Lesson:
    """A lesson file, read.  `hash` is the SHA-256 of its text, in hex (of the text it was packed
    from, where it was packed)."""

    path: Path
    hash: str
    id: str
    title: str
    format: int = FORMAT
    goal: str = ""
    minutes: int = 15
    requires: tuple[str, ...] = ()
    teaches: tuple[str, ...] = ()
    machine: Machine = Machine()
    vars: tuple[tuple[str, str], ...] = ()
    setup: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: str = "guided"
    license: str = ""
    authors: tuple[str, ...] = ()
    next: str = ""
    language: str = "en"
    confidence: bool = False
    packed: bool = False
    steps: tuple[Step, ...] = ()
    epilogue: tuple[Block, ...] = ()
    lines: Mapping[str, int] = attrs.field(factory=dict, eq=False, hash=False)

    @property
    def points(self) -> int:
        """The most that can be reached."""
        return sum(step.points for step in self.steps)

    def index(self, step_id: str) -> int:
        """Where the step stands; -1 if there is none of that id."""
        return next((number for number, step in enumerate(self.steps) if step.id == step_id), -1)
