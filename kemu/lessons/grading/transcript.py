"""What is handed in: JSON Lines, written from the progress of one student in one lesson.

    {"v": 1, "kind": "kemu lesson", "kemu": "0.1.0", "lesson": "vm/fork", "hash": ...,
     "student": "ab123", "seed": ...}
    {"run": "5f2c", "step": "reads", "do": "enter"}
    {"run": "5f2c", "step": "reads", "do": "answer", "text": "answer 7"}
    {"run": "5f2c", "step": "reads", "do": "result", "state": "passed", ...}   a claim, not believed
    {"end": 3, "digest": "..."}                            SHA-256 of all lines before

The digest finds accidents and careless editing, nothing more: anyone who can run kemu can make
one.  What counts is what the commands and answers come to when they are repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from kemu.errors import UsageError
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.taking.progress import DEEDS, VERSION, Record

KIND = "kemu lesson"
LARGEST, MOST_RECORDS, LONGEST_LINE = 16 << 20, 20_000, 4_000
SUFFIX = ".kemu.jsonl"


@attrs.frozen
class Transcript:
    """A file that was handed in. `doubts` are flags of `grade.FLAGS` that its form alone raises."""

    path: str
    kemu: str = ""
    lesson: str = ""
    hash: str = ""
    student: str = ""
    seed: str = ""
    records: tuple[Record, ...] = ()
    doubts: tuple[str, ...] = ()


def lines_of(lesson: Lesson, student: str, seed: str, records: Sequence[Record]) -> list[str]:
    """The lines to hand in: what this student did in this lesson."""
    from kemu import __version__

    runs = {
        record["run"]
        for record in records
        if record["do"] == "enter" and record.get("student", "") == student
    }
    hashes = [
        str(record["hash"])
        for record in records
        if record["do"] == "enter" and record["run"] in runs and "hash" in record
    ]
    head = {
        "v": VERSION,
        "kind": KIND,
        "kemu": __version__,
        "lesson": lesson.id,
        "hash": hashes[-1] if hashes else lesson.hash,
    }
    lines = [_json(head | {"student": student, "seed": seed})]
    dropped = ("v", "lesson", "seed", "hash", "student")
    mine = [record for record in records if record["run"] in runs and record["lesson"] == lesson.id]
    lines += [
        _json({key: value for key, value in record.items() if key not in dropped})
        for record in mine
    ]
    return [*lines, _json({"end": len(lines), "digest": digest(lines)})]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(", ", ": "))


def digest(lines: Sequence[str]) -> str:
    """SHA-256 of the lines, in hex."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def read_transcript(path: Path) -> Transcript:
    """The transcript in the file.  Raises UsageError if there is none."""
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path}: too large to be a transcript ({path.stat().st_size} bytes)")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        ) from error
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    head = _object(lines[0]) if lines else None
    if head is None or head.get("kind") != KIND:
        raise UsageError(f"{path}: not a transcript of a lesson", hint="lesson submit writes one")
    if head.get("v") != VERSION:
        what = f"{path}: unknown format version {head.get('v')!r:.20}"
        raise UsageError(what, hint=f"this kemu reads version {VERSION}")
    records, doubts = _body(lines)
    named = {
        key: str(head.get(key, ""))[:200] for key in ("kemu", "lesson", "hash", "student", "seed")
    }
    return Transcript(str(path), records=tuple(records), doubts=tuple(doubts), **named)


def _body(lines: list[str]) -> tuple[list[Record], list[str]]:
    """The records, and what the form of the file makes doubtful."""
    last = _object(lines[-1]) or {}
    whole = last.get("digest") == digest(lines[:-1]) and last.get("end") == len(lines) - 1
    doubts = [] if whole else ["edited"]
    found: list[Record] = []
    for line in lines[1:]:
        record = _object(line)
        if record is None or "digest" in record:
            continue
        texts = isinstance(record.get("step"), str) and isinstance(record.get("text", ""), str)
        known = texts and record.get("do") in DEEDS
        if known and len(record.get("text", "")) <= LONGEST_LINE:
            found.append(
                {
                    "run": str(record.get("run", "")),
                    **{key: value for key, value in record.items() if key != "run"},
                }
            )
        elif "edited" not in doubts:
            doubts.append("edited")
    if len(found) > MOST_RECORDS:
        doubts.append("too long")
    return found[:MOST_RECORDS], doubts


def _object(line: str) -> dict[str, Any] | None:
    try:
        made = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, dict) else None
