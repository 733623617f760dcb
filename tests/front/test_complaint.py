"""An error shows what, where and what next, whatever the line holds."""

from __future__ import annotations

from kemu.front.terminal.complaint import WINDOW, render
from kemu.language.result import Complaint


def lines(
    what="length: expected bytes or pages, got '3q'",
    text="mmap app 3q rw anon",
    column=9,
    length=2,
    hint="write 3p",
):
    return render(Complaint(what, text, column, length, hint)).split("\n")


def test_the_caret_stands_under_the_place():
    assert lines() == [
        "error: length: expected bytes or pages, got '3q'",
        "  mmap app 3q rw anon",
        "           ^^",
        "  write 3p",
    ]


def test_the_place_in_a_file_comes_first():
    assert render(Complaint("no", "", 0, 1, ""), "run.kemu:3: ") == "error: run.kemu:3: no"


def test_a_long_line_is_shown_around_the_place():
    shown = lines(text="a" * 500 + "BAD" + "b" * 500, column=500, length=3)
    assert shown[1].startswith("  ...")
    assert shown[1].endswith("...")
    assert len(shown[1]) <= WINDOW + 8
    start = shown[2].index("^")
    assert shown[1][start : start + 3] == "BAD"


def test_tabs_and_control_characters_do_not_move_the_caret():
    shown = lines(text="read\tapp \x1b[2J3q", column=13, length=2)
    assert "\x1b" not in shown[1]
    assert shown[1][shown[2].index("^") :].startswith("3q")


def test_wide_characters_take_two_columns():
    shown = lines(text="read 中文 3q", column=8, length=2)
    assert shown[2] == " " * (2 + 5 + 4 + 1) + "^^"


def test_a_place_at_the_end_gets_a_caret_of_its_own():
    assert lines(text="mmap app", column=8, length=1)[2] == " " * 10 + "^"
