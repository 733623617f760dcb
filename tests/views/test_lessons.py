"""Texts of lessons at a terminal: Markdown in 80 columns, wide characters, marks that go over the
end of a line."""

import pytest

from kemu.readings import LessonList, LessonRow, LessonText
from kemu.views.lessons import columns, joined, markdown
from kemu.views.style import Style
from kemu.views.terminal import render

PLAIN = Style(width=40)
COLOUR = Style(width=40, colour=True)


def lines(text, style=PLAIN):
    return list(markdown(text, style))


def test_a_paragraph_is_wrapped_between_words():
    found = lines("one two three " * 12)
    assert all(len(line) <= 40 for line in found)
    assert " ".join(found).split() == ("one two three " * 12).split()


def test_marks_go_over_the_end_of_a_line():
    found = lines(
        "Both begin alike: **find the promise, and check the right**. Under it *the first* copies."
    )
    assert not any("*" in line or not line.isprintable() for line in found)
    painted = lines("Both begin alike: **find the promise, and check the right**.", COLOUR)
    assert all(line.count("\x1b[1m") == line.count("\x1b[0m") for line in painted)


def test_emphasis_needs_no_blank_beside_wide_characters():
    page = "\N{CJK UNIFIED IDEOGRAPH-9875}"
    assert lines(f"{page}*{page}*{page} **{page}**{page}") == [f"{page * 3} {page * 2}"]


def test_a_product_is_no_emphasis():
    assert lines("2 * n * m and a*b*c") == ["2 * n * m and a*b*c"]


def test_fences_headings_lists_and_tables_stay_what_they_are():
    text = "# Head\n\n- one\n- two\n\n| a | b |\n\n```\n  as   it is\n```"
    assert lines(text) == ["Head", "", "- one", "- two", "", "| a | b |", "", "      as   it is"]


def test_inline_code_is_not_broken():
    found = lines("type this now, please: `write child 0x10000 1` and look")
    assert any("`write child 0x10000 1`" in line for line in found)


WIDE = (
    "\N{CJK UNIFIED IDEOGRAPH-9875}" * 50
    + "\N{FULLWIDTH COMMA}"
    + "\N{CJK UNIFIED IDEOGRAPH-8868}" * 9
)


def test_wide_characters_take_two_columns_and_break_anywhere_but_before_punctuation():
    found = lines(WIDE)
    assert all(columns(line) <= 40 for line in found)
    assert not any(line.startswith("\N{FULLWIDTH COMMA}") for line in found)
    assert "".join(found) == WIDE


def test_lines_of_a_paragraph_are_joined_without_a_blank_between_wide_characters():
    page = "\N{CJK UNIFIED IDEOGRAPH-9875}"
    assert joined([page, page]) == page + page
    assert joined([page, "PTE"]) == f"{page} PTE"
    assert joined(["one", " two "]) == "one two"


@pytest.mark.parametrize(
    "role", ["title", "prose", "typed", "ask", "options", "hint", "right", "wrong", "fact", "note"]
)
@pytest.mark.parametrize(
    "text",
    ["", "#", "**", "`", "x" * 200, "a\n\nb", "\N{CJK UNIFIED IDEOGRAPH-9875}" * 99, "- ", "```"],
)
def test_any_text_can_be_drawn_in_any_role(role, text):
    drawn = render(LessonText(role, text), PLAIN)
    assert all(
        drawn.count(letter) >= text.count(letter) for letter in set(text) if letter.isalpha()
    )


def test_the_list_keeps_to_80_columns():
    title = "A title that is long " * 3
    rows = tuple(
        LessonRow(number, f"vm/{'x' * number}", title, 15, 10, number, 5, 20, "begun", ())
        for number in range(1, 16)
    )
    text = render(LessonList(rows, "vm/xxx", ()), Style(width=80))
    assert all(columns(line) <= 80 for line in text.split("\n"))
    assert "* 3" in text or "*  3" in text
