"""Lessons for the terminal: Markdown wrapped to the width, with wide characters counted as two
columns.

Markdown is kept where lines of text can show it: headings, **bold**, `code`, lists, tables and
fences. Colour is never the only signal: each role has a word or a mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from unicodedata import combining, east_asian_width

from kemu.readings.lessons import LessonList, LessonSteps, LessonText
from kemu.views.style import Style, plural, table

MARKS = {"right": "ok", "wrong": "--", "hint": "hint", "note": "->"}
"""The mark before the first line of a role."""
_PAINT = {"right": "name", "wrong": "error", "hint": "kernel", "title": "name"}
_INLINE = re.compile(
    r"(\x01[^\x02]*\x02|\*\*[^*\n]+\*\*|`[^`\n]+`|(?<![\w*])\*[^\s*][^*\n]*\*(?![\w*]))"
)
_ITEM = re.compile(r"^(\s*(?:[-*+]|\d{1,3}[.)])\s+)(.*)$")
_MARKED = re.compile(
    r"`[^`\n]+`|\*\*([^*\n]+)\*\*|(?<![A-Za-z0-9_*])\*([^\s*][^*\n]*)\*(?![A-Za-z0-9_*])"
)
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")


def lesson_text(reading: LessonText, style: Style) -> str:
    """One text, drawn according to its role."""
    if reading.role == "typed":
        return style.paint(f"kemu> {reading.text}", "name")
    if reading.role == "title":
        rule = style.glyphs.rule * min(columns(reading.text), style.width)
        return f"\n{style.paint(reading.text, 'name')}\n{rule}"
    if reading.role in ("options", "fact"):
        return "\n".join(
            line
            for text in reading.text.split("\n")
            for line in wrapped(text, style, "  ", "     ")
        )
    mark = MARKS.get(reading.role, "")
    if not mark:
        return "\n".join([*markdown(reading.text, style), ""])
    painted = style.paint(mark, _PAINT.get(reading.role, "name"))
    body = list(markdown(reading.text, style._replace(width=style.width - len(mark) - 1)))
    indent = " " * (len(mark) + 1)
    return "\n".join(
        [f"{painted} {body[0] if body else ''}", *((indent + line).rstrip() for line in body[1:])]
    )


def markdown(text: str, style: Style) -> Iterator[str]:
    """The lines of a Markdown text."""
    paragraph: list[str] = []
    fenced = False
    for line in text.strip("\n").split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            yield from _paragraph(paragraph, style)
            paragraph, fenced = [], not fenced
        elif fenced:
            yield f"    {line}".rstrip()
        elif not line.strip() or line.startswith(("#", "|", "    ", ">")):
            yield from _paragraph(paragraph, style)
            paragraph = []
            yield from _single(line, style)
        elif _ITEM.match(line):
            yield from _paragraph(paragraph, style)
            paragraph = [line]
        else:
            paragraph.append(line)
    yield from _paragraph(paragraph, style)


def _single(line: str, style: Style) -> Iterator[str]:
    if line.startswith("#"):
        yield style.paint(line.lstrip("#").strip(), "name")
    else:
        yield _inline(line, style) if line.startswith("|") else line.rstrip()


def _paragraph(lines: list[str], style: Style) -> Iterator[str]:
    if not lines:
        return
    item = _ITEM.match(lines[0])
    head = item[1] if item else ""
    text = joined([item[2] if item else lines[0], *lines[1:]])
    yield from wrapped(text, style, head, " " * len(head))


def joined(lines: list[str]) -> str:
    """The lines of a paragraph as one, joined by blanks except between two wide characters."""
    made = lines[0].strip()
    for line in lines[1:]:
        bare = line.strip()
        wide = made and bare and columns(made[-1]) == columns(bare[0]) == 2
        made += bare if wide else f" {bare}"
    return made


def wrapped(text: str, style: Style, first: str = "", following: str = "") -> list[str]:
    """The text in lines of the width, broken at blanks, and between wide characters."""
    lines, current, width = [], first, columns(first)
    room = (
        style.width if text.isascii() else style.width - 2
    )  # punctuation that may not begin a line hangs over the end
    for word in _words(_MARKED.sub(_emphasis, _LINK.sub(r"\1 (\2)", text))):
        size = columns(_bare(word))
        if width + size > room and current.strip() and word not in _CLOSING:
            lines.append(current.rstrip())
            current, width = following, columns(following)
            word = word.lstrip()  # noqa: PLW2901 - the blank stays at the end of the line before
            size = columns(_bare(word))
        current, width = current + word, width + size
    lines.append(current.rstrip())
    return [_inline(line, style) for line in _closed(lines)]


def _emphasis(found: re.Match[str]) -> str:
    """Emphasis between two marks of no width, so that it may span lines; inline code unchanged."""
    return found[0] if found[0].startswith("`") else f"\x01{found[1] or found[2]}\x02"


def _closed(lines: list[str]) -> Iterator[str]:
    """The lines, with emphasis that spans them closed at each line's end and opened again."""
    inside = False
    for line in lines:
        whole = f"\x01{line}" if inside else line
        inside = whole.rfind("\x01") > whole.rfind("\x02")
        yield f"{whole}\x02" if inside else whole


