"""Errors quote the line that was typed, whatever it stands for, with the caret under the place in
it."""

from __future__ import annotations

import pytest

from kemu import Session
from kemu.front.terminal.complaint import render

ALIASES = (
    "alias look walk app; alias bad walk nobody; alias rr read app; alias pp print 1 +; alias m "
    "mmap app 3q rw; "
    "alias twice rr 0x10000"
)


@pytest.fixture
def kemu():
    session = Session()
    session.run(f"spawn app; mmap app 0x10000 1p rw; {ALIASES}")
    return session


def shown(session, text):
    """The line of the error, the line of the caret, and the advice."""
    from kemu.commands.run import run

    lines = render(run(session, text)[-1].error).split("\n")
    return lines[1].removeprefix("  "), lines[2].removeprefix("  "), lines[3]


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ("look 3q", "3q"),
        ("rr 0x10000 q", "q"),
        ("rr   0x10000     12   q", "q"),
        ("twice q", "q"),
        ("pp nothing + 2", "nothing"),
        ("ps; look 3q", "3q"),
        ("bad 0x1000", "bad"),
        ("m", "m"),
        ('race "write app 0x10000 q" "exit app"', "q"),
        ("on 1 mmap app 3q rw", "3q"),
        ("on 1 look 3q", "3q"),
        ("ps; on 1 bad 0x1000", "bad"),
        ("on 1 nothing", "nothing"),
        ("on 1 exit init 0", "init"),
        ("print/x 1 + nothing", "nothing"),
        ("p/q 3", "/q"),
    ],
)
def test_the_caret_is_under_what_was_typed(kemu, typed, wrong):
    line, caret, _ = shown(kemu, typed)
    assert line == typed
    start = typed.rindex(wrong)
    assert caret == " " * start + "^" * len(wrong)


@pytest.mark.parametrize("typed", ["look", "pp", "  pp  "])
def test_what_is_missing_is_missing_at_the_end(kemu, typed):
    line, caret, _ = shown(kemu, typed)
    assert (line, caret) == (typed.rstrip(), " " * len(typed.rstrip()) + "^")


def test_an_alias_says_what_it_stands_for(kemu):
    assert shown(kemu, "bad 0x1000")[2].endswith("(bad is an alias of: walk nobody)")
    assert shown(kemu, "look 3q")[2].endswith("(look is an alias of: walk app)")
    assert "stands for" not in shown(kemu, "walk app 3q")[2]


def test_a_result_that_failed_is_the_line_that_was_typed(kemu):
    from kemu.commands.run import run
    from kemu.front.terminal.output import to_json

    made = to_json(run(kemu, "ps; look 3q")[-1], "")
    assert made["cmd"] == "look 3q"
    assert made["cmd"][made["error"]["column"] :][: made["error"]["length"]] == "3q"
