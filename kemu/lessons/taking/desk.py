"""A lesson outside the shell: in a notebook, or in a program.

    desk = Desk(path="03-promises.md", student="ab123")
    desk.task()                    what is asked
    desk.run("maps app")           any command of the shell
    desk.answer(7)                 as in the shell; also check, hint, skip, reset, next

Each call prints what the shell would.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kemu.commands.run import run
from kemu.errors import UsageError
from kemu.language.result import Result
from kemu.lessons.format.parse import parse
from kemu.lessons.taking.feedback import Texts
from kemu.lessons.taking.guide import Guide
from kemu.lessons.taking.world import boot
from kemu.readings import Reading
from kemu.views.procfs import render as render_proc
from kemu.views.style import style_for
from kemu.views.terminal import render


class Desk:
    """One lesson, its machine, and where the student is."""

    def __init__(
        self, text: str, student: str = "", salt: str = "", path: str = "lesson.md"
    ) -> None:
        self.lesson = parse(text, Path(path))
        self.session = boot(self.lesson.machine)
        self.guide = Guide(self.session, self.lesson, student=student, salt=salt, run="desk")
        self.style = style_for("ascii")

    def step(self, number: int) -> None:
        """Enter a step."""
        self.show(self.guide.stay.enter(number - 1))

    def run(self, line: str) -> None:
        """Run commands of the shell."""
        self.show(run(self.session, line))

    def word(self, word: str, rest: str = "") -> None:
        """A word of the lesson."""
        try:
            self.show(self.guide.word(word, rest))
        except UsageError as error:
            self.say(f"{error.what}\n  {error.hint}".rstrip())

    def answer(self, said: object) -> None:
        """Answer the step."""
        self.word("answer", str(said))

    def task(self) -> None:
        """What is asked."""
        self.word("task")

    def check(self) -> None:
        """Is the machine as wanted?"""
        self.word("check")

    def hint(self) -> None:
        """The next hint."""
        self.word("hint")

    def skip(self) -> None:
        """The solution."""
        self.word("skip")

    def end(self) -> None:
        """The end of the lesson, after the last step."""
        self.show(self.guide.stay.finish())

    def show(self, results: Texts | list[Result]) -> None:
        """Print results as the shell does, without colour."""
        for result in results:
            if isinstance(result.reading, Reading):
                made = (
                    render_proc(result.reading)
                    if result.form == "proc"
                    else render(result.reading, self.style)
                )
                self.say(made)
            for note in result.notes:
                self.say(note)
            if result.error is not None:
                self.say(f"error: {result.error.what}\n  {result.error.hint}".rstrip())

    @staticmethod
    def say(text: str) -> None:
        """A line for the student."""
        if text:
            sys.stdout.write(text + "\n")
