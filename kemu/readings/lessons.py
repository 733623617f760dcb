"""Lessons as they are shown: texts with a role, and lists of lessons and steps."""

from __future__ import annotations

from kemu.readings.base import Reading


class LessonText(Reading):
    """A text of a lesson. ``role``: title, prose, typed (a command of the lesson), ask, options,
    hint, right, wrong, fact, note; ``step`` is the id of the step it belongs to."""

    role: str
    text: str
    step: str = ""


class LessonRow(Reading):
    """A lesson in the list. ``done`` of ``steps`` steps are over, ``points`` of ``most`` reached;
    ``state``: new, begun, done."""

    number: int
    id: str
    title: str
    minutes: int
    steps: int
    done: int
    points: int
    most: int
    state: str
    requires: tuple[str, ...]


class LessonList(Reading):
    """All lessons of a folder; ``current`` is the id of the one under way."""

    rows: tuple[LessonRow, ...]
    current: str
    problems: tuple[str, ...]
    language: str = "en"


class StepRow(Reading):
    """A step in the overview of a lesson. ``state``: open, passed, failed, shown, recorded."""

    number: int
    id: str
    kind: str
    state: str
    points: int
    most: int
    hints: int


class LessonSteps(Reading):
    """The steps of the lesson under way."""

    id: str
    title: str
    rows: tuple[StepRow, ...]
    current: int
    language: str = "en"
