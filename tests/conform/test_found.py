"""What random programs found: each of these once came out differently in kemu and on the real
kernel (or is its counterpart)."""

from functools import cache

import pytest

from kemu.conform.compare import first_difference
from kemu.conform.host import TRIES, compare_with, run_on_host
from kemu.conform.program import load_programs
from kemu.conform.replay import replay
from tests.conform.hosted import needs_host
from tests.conform.recorded import DATA


@cache
def found():
    return {program.name: program for program in load_programs(DATA / "found.jsonl")}


@pytest.mark.parametrize("name", found())
def test_kemu_agrees_with_the_recording(name):
    program = found()[name]
    difference = first_difference(program, replay(program).steps)
    assert difference is None, f"{program.question} {difference}"


@needs_host
@pytest.mark.parametrize("name", found())
def test_the_host_says_so_too(name):
    program = found()[name]
    differences = [
        compare_with(program, run_on_host(program), replay(program)).difference
        for _ in range(TRIES)
    ]
    assert None in differences, f"{program.question} {differences[0]}"
