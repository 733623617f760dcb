"""python -m kemu.conform PATH...: run recorded programs in kemu and print where it first disagrees with the real kernel.

python -m kemu.conform host FILE...        the same programs on this computer's kernel, next to kemu
python -m kemu.conform fuzz [OPTIONS]      random programs on both, until they differ
python -m kemu.conform exec FILE [ARG...]  how both start a program

Exit status: 0 all agree, 2 an input cannot be used, 3 some program differs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import attrs

from kemu.conform.compare import Difference, first_difference
from kemu.conform.program import Program, load_programs, recordings
from kemu.conform.replay import replay
from kemu.errors import UsageError

ASKING_THE_HOST = {
    "host": "kemu.conform.host",
    "fuzz": "kemu.conform.fuzz",
    "exec": "kemu.conform.exec_compare",
}
"""Words that take the place of a path; each module has a ``main`` for the words after it."""


@attrs.frozen
class Verdict:
    """What became of one program: ``difference`` is the first one, None if kemu agrees with Linux."""

    program: Program
    difference: Difference | None


def judge(program: Program) -> Verdict:
    """Run ``program`` and compare."""
    return Verdict(program, first_difference(program, replay(program).steps))


def main(paths: list[str]) -> int:
    """Judge every program below ``paths``; the exit status."""
    if not paths or paths[0].startswith("-"):
        sys.stdout.write(__doc__ or "")
        return 0 if paths else 2
    if paths[0] in ASKING_THE_HOST:
        asked: Callable[[list[str]], int] = import_module(ASKING_THE_HOST[paths[0]]).main
        return asked(paths[1:])
    start = time.monotonic()
    verdicts = []
    try:
        for path in paths:
            for file in recordings(Path(path)):
                verdicts += [_judge_aloud(program) for program in load_programs(file)]
    except UsageError as error:
        sys.stderr.write(f"{error.what}; {error.hint}\n")
        return 2
    return _summary(verdicts, time.monotonic() - start)


def _judge_aloud(program: Program) -> Verdict:
    verdict = judge(program)
    if verdict.difference is not None:
        sys.stdout.write(f"{program.name}: {verdict.difference}\n")
    return verdict


def _summary(verdicts: list[Verdict], seconds: float) -> int:
    differ = sum(verdict.difference is not None for verdict in verdicts)
    operations = sum(len(verdict.program.ops) for verdict in verdicts)
    counts = f"{len(verdicts) - differ} agree, {differ} differ"
    sys.stdout.write(f"{len(verdicts)} programs, {operations} operations, {seconds:.1f} s: {counts}\n")
    return 3 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
