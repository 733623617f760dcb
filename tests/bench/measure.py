"""Everything that is measured, in turns: real kernel, kemu unrecorded, kemu recorded, and again.

Each measurement is a fresh process, and CPU time is what counts.  A computer that is busy with
something else makes it longer all the same (caches are shared), so what is compared is measured
side by side, and the medians are taken over the turns.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.bench import replay, startup
from tests.bench.linux import RealKernel

ROOT = Path(__file__).resolve().parents[2]
SIZES = [1024, 16384, 65536, 262144]
"""Pages of the process; the last one is 1 GiB."""
TINY = [64, 128, 256, 512]

LINUX, PLAIN, RECORDED = "linux", "unrecorded", "recorded"


@dataclass
class Measured:
    """The medians: ``steps[pages][who][what]`` and ``startup[name]``; ``replay`` of recorded
    programs, once; ``how`` the real kernel was asked; ``repeat`` runs; ``load`` of the computer
    before and after, itself included."""

    sizes: list
    repeat: int
    how: str = ""
    load: tuple = (0.0, 0.0)
    steps: dict = field(default_factory=dict)
    startup: dict = field(default_factory=dict)
    replay: dict = field(default_factory=dict)

    def value(self, pages, who, what):
        """One median, or None if it was not measured."""
        return self.steps[pages][who].get(what)

    def ratio(self, pages, who, what):
        """How many times as long as the real kernel kemu takes; None without a real kernel."""
        ours, real = self.value(pages, who, what), self.value(pages, LINUX, what)
        return ours / real if ours is not None and real else None


def measure_all(sizes, repeat, progress):
    """``repeat`` turns at each size, and the start-up times; ``progress`` gets a word now and
    then."""
    real, before = RealKernel(), load()
    measured = Measured(list(sizes), repeat, real.how)
    progress("start-up\n")
    measured.startup = medians_of([startup.measure() for _ in range(repeat)])
    progress("replay\n")
    measured.replay = replay.measure(0 if repeat > 1 else 8)
    try:
        for pages in sizes:
            progress(f"{pages} pages ")
            measured.steps[pages] = medians(turn(real, pages, progress) for _ in range(repeat))
            progress("\n")
    finally:
        real.close()
    measured.load = (before, load())
    return measured


def load():
    """The average number of running processes over the last minute; 0 where the system does not
    say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def turn(real, pages, progress):
    progress(".")
    return {
        LINUX: real.run(pages),
        PLAIN: kemu(pages, recorded=False),
        RECORDED: kemu(pages, recorded=True),
    }


def kemu(pages, *, recorded):
    """One run of tests/bench/steps.py."""
    command = [sys.executable, "-m", "tests.bench.steps", str(pages), str(int(recorded))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=3600, cwd=ROOT
    )
    assert not done.returncode, f"{' '.join(command)} failed:\n{done.stderr}"
    return json.loads(done.stdout)


def medians(turns):
    """``who`` -> ``what`` -> median over the turns."""
    turns = list(turns)
    return {who: medians_of([one[who] for one in turns]) for who in turns[0]}


def medians_of(runs):
    return {what: median(run[what] for run in runs) for what in runs[0]}
