"""What a student types is read in any base and any width; a slip of typing is no answer."""

import pytest

from kemu.commands.table import find
from kemu.errors import UsageError
from kemu.language.expr import TaskValue
from kemu.lessons.kinds.run import typed_word
from kemu.lessons.taking.answers import (
    letters,
    number_in,
    read_like,
    read_set,
    same,
    same_set,
    with_confidence,
)

WIDE = {ord(char): ord(char) + 0xFEE0 for char in "0123456789abcdefx,;() "}
WIDE[ord(" ")] = 0x3000


def wide(text):
    """The text in full-width characters."""
    return text.translate(WIDE)


@pytest.mark.parametrize(
    "text",
    ["4096", "0x1000", "0X1000", "4_096", ("4 "
                                          "096"), "4,096", "0x10_00", "0x 1000", "1p", "4K", "0b1000000000000", "0x1000 (4096)",
     " 4096 ", "4'096", "4000 + 96", "2*2048", "+4096"],
)  # fmt: skip
def test_one_number_is_read_in_all_its_spellings(text):
    assert number_in(text) == 4096
    assert number_in(wide(text)) == 4096


def test_a_negative_number_is_read():
    assert number_in("-3") == -3


SLIPS = [
    "7q",
    "",
    "ten",
    "pfn(app, 0)",
    "app.pid",
    "0x",
    "0x1000 (4097)",
    "1" * 4000,
    "(" * 500,
    "\0",
    "1 == 1",
]


@pytest.mark.parametrize("text", SLIPS)
def test_a_slip_of_typing_says_what_a_number_is(text):
    with pytest.raises(UsageError) as caught:
        number_in(text)
    assert "\n" not in caught.value.what


def test_an_answer_is_read_as_what_is_wanted():
    assert read_like("0x10", 3) == 16
    assert read_like("maperr", "MAPERR") == "maperr"
    assert read_like("none", 3) is None
    assert read_like("yes", wanted=True) is True
    assert read_like("\N{CJK UNIFIED IDEOGRAPH-5426}", wanted=True) is False
    assert read_like("maperr", "", ("MAPERR", "ACCERR")) == "MAPERR"
    with pytest.raises(UsageError, match="not one of the expected words"):
        read_like("mapper", "", ("MAPERR", "ACCERR"))


def test_words_and_tasks_are_compared_without_case():
    child = TaskValue(4, "child")
    assert same("MapErr", "MAPERR")
    assert same("Child", child)
    assert same("@4", child)
    assert same(4, child)
    assert not same("parent", child)
    assert not same(None, 0)
    assert same(None, None)
    assert not same("7", "8")


@pytest.mark.parametrize(
    "text", ["17, 18", "18 17", "0x11,0x12", wide("17,18"), "17;18", "17\N{IDEOGRAPHIC COMMA}18"]
)
def test_a_set_is_separated_by_commas_or_spaces(text):
    assert same_set(read_set(text, (1, 2)), (17, 18))


def test_a_set_must_be_whole():
    assert not same_set((17,), (17, 18))
    assert not same_set((17, 18, 19), (17, 18))
    assert read_set("none", ()) == ()


def test_letters_may_stand_together_or_apart():
    assert letters("c a d", 4, several=True) == (2, 0, 3)
    assert letters("cad", 4, several=True) == (2, 0, 3)
    assert letters("C, A", 4, several=True) == (2, 0)
    assert letters("2", 4, several=False) == (1,)


@pytest.mark.parametrize("text", ["e", "a a", "", "ab c", "0", "99"])
def test_other_letters_are_a_slip(text):
    with pytest.raises(UsageError):
        letters(text, 4, several=True)


def test_one_letter_is_wanted_where_one_option_is_right():
    with pytest.raises(UsageError, match="one letter"):
        letters("a b", 4, several=False)


def test_a_word_behind_the_answer_says_how_sure_one_is():
    assert with_confidence("7 sure") == ("7", "sure")
    assert with_confidence("7 Guess") == ("7", "guess")
    assert with_confidence("7") == ("7", "")
    assert with_confidence("sure") == ("sure", "")


@pytest.mark.parametrize(
    ("command", "name", "word"),
    [("race", "kind", "--atomic/--non-atomic/--refcount"), ("race", "count", "--count"), ("race", "schedule", "schedule"),
     ("race", "what", "case or cmd"), ("mmap", "addr", "addr")],
)  # fmt: skip
def test_what_differs_from_a_wanted_command_is_called_as_it_is_typed(command, name, word):
    assert typed_word(find(command), name) == word
