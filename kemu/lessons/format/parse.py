"""Read a lesson file: front matter, prose, blocks, steps.  All problems are found, each with its
line.

    +++                     line scanner --> pieces (kind, first line, text)
    TOML                    tomllib      --> values
    +++                     schema       --> Lesson
    prose, ```fences

Nothing is executed, and nothing but the one file is read.  Other fences (```sh) are
prose.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from kemu.language.suggest import did_you_mean
from kemu.lessons.format.lesson import FORMAT, Block, Lesson, LessonError, Problem, Step
from kemu.lessons.format.schema import Wrong, keys
from kemu.lessons.kinds.registry import KINDS

LARGEST_FILE, MOST_STEPS = 1 << 20, 200
"""Bytes of a file, steps of a lesson."""
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*(\S*)\s*(.*?)\s*$")
_STEP_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,63}\Z", re.ASCII)
BLOCKS = ("run", "show")


class Piece(NamedTuple):
    """A part of the file: kind `prose`, `run`, `show` or `check`; `line` is that of its first line
    (of a fence: the fence)."""

    kind: str
    argument: str
    line: int
    text: str


def parse_file(path: Path) -> Lesson:
    """The lesson in the file.  Raises LessonError with all that is wrong."""
    return parse(read_text(path), path)


def read_text(path: Path) -> str:
    """The text of the file.  Raises LessonError where it cannot be read as one."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            large = f"{path.stat().st_size} bytes is too large"
            raise LessonError([Problem("L01", str(path), 1, large, "a lesson has at most 1 MiB")])
        return path.read_text(encoding="utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise LessonError(
            [Problem("L01", str(path), 1, f"not UTF-8 at byte {error.start}", "save it as UTF-8")]
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LessonError([Problem("L01", str(path), 1, f"cannot be read: {reason}")]) from error


def parse(text: str, path: Path) -> Lesson:
    """The lesson in the text; `path` is for messages.  Raises LessonError with all that is
    wrong."""
    reader = _Reader(text, path)
    lesson = reader.lesson()
    if reader.problems:
        raise LessonError(reader.problems)
    return lesson


def hash_of(text: str) -> str:
    """SHA-256 of a lesson's text, in hex; the kind of line ends does not count."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()


class _Reader:
    """Reads one text; gathers problems instead of stopping at the first."""

    def __init__(self, text: str, path: Path) -> None:
        self.text = text
        self.path = path
        self.problems: list[Problem] = []

    def wrong(self, code: str, line: int, text: str, hint: str = "") -> None:
        self.problems.append(Problem(code, str(self.path), line, text, hint))

    def lesson(self) -> Lesson:
        lines = self.text.removeprefix("\ufeff").split("\n")
        front, body = self.front_matter(lines)
        values, places = self.front(front, 2) if front is not None else ({}, {})
        pieces = self.pieces(lines[body:], body + 1)
        steps, epilogue = self.steps(pieces)
        packed = values.pop("packed", "")
        known = dict.fromkeys(("id", "title"), "") | values
        made: dict[str, Any] = {
            "hash": packed or hash_of(self.text),
            "packed": bool(packed),
            "lines": places,
        } | known
        return Lesson(path=self.path, steps=steps, epilogue=epilogue, **made)

    # --------------------------------------------------------------------------------- front matter

    def front_matter(self, lines: list[str]) -> tuple[str | None, int]:
        """The text between the two +++ lines, and the index of the line after the second."""
        if not lines or lines[0].strip() != "+++":
            self.wrong(
                "L02",
                1,
                "the file does not begin with a +++ line",
                "front matter is TOML between two +++ lines",
            )
            return None, 0
        for index in range(1, len(lines)):
            if lines[index].strip() == "+++":
                return "\n".join(lines[1:index]), index + 1
        self.wrong(
            "L02", 1, "the front matter that begins here never ends", "close it with a +++ line"
        )
        return None, len(lines)

    def front(self, text: str, line: int) -> tuple[dict[str, Any], dict[str, int]]:
        raw = self.toml(text, line)
        places = key_lines(text, line)
        if raw is None:
            return {}, places
        values: dict[str, Any] = {}
        known = keys(Lesson)
        for key, value in raw.items():
            where = places.get(key, 1)
            if key in known:
                self.value(values, key, value, known[key].read, where)
            else:
                self.wrong("L04", where, f"unknown key '{key[:40]}'", did_you_mean(key, known))
        for key in (name for name, declared in known.items() if declared.needed):
            if key not in raw:
                what = f"'{key}' is missing from the front matter"
                self.wrong("L05", 1, what, f"for example: {_EXAMPLES[key]}")
        if values.get("format", FORMAT) != FORMAT:
            unknown = f"unknown format {values['format']}"
            self.wrong("L10", places.get("format", 1), unknown, f"this kemu reads format {FORMAT}")
        return values, places

    def toml(self, text: str, line: int) -> dict[str, Any] | None:
        """The table that the text is; `line` is that of its first line."""
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            where = line + int(found[1]) - 1 if found else line + text.count("\n")
            what = str(error).split(" (at")[0]
            self.wrong("L03", where, f"TOML: {what}" + (f", column {found[2]}" if found else ""))
        except RecursionError:
            self.wrong("L03", line, "TOML: nested too deeply")
        return None

    def value(self, values: dict[str, Any], key: str, raw: Any, read: Any, line: int) -> None:
        try:
            values[key] = read(raw)
        except Wrong as error:
            self.wrong("L06", line, f"{key}: {error}")

    # ----------------------------------------------------------------------------------------- body

    def pieces(self, lines: list[str], first: int) -> list[Piece]:
        """The body cut into prose and blocks."""
        found: list[Piece] = []
        prose: list[str] = []
        start, index = first, 0
        while index < len(lines):
            fence = _FENCE.match(lines[index])
            if fence is None:
                prose.append(lines[index])
                index += 1
                continue
            end = self.closing(lines, index, fence[1])
            if end is None:
                shown = lines[index].strip()[:40]
                self.wrong(
                    "L08",
                    first + index,
                    f"the block that begins here is never closed: {shown}",
                    f"add {fence[1]}",
                )
                end = len(lines)
            if fence[2] in BLOCKS or fence[2] == "check":
                found.append(Piece("prose", "", start, "\n".join(prose)))
                found.append(
                    Piece(fence[2], fence[3], first + index, "\n".join(lines[index + 1 : end]))
                )
                prose, start = [], first + end + 1
            else:
                self.suspicious(fence[2], first + index)
                prose += lines[index : end + 1]
            index = end + 1
        found.append(Piece("prose", "", start, "\n".join(prose)))
        return [piece for piece in found if piece.kind != "prose" or piece.text.strip()]

    def closing(self, lines: list[str], opening: int, mark: str) -> int | None:
        """The index of the line that closes the fence."""
        for index in range(opening + 1, len(lines)):
            line = lines[index].strip()
            if line.startswith(mark) and not line.strip(mark[0]):
                return index
        return None

    def suspicious(self, word: str, line: int) -> None:
        """A fence whose word is nearly one of ours is a slip."""
        if word in ("checks", "Check", "CHECK", "Run", "Show", "chek", "step", *KINDS):
            self.wrong(
                "L07", line, f"unknown block '{word}'", "blocks are check KIND, run and show"
            )

    def steps(self, pieces: list[Piece]) -> tuple[tuple[Step, ...], tuple[Block, ...]]:
        steps: list[Step] = []
        lead: list[Block] = []
        seen: dict[str, int] = {}
        for piece in pieces:
            if piece.kind != "check":
                lead.append(Block(piece.kind, piece.text, piece.line))
                continue
            step = self.step(piece, tuple(lead))
            lead = []
            if step is not None:
                if step.id in seen:
                    self.wrong(
                        "L09",
                        step.at("id"),
                        f"a second step '{step.id}'",
                        f"the first is on line {seen[step.id]}",
                    )
                seen.setdefault(step.id, step.line)
                steps.append(step)
        if not any(piece.kind == "check" for piece in pieces) and not self.problems:
            self.wrong("L11", 1, "the lesson has no steps", "a step is a ```check KIND block")
        if len(steps) > MOST_STEPS:
            self.wrong(
                "L11",
                steps[MOST_STEPS].line,
                f"{len(steps)} steps is too many",
                f"at most {MOST_STEPS}",
            )
        return tuple(steps), tuple(lead)

    def step(self, piece: Piece, lead: tuple[Block, ...]) -> Step | None:
        kind = piece.argument
        if kind not in KINDS:
            hint = did_you_mean(kind, KINDS) or f"the kinds are {', '.join(KINDS)}"
            self.wrong("L07", piece.line, f"unknown kind of step '{kind[:40]}'", hint)
            return None
        raw = self.toml(piece.text, piece.line + 1)
        if raw is None:
            return None
        places = key_lines(piece.text, piece.line + 1)
        made, values = KINDS[kind], dict[str, Any]()
        for key, value in raw.items():
            self.step_key(values, key, value, kind, places.get(key, piece.line))
        for key in made.missing(raw):
            if not (self.packed and keys(made)[key].secret):
                self.wrong("L05", piece.line, f"'{key}' is missing from this {kind} step")
        if not _STEP_ID.match(values.get("id", "x")):
            what = f"id: expected letters, digits and -, got '{values['id'][:40]}'"
            self.wrong("L09", places.get("id", piece.line), what)
        values.setdefault("id", f"line-{piece.line}")
        return made(line=piece.line, lead=lead, lines=places, **made.completed(values, raw))

    @property
    def packed(self) -> bool:
        """Is the file a lesson without its answers?"""
        return re.search(r"(?m)^packed\s*=", self.text.split("\n+++", 1)[0]) is not None

    def step_key(self, values: dict[str, Any], key: str, raw: Any, kind: str, line: int) -> None:
        known = keys(KINDS[kind])
        if key in known:
            self.value(values, key, raw, known[key].read, line)
            return
        others = sorted(name for name, other in KINDS.items() if key in keys(other))
        if others:
            what, hint = f"'{key}' has no meaning in a {kind} step", ", ".join(others)
            self.wrong("L04", line, what, f"it belongs to {hint}")
        else:
            what = f"unknown key '{key[:40]}' in a {kind} step"
            self.wrong("L04", line, what, did_you_mean(key, known))


_EXAMPLES = {
    "format": f"format = {FORMAT}",
    "id": 'id = "vm/first-touch"',
    "title": 'title = "Two processes, one frame"',
}
_KEY = re.compile(r"""^\s*(?:"([^"]+)"|'([^']+)'|([\w-]+))\s*(?:=|\.)|^\s*\[+\s*([\w-]+)""")


def key_lines(text: str, first: int) -> dict[str, int]:
    """The line on which each key of a TOML text is first written; keys inside longer values may be
    among them, later."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), first):
        match = _KEY.match(line)
        if match:
            found.setdefault(match[1] or match[2] or match[3] or match[4], number)
    return found
