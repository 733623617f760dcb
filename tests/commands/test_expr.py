"""The expression language: values, strength, errors with a place; never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.errors import UsageError
from kemu.language.expr import TaskValue, compile_text, format_value


class FewNames:
    """Names for tests: x is 5, app a task, f sums."""

    def name(self, dotted):
        known = {"x": 5, "app": TaskValue(3, "app"), "app.heap": 0x1000000, "a.2.heap": 7}
        if dotted not in known:
            raise UsageError(f"expression: nothing is called '{dotted}'", hint="did you mean 'x'?")
        return known[dotted]

    def variable(self, text):
        if text != "$pid":
            raise UsageError(f"expression: there is no {text}")
        return 3

    def call(self, function, arguments):
        if function != "f":
            raise UsageError(f"expression: no function '{function}'")
        return sum(arguments)


def value(text):
    return compile_text(text).evaluate(FewNames())


def error_of(text):
    try:
        value(text)
    except UsageError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2*3", 7),
        ("(1 + 2)*3", 9),
        ("10 - 2 - 3", 5),
        ("7/2", 3),
        ("7 % 4", 3),
        ("1 << 4 | 1", 17),
        ("0xf0 & 0x3c ^ 1", 0x31),
        ("~0 & 0xff", 255),
        ("-3 + 5", 2),
        ("--5", 5),
        ("0b1010", 10),
        ("4_096", 4096),
        ("3p", 12288),
        ("2K + 1M + 1G", 2048 + (1 << 20) + (1 << 30)),
        ("0x10p", 0x10000),
        ("app.heap + 8", 0x1000008),
        ("a.2.heap", 7),
        ("$pid", 3),
        ("f(1, x, f(2))", 8),
        ("f()", 0),
        ("1 == 1 and not 2 < 1", True),
        ("1 == 2 or 'a' == 'a'", True),
        ("none == none", True),
        ("none != 3", True),
        ("true and 3", True),
        ("app == app", True),
        ("not 0", True),
    ],
)
def test_an_expression_has_the_value_that_it_says(text, expected):
    assert value(text) == expected
    assert isinstance(value(text), type(expected))


def test_the_right_side_of_and_or_is_not_asked_where_the_left_decides():
    assert value("0 and nobody") is False
    assert value("1 or nobody") is True


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("1 +", 3),
        ("1 2", 2),
        ("(1", 0),
        ("f(1", 1),
        ("f(,)", 2),
        ("3q", 0),
        ("0x", 0),
        ("0b2", 0),
        ("x = 3", 2),
        ("10**400", 2),
        ("1 < 2 < 3", 6),
        ("1/0", 1),
        ("5 % (1-1)", 2),
        ("1 << 1_000_000_000", 2),
        ("1 >> -1", 2),
        ("2 + nobody", 4),
        ("g(1)", 0),
        ("'a' + 1", 4),
        ("app + 1", 4),
        ("app == 3", 4),
        ("'a' and 1", 4),
        ("none < 3", 5),
        ("é", 0),
        ("٣", 0),
        ("1 @ 2", 2),
        ("$nobody", 0),
        ("or", 0),
        ("", 0),
        ("'open", 0),
        ("9" * 400, 0),
        ("1 << 100 << 100", 9),
    ],
)
def test_a_mistake_is_an_error_at_its_place(text, column):
    with pytest.raises(UsageError) as caught:
        value(text)
    assert caught.value.column == column
    assert caught.value.text == text
    assert "\n" not in caught.value.what


@pytest.mark.parametrize(
    "text", ["(" * 5000 + "1" + ")" * 5000, "-" * 5000 + "1", "not " * 5000 + "1", "f(" * 5000]
)
def test_deep_nesting_is_an_error_and_no_overflow(text):
    with pytest.raises(UsageError, match="deep"):
        value(text)


def test_a_long_chain_needs_no_recursion():
    assert value("+".join(["1"] * 20_000)) == 20_000


def test_numbers_are_shown_in_both_bases_where_they_differ():
    assert format_value(0x3000) == "0x3000 (12288)"
    assert format_value(7) == "7"
    assert format_value(True) == "true"
    assert format_value(None) == "none"
    assert format_value("text") == "text"


_number = st.integers(0, 2**40).map(str)
_text = st.recursive(
    _number,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*&|^"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map("(-{})".format),
        inner.map("(~{})".format),
    ),
    max_leaves=6,
)


@given(_text)
def test_arithmetic_agrees_with_python(text):
    expected = eval(text)  # noqa: S307 - made of digits and operators just above
    error = error_of(text)
    if error is None:
        assert value(text) == expected
    else:
        assert "128 bits" in error.what


@given(st.text(alphabet="0123456789xpKGb+-*/%&|^<>~()=!.,'\"$ andortfxq_", max_size=40))
def test_any_text_gives_a_value_or_an_error_with_a_place(text):
    error = error_of(text)
    if error is not None:
        assert error.text == text
        assert 0 <= error.column <= len(text)
