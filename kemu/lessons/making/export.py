"""A lesson as one static page: to print, to read before class, for those who have no kemu.

Commands are shown with what they print; hints, solutions and reasons are folded into <details>.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kemu.language.result import Result
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.kinds.base import Visit, open_visit
from kemu.lessons.taking import driver, feedback
from kemu.lessons.taking.messages import say
from kemu.lessons.taking.world import World
from kemu.readings import Reading
from kemu.readings.lessons import LessonText
from kemu.views.lessons import joined
from kemu.views.page import document, esc
from kemu.views.procfs import render as render_proc
from kemu.views.style import style_for
from kemu.views.terminal import render

STYLE = """
body { max-width: 46rem; margin: 0 auto; padding: 1rem; line-height: 1.5; }
main > pre, section pre { overflow-x: auto; padding: .5rem; border: 1px solid; font-size: .8rem; }
section { border-top: 2px solid; margin-top: 2rem; }
details { margin: .5rem 0; }
.typed { font-weight: bold; }
.points { font-weight: normal; }
"""
WORDS = {
    "en": {
        "hint": "Hint {number}",
        "solution": "Solution",
        "point": "1 point",
        "points": "{points} points",
    },
    "zh-CN": {
        "hint": "提示 {number}",
        "solution": "答案",
        "point": "1 分",
        "points": "{points} 分",
    },
}
_CODE = re.compile(r"`([^`\n]+)`")
_ITALIC = re.compile(r"(?<![A-Za-z0-9_*])\*([^\s*][^*\n]*)\*(?![A-Za-z0-9_*])")
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")
_LINK = re.compile(r"\[([^\]\n]+)\]\(((?:https?://|#|\./|[\w./-]+\.md)[^)\s]*)\)")
_ITEM = re.compile(r"^\s*(?:[-*+]|(\d{1,3})[.)])\s+(.*)$")


def page(lesson: Lesson, student: str = "", salt: str = "") -> str:
    """The page, with the numbers of that student.  Raises WorldError."""
    world = World(lesson, seed_for(salt, lesson.id, student))
    parts = [
        f"<h1>{esc(lesson.title)}</h1>",
        *([f"<p>{inline(lesson.goal)}</p>"] if lesson.goal else []),
    ]
    for index in range(len(lesson.steps)):
        parts += _step(open_visit(world, index), index + 1)
    session = world.after_all()
    parts += [
        "<section>",
        *_results(feedback.shown(world.lead(session, lesson.epilogue, world.values))),
        "</section>",
    ]
    return document(
        lesson.title, "<main>\n" + "\n".join(parts) + "\n</main>", style=STYLE, lang=lesson.language
    )


def _words(language: str) -> dict[str, str]:
    return WORDS.get(language, WORDS["en"])


def _step(visit: Visit, number: int) -> Iterator[str]:
    step, lesson = visit.step, visit.world.lesson
    words = _words(lesson.language)
    yield from _results(feedback.shown(visit.lead, step.id))
    count = words["point" if step.points == 1 else "points"].format(points=step.points)
    worth = f' <span class="points">({esc(count)})</span>' if step.points else ""
    title = step.title or step.id
    yield f'<section id="{esc(step.id)}">'
    of = len(lesson.steps)
    heading = say(lesson.language, "step", number=number, count=of, title=title)
    yield f"<h2>{esc(heading)}{worth}</h2>"
    yield html(visit.text("ask", step.ask))
    options = step.options_of(visit)
    if options:
        yield (
            '<ol type="a">' + "".join(f"<li>{inline(option)}</li>" for option in options) + "</ol>"
        )
    for at, hint in enumerate(step.hints, 1):
        summary = words["hint"].format(number=at)
        text = html(visit.text("hints", hint))
        yield f"<details><summary>{esc(summary)}</summary>{text}</details>"
    if not lesson.packed and step.solvable:
        yield f"<details><summary>{esc(words['solution'])}</summary>"
        yield from _solution(visit)
        yield "</details>"
    yield "</section>"


def _solution(visit: Visit) -> Iterator[str]:
    step = visit.step
    yield from _results(feedback.shown(visit.reveal(), step.id))
    for line in step.solve(visit):
        if driver.is_answer(line):
            yield f'<p class="typed"><code>{esc(line)}</code></p>'
            continue
        done = visit.world.perform(visit.session, (line,), visit.values, step.line, "solution")
        yield from _results(feedback.shown(done, step.id))
    if visit.state == "open":
        yield from _results(feedback.shown(visit.pictures(), step.id))
    if step.explain:
        yield html(visit.text("explain", step.explain))


def _results(results: list[Result]) -> Iterator[str]:
    """Commands as they were typed with what they printed; prose as prose."""
    style = style_for("utf-8")
    lines: list[str] = []
    for result in results:
        reading = result.reading
        if isinstance(reading, LessonText) and reading.role != "typed":
            yield from _printed(lines)
            lines = []
            yield html(reading.text)
        elif isinstance(reading, LessonText):
            lines.append(f'<span class="typed">kemu&gt; {esc(reading.text)}</span>')
        elif isinstance(reading, Reading):
            lines.append(
                esc(render_proc(reading) if result.form == "proc" else render(reading, style))
            )
    yield from _printed(lines)


def _printed(lines: list[str]) -> Iterator[str]:
    """Commands and what they printed, in one box."""
    if lines:
        yield "<pre>" + "\n".join(line for line in lines if line) + "</pre>"


# ----------------------------------------------------------------------------------------- Markdown


def html(text: str) -> str:
    """Markdown as HTML: headings, paragraphs, lists, tables, fences; anything else is text."""
    return "\n".join(_blocks(text.strip("\n").split("\n")))


def _blocks(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith(("```", "~~~")):
            mark = line.strip()[:3]
            end = next(
                (
                    index
                    for index in range(at + 1, len(lines))
                    if lines[index].strip().startswith(mark)
                ),
                len(lines),
            )
            yield f"<pre>{esc(chr(10).join(lines[at + 1 : end]))}</pre>"
            at = end + 1
            continue
        if not line.strip():
            at += 1
            continue
        kind = _kind(line)
        end = at + 1
        while end < len(lines) and lines[end].strip() and _goes_on(kind, lines[end]):
            end += 1
        yield BLOCKS[kind](lines[at:end])
        at = end


def _kind(line: str) -> str:
    if line.startswith("#"):
        return "heading"
    if line.startswith("|"):
        return "table"
    return "list" if _ITEM.match(line) else "paragraph"


def _goes_on(kind: str, line: str) -> bool:
    """Does the line belong to the block of that kind?"""
    other = _kind(line)
    if kind == "list":
        return other in ("list", "paragraph") and not line.lstrip().startswith(("```", "~~~"))
    return kind == other and kind != "heading" and not line.lstrip().startswith(("```", "~~~"))


def _heading(lines: list[str]) -> str:
    level = min(len(lines[0]) - len(lines[0].lstrip("#")) + 1, 6)
    return f"<h{level}>{inline(lines[0].lstrip('#').strip())}</h{level}>"


def _table(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    ruled = len(rows) > 1 and all(set(cell) <= set("-: ") for cell in rows[1])
    made = []
    for number, row in enumerate(rows):
        if ruled and number == 1:
            continue
        tag = "th" if ruled and number == 0 else "td"
        made.append("<tr>" + "".join(f"<{tag}>{inline(cell)}</{tag}>" for cell in row) + "</tr>")
    return "<table>" + "".join(made) + "</table>"


def _list(lines: list[str]) -> str:
    items: list[str] = []
    numbered = False
    for line in lines:
        match = _ITEM.match(line)
        if match:
            numbered = numbered or match[1] is not None
            items.append(match[2])
        else:
            items[-1] += " " + line.strip()
    tag = "ol" if numbered else "ul"
    return f"<{tag}>" + "".join(f"<li>{inline(item)}</li>" for item in items) + f"</{tag}>"


def _paragraph(lines: list[str]) -> str:
    return f"<p>{inline(joined(lines))}</p>"


BLOCKS = {"heading": _heading, "table": _table, "list": _list, "paragraph": _paragraph}


def inline(text: str) -> str:
    """Bold, code and links of a line; code keeps its characters."""
    parts = _CODE.split(text)
    made = []
    for number, part in enumerate(parts):
        if number % 2:
            made.append(f"<code>{esc(part)}</code>")
        else:
            marked = _ITALIC.sub(r"<em>\1</em>", _BOLD.sub(r"<strong>\1</strong>", esc(part)))
            made.append(_LINK.sub(_link, marked))
    return "".join(made)


def _link(found: re.Match[str]) -> str:
    return f'<a href="{found[2]}">{found[1]}</a>'
