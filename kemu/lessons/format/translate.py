"""A lesson in another language: NN-slug.LANG.md holds only texts, each with a hash of the text that
it translates.

    +++
    translates = "vm/first-touch"
    language = "zh-CN"
    [title]
    source = "3f9a01b2"                 the first 8 digits of the SHA-256 of the English text
    text = "..."
    +++
    ```text reads.ask 91c2d4e0          KEY and hash; the block holds the text, as it is
    ...
    ```

Keys: `title`, `goal`, `prose.1` ... (prose blocks in order, `prose.STEP.1` those before a step,
`prose.end.1` the epilogue), `STEP.ask`, `STEP.hints.1`, `STEP.explain`, `STEP.why`, `STEP.title`,
`STEP.wrong.KEY`, `STEP.options.1.text`, `STEP.options.1.why`, `STEP.items.1`, `STEP.must.1`,
`STEP.never.1`, `STEP.goals.1`, `STEP.words.1`.

What is missing or stale is said in English, and `lesson check` lists it.  A translation holds no
command, no expression of its own right, and nothing that is judged.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import attrs

from kemu.errors import UsageError
from kemu.lessons.format.course import TRANSLATION
from kemu.lessons.format.lesson import Block, Lesson, LessonError, Problem
from kemu.lessons.format.parse import read_text
from kemu.lessons.format.schema import retold
from kemu.lessons.format.texts import expressions_of

HASH_DIGITS = 8
_BLOCK = re.compile(r"^(`{3,})text\s+(\S.*?)\s+([0-9a-f]{8})\s*$")
_SAID = re.compile(r"'[^']*'|\"[^\"]*\"")
"""A text in quotes in an expression."""
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,4})?\Z")


class Text(NamedTuple):
    """A translated text: the hash of its source, and its line."""

    source: str
    text: str
    line: int


def hash_of_text(text: str) -> str:
    """Eight digits for a text; blanks at line ends and around do not count."""
    plain = "\n".join(line.rstrip() for line in text.strip().split("\n"))
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


# ----------------------------------------------------------------------- what there is to translate


def sources(lesson: Lesson) -> dict[str, str]:
    """Every text of the lesson that people read, by key."""
    found: dict[str, str] = {}
    visited(lesson, found.setdefault)
    return {key: text for key, text in found.items() if text.strip()}


def visited(lesson: Lesson, seen: Callable[[str, str], str]) -> Lesson:
    """The lesson with each text replaced by what `seen(key, text)` gives."""

    def blocks(found: tuple[Block, ...], key: str) -> tuple[Block, ...]:
        made, number = [], 0
        for block in found:
            number += block.kind == "prose"
            text = seen(f"{key}.{number}", block.text) if block.kind == "prose" else block.text
            made.append(attrs.evolve(block, text=text))
        return tuple(made)

    title, goal = seen("title", lesson.title), seen("goal", lesson.goal)
    steps = []
    for step in lesson.steps:
        lead = blocks(step.lead, f"prose.{step.id}")
        steps.append(retold(attrs.evolve(step, lead=lead), f"{step.id}.", seen))
    epilogue = blocks(lesson.epilogue, "prose.end")
    return attrs.evolve(lesson, title=title, goal=goal, steps=tuple(steps), epilogue=epilogue)


# ------------------------------------------------------------------------------- what is translated


def translation_path(lesson: Lesson, language: str) -> Path:
    """Where the translation of the lesson is."""
    return lesson.path.with_name(f"{lesson.path.stem}.{language}.md")


def translations(lesson: Lesson) -> list[tuple[str, Path]]:
    """The languages that there are, each with its file."""
    found = []
    for path in sorted(lesson.path.parent.glob(f"{lesson.path.stem}.*.md")):
        match = TRANSLATION.search(path.name)
        if match and path.name == f"{lesson.path.stem}.{match[1]}.md":
            found.append((match[1], path))
    return found


def read_translation(path: Path) -> tuple[dict[str, Text], list[Problem]]:
    """The texts of the file by key, and what cannot be read of it."""
    text = read_text(path)
    lines = text.split("\n")
    found: dict[str, Text] = {}
    problems: list[Problem] = []
    end = next((at for at in range(1, len(lines)) if lines[at].strip() == "+++"), 0)
    if lines[0].strip() != "+++" or not end:
        return {}, [Problem("T02", str(path), 1, "the front matter is missing or never ends")]
    try:
        front = tomllib.loads("\n".join(lines[1:end]))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return {}, [Problem("T02", str(path), 1, f"TOML: {error}")]
    for key in ("title", "goal"):
        entry = front.get(key)
        if isinstance(entry, dict) and isinstance(entry.get("text"), str):
            line = next(
                (at for at, content in enumerate(lines, 1) if content.strip() == f"[{key}]"), 1
            )
            found[key] = Text(str(entry.get("source", "")), entry["text"], line)
    _read_blocks(path, lines, end + 1, found, problems)
    return found, problems


def _read_blocks(
    path: Path, lines: list[str], first: int, found: dict[str, Text], problems: list[Problem]
) -> None:
    at = first
    while at < len(lines):
        match = _BLOCK.match(lines[at])
        if match is None:
            if lines[at].startswith("```"):
                what = f"not a block of a translation: {lines[at][:60]}"
                problems.append(Problem("T02", str(path), at + 1, what, "```text KEY HASH"))
            at += 1
            continue
        end = next(
            (index for index in range(at + 1, len(lines)) if lines[index].strip() == match[1]),
            len(lines),
        )
        if end == len(lines):
            problems.append(
                Problem("T02", str(path), at + 1, f"the block '{match[2]}' is never closed")
            )
        found[match[2]] = Text(match[3], "\n".join(lines[at + 1 : end]), at + 1)
        at = end + 1


def in_language(lesson: Lesson, language: str = "") -> Lesson:
    """The lesson in the language (asked for, else that of the locale), where it is translated and
    fresh.  Raises UsageError for a language that is asked for and not there, LessonError for
    one that cannot be read."""
    wanted = language or locale_language()
    if language and not LANGUAGE.match(language):
        what = f"unknown language '{language[:20]}'"
        raise UsageError(what, hint="for example zh-CN", about="words")
    path = translation_path(lesson, wanted)
    if not wanted or wanted == lesson.language or not path.is_file():
        if language and language != lesson.language:
            known = ", ".join([lesson.language, *(name for name, _ in translations(lesson))])
            raise UsageError(
                f"language: {lesson.id} is not available in {language}",
                hint=f"the languages are {known}",
            )
        return lesson
    try:
        texts, _ = read_translation(path)
    except LessonError:
        if language:
            raise
        return lesson  # nobody asked for the translation; `lesson check` says what is wrong

    def fresh(key: str, text: str) -> str:
        made = texts.get(key)
        return made.text if made is not None and made.source == hash_of_text(text) else text

    return attrs.evolve(visited(lesson, fresh), language=wanted)


def locale_language() -> str:
    """The language of the environment, of those that lessons may be in: `zh-CN` or nothing."""
    named = next(
        (
            os.environ[name]
            for name in ("KEMU_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
            if os.environ.get(name)
        ),
        "",
    )
    return named.split(".")[0].replace("_", "-") if named.startswith("zh") else ""


# ----------------------------------------------------------------------------------------- checking


def check_translations(lesson: Lesson) -> list[Problem]:
    """What is missing, stale or superfluous in the translations of the lesson."""
    found: list[Problem] = []
    for _, path in translations(lesson):
        try:
            texts, problems = read_translation(path)
        except LessonError as error:
            found += error.problems
            continue
        found += [*problems, *_compared(path, sources(lesson), texts)]
    return found


def _compared(path: Path, wanted: dict[str, str], texts: dict[str, Text]) -> Iterator[Problem]:
    for key, made in texts.items():
        if key not in wanted:
            yield Problem("T01", str(path), made.line, f"the lesson has no text '{key}'")
        elif made.source != hash_of_text(wanted[key]):
            hint = f"its hash is now {hash_of_text(wanted[key])}"
            yield Problem(
                "W02", str(path), made.line, f"'{key}' is older than the text it translates", hint
            )
        else:
            yield from _expressions(path, key, made, wanted[key])
    for key, text in wanted.items():
        if key not in texts:
            yield Problem(
                "W01",
                str(path),
                1,
                f"'{key}' is not translated",
                f"```text {key} {hash_of_text(text)}",
            )


def _expressions(path: Path, key: str, made: Text, source: str) -> Iterator[Problem]:
    """A translation may use the expressions of its source, and no others; the texts in quotes in
    them may be translated."""
    known = {_SAID.sub("''", found) for found in expressions_of(source, prose=True)}
    try:
        extra = {
            found
            for found in expressions_of(made.text, prose=True)
            if _SAID.sub("''", found) not in known
        }
    except UsageError as error:
        yield Problem("T02", str(path), made.line, f"'{key}': {error.what}", error.hint)
        return
    if extra:
        yield Problem(
            "T02",
            str(path),
            made.line,
            f"'{key}': the expression {{{min(extra)}}} is not in its source",
        )


def skeleton(lesson: Lesson, language: str) -> str:
    """A translation file with all texts still in English, to begin from; what there is already
    stays."""
    path = translation_path(lesson, language)
    texts = read_translation(path)[0] if path.is_file() else {}
    lines = ["+++", f'translates = "{lesson.id}"', f'language = "{language}"']
    blocks = []
    for key, source in sources(lesson).items():
        old = texts.get(key)
        text = old.text if old is not None else source.strip("\n")
        digits = old.source if old is not None else hash_of_text(source)
        if key in ("title", "goal"):
            lines += [f"[{key}]", f'source = "{digits}"', f"text = {_toml(text)}"]
        else:
            fence = "````" if "```" in text else "```"
            blocks += ["", f"{fence}text {key} {digits}", text, fence]
    return "\n".join([*lines, "+++", *blocks]) + "\n"


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
