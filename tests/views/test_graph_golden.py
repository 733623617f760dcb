"""Each situation is drawn as its file under pictures/ says: text and DOT, no engine's output."""

import pytest

from tests.views.pictures import FOLDER, NAMES, drawn


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_of(name):
    assert drawn(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_the_situations_that_everybody_asks_about_are_there():
    asked = {
        "a_fresh_process",
        "after_fork",
        "after_one_copy",
        "three_sharers",
        "a_shared_file",
        "a_thread",
        "a_huge_page",
    }
    assert asked | {"sv39", "five_levels", "a_toy"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_file_says_why_it_is_there_and_fits_80_columns(name):
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n")
    assert lines[0].startswith("# ")
    assert lines[0].endswith(".")
    text = True
    for line in lines[1:]:
        text = line != "[dot]" if line in ("[dot]", "---") else text
        assert not text or len(line) <= 80, line
