"""How long races take to explore: ``python -m tests.bench.races``.

A row: what, seconds, and for one that has a bar the seconds that it may take.
"""

import sys
import time
from importlib.util import find_spec
from unittest.mock import patch

from kemu.commands.run import run
from kemu.experiment.session import Session
from kemu.races import explorer
from kemu.races.cases import KERNEL_CASES
from kemu.races.fibres import Greenlets, Threads

COW_BAR = 5.0
"""Seconds for two COW faults, at most two preemptions, the invariants along every event."""

SMALL = ("gets --non-atomic", "puts --non-atomic --cpus 3 --uses 2", "puts --cpus 3 --uses 4")


def measure(bound=2, repeat=3):
    """(what, seconds, bar or None) of each race."""
    session = Session()
    found = [explored(session, f"race {text}", repeat) for text in SMALL]
    for name in KERNEL_CASES:
        what, seconds, _ = explored(session, f"race {name} --bound {bound}", repeat)
        found.append((what, seconds, COW_BAR if name == "cow-cow" else None))
    for kind in kinds():
        with patch.object(explorer, "fibres", kind):
            what, seconds, _ = explored(session, f"race cow-cow --bound {bound}", repeat)
        found.append((f"{what}, on {kind.__name__.lower()}", seconds, None))
    return found


def kinds():
    """What CPUs can be put on here."""
    return (Threads, Greenlets) if find_spec("greenlet") else (Threads,)


def explored(session, line, repeat):
    """One race: the best of several, since another program may have had the CPU."""
    took = []
    for _ in range(repeat):
        start = time.perf_counter()
        reading = run(session, line)[0].reading
        took.append(time.perf_counter() - start)
    what = f"`{line}`: {reading.schedules:,} schedules, {reading.states:,} states"
    return what, min(took), None


def main():
    for what, seconds, bar in measure():
        verdict = (
            "" if bar is None else f"   bar {bar:g} s: {'kept' if seconds <= bar else 'MISSED'}"
        )
        sys.stdout.write(f"{seconds:8.3f} s  {what}{verdict}\n")


if __name__ == "__main__":
    main()
