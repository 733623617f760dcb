"""Pictures of the story that every student meets first: a page, a fork, a copy."""

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.views.style import UNICODE, Style
from kemu.views.terminal import render

WIDE = Style(glyphs=UNICODE)
FRESH = (
    'spawn parent; mmap parent 0x10000 3p rw; write parent 0x10000 "x"; write parent 0x11000 "y"'
)
KINDS = (
    "walk parent 0x10004", "tables parent", ("sharing "
                                            "parent"), "mm parent", "rmap pfn(parent,0x10000)", "tree", "mem",
    "mem refcount", "layout parent", "plot rss, free",
)  # fmt: skip


@pytest.fixture
def kemu():
    session = Session()
    session.run(FRESH)
    return session


@pytest.mark.parametrize("words", KINDS)
def test_every_kind_fits_80_columns_in_both_sets_of_characters(kemu, words):
    picture = kemu.reading(f"graph {words}")
    for style in (WIDE, Style()):
        lines = render(picture, style).split("\n")
        assert max(map(len, lines)) <= 80
        assert len(lines) > 3
    assert "".join(lines).isascii()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("nothing", "kind: expected one of walk"),
        ("walk", "addr: missing"),
        ("walk parent", "addr: missing"),
        ("walk nobody 0x10000", "no task"),
        ("walk 0x8000 toy", "not an address of the toy"),
        ("tables @99", "no task"),
        ("tables kthreadd", "has no address space"),
        ("rmap parent 0x999000", "nothing is mapped"),
        ("sharing parent nobody", "no task"),
        ("rmap 0x999999", "does not exist"),
        ("rmap", "pfn: missing"),
        ("mem colours", "mem: unexpected"),
        ("plot", "plot: missing"),
        ("plot nobody.rss", "nothing is called"),
        ("plot 1 +", "expression"),
        ("plot 0 --diff 0 999999", "no #999999"),
        ("mem --diff 1", "diff: missing"),
        ("mem --diff 0 999999", "no #999999"),
        ("tables @99 --diff 0 end", "no task"),
    ],
)
def test_a_mistake_is_one_clear_line(kemu, words, says):
    with pytest.raises(UsageError) as caught:
        kemu.run(f"graph {words}")
    assert says in caught.value.what
    assert "\n" not in caught.value.what


def test_a_line_that_both_pictures_have_in_other_words_is_marked_as_different_in_both():
    session = Session()
    session.run(
        "spawn app; mmap app 0x10000 2p rw; write app 0x11000 7; fork app as kid; mark before; "
        "write kid 0x11000 8"
    )
    text = session.text("graph walk kid 0x11000 --diff before end")
    assert [line[0] for line in text.split("\n") if line[2:].startswith("now ")] == ["*", "*"]
