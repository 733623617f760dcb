"""What belongs to the user and not to the experiment: it stays when another experiment replaces the
one shown.

    aliases      look = walk app 0x10000
    preferences  paging = off, sections = changes picture
    context      how much is shown after a change: off, short, full
    granularity  what one step is: event, function, command
    guide        the lesson under way: asked before each command, told after it
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import attrs

if TYPE_CHECKING:
    from kemu.language.result import Result
    from kemu.language.tokens import Line

MOST_SHOWN = 10_000
"""Number of results kept for `transcript`."""


class Guide(Protocol):
    """Watches the commands of a session during a lesson."""

    @property
    def language(self) -> str:
        """The language of the guide: `en`, `zh-CN`."""

    def place(self) -> str:
        """Lesson and step for the toolbar, or an empty text."""

    def words(self) -> list[tuple[str, str]]:
        """The guide's words, each with its meaning."""

    def line(self, text: str) -> list[Result] | None:
        """The results of a typed line that the guide handles; None for any other."""

    def expand(self, line: Line) -> Line:
        """The command for a word of the guide."""

    def admit(self, made: Any, values: dict[str, Any]) -> None:
        """Raise UsageError where the command (a `language.spec.Command`, which knows sessions) may
        not be used now."""

    def refused(self, result: Result) -> list[Result]:
        """The result of a line that failed, as it should be shown."""

    def saw(self, results: list[Result]) -> list[Result]:
        """The results of a command, as they should be shown."""


@attrs.define
class Desk:
    """See the module. `shown` are the results of the last commands, for `transcript`; `depth` is
    the number of command files that are being run, each inside the one before; `restoring`: one of
    them is a saved experiment."""

    aliases: dict[str, str] = attrs.field(factory=dict)
    preferences: dict[str, str] = attrs.field(factory=dict)
    context: str = "off"
    granularity: str = "event"
    guide: Guide | None = None
    shown: list[Result] = attrs.field(factory=list)
    depth: int = 0
    restoring: bool = False

    def copy(self) -> Desk:
        """A copy of the desk, to come back to."""
        return attrs.evolve(
            self,
            aliases=self.aliases.copy(),
            preferences=self.preferences.copy(),
            shown=self.shown.copy(),
        )

    @property
    def place(self) -> str:
        """The lesson and step under way, or an empty text."""
        return self.guide.place() if self.guide is not None else ""

    def show_context(self, how: str) -> None:
        """Choose how much is shown after a change (a key of `debugger.sections.HOWS`)."""
        self.context = how

    def step_by(self, granularity: str) -> None:
        """Choose what one step is."""
        self.granularity = granularity

    def follow(self, guide: Guide | None) -> None:
        """Set the guide; None: no guide."""
        self.guide = guide

    def keep(self, result: Result) -> None:
        """Remember the result of a command."""
        self.shown.append(result)
        del self.shown[:-MOST_SHOWN]

    @contextmanager
    def guided(self, guide: Guide | None) -> Iterator[None]:
        """A block in which another guide watches, or none."""
        before, self.guide = self.guide, guide
        try:
            yield
        finally:
            self.guide = before

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """A block whose results are not kept."""
        before, self.shown = self.shown, []
        try:
            yield
        finally:
            self.shown = before

    @contextmanager
    def inside_file(self, *, restoring: bool = False) -> Iterator[None]:
        """A block that runs the commands of a file; ``restoring``: of a saved experiment, which may
        use no files of the host."""
        before = self.restoring
        self.restoring = before or restoring
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self.restoring = before
