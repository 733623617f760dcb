"""Work on a step by lines, as a student's hands would: the proof and the exporters use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.commands.run import run
from kemu.errors import UsageError
from kemu.language.result import Complaint
from kemu.lessons.kinds.base import Visit
from kemu.lessons.taking.admit import Watch
from kemu.lessons.taking.world import check_size

if TYPE_CHECKING:
    from collections.abc import Iterable

ANSWER = "answer"


def work(visit: Visit, lines: Iterable[str]) -> Complaint | None:
    """Do the lines: commands, and `answer ...`; the complaint about the first that cannot be
    done."""
    visit.session.desk.follow(Watch(visit))
    for line in lines:
        if is_answer(line):
            try:
                visit.step.give(visit, line[len(ANSWER) :].strip())
            except UsageError as error:
                return Complaint.of(error)
            continue
        results = run(visit.session, line)
        check_size(visit.session, visit.step.line)
        complaint = next((result.error for result in results if result.error), None)
        if complaint is not None:
            return complaint
    return None


def is_answer(line: str) -> bool:
    """Is the line an answer rather than a command?"""
    return line.split(" ", 1)[0] == ANSWER
