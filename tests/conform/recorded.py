"""The recordings of the real kernel that the tests run: read once."""

from functools import cache
from pathlib import Path

from kemu.conform.program import load_programs

DATA = Path(__file__).parent / "data"


@cache
def scenarios():
    """The programs that each ask a question, by name."""
    return {program.name: program for program in load_programs(DATA / "scenarios.jsonl.gz")}


@cache
def random_programs():
    return load_programs(DATA / "random.jsonl.gz")
