"""An expression that waits may name what does not exist yet, and nothing that never will."""

import pytest

from kemu import Session
from kemu.errors import UsageError


@pytest.fixture
def kemu():
    made = Session()
    made.run("spawn app; mmap app 0x10000 2p rw; write app 0x10000 1")
    return made


@pytest.mark.parametrize(
    "line",
    [
        "watch {}",
        "break do_wp_page if {} == 1",
        "tbreak pte if {} > 3",
        "display {}",
        "back until {} == 1",
    ],
)
@pytest.mark.parametrize(
    ("expression", "what", "hint"),
    [
        ("refcont(3)", "no function 'refcont'", "did you mean 'refcount'?"),
        ("pfn(app)", "pfn got 1 arguments", "it is pfn(TASK, ADDR)"),
    ],
)
def test_a_function_that_does_not_exist_is_refused_with_its_place(
    kemu, line, expression, what, hint
):
    text = line.format(expression)
    with pytest.raises(UsageError, match="expression") as caught:
        kemu.run(text)
    assert what in caught.value.what
    assert caught.value.hint == hint
    assert not kemu.run("info breakpoints")[0].reading.lines[0].startswith("1")


def test_a_name_that_may_still_come_is_noted(kemu):
    said = kemu.run("watch kid.rss")[0].reading.lines
    assert said == ("watch 1: kid.rss", "note: nothing is called 'kid' yet")
    kemu.run("mark there; watch there + 1 == 2")
    assert (
        kemu.run("watch ap.rss")[0].reading.lines[1]
        == "note: nothing is called 'ap' yet (did you mean 'app'?)"
    )


@pytest.mark.parametrize("line", ["alias 1 ps", 'alias p "ps; free"', 'alias p ""'])
def test_an_alias_is_a_word_for_one_command(kemu, line):
    with pytest.raises(UsageError, match="alias"):
        kemu.run(line)
    assert kemu.run('alias f "free"')[0].reading.lines == ("f = free",)
    assert kemu.run("alias")[0].reading.lines == ("f = free",)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("until 1/0", "division by zero"),
        ("until 1 << 500", "a shift by"),
        ("until nosuch.rss == 1", "nothing is called 'nosuch.rss'"),
        ("until refcount(pfn(app, 0x900000)) == 1", "none is not a frame"),
        ("until refcount(99999999) == 1", "does not exist"),
        ("goto end; back until 1/0", "division by zero"),
        ("watch 1/0", "division by zero"),
        ("break vma if 1/0", "division by zero"),
        ("display 1/0", "division by zero"),
    ],
)
def test_a_condition_that_has_no_value_anywhere_says_why(line, what):
    session = Session()
    session.run("spawn app; goto 5")
    with pytest.raises(UsageError, match=what.replace("(", r"\(")) as caught:
        session.run(line)
    assert caught.value.text
    assert (session.debugger.stops, session.debugger.displays) == ([], {})


def test_a_condition_that_is_false_everywhere_is_still_true_at_no_moment():
    session = Session()
    session.run("spawn app; goto 5")
    with pytest.raises(UsageError, match="never true"):
        session.run("until app.rss == 77")
    assert session.now == 5