_CLOSING = frozenset(
    "\N{IDEOGRAPHIC FULL STOP}\N{FULLWIDTH COMMA}\N{IDEOGRAPHIC COMMA}\N{FULLWIDTH SEMICOLON}"
    "\N{FULLWIDTH COLON}"
    "\N{FULLWIDTH QUESTION MARK}\N{FULLWIDTH RIGHT PARENTHESIS}\N{RIGHT DOUBLE QUOTATION MARK}"
)


def _words(text: str) -> Iterator[str]:
    """Pieces between which a line may be broken; a space goes with the word after it, and inline
    code stays whole."""
    for piece in re.findall(
        r"\s*`[^`]+`[^\s\u2e80-\uffef]*|\s*[\u2e80-\uffef]|\s*[^\s\u2e80-\uffef]+", text
    ):
        yield re.sub(r"^\s+", " ", piece)


def _bare(word: str) -> str:
    """The word without the marks that are not shown."""
    return word.replace("\x01", "").replace("\x02", "")


def _inline(line: str, style: Style) -> str:
    """Bold and code of one line."""

    def shown(found: re.Match[str]) -> str:
        mark = found[0]
        if mark.startswith("`"):
            return style.paint(mark, "kernel")
        bold = mark.strip("*\x01\x02")
        return style.paint(bold, "name") if bold else ""

    return _INLINE.sub(shown, line)


def columns(text: str) -> int:
    """The width of the text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


WORDS: dict[str, dict[str, Any]] = {
    "en": {
        "none": "there are no lessons",
        "head": ("lesson", "title", "steps", "points"),
        "how": "lesson next goes on, lesson start NUMBER starts one; about {minutes} minutes left",
        "done": "{done} of {count} done",
        "states": {"failed": "wrong"},
    },
    "zh-CN": {
        "none": "没有课程",
        "head": ("课程", "标题", "步骤", "得分"),
        "how": "输入 lesson start 和编号开始一课；大约还需要 {minutes} 分钟",
        "done": "共 {count} 步，已完成 {done}",
        "states": {
            "open": "未完成",
            "passed": "通过",
            "failed": "错误",
            "shown": "看过答案",
            "recorded": "已记录",
        },
    },
}
"""The words of the lists, by language; a state without a translation is shown unchanged."""


BAR = 40
"""Columns of the bar that shows the progress in all lessons."""


def lesson_list(reading: LessonList, style: Style) -> str:
    """The lessons, one per line, with the progress in each."""
    words = WORDS.get(reading.language, WORDS["en"])
    if not reading.rows:
        return "\n".join([words["none"], *reading.problems])
    wide = max(len(row.id) for row in reading.rows)
    room = max(style.width - wide - 23, 12)
    lesson, title, steps, points = words["head"]
    left = " " * max(5 - columns(steps), 0)
    lines = [f" no  {cut(lesson, wide)}  {cut(title, room)}  {left}{steps}  {points}"]
    for row in reading.rows:
        reached = f"{row.done}/{row.steps}", f"{row.points}/{row.most}"
        line = (
            f"{row.number:>3}  {row.id.ljust(wide)}  {cut(row.title, room)}  {reached[0]:>5}  "
            f"{reached[1]:>6}"
        )
        here = row.id == reading.current
        lines.append(style.paint(f"*{line[1:]}", "name") if here else line)
    done, all_steps = (
        sum(getattr(row, name) for row in reading.rows) for name in ("done", "steps")
    )
    full = BAR * done // max(all_steps, 1)
    lines.append(f"[{'#' * full}{'.' * (BAR - full)}]  {done}/{all_steps}")
    minutes = sum(row.minutes * (row.steps - row.done) // max(row.steps, 1) for row in reading.rows)
    return "\n".join(
        [
            *lines,
            *reading.problems,
            words["how"].format(minutes=minutes),
        ]
    )


def cut(text: str, room: int) -> str:
    """The text cut or padded to that many columns."""
    if columns(text) <= room:
        return text + " " * (room - columns(text))
    while columns(text) > room - 2:
        text = text[:-1]
    return f"{text}..".ljust(room - columns(text) - 2 + len(text) + 2)


def lesson_steps(reading: LessonSteps, style: Style) -> str:
    """The steps of a lesson with their states."""
    words = WORDS.get(reading.language, WORDS["en"])
    states = [words["states"].get(row.state, row.state) for row in reading.rows]
    points = [f"{row.points}/{row.most}" for row in reading.rows]
    cells = zip(reading.rows, points, states, strict=True)
    rows = [
        (row.number, row.id, row.kind, reached, row.hints or "", state)
        for row, reached, state in cells
    ]
    lines = [style.paint(reading.title, "name"), *table("step <id <kind points hints <state", rows)]
    done = sum(row.state != "open" for row in reading.rows)
    counted = plural(done, "step") if words is WORDS["en"] else done
    return "\n".join([*lines, words["done"].format(done=counted, count=len(rows))])
