"""All that a lesson says exists in Chinese, with the same values in it."""

import re
from string import Formatter

import pytest

from kemu.front.terminal.paging import MORE_OF_LESSON
from kemu.lessons.kinds.registry import KINDS
from kemu.lessons.making.export import WORDS as PAGE_WORDS
from kemu.lessons.taking.messages import MESSAGES
from kemu.lessons.taking.mistakes import MISTAKES, Mistake
from kemu.lessons.taking.shelf import Shelf
from kemu.readings.lessons import LessonList
from kemu.views.lessons import WORDS as LIST_WORDS
from kemu.views.style import Style
from kemu.views.terminal import render
from tests.lessons.hands import LESSONS, Student, lesson_of

OWN = {name: kind.messages for name, kind in KINDS.items()}
CHINESE = re.compile("[\N{CJK UNIFIED IDEOGRAPH-4E00}-\N{CJK UNIFIED IDEOGRAPH-9FFF}]")


def holes(text):
    return sorted({field for _, field, _, _ in Formatter().parse(text) if field})


def lacking(table):
    """The keys that differ between the languages, or whose texts have other values in them."""
    english, chinese = table["en"], table["zh-CN"]
    found = sorted(english.keys() ^ chinese.keys())
    for key in english.keys() & chinese.keys():
        ours = english[key] if isinstance(english[key], tuple) else (english[key],)
        theirs = chinese[key] if isinstance(chinese[key], tuple) else (chinese[key],)
        for one, other in zip(ours, theirs, strict=True):
            if holes(one) != holes(other) or bool(one) != bool(other):
                found.append(f"{key}: {one!r} and {other!r}")
    return found


@pytest.mark.parametrize(
    "table",
    [MESSAGES, MISTAKES, PAGE_WORDS, *OWN.values()],
    ids=["messages", "mistakes", "page", *OWN],
)
def test_each_sentence_has_its_chinese_one_with_the_same_values(table):
    assert table["en"]
    assert not lacking(table)


def test_what_is_lacking_is_found():
    assert lacking({"en": {"a": "x", "b": "{n}"}, "zh-CN": {"b": "{m}", "c": "y"}}) == [
        "a",
        "c",
        "b: '{n}' and '{m}'",
    ]


def test_pager_and_lists_have_chinese_words():
    assert MORE_OF_LESSON.keys() == LIST_WORDS.keys() == {"en", "zh-CN"}
    assert LIST_WORDS["en"].keys() == LIST_WORDS["zh-CN"].keys()
    text = render(LessonList((), "", (), "zh-CN"), Style(width=80))
    assert CHINESE.search(text)


@pytest.fixture
def chen():
    step = (
        '```check predict\nid = "p"\nconfidence = true\nsetup = ["spawn app"]\nlocked = ["mem"]\n'
        'reveal = "fork app as b"\nexpect = "tasks()"\n```\n'
        '```check state\nid = "s"\nmust = ["tasks() > 9"]\nhints = ["spawn"]\n```\n'
    )
    return Student(lesson_of(step, 'language = "zh-CN"\n'))


@pytest.mark.parametrize(
    "line",
    ["answer many", "lesson next", "previous", "return", "play", "mem", "fork app",
     "mutant reveal", "lesson step 9", "lesson step 2", "sure", "run /etc/passwd"],
)  # fmt: skip
def test_a_mistake_in_a_chinese_lesson_is_told_in_chinese(chen, line):
    error = chen.types(line)[-1].error
    assert CHINESE.search(error.what), error.what
    assert not error.hint or CHINESE.search(error.hint) or error.hint.startswith("lesson leave")


def test_a_chinese_word_says_how_sure_one_is(chen):
    assert CHINESE.search(chen.reads("answer 5"))
    chen.types("\N{CJK UNIFIED IDEOGRAPH-786E}\N{CJK UNIFIED IDEOGRAPH-5B9A}")
    assert (chen.visit.confidence, chen.visit.state) == ("sure", "passed")
    assert CHINESE.search(chen.reads("lesson next", "check"))


def test_a_mistake_keeps_its_place_when_it_is_translated():
    mistake = Mistake("no_step", step="9", count=2, about="words")
    mistake.text, mistake.column, mistake.length = "step 9", 5, 1
    chinese = mistake.translated("zh-CN")
    assert CHINESE.search(str(chinese))
    assert (chinese.about, chinese.text, chinese.column) == ("words", "step 9", 5)
    assert mistake.translated("fr").what == mistake.what


def test_the_list_is_in_the_language_of_the_locale(tmp_path, monkeypatch):
    monkeypatch.setenv("KEMU_LANG", "zh_CN.UTF-8")
    listing = Shelf(tmp_path).listing()
    assert listing.language == "zh-CN"
    assert CHINESE.search(listing.rows[0].title)
    assert CHINESE.search(render(listing, Style(width=80)).split("\n")[0])
    monkeypatch.setenv("KEMU_LANG", "C")
    assert Shelf(tmp_path, LESSONS).listing().language == "en"
