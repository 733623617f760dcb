"""The place of an error is the argument that it is about, for every command and argument.

In an example of each command one word after the other is replaced by wrong ones. An error that
quotes the wrong word, or tells its number, must point at it: what the text says is here only the
judge of the place, which is data.
"""

from __future__ import annotations

import re

import pytest

from kemu.commands import table
from kemu.commands.run import run
from kemu.errors import UsageError
from kemu.experiment.session import Session
from kemu.language.bind import bind
from kemu.language.lexer import Source, number
from kemu.language.tokens import split

WRONG = ("nobody", "@99", "3q", "99999999", "-7", "0xffffffffffffffff", "/no/such/folder/x")
LEFT_OUT = {
    "real": "asks the host's kernel",
    "lesson": "its words belong to the lesson, and have tests of their own (tests/lessons)",
}
LINES = {
    "load": "load ./missing as /x",
    "run": "run ./missing",
    "conform": "conform ./missing",
    "save": "save ./out",
    "restore": "restore ./missing",
    "transcript": "transcript ./out",
    "report": "report 0 1 -o ./out.html title T",
    "help": "help fork",
    "mutant": "mutant plant 3",
    "unalias": "unalias a",
    "delete": "delete 1",
}
"""Lines with more arguments than the examples have, or none that the host would notice."""


def is_about(error, word):
    """Does the message quote the word, or tell its number?"""
    if f"'{word}'" in error.what:
        return True
    told = re.search(r"\b(0x[0-9a-f]+|[1-9][0-9]*)\b", error.what)
    try:
        value = number(Source(word, 0, len(word)), 0, word)
    except UsageError:
        return False
    return told is not None and int(told[0], 0) == value


def own_lines(made):
    """The lines of its examples that use the command, with a session in which everything before
    them is done."""
    for example in (*made.examples, LINES.get(made.name, "ps")):
        session = Session(mem=16 << 20)
        for line in split(example.partition("#")[0]):
            if line.tokens[0].text in made.words:
                yield session, line
            run(session, line.source)


def errors_of(made, session, line, wrong):
    """(argument, line with one word of it replaced, column of that word, the error) of each."""
    try:
        words = bind(made, line, session).words
    except UsageError:
        return
    for name, tokens in words.items():
        for token in tokens:
            typed = line.text[line.tokens[0].column : token.column] + wrong
            column = len(typed) - len(wrong)
            typed += line.text[token.end : line.tokens[-1].end]
            now = session.now
            result = run(session, typed)[-1]
            session.goto(min(now, session.end))
            yield name, typed, column, result.error


@pytest.mark.parametrize("made", table.load_all(), ids=lambda made: made.name)
def test_an_error_points_at_the_word_that_is_wrong(made, tmp_path, monkeypatch):
    if made.name in LEFT_OUT:
        pytest.skip(LEFT_OUT[made.name])
    monkeypatch.chdir(tmp_path)
    placed, seen = set(), set()
    for session, line in own_lines(made):
        for wrong in WRONG:
            for name, typed, column, error in errors_of(made, session, line, wrong):
                seen.add(name)
                if error is None:
                    continue
                assert error.text == typed, (typed, error)
                if is_about(error, wrong):
                    assert column <= error.column < column + len(wrong), (typed, error)
                    placed.add(name)
    accepts_all = {
        part.name
        for part in (*made.arguments, *made.options)
        if part.kind is None or part.kind.name in ANYTHING or getattr(part.kind, "literal", "")
    }
    assert seen <= placed | accepts_all


ANYTHING = {"ARGS", "EXPR", "NAME", "COMMAND", "HOSTFILE", "TOPIC", "WORDS", "FILE", "TEXT"}
"""Kinds of which any word can be one."""
