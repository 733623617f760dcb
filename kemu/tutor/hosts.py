"""The files of the host, from within a lesson: refused, unless the lesson allows the command and the path lies beside it.

The student's commands pass here, and those of the lesson itself too: a lesson is somebody else's file.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.commands import kinds
from kemu.commands.result import Result
from kemu.commands.spec import Command
from kemu.commands.tokens import Line
from kemu.errors import UsageError
from kemu.tutor.lesson import Lesson

if TYPE_CHECKING:
    from kemu.commands.spec import Argument, Option


class HostGuard:
    """Stands beside a session while the lesson itself runs commands (see `Session.guide`)."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.allowed = {*lesson.allow, *(name for step in lesson.steps for name in step.allow)}

    def words(self) -> list[tuple[str, str]]:
        """No words of its own."""
        return []

    def line(self, text: str) -> list[Result] | None:
        """Nothing is dealt with here."""
        return None

    def expand(self, line: Line) -> Line:
        """Commands are what they are."""
        return line

    def admit(self, made: Command, values: dict[str, Any]) -> None:
        """Raise UsageError where the command would touch the host, or begin another lesson."""
        if made.name == "lesson":
            raise UsageError("lesson: not in a lesson")
        refuse_host(self.lesson, self.allowed, made, values)

    def saw(self, results: list[Result]) -> list[Result]:
        """All results are shown."""
        return results


def refuse_host(lesson: Lesson, allowed: Collection[str], made: Command, values: dict[str, Any]) -> None:
    """Raise UsageError where the command touches files of the host that it may not touch.  A path that it may touch is made
    one from the lesson's folder, wherever kemu was started."""
    names = [part.name for part in parts_of(made) if part.kind is not None and part.kind.name == kinds.HOST_PATH.name]
    paths = [path for name in names for path in _paths(values.get(name))]
    if not paths and (names or not made.host):
        return
    if made.name not in allowed:
        what = "files of this computer" if names else "this computer"
        raise UsageError(f"{made.name}: not in a lesson, for it touches {what}", hint="lesson leave ends the lesson")
    folder = lesson.path.parent.resolve()
    for path in paths:
        if not Path(folder, path).resolve().is_relative_to(folder):
            hint = f"a lesson may use files below {folder.name}/"
            raise UsageError(f"{made.name}: '{path}' does not lie beside the lesson", hint=hint)
    values |= {name: _beside(folder, values[name]) for name in names if values.get(name) is not None}


def _beside(folder: Path, value: Any) -> Any:
    """The path, or each of several, from the folder."""
    return tuple(str(Path(folder, item)) for item in value) if isinstance(value, tuple) else str(Path(folder, value))


def parts_of(made: Command) -> list[Argument | Option]:
    """Arguments and options of a command."""
    return [*made.arguments, *made.options]


def _paths(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, tuple) else [str(value)]
