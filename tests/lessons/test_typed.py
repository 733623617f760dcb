"""An error in a lesson quotes what was typed, bare words as they were typed, with the caret under
what is wrong."""

import pytest

from kemu.commands.table import LESSON_WORDS
from kemu.front.terminal.complaint import render
from kemu.lessons.taking.guide import WORDS
from tests.lessons.hands import Student, lesson_of
from tests.lessons.test_life import at


def place(student, text):
    """The quoted line, and what of it stands over the caret."""
    error = student.types(text)[-1].error
    quoted, caret = (line[2:] for line in render(error).split("\n")[1:3])
    return quoted, quoted[len(caret) - len(caret.lstrip()) :][: caret.count("^")]


@pytest.mark.parametrize(
    ("kind", "typed", "wrong"),
    [
        ("choice", "answer foo", "foo"),
        ("choice", "  answer   foo bar", "foo"),
        ("choice", "lesson answer foo", "foo"),
        ("choice", "ps; answer foo", "foo"),
        ("predict", "answer seven pages", "seven pages"),
        ("predict", "sure", "sure"),
        ("predict", "return", "return"),
        ("predict", "lesson return", "return"),
        ("predict", "play", "play"),
        ("predict", "lesson step 99", "99"),
        ("predict", "7x8", "7x8"),
        ("state", "answer 7", "answer"),
        ("bug", "answer #x, blah #", "#x"),
    ],
)
def test_the_line_is_the_one_that_was_typed(kind, typed, wrong):
    assert place(at(kind), typed) == (typed, wrong)


def test_a_mistake_behind_an_answer_that_waits_keeps_its_place():
    step = (
        '```check predict\nid = "p"\nconfidence = true\nsetup = ["spawn app"]\n'
        'reveal = "fork app as b"\nexpect = "tasks()"\n```\n'
    )
    ada = Student(lesson_of(step))
    ada.types("answer 3")
    assert ada.guide.answers.asked_confidence
    assert place(ada, "lesson step 99") == ("lesson step 99", "99")


@pytest.mark.parametrize("word", sorted(LESSON_WORDS))
def test_help_explains_each_word_of_a_lesson(word):
    said = " ".join("\n".join(at("predict").types(f"help {word}")[-1].reading.lines).split())
    assert LESSON_WORDS[word] in said
    assert f"in a lesson, {'lesson ' if word in ('next', 'step') else ''}{word}: " in said


def test_the_words_that_help_explains_are_those_of_a_lesson():
    assert set(LESSON_WORDS) == set(WORDS)
    assert dict(at("predict").guide.words()).items() <= LESSON_WORDS.items()
