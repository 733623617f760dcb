"""Judge recorded programs: run each in kemu and compare with what the real kernel did, in one or
several processes.

    paths -> programs -> judge (one after the other, or in several processes) -> verdicts

Verdicts come in the order of the programs.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from kemu import interrupts
from kemu.conform.bounded import SECONDS, TimeUp, bounded
from kemu.conform.compare import Difference, differences
from kemu.conform.program import Program, load_programs, recordings
from kemu.conform.replay import replay
from kemu.errors import blaming

CHUNK = 8
"""How many programs a process takes at a time."""


@attrs.frozen
class Verdict:
    """The verdict on a program with so many ``operations``: where kemu differs (everywhere, or only
    the first place).  ``stopped``: it took too long, so nothing is known."""

    name: str
    source: str
    operations: int
    differences: tuple[Difference, ...]
    stopped: bool = False


def programs_below(paths: Iterable[str]) -> list[Program]:
    """The programs in files and folders, in order of name.  ``UsageError`` for the first that is
    not a program."""
    found: list[Program] = []
    for index, path in enumerate(paths):
        with blaming("paths", index):
            for file in recordings(Path(path)):
                found += load_programs(file)
    return found


def judge(program: Program, most: int | None = 1, seconds: float = SECONDS) -> Verdict:
    """Run ``program`` within the time limit, and compare; at most ``most`` differences, None for
    all."""
    try:
        with bounded(seconds):
            run = replay(program)
    except TimeUp:
        return Verdict(program.name, program.source, len(program.ops), (), stopped=True)
    found = tuple(islice(differences(program, run.steps), most))
    return Verdict(program.name, program.source, len(program.ops), found)


def judge_all(
    programs: list[Program], jobs: int = 1, most: int | None = 1, seconds: float = SECONDS
) -> Iterator[Verdict]:
    """The verdicts in order, made by ``jobs`` processes."""
    one = partial(judge, most=most, seconds=seconds)
    if jobs <= 1 or len(programs) < 2:
        yield from map(one, programs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        try:
            with interrupts.deaf():
                verdicts = pool.map(one, programs, chunksize=CHUNK)
            yield from verdicts
        finally:
            pool.shutdown(cancel_futures=True)


def emitted(program: Program) -> dict[str, Any]:
    """``program`` in the form of a recording, with kemu's own steps."""
    data: dict[str, Any] = {"name": program.name, "ops": [dict(op.fields) for op in program.ops]}
    if program.question:
        data["q"] = program.question
    if program.window:
        data["window"] = program.window
    if not program.observed:
        data["noobs"] = True
    if program.tags:
        data["tags"] = list(program.tags)
    return {**data, "steps": list(replay(program).steps)}
