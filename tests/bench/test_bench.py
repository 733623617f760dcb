"""The measurements run and give every row.  How fast they are is not asserted: a clock in a test
fails on somebody's computer."""

import subprocess
import sys

import pytest

from tests.bench import linux, table
from tests.bench.measure import LINUX, PLAIN, RECORDED, ROOT, Measured

ROWS = (
    "demand-zero write fault, unrecorded",
    "demand-zero write fault, recorded",
    "copy-on-write fault, unrecorded",
    "copy-on-write fault, recorded",
    "fork, a page-table entry, recorded",
    "exit, a page-table entry, recorded",
    "MADV_DONTNEED, a page-table entry, recorded",
    "munmap, a page-table entry, recorded",
    "fork, recorded: a page of",
    "host memory",
    "journal, an event",
    "journal, demand-zero write fault",
    "jump to a random event",
    "one event back",
    "replay of 8 recorded programs",
    "`kemu --help`",
    "`kemu -c ps`",
)


def bench(*arguments):
    command = [sys.executable, "-m", "tests.bench", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]


def test_every_row_is_there_with_a_number():
    cells = bench("--tiny", "--sizes", "64,512")
    for title in ROWS:
        found = [row for row in cells if row[0].startswith("| " + title)]
        assert found, title
        assert all(any(c.isdigit() for c in row[1]) for row in found), title


@pytest.mark.skipif(
    sys.platform != "linux", reason="the steps beside kemu's are those of a Linux kernel"
)
def test_without_a_compiler_python_does_the_real_kernels_steps(monkeypatch):
    monkeypatch.setattr(linux, "compiled", lambda _folder: None)
    real = linux.RealKernel()
    assert "Python" in real.how
    found = real.run(256)
    real.close()
    assert set(found) == {"fault", "cow", "fork", "exit", "dontneed", "munmap"}
    assert found["fork"] > 0


def test_a_missed_bar_is_shown_and_a_missing_kernel_leaves_it_open():
    steps = {LINUX: {"fault": 1.0}, PLAIN: {"fault": 10.0}, RECORDED: {"fault": 25.1}}
    measured = Measured([64], 1, steps={64: steps})
    kept = table.against_linux(measured, 64, PLAIN, "fault", 10)
    missed = table.against_linux(measured, 64, RECORDED, "fault", 25)
    assert (kept.cells()[-1], missed.cells()[-1]) == ("kept", "MISSED")
    steps[LINUX] = {}
    assert table.against_linux(measured, 64, PLAIN, "fault", 10).cells()[-1] == ""
