"""What was done, kept for ever: one append-only file of JSON Lines, keyed by lesson and step.

    {"v": 1, "run": "5f2c", "lesson": "vm/first-touch", "step": "reads", "do": "enter", "seed": ...,
    "hash": ..., "student": ...} {"v": 1, "run": "5f2c", "lesson": "vm/first-touch", "step":
    "reads", "do": "answer", "text": "answer 7"} {"v": 1, "run": "5f2c", "lesson": "vm/first-touch",
    "step": "reads", "do": "result", "state": "passed", "share": 1.0, ...}

A line is written by one call, so that two shells may write at once and a kill can tear only the
last line, which is then ignored.  Progress is what the records say; nothing is ever rewritten, and
steps that an edited lesson no longer has are simply not asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from kemu.lessons.format.lesson import Lesson, Step
from kemu.lessons.taking.messages import say

VERSION = 1
FILE = "lessons.jsonl"
LARGEST = 64 << 20
"""Bytes of a progress file that are read: the newest ones."""
DEEDS = ("enter", "command", "answer", "check", "hint", "skip", "reset", "confidence", "result")
TEXTS = (
    "run",
    "lesson",
    "step",
    "text",
    "seed",
    "hash",
    "student",
    "state",
    "said",
    "was",
    "confidence",
)
Record = Mapping[str, Any]


class Log:
    """The file in a folder.  What cannot be read or written is a warning, once, and never a
    failure."""

    def __init__(self, folder: Path, language: str = "en") -> None:
        self.path = folder / FILE
        self.language = language
        self.warning = ""

    def append(self, record: Record) -> str:
        """Add one record; the warning, where this is the first that cannot be kept."""
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, (b"\n" if _torn(handle) else b"") + line)
            finally:
                os.close(handle)
        except OSError as error:
            known, self.warning = (
                self.warning,
                self.warning or self._told("not_kept", error),
            )
            return "" if known else self.warning
        return ""

    def records(self, lesson: str = "") -> list[Record]:
        """The records of a lesson (of all without one), oldest first; none, and a warning, where
        the file cannot be read."""
        try:
            found = read_records(self.path)
        except OSError as error:
            self.warning = self.warning or self._told("not_read", error)
            return []
        return [record for record in found if not lesson or record["lesson"] == lesson]

    def _told(self, message: str, error: OSError) -> str:
        return say(self.language, message, path=self.path, reason=error.strerror)


def _torn(handle: int) -> bool:
    """Does the file end in the middle of a line?"""
    size = os.fstat(handle).st_size
    if size == 0 or not hasattr(os, "pread"):
        return False
    return os.pread(handle, 1, size - 1) != b"\n"


def read_records(path: Path) -> list[Record]:
    """The records of a file, none if there is no file; lines that are not records (a torn one,
    another version's) are left out. Raises OSError for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LARGEST))
            lines = file.read().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = (parsed(line) for line in lines)
    return [record for record in found if record is not None]


def parsed(line: bytes) -> Record | None:
    """The record in the line, or None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("v") != VERSION or record.get("do") not in DEEDS:
        return None
    texts = all(isinstance(record.get(key, ""), str) for key in TEXTS)
    return record if texts and record.get("lesson") and record.get("step") else None


@attrs.define
class Diary:
    """What is kept of one student in one lesson: the records of this `run` (given to `keep`, which
    returns a warning where it cannot) after those from before."""

    lesson: Lesson
    run: str
    keep: Callable[[Record], str] | None
    records: list[Record]

    def add(self, step: str, deed: str, **more: Any) -> str:
        """Keep what was done in a step; the warning."""
        record = {"v": VERSION, "run": self.run, "lesson": self.lesson.id, "step": step, "do": deed}
        record |= more
        self.records.append(record)
        return (self.keep(record) if self.keep is not None else "") or ""

    def done(self) -> dict[str, Done]:
        """What is reached so far, by step."""
        return fold(self.records, self.lesson)


@attrs.define
class Done:
    """What is reached in a step. `state`: open, passed, failed, shown, recorded."""

    state: str = "open"
    share: float = 0.0
    hints: int = 0
    tries: int = 0
    said: str = ""
    was: str = ""
    confidence: str = ""

    def points(self, step: Step) -> float:
        """Points of the step."""
        return round(step.points * self.share, 2)


def fold(records: Iterable[Record], lesson: Lesson) -> dict[str, Done]:
    """What is reached in each step of the lesson.

    Of a prediction, and where tries are counted, the first result counts.  Otherwise the best does,
    but nothing counts after a solution was shown.  In an exam the last one counts."""
    done = {step.id: Done() for step in lesson.steps}
    exam = lesson.mode == "exam"
    once = {step.id for step in lesson.steps if step.attempts and not exam}
    for record in records:
        reached = done.get(record["step"])
        if reached is None or record.get("lesson") != lesson.id:
            continue
        if record["do"] == "hint":
            reached.hints += 1
        if record["do"] == "result":
            _result(reached, record, first=record["step"] in once, last=exam)
    return done


def _result(reached: Done, record: Record, *, first: bool, last: bool) -> None:
    state, share = str(record.get("state", "open")), record.get("share", 0)
    if not isinstance(share, (int, float)) or isinstance(share, bool) or not 0 <= share <= 1:
        return
    if reached.state == "shown" or (first and reached.state in ("passed", "failed", "recorded")):
        return
    if last or state == "recorded" or share >= reached.share:
        tries = record.get("tries", 0)
        reached.state, reached.share = state, float(share)
        reached.tries = tries if isinstance(tries, int) else 0
        reached.said, reached.was = str(record.get("said", "")), str(record.get("was", ""))
        reached.confidence = str(record.get("confidence", ""))
