"""Students for tests: who takes a lesson, types lines, and hands in what came of it."""

from pathlib import Path

from kemu.api import Session
from kemu.commands.run import run
from kemu.lessons.format.parse import parse, parse_file
from kemu.lessons.grading.transcript import lines_of
from kemu.lessons.kinds.base import open_visit
from kemu.lessons.taking.guide import Guide
from kemu.lessons.taking.world import World

LESSONS = Path(__file__).parent / "lessons"
HEAD = '+++\nformat = 1\nid = "t/lesson"\ntitle = "A lesson"\n{front}+++\n'


def lesson_of(body, front=""):
    """A lesson of the text, as if it stood in a file."""
    return parse(HEAD.format(front=front) + body, Path("lesson.md"))


def lesson_named(name):
    """A lesson of this folder."""
    return parse_file(LESSONS / f"{name}.md")


class Student:
    """Someone at a shell with a lesson."""

    def __init__(self, lesson, name="ada", salt="salt", records=()):
        self.session = Session()
        self.records = list(records)
        keep = self.records.append
        self.guide = Guide(
            self.session,
            lesson,
            student=name,
            salt=salt,
            run=f"run-{name}",
            keep=keep,
            records=records,
        )
        self.first = self.guide.stay.resume()

    def types(self, *lines):
        """Type lines; the results of the last one."""
        results = []
        for line in lines:
            results = run(self.session, line)
        return results

    def reads(self, *lines):
        """Type lines; what the last one said, as text."""
        return texts(self.types(*lines))

    @property
    def visit(self):
        return self.guide.stay.visit

    def solves(self, index=None):
        """The lines that solve a step, found as the proof finds them."""
        at = self.guide.stay.index if index is None else index
        visit = open_visit(World(self.guide.stay.lesson, self.guide.stay.seed), at)
        visit.settle() if not visit.step.reveal else visit.reveal()
        return visit.step.solve(visit)

    def step(self, *, right=True):
        """Take one step as one should, or not at all; then go on."""
        kind = self.visit.step.kind
        if right:
            self.types(*self.solves())
            if kind in ("state", "bug", "explore"):
                self.types("check")
            if kind == "explain":
                self.types("answer because the frame has two holders; it's shared")
        elif kind in ("state", "run", "bug", "explore", "explain", "order"):
            self.types("skip")
        else:
            self.types(f"answer {self.wrong_letter() if kind == 'choice' else 991}", "skip")
        self.types("lesson next")

    def wrong_letter(self):
        """A letter of an option that is not right."""
        right = self.solves()[0].split()[1:]
        return next(letter for letter in "abcdefgh" if letter not in right)

    def takes_all(self, wrong=()):
        """Take the lesson to its end; the steps in `wrong` are missed."""
        for step in self.guide.stay.lesson.steps:
            self.step(right=step.id not in wrong)
        return self

    def hands_in(self, folder, name="", seed=None):
        """Write the transcript; its path."""
        lines = lines_of(
            self.guide.stay.lesson,
            self.guide.stay.student,
            seed or self.guide.stay.seed,
            self.records,
        )
        path = folder / f"{name or self.guide.stay.student}.kemu.jsonl"
        path.write_text("\n".join(lines) + "\n")
        return path


def texts(results):
    """What results say: texts of a lesson, errors, and the commands that ran."""
    found = []
    for result in results:
        if result.error is not None:
            found.append(f"error: {result.error.what}")
        found.append(getattr(result.reading, "text", "") or "")
    return "\n".join(part for part in found if isinstance(part, str) and part)
