"""Schedules as text: what is written can be read again, and nonsense is refused with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.errors import UsageError
from kemu.races.schedule import looks_like_one, read, write


@given(st.lists(st.integers(0, 2), min_size=1, max_size=200))
def test_what_is_written_is_read_again(choices):
    assert read(write(choices), 3) == choices
    assert looks_like_one(write(choices))


def test_runs_and_digits_mean_the_same():
    assert read("0*2,1*1,0*1", 2) == read("0010", 2) == [0, 0, 1, 0]
    assert write([0, 0, 1, 0]) == "0*2,1*1,0*1"


def test_a_run_of_no_steps_is_none():
    assert read("0*0,1*1", 2) == [1]


ARABIC = "\N{ARABIC-INDIC DIGIT ZERO}*\N{ARABIC-INDIC DIGIT ONE}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "0*",
        "*3",
        "0*-1",
        "0**2",
        "0*2,",
        "a",
        "0*2;1",
        "0*1000000",
        "8*1",
        ARABIC,
        "0*2 1*1",
    ],
)
def test_nonsense_is_refused(text):
    with pytest.raises(UsageError, match="schedule"):
        read(text, 2)


def test_a_cpu_that_does_not_race_is_refused():
    with pytest.raises(UsageError, match="no CPU 2"):
        read("0*2,2*1", 2)


def test_a_schedule_too_long_to_be_meant_is_refused():
    with pytest.raises(UsageError, match="100000 steps"):
        read("0*99999,1*99999", 2)


@pytest.mark.parametrize("text", ["write a 1", "cow-cow", "--bound", "", "x0"])
def test_other_words_do_not_look_like_one(text):
    assert not looks_like_one(text)
