"""The transcripts of README and docs are what kemu prints today (see transcripts.py for how they
are written)."""

import sys

import pytest

from tests.structure.sources import ROOT
from tests.structure.transcripts import (
    BadTranscriptError,
    Command,
    agrees,
    output,
    parse,
    transcripts,
)


def test_the_readme_has_a_transcript():
    assert parse((ROOT / "README.md").read_text(encoding="utf-8"), "README.md")


def test_every_transcript_holds():
    """One test for all pages, so that a page with a broken block fails it instead of leaving it
    out."""
    wrong = []
    for transcript in transcripts():
        for command in transcript.commands:
            printed = output(command)
            if not agrees(command.expected, printed):
                place = f"{transcript.where} ({transcript.title}), line {command.line}"
                wrong.append("\n".join([f"{place}: {command.text}", *printed]))
    assert not wrong, "\nprinted was:\n" + "\n\n".join(wrong)


# ---------------------------------------------------------------- the checks can fail

ECHO = """
import sys
if sys.argv[1:] == ["run", "--keep-going", "-"]:
    for number, line in enumerate(sys.stdin):
        print(number, line.strip())
        print("warning", file=sys.stderr)
else:
    print(*sys.argv[1:], sep="|")
"""


@pytest.fixture
def program(tmp_path):
    """A stand-in for kemu: numbers the lines of a session, shows the arguments of a command
    line."""
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    return [sys.executable, str(script)]


def block(*lines, marker="<!-- transcript: t -->"):
    return "\n".join(["# Page", marker, "", "```console", *lines, "```", "after"])


def test_a_block_becomes_commands_with_their_output():
    (found,) = parse(
        block("$ kemu -c ps", "a", "", "$ kemu", "kemu> one", "1", "kemu> two"), "p.md"
    )
    assert (found.where, found.title) == ("p.md:2", "t")
    assert found.commands == [
        Command(5, "kemu -c ps", None, ["a", ""]),
        Command(9, "one", [], ["1"]),
        Command(11, "two", ["one"], []),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (block(), "the transcript is empty"),
        (block("output"), "output before any command"),
        (block("kemu> ps"), "a prompt without"),
        (block("$ kemu", "kemu> ps", "...", "..."), "claims nothing"),
        ("<!-- transcript: t -->\ntext\n```console\n$ kemu\n```", "no ```console block"),
        ("<!-- transcript: t -->", "no ```console block"),
        ("<!-- transcript: t -->\n```console\n$ kemu -c ps", "not closed"),
    ],
)
def test_a_badly_written_block_is_refused(text, complaint):
    with pytest.raises(BadTranscriptError, match=complaint):
        parse(text, "p.md")


def test_unmarked_blocks_are_no_transcripts():
    assert not parse(block("$ rm x", marker=""), "p.md")
    assert not parse(block("$ rm x", marker="Write `<!-- transcript: t -->` above it."), "p.md")


def test_a_command_line_is_run_with_its_arguments(program):
    assert output(Command(1, "kemu -c 'a b' run", None), program) == ["-c|a b|run"]
    with pytest.raises(BadTranscriptError, match="only kemu"):
        output(Command(1, "ls -l", None), program)


def test_a_command_at_the_prompt_prints_what_it_adds(program):
    assert output(Command(1, "first", []), program) == ["0 first", "warning"]
    assert output(Command(1, "third", ["first", "second"]), program) == ["2 third", "warning"]


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a  "], ["a"], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "...", "c"], ["a", "c"], True),
        (["a", "...", "c"], ["a", "b"], False),
        ([], ["a"], False),
        (["a.c"], ["abc"], False),
    ],
)
def test_lines_agree_exactly_but_for_dots(expected, printed, same):
    assert agrees(expected, printed) is same
