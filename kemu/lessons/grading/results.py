"""Grades for people and programs: text, JSON, CSV, JUnit, and Gradescope's results.json.  One
function a format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from kemu.lessons.grading.grade import FLAGS, Grade, StepGrade, as_data
from kemu.lessons.kinds.registry import KINDS

FORMATS = ("text", "json", "csv", "junit", "gradescope")
CSV_FIRST = ("student", "name", "lesson", "score", "max", "flags", "error", "file")
_NOT_XML = dict.fromkeys(
    (*range(9), 11, 12, *range(14, 32), 65534, 65535, *range(55296, 57344)), "?"
)


def as_text(grades: Sequence[Grade], _names: Mapping[str, str]) -> str:
    """One line per submission, with its flags and errors."""
    lines = []
    for one in grades:
        who = one.student or one.path
        state = one.error or ", ".join(one.flags)
        lines.append(f"{who:<20} {one.score:>6g}/{one.most:<4} {state}".rstrip())
    handed = [one for one in grades if not one.error]
    mean = sum(one.score for one in handed) / len(handed) if handed else 0.0
    lines.append(f"{len(handed)} graded, mean {mean:.1f}; {sum(bool(one.flags) for one in grades)} "
                 "with flags; "
                 f"{sum(bool(one.error) for one in grades)} without points")  # fmt: skip
    seen = sorted({flag for one in grades for flag in one.flags})
    return "\n".join([*lines, *(f"  {flag}: {FLAGS[flag]}" for flag in seen)]) + "\n"


def as_json(grades: Sequence[Grade], names: Mapping[str, str]) -> str:
    """All that is known, as one object."""
    data = {
        "v": 1,
        "kind": "kemu grades",
        "grades": [{**as_data(one), "name": names.get(one.student, "")} for one in grades],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def as_csv(grades: Sequence[Grade], names: Mapping[str, str]) -> str:
    """One row per submission; one column per step, after the first ones."""
    steps = list(dict.fromkeys(step.id for one in grades for step in one.steps))
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow([*CSV_FIRST, *steps])
    for one in grades:
        points = {step.id: f"{step.points:g}" for step in one.steps}
        row: list[object] = [
            one.student,
            names.get(one.student, ""),
            one.lesson,
            f"{one.score:g}",
            one.most,
        ]
        row += ["; ".join(one.flags), one.error, one.path]
        writer.writerow(
            [_harmless(cell) for cell in [*row, *(points.get(step, "") for step in steps)]]
        )
    return made.getvalue()


def _harmless(cell: object) -> str:
    """A cell that no spreadsheet takes for a formula."""
    text = str(cell)
    return (
        f"'{text}"
        if text[:1] in ("=", "+", "@", "\t", "\r") or (text[:1] == "-" and not text[1:2].isdigit())
        else text
    )


def as_junit(grades: Sequence[Grade], _names: Mapping[str, str]) -> str:
    """One test suite per submission, one test case per step."""
    suites = "".join(_suite(one) for one in grades)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{suites}</testsuites>\n'


def _suite(one: Grade) -> str:
    failed = sum(step.points < step.most for step in one.steps)
    errors = int(bool(one.error))
    counts = f'tests="{len(one.steps)}" failures="{failed}" errors="{errors}" skipped="0"'
    counts += f' time="{one.seconds:.3f}"'
    lines = [f"<testsuite name={_xml(one.student or one.path)} {counts}>"]
    if one.flags:
        flags = "".join(
            f"<property name={_xml(flag)} value={_xml(FLAGS[flag])}/>" for flag in one.flags
        )
        lines.append(f"<properties>{flags}</properties>")
    lines += [_case(one, step) for step in one.steps]
    if one.error:
        lines.append(
            f'<testcase classname={_xml(one.lesson)} name="submission"><error '
            f"message={_xml(one.error)}/></testcase>"
        )
    return "\n".join([*lines, "</testsuite>\n"])


def _case(one: Grade, step: StepGrade) -> str:
    head = f"<testcase classname={_xml(one.lesson)} name={_xml(step.id)}"
    if step.points >= step.most:
        return f"{head}/>"
    said = verdict(step)
    return f"{head}><failure message={_xml(said)}>{escape(_clean(said))}</failure></testcase>"


def _xml(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """The text without what XML cannot hold."""
    return text.translate(_NOT_XML)


def verdict(step: StepGrade) -> str:
    """The result of the step, in a few words."""
    if not KINDS[step.kind].graded:
        return step.said or step.state
    said = (
        f"said {step.said}, was {step.was}"
        if step.was
        else f"said {step.said}"
        if step.said
        else ""
    )
    hints = f"{step.hints} hints" if step.hints else ""
    return "; ".join(part for part in (step.state, said, hints) if part)


def as_gradescope(grades: Sequence[Grade], _names: Mapping[str, str]) -> str:
    """results.json of one submission."""
    one = next(iter(grades))
    tests: list[dict[str, Any]] = [
        {
            "name": step.id,
            "score": step.points,
            "max_score": step.most,
            "status": "passed" if step.points >= step.most else "failed",
            "output": verdict(step),
            "visibility": "visible",
        }
        for step in one.steps
    ]
    doubts = [f"{flag}: {FLAGS[flag]}" for flag in one.flags]
    output = one.error or "\n".join(doubts) or "graded by replaying your commands and answers"
    made = {
        "score": one.score,
        "execution_time": int(one.seconds + 0.999),
        "output": output,
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"student": one.student, "lesson": one.lesson, "flags": list(one.flags)},
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


WRITERS: dict[str, Callable[[Sequence[Grade], Mapping[str, str]], str]] = {
    "text": as_text,
    "json": as_json,
    "csv": as_csv,
    "junit": as_junit,
    "gradescope": as_gradescope,
}
