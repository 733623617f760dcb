"""Every situation is played by a test of its topic's module, or the table says which feature it
waits for."""

import re
from pathlib import Path

import pytest

from tests.kernel.cases import MISSING, TOPICS

HERE = Path(__file__).parent


def played(topic):
    """The situations that the docstrings of a module name."""
    return set(
        re.findall(
            r'"""Case (\w\d\d)', (HERE / f"test_cases_{topic}.py").read_text(encoding="utf-8")
        )
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_each_situation_of_a_topic_is_played_or_missing(topic):
    waiting = {case for case in TOPICS[topic] if case in MISSING}
    assert played(topic) == set(TOPICS[topic]) - waiting


def test_nothing_else_is_said_to_be_missing():
    assert set(MISSING) <= {case for cases in TOPICS.values() for case in cases}
