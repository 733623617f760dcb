"""Any command line ends in a result or in one clear error; never in a traceback.

python -m tests.front.random_lines SEED 10000 | kemu run --keep-going -       by hand, for longer
"""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from kemu.commands import table
from kemu.errors import UsageError
from kemu.experiment.session import Session
from kemu.language.bind import bind
from kemu.language.tokens import split
from tests.front.random_lines import damaged, lines, valid


@pytest.mark.parametrize("seed", range(3))
def test_random_lines_run_without_a_traceback(seed, tmp_path):
    text = "spawn app\nmmap app 0x10000 4p rw\n" + "\n".join(lines(seed, 400)) + "\nps\n"
    done = subprocess.run(
        [sys.executable, "-m", "kemu", "run", "--keep-going", "-"],
        input=text.encode("utf-8", "surrogateescape"),
        capture_output=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    errors = done.stderr.decode("utf-8", "replace")
    assert "Traceback" not in errors
    assert "bug in kemu" not in errors, errors[-2000:]
    assert done.returncode == 1
    assert b"PID" in done.stdout.rsplit(b"\n\n", 1)[-1]


def error_of(line, session):
    try:
        bind(table.find(line.tokens[0].text), line, session)
    except UsageError as error:
        return error
    return None


def test_a_valid_line_is_one_that_its_command_can_parse():
    session = Session()
    rng = random.Random(1)
    matched = 0
    for _ in range(500):
        (line, *_) = split(valid(rng))
        error = error_of(line, session)
        assert error is None or "usage:" not in error.hint, (line.source, error.what)
        matched += error is None
    assert matched > 200


def test_lines_are_the_same_for_the_same_seed():
    assert lines(7, 50) == lines(7, 50)
    assert lines(7, 50) != lines(8, 50)


def test_damage_changes_a_line():
    rng = random.Random(2)
    assert len({damaged(rng) for _ in range(100)}) > 80
