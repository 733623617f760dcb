"""The files of the host, from within a lesson: refused, unless the lesson allows the command and
the path lies beside it.

The student's commands pass here, and those of the lesson itself too: a lesson is somebody else's
file.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from kemu.language import kinds
from kemu.language.result import Result
from kemu.language.spec import Command
from kemu.language.tokens import Line
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.taking.mistakes import Mistake


class Beside:
    """Watches a session (see `experiment.desk.Guide`) and lets everything pass."""

    @property
    def language(self) -> str:
        """The language of what is said."""
        return "en"

    def place(self) -> str:
        """Lesson and step for the toolbar; nothing here."""
        return ""

    def words(self) -> list[tuple[str, str]]:
        """Words beside the commands that are understood now, with a few words about each; for
        completion."""
        return []

    def line(self, text: str) -> list[Result] | None:
        """A whole line before it is cut into commands; results if it was dealt with."""
        return None

    def expand(self, line: Line) -> Line:
        """A command before its word is looked up."""
        return line

    def admit(self, made: Command, values: dict[str, Any]) -> None:
        """Raise UsageError where the command may not be used now."""

    def refused(self, result: Result) -> list[Result]:
        """The result of a line that the user got wrong; the results to show."""
        return [result]

    def saw(self, results: list[Result]) -> list[Result]:
        """What a command gave; the results to show."""
        return results


class HostGuard(Beside):
    """Stands beside a session while the lesson itself runs commands."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.allowed = {*lesson.allow, *(name for step in lesson.steps for name in step.allow)}

    def admit(self, made: Command, values: dict[str, Any]) -> None:
        """Raise UsageError where the command would touch the host, or begin another lesson."""
        if made.name == "lesson":
            raise Mistake("nested")
        refuse_host(self.lesson, self.allowed, made, values)


def refuse_host(
    lesson: Lesson, allowed: Collection[str], made: Command, values: dict[str, Any]
) -> None:
    """Raise UsageError where the command touches files of the host that it may not touch.  A path
    that it may touch is made one from the lesson's folder, wherever kemu was started."""
    names = [
        part.name
        for part in made.parts
        if part.kind is not None and part.kind.name == kinds.HOST_PATH.name
    ]
    paths = [path for name in names for path in _paths(values.get(name))]
    if not paths and (names or not made.host):
        return
    if made.name not in allowed:
        raise Mistake("host_files" if names else "host", name=made.name)
    folder = lesson.path.parent.resolve()
    for path in paths:
        if not Path(folder, path).resolve().is_relative_to(folder):
            raise Mistake("outside", name=made.name, path=path, folder=folder.name)
    values |= {
        name: _beside(folder, values[name]) for name in names if values.get(name) is not None
    }


def _beside(folder: Path, value: Any) -> Any:
    """The path, or each of several, from the folder."""
    return (
        tuple(str(Path(folder, item)) for item in value)
        if isinstance(value, tuple)
        else str(Path(folder, value))
    )


def _paths(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, tuple) else [str(value)]
