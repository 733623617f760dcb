"""`set` and `show` of everything; what is shown after a change; how a number is written."""

from __future__ import annotations

import pytest

from kemu.api import Session
from kemu.commands.context import shown_after
from kemu.commands.settings import PREFERENCES, SETTINGS
from kemu.debugger.sections import SECTIONS, sections
from kemu.errors import UsageError
from kemu.language.formats import FORMATS
from kemu.readings import CallTree, Change, Text, ThreeLines


@pytest.fixture
def session():
    return Session()


def test_show_lists_every_setting(session):
    lines = session.text("show").split("\n")
    assert {line.split()[0] for line in lines} == set(SETTINGS)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", PREFERENCES)
def test_a_setting_of_the_shell_takes_its_words_and_no_others(session, name):
    for word in PREFERENCES[name].words:
        assert session.text(f"set {name} {word}; show {name}") == f"{name}: {word}\n{name}: {word}"
    with pytest.raises(UsageError) as caught:
        session.run(f"set {name} purple")
    assert caught.value.what.startswith(f"{name}: expected ")


def test_a_setting_of_the_shell_is_no_command_of_the_experiment(session):
    session.run("set paging off; set granularity command; set context short; set verify on")
    assert session.timeline.records == ()
    assert session.end == 0
    session.run("set lru_batch on")
    assert len(session.timeline.records) == 1


def test_a_setting_may_be_made_in_the_past(session):
    session.run("spawn app; back 3; set color never")
    assert session.past


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("set fail alloc", "fail: expected alloc or slab"),
        ("set fail paper 3", "fail: expected alloc or slab"),
        ("set aslr never", "value: expected a seed or off"),
        ("set lru_batch maybe", "lru_batch: expected on or off"),
        ("set nothing on", "expected a setting"),
        ("set color red blue", "set: unexpected 'blue'"),
        ("set context loud", "context: expected off"),
        ("context loud", "expected off, line, short, full"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(session, line, what):
    with pytest.raises(UsageError) as caught:
        session.run(line)
    assert what in caught.value.what


def test_an_object_can_be_refused_as_a_frame_can(session):
    assert session.text("set fail alloc 3; set fail slab 2").endswith("fail: alloc 3, slab 2")
    assert session.text("set fail off") == "fail: off"


# ---------------------------------------------------------------- what is shown after a change


def shown(session, line):
    (result,) = session.run(line)
    return list(shown_after(session, result.command, result.first, result.last))


def test_sections_are_chosen_by_name(session):
    session.run("spawn app; mmap app 0x10000 1p rw; display app.rss; context short")
    assert sections(session) == set(SECTIONS)
    assert [type(part) for part in shown(session, "write app 0x10000 7")] == [
        Change,
        ThreeLines,
        Text,
    ]
    session.run("context picture")
    assert [type(part) for part in shown(session, "mmap app 0x20000 1p rw")] == [ThreeLines]
    session.run("context full changes calls")
    assert [type(part) for part in shown(session, "write app 0x20000 7")] == [Change, CallTree]
    session.run("context off")
    assert shown(session, "mmap app 0x30000 1p rw") == []
    assert session.text("context all; show context") == "\n".join(
        2 * ["context: short: changes calls picture display"]
    )


def test_a_command_without_events_shows_nothing(session):
    session.run("spawn app; context full all")
    assert shown(session, "ps") == []


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("print 12288", "0x3000 (12288)"),
        ("print/x 12288", "0x3000"),
        ("p/d 0xffffffffffffffff", "-1"),
        ("p /u 0 - 1", "18446744073709551615"),
        ("p/o 8", "010"),
        ("p/t 5", "0b00000101"),
        ("p/b 0x1ff", "0b00000001_11111111"),
        ("p/z 4096", "0x0000000000001000"),
        ("p/c 65", "65 'A'"),
        ("p/c 10", "10 '\\x0a'"),
        ("p/p 3p + 5", "3p + 0x5"),
        ("p/x 'text'", "text"),
        ("p/x none", "none"),
        ("p/x true", "true"),
        ("p/x (3p + 1)", "0x3001"),
    ],
)
def test_a_number_is_written_as_the_letter_says(session, typed, written):
    assert session.text(typed) == f"$1 = {written}"


def test_display_keeps_its_format(session):
    session.run("spawn app; mmap app 0x10000 1p rw")
    assert session.text("display/x app.stack") == "1: app.stack = 0x7fffffffeff0"
    assert "1: app.stack = 0x7fffffffeff0" in session.text("back")


@pytest.mark.parametrize("typed", ["p/q 3", "p/ 3", "p/xx 3", "print /y 3"])
def test_an_unknown_format_is_pointed_at(session, typed):
    with pytest.raises(UsageError) as caught:
        session.run(typed)
    error = caught.value
    assert error.what.startswith("format: no '/")
    assert typed[error.column] == "/"
    assert all(f"/{letter}" in error.hint for letter in FORMATS)


def test_a_path_is_no_format(session):
    session.run("mkfile /bin/a 4096")
    with pytest.raises(UsageError, match="no command 'walk/x'"):
        session.run("walk/x app 0")
