"""The bar: every recorded program gives the same answers in kemu as it gave on the real kernel,
field by field."""

import pytest

from kemu.conform import strategies
from kemu.conform.compare import first_difference
from kemu.conform.fields import OPERATIONS
from kemu.conform.replay import replay
from tests.conform.recorded import random_programs, scenarios

CHUNKS = 16
"""The random programs are run in so many tests."""


def disagreement(program):
    """The first difference between Linux and kemu in words, "" if they agree."""
    run = replay(program)
    assert len(run.steps) == len(program.steps), program.name
    found = first_difference(program, run.steps)
    return f"{program.name}: {found}" if found is not None else ""


@pytest.mark.parametrize("name", scenarios())
def test_scenario(name):
    """A question to the real kernel, asked again."""
    assert not disagreement(scenarios()[name])


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk):
    wrong = list(filter(None, map(disagreement, random_programs()[chunk::CHUNKS])))
    assert not wrong, "\n" + "\n".join(wrong[:20])


def test_the_recordings_use_what_the_format_offers():
    """What no recording uses is named here, or younger than they are; it is what fuzz asks the host
    about."""
    used = {
        op.kind for program in (*scenarios().values(), *random_programs()) for op in program.ops
    }
    unused = set(OPERATIONS) - used
    assert {"exec", "unpin", "close", "pkey_mprotect"} <= unused
    assert unused <= {kind for kinds in strategies.KINDS for kind in kinds}
