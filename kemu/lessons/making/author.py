"""For authors: a lesson to begin from, one made of what was done in the shell, and how one will
look."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.language.expr import Value
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.names import evaluate
from kemu.lessons.format.schema import Wrong, identity
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.format.toml import quoted, value, written
from kemu.lessons.kinds.base import open_visit
from kemu.lessons.taking import driver, feedback
from kemu.lessons.taking.feedback import Texts, text
from kemu.lessons.taking.world import World

if TYPE_CHECKING:
    from kemu.experiment.session import Session

TEMPLATE = """\
+++
format = 1
id = "{id}"
title = "What happens, in a sentence"
goal = "You can say what fork shares and what it copies."
minutes = 10
teaches = ["fork"]
vars = {{ n = "randint(3, 6)", v = "randint(0, 2)" }}
setup = ["spawn app", "mmap app 0x10000 {{n}}p rw populate"]
license = "CC-BY-4.0"
authors = ["your name"]
+++
`app` owns **{{n}}** pages. Look at them, then commit to a number.

```show
maps app
```

```check predict
id = "frames-after-fork"
points = 2
ask = "How many data frames will parent and child occupy together just after fork?"
reveal = "fork app as child"
expect = "data_frames('app', 'child')"
wrong = {{ "2*n" = "That is the cost of an eager copy. Look at the reference counts." }}
why = "Which count tells that a frame has two owners?"
hints = ["fork copies page tables, not pages.", "Compare mem before and after."]
explain = "Both address spaces point at the same {{n}} frames."
```

Now take one page apart.

```check state
id = "split-one"
points = 3
ask = "Give the child its own frame for page {{v}}; leave every other page shared."
must = [
  "pfn('app', 0x10000 + v*4096) != pfn('child', 0x10000 + v*4096)",
  "shared('app', 'child') == n - 1",
]
hints = ["Reading never splits a page.", "write child ADDRESS 1"]
solution = ["write child {{hex(0x10000 + v*4096)}} 1"]
not_solution = ["read child {{hex(0x10000 + v*4096)}}"]
```

**You can now** say what fork shares. In real Linux: `dup_mmap`, fork(2).
"""


def new(name: str, target: Path | None) -> Path:
    """Write a lesson to begin from, which passes `lesson check`.  Raises UsageError."""
    try:
        identity(name)
    except Wrong as error:
        raise UsageError(f"lesson new: {error}") from error
    path = target or Path(f"{name.rsplit('/', 1)[-1]}.md")
    put(path, TEMPLATE.format(id=name))
    return path


def put(path: Path, content: str) -> None:
    """Write a new file.  Raises UsageError where there is one, or where it cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError as error:
        raise UsageError(f"lesson: '{path}' already exists", hint="choose another name") from error
    except OSError as error:
        raise UsageError(f"lesson: cannot write '{path}': {error.strerror}") from error


# ------------------------------------------------------------------------------------------- record

RECORD_MARK = "lesson_begins"
"""The mark that `lesson record` sets where the setup ends and the solution begins."""


def recorded(session: Session, name: str) -> str:
    """A lesson whose setup is what was done before the mark, whose solution what was done since,
    and whose goals are what differs: the author keeps those that are meant.  Raises UsageError
    where nothing was done."""
    begin = session.marks.get(RECORD_MARK)
    if begin is None:
        hint = "type lesson record begin, solve it, then lesson record FILE.md"
        raise UsageError("lesson record: the task has no beginning", hint=hint)
    records = session.timeline.records
    setup = [record.text for record in records if record.last <= begin]
    solution = [record.text for record in records if record.last > begin]
    if not solution:
        raise UsageError("lesson record: nothing has been done since lesson record begin")
    goals = [
        f"{expression} == {_as_text(found)}" for expression, found in differing(session, begin)
    ]
    step = {
        "id": "do-it",
        "points": 1,
        "ask": "Say what to reach.",
        "must": goals,
        "hints": ["Where to look."],
    }
    step["solution"] = solution
    front = {
        "format": 1,
        "id": name,
        "title": "What happens, in a sentence",
        "minutes": 10,
        "setup": setup,
    }
    keep = (
        "Keep the conditions of `must` that you mean, delete the rest, and add `not_solution`: the "
        "most common wrong way."
    )
    body = "".join(f"{key} = {_listed(item)}\n" for key, item in step.items())
    return f"+++\n{written(front)}+++\n{keep}\n\n```check state\n{body}```\n"


def _listed(item: object) -> str:
    """A value, lists with an entry a line."""
    if isinstance(item, list) and len(item) > 1:
        return "[\n" + "".join(f"    {quoted(entry)},\n" for entry in item) + "]"
    return value(item)


def _as_text(found: Value) -> str:
    return (
        "none" if found is None else str(found).lower() if isinstance(found, bool) else str(found)
    )


def differing(session: Session, begin: int) -> Iterator[tuple[str, Value]]:
    """Expressions whose value now differs from that at the moment `begin`, with the value now."""
    for expression in candidates(session):
        now = _value(session, expression)
        with session.traveling():
            session.goto(begin)
            before = _value(session, expression)
        if now not in (before, "unknown"):
            yield expression, now


def candidates(session: Session) -> list[str]:
    """Expressions that a goal may be about."""
    names = [
        name
        for name, pid in session.names().items()
        if pid > 2 and not session.tasks[pid].exit_state
    ]
    one = [
        f"{function}({name})" for name in names for function in ("rss", "table_frames", "faults")
    ]
    two = [
        f"{function}({a}, {b})"
        for a, b in combinations(names, 2)
        for function in ("shared", "data_frames")
    ]
    return ["tasks()", *one, *two]


def _value(session: Session, expression: str) -> Value:
    try:
        return evaluate(session, expression, {})
    except UsageError:
        return "unknown"


# ------------------------------------------------------------------------------------------ preview


def preview(lesson: Lesson, student: str, salt: str = "") -> Texts:
    """The whole lesson as that student would see it, with hints, solutions and reasons.  Raises
    WorldError."""
    world = World(lesson, seed_for(salt, lesson.id, student))
    drawn = ", ".join(f"{name} = {found}" for name, found in world.values.items())
    found = [text("title", lesson.title), *([text("note", drawn)] if drawn else [])]
    for index, step in enumerate(lesson.steps):
        visit = open_visit(world, index)
        found += [
            *feedback.shown(visit.lead, step.id),
            *feedback.task(visit, index + 1, lesson.language),
        ]
        for number, hint in enumerate(step.hints, 1):
            found.append(text("hint", f"({number}) {visit.text('hints', hint)}", step.id))
        for line in visit.step.solve(visit) if not lesson.packed else []:
            found.append(
                text(
                    "fact", f"{'answer' if driver.is_answer(line) else 'solution'}: {line}", step.id
                )
            )
        found += feedback.reasons(visit)
    session = world.after_all()
    return found + feedback.shown(world.lead(session, lesson.epilogue, world.values))
