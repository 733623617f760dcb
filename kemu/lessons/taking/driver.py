"""Work on a step by lines, as a student's hands would: the proof and the recorder use it, and the
guide builds on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.commands.run import run
from kemu.errors import UsageError
from kemu.language.result import Complaint
from kemu.lessons.kinds import bug as bugs
from kemu.lessons.taking.admit import Watch
from kemu.lessons.taking.visit import OPEN, Visit
from kemu.lessons.taking.world import check_size

if TYPE_CHECKING:
    from collections.abc import Iterable

ANSWER = "answer"


def work(visit: Visit, lines: Iterable[str]) -> Complaint | None:
    """Do the lines: commands, and `answer ...`; the complaint about the first that cannot be
    done."""
    visit.session.desk.follow(Watch(visit))
    for line in lines:
        complaint = _answer(visit, line) if is_answer(line) else _command(visit, line)
        if complaint is not None:
            return complaint
    return None


def is_answer(line: str) -> bool:
    """Is the line an answer rather than a command?"""
    return line.split(" ", 1)[0] == ANSWER


def _command(visit: Visit, line: str) -> Complaint | None:
    results = run(visit.session, line)
    check_size(visit.session, visit.step.line)
    return next((result.error for result in results if result.error), None)


def _answer(visit: Visit, line: str) -> Complaint | None:
    try:
        give(visit, line[len(ANSWER) :].strip())
    except UsageError as error:
        return Complaint.of(error)
    return None


def give(visit: Visit, text: str) -> None:
    """Answer the step.  Raises UsageError for a slip of typing; then nothing has happened."""
    if visit.step.kind == "bug":
        visit.settle()
        found = bugs.name(visit, text)
        visit.tries += 1
        visit.found |= {key for key, _, right in found if right}
        visit.share = bugs.share(visit)
        if all(key in visit.found for key in visit.step.find):
            visit.pass_()
        return
    said = visit.read(text)
    if visit.step.kind == "explain":
        visit.said = said
        if said:
            visit.pass_()
        return
    visit.reveal()
    visit.settle()
    visit.judge(said)


def check(visit: Visit) -> bool:
    """Is the step done, as the machine stands now?"""
    if visit.state != OPEN:
        return visit.state == "passed"
    kind = visit.step.kind
    if (kind == "state" and not visit.failures() and not visit.spoiled()) or (
        kind == "run" and visit.after()
    ):
        visit.pass_()
    if kind == "bug" and "repair" in visit.step.find and not bugs.unrepaired(visit):
        visit.found.add("repair")
        visit.share = bugs.share(visit)
        if all(key in visit.found for key in visit.step.find):
            visit.pass_()
    if kind == "explore":
        visit.reached()
    return visit.state == "passed"
