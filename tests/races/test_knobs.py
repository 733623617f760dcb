"""What is typed behind `race` and what is written again are one declaration."""

import pytest

from kemu.commands.table import find
from kemu.errors import UsageError
from kemu.experiment.session import Session
from kemu.language.bind import bind
from kemu.language.tokens import split
from kemu.racing.knobs import KERNEL, LITMUS, Options


def typed(text):
    """The knobs of a line."""
    return Options.of(bind(find("race"), split(f"race gets {text}")[0], Session()).values)


ALL = "--refcount --unless-zero --cpus 3 --uses 1 --count 0 --bound 2 --without-lock ptl@1 --mutant no_flush --end"


@pytest.mark.parametrize(
    "text", ["", "--non-atomic", "--count 0", "--bound 0", "--without-lock lock,ptl@1", ALL]
)
def test_the_knobs_are_written_as_they_were_typed(text):
    assert " ".join(typed(text).words()) == text


def test_a_knob_that_says_what_is_so_anyway_is_not_written():
    assert typed("--atomic") == Options()
    assert not typed("--atomic").words()


def test_each_knob_reaches_the_field_of_its_name():
    made = typed(ALL)
    assert made == Options("refcount", True, 3, 1, 0, 2, "ptl@1", "no_flush", end=True)
    assert made.only_for(LITMUS) == ["--unless-zero", "--cpus", "--uses", "--count"]
    assert made.only_for(KERNEL) == ["--bound", "--mutant"]


def test_two_kinds_of_count_exclude_each_other():
    with pytest.raises(
        UsageError, match="--atomic, --non-atomic and --refcount exclude each other"
    ):
        typed("--atomic --refcount")
    assert typed("--refcount --refcount").kind == "refcount"
