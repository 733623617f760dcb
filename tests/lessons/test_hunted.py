"""Lessons and lines that nobody would write: each ends in a problem with a line, or in a complaint,
never in a traceback."""

import random
from pathlib import Path

import pytest

from kemu.lessons.format.lesson import LessonError
from kemu.lessons.format.parse import parse
from kemu.lessons.format.translate import skeleton
from kemu.lessons.making.lint import lint
from tests.lessons.hands import LESSONS, Student, lesson_named

TEXT = (LESSONS / "nine-kinds.md").read_text()
BITS = [
    '"', "{", "}", "```", "+++", "[", "]", "=", "\\", '"""',
    "'", "true", "{n", "check", "-1", "1.5", "1979-05-27", "nan", "[[a]]", "a.b={}", "=[]",
]  # fmt: skip
BITS += ["\n", "\0", "\N{CJK UNIFIED IDEOGRAPH-4F60}", "9" * 20]


def mutated(text, chance):
    """The text with a few places changed."""
    for _ in range(chance.randint(1, 6)):
        at, kind = chance.randrange(len(text)), chance.random()
        if kind < 0.5:
            text = text[:at] + chance.choice(BITS) + text[at:]
        elif kind < 0.8:
            text = text[:at] + text[at + chance.randint(1, 30) :]
        else:
            other = chance.randrange(len(text))
            text = text[:at] + text[other : other + chance.randint(1, 60)] + text[at:]
    return text


def problems_of(text):
    """What is wrong with the text, if it cannot be read; a lesson that can be read can be looked at
    as well."""
    try:
        lesson = parse(text, Path("x.md"))
    except LessonError as error:
        return error.problems
    lint(lesson)
    skeleton(lesson, "zh-CN")
    return []


@pytest.mark.parametrize("seed", range(4))
def test_a_mangled_lesson_is_read_or_refused_with_lines(seed):
    chance = random.Random(seed)
    read = 0
    for _ in range(60):
        text = mutated(TEXT, chance)
        problems = problems_of(text)
        assert all(
            0 < problem.line <= text.count("\n") + 1 and "\n" not in problem.text
            for problem in problems
        )
        read += not problems
    assert read


LINES = """
answer | answer 1 | answer a | answer a b c | check | hint | skip | reset | play | return | task | previous | lesson next
lesson step 3 | lesson step x | lesson steps | leave | sure | guess | problem | problem it's; odd | spawn x | goto 0 | goto end
write child 0x10000 1 | back | undo | lesson | lesson dance | answer event #5 | answer '" | lesson answer ' | mutant remove
fork app as kid | on 1 check | on 1 fork app | alias t task | t | exit app 0 | ; ; | # nothing | lesson start nowhere | switch 1
kill init KILL | answer 99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999
""".replace("\n", "|").split("|")


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_words_and_commands_ends_in_words(seed):
    chance = random.Random(seed)
    ada = Student(lesson_named("nine-kinds"), name=f"student {seed}")
    for _ in range(60):
        ada.types(chance.choice(LINES).strip())
        if ada.session.desk.guide is None:
            ada = Student(lesson_named("nine-kinds"), name=f"student {seed}", records=ada.records)
    assert ada.guide.stay.diary.done().keys() == {step.id for step in ada.guide.stay.lesson.steps}
