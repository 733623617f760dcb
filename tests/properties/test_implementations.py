"""The tape in C leaves what the tape in Python leaves: the same events and marks, the same states,
the same refusals, for random programs."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.trace.tape import WHY_PLAIN
from tests.properties.history import history
from tests.properties.operations import programs
from tests.structure.sources import ROOT

pytestmark = pytest.mark.skipif(
    bool(WHY_PLAIN), reason=f"there is no tape in C to compare: {WHY_PLAIN}"
)


@pytest.fixture(scope="module")
def in_python():
    """``history`` in a process that has the tape in Python."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.properties.history"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "KEMU_PURE": "1"},
    )

    def ask(*program):
        process.stdin.write(json.dumps(program) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    with process:
        yield ask
        process.stdin.close()


@settings(max_examples=40)
@given(programs, st.integers(0, 2**32))
def test_both_leave_the_same_history(in_python, program, seed):
    theirs = in_python(program, seed)
    ours = json.loads(json.dumps(history(program, seed)))
    assert ours == theirs
    assert len(ours[3]) == 4
