"""How a line is cut into commands and tokens."""

from __future__ import annotations

import pytest

from kemu.errors import UsageError
from kemu.language.tokens import LONGEST_LINE, split


def texts(line):
    return [[token.text for token in command.tokens] for command in split(line)]


def test_semicolons_separate_commands_and_a_hash_opens_a_comment():
    assert texts("spawn app; ps # all of them; really") == [["spawn", "app"], ["ps"]]
    assert texts("  ;; # nothing") == []
    assert texts("") == []


def test_a_hash_inside_a_token_is_no_comment():
    assert texts("mark a#b") == [["mark", "a#b"]]


def test_quotes_keep_blanks_semicolons_and_hashes_together():
    (command,) = split("exec /a 'two words' \"x;y # z\"")
    assert [token.value for token in command.tokens] == ["exec", "/a", "two words", "x;y # z"]
    assert [token.quoted for token in command.tokens] == [False, False, True, True]


def test_a_call_and_a_bracket_are_one_token_each():
    assert texts("read pfn(app, 0x10000) (child.heap + 8)") == [
        ["read", "pfn(app, 0x10000)", "(child.heap + 8)"]
    ]


def test_a_token_of_quotes_and_more_is_an_expression_and_no_text():
    (command,) = split("print 'a'=='b'")
    assert not command.tokens[1].quoted
    assert command.tokens[1].text == "'a'=='b'"


def test_columns_point_into_the_line_as_it_was_typed():
    first, second = split("  ps;   walk  app 0x10")
    assert first.tokens[0].column == 2
    assert [token.column for token in second.tokens] == [8, 14, 18]
    assert second.source == "walk  app 0x10"


def test_escapes_stand_for_single_characters():
    (command,) = split(r'write "a\n\t\x41\\\""')
    assert command.tokens[1].value == 'a\n\tA\\"'


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("write 'open", 6),
        ('x "a\\', 2),
        ("print (1 + 2", 6),
        ("print ((1)", 6),
        (r'x "a\q"', 4),
        (r'x "\x4"', 3),
    ],
)
def test_what_is_never_closed_is_an_error_at_its_beginning(line, column):
    with pytest.raises(UsageError) as caught:
        split(line)
    assert caught.value.column == column
    assert caught.value.hint


def test_a_line_of_a_megabyte_is_refused():
    with pytest.raises(UsageError, match="too many"):
        split("x" * (LONGEST_LINE + 1))
