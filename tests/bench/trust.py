"""What trust costs: all invariants on many pages, and how many steps of the state machine a minute.

    python -m tests.bench.trust [--pages 10000]

Times are CPU time of one process, the best of some runs.
"""

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from kemu.invariants import INVARIANTS, check
from kemu.testing import World
from kemu.testing.machine import MemoryMachine
from tests.bench.table import Row, line
from tests.kernel.scenes import Scene

SCAN_BAR, STEPS_BAR = 0.3, 2000
"""Seconds for all invariants on 10,000 mapped pages; steps a minute."""


def scan(pages, runs=3):
    """Seconds that all invariants take where a process has written so many pages."""
    scene = Scene()
    scene.write_pages(scene.p, scene.mmap(scene.p, pages), pages)
    took = []
    for _ in range(runs):
        started = time.process_time()
        if check(scene.kernel):
            raise AssertionError("the right kernel breaks something")
        took.append(time.process_time() - started)
    return min(took)


class Counted(World):
    """A world that counts its operations."""

    steps = 0

    def _checked(self):
        Counted.steps += 1
        super()._checked()


class Machine(MemoryMachine):
    """The state machine over worlds that count."""

    def __init__(self):
        super().__init__()
        self.world = Counted()


def machine(examples=60):
    """Steps a minute, with all invariants behind each, and everything looked at at the end of each
    example."""
    Counted.steps = 0
    profile = settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    started = time.process_time()
    run_state_machine_as_test(seed(5)(Machine), settings=profile)
    return Counted.steps / (time.process_time() - started) * 60


def rows(pages=10_000, examples=60):
    """The rows of the table."""
    seconds, steps = scan(pages), machine(examples)
    return [
        Row(
            f"all {len(INVARIANTS)} invariants, {pages:,} mapped pages",
            f"{seconds * 1000:.0f} ms",
            bar="at most 300 ms",
            kept=seconds <= SCAN_BAR if pages == 10_000 else None,
        ),
        Row(
            "state machine, all invariants after each step",
            f"{steps:,.0f} steps a minute",
            bar="at least 2,000",
            kept=steps >= STEPS_BAR,
        ),
    ]


def main(argv=None):
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.trust")
    parser.add_argument("--pages", type=int, default=10_000)
    given = parser.parse_args(argv)
    sys.stdout.write("\n".join(line(row.cells()) for row in rows(given.pages)) + "\n")


if __name__ == "__main__":
    main()
