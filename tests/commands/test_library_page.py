"""kemu as a library: the page, `--py`, notebooks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.api import Session
from kemu.commands import table
from kemu.commands.run import run
from kemu.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_example_prints_what_the_page_says():
    text = PAGE.read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    expected = re.search(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == expected


@pytest.mark.parametrize("made", table.load_all(), ids=lambda made: made.name)
def test_every_command_says_how_a_program_says_it(made):
    parts = [part.strip() for part in made.examples[0].partition(" #")[0].split(";")]
    text = next(
        (part for part in parts if part.split()[0].partition("/")[0] in made.words), made.name
    )
    session = Session()
    (result,) = run(session, text + " --py")
    assert result.error is None
    first, second, call = result.reading.lines
    assert (first, second) == ("from kemu import Session", "kemu = Session()")
    assert ast.literal_eval(call.partition("(")[2][:-1]) == text
    assert session.end == 0


@pytest.mark.parametrize(
    "text",
    ["ps", "fork app", "write app 0x10000 'a\"b'", "walk app 0x10000", "print/x 3p", "goto 3"],
)
def test_what_it_says_does_the_same(text):
    setup = "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7"
    (said,) = run(Session(), text + " --py")
    one, other = Session(), Session()
    one.run(setup)
    other.run(setup)
    (direct,) = one.run(text)
    got = eval(said.reading.lines[-1], {"kemu": other})  # noqa: S307 - the line is kemu's own, and what it does is the question
    assert (
        got if said.reading.lines[-1].startswith("kemu.reading") else got[0].reading
    ) == direct.reading
    assert one.state_hash() == other.state_hash()


def test_a_reading_shows_itself_in_a_notebook():
    kemu = Session()
    kemu.run("spawn app; mmap app 0x10000 1p rw; write app 0x10000 7")
    shown = kemu.reading("walk app 0x10000")._repr_mimebundle_()
    assert shown["text/plain"] == kemu.text("walk app 0x10000")
    assert shown["application/json"]["steps"][0]["level"] == "pgd"
    assert set(kemu.reading("ps")._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert "text/plain" not in kemu.reading("ps")._repr_mimebundle_(exclude=["text/plain"])


def test_every_reading_of_an_example_can_be_shown_in_a_notebook():
    kemu = Session()
    for text in ("spawn app", "ps", "print app.pid", "help", "calls", "mem", "show"):
        bundle = kemu.reading(text)._repr_mimebundle_()
        assert bundle["text/plain"]
        assert isinstance(bundle["application/json"], dict)


def test_memory_may_be_given_as_the_shell_writes_it():
    assert Session(mem="16M").run("ps")
    assert Session(mem="16M").state_hash() == Session(mem=16 << 20).state_hash()


@pytest.mark.parametrize(
    "words",
    [
        {"mem": "much"},
        {"mem": "1K"},
        {"mem": 1.5},
        {"mem": None},
        {"cpus": 0},
        {"cpus": "two"},
        {"geometry": 4},
        {"geometry": "vax"},
    ],
    ids=str,
)
def test_a_machine_that_cannot_be_is_an_error_of_the_user(words):
    with pytest.raises(UsageError):
        Session(**words)


@pytest.mark.parametrize("wrong", [5, None, b"ps", ["ps"]])
@pytest.mark.parametrize("method", ["run", "reading", "text", "value"])
def test_what_is_no_text_is_an_error_of_the_user(method, wrong):
    session = Session()
    with pytest.raises(UsageError, match="expected a text"):
        getattr(session, method)(wrong)
    assert session.run("spawn app")


@pytest.mark.parametrize("wrong", ["x", None, 1.0, True])
def test_a_moment_that_is_no_number_is_an_error_of_the_user(wrong):
    with pytest.raises(UsageError, match="expected a whole number"):
        Session().goto(wrong)
