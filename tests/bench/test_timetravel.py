"""The measurements of going through time run and give every row; how fast is not asserted."""

import subprocess
import sys

from tests.bench.measure import ROOT
from tests.bench.timetravel import rows

ROWS = (
    "jump to a random event of", ("jump "
                                 "to "
                                 "a "
                                 "random "
                                 "event, "
                                 "95th"), "from the end to event 0", "step, with its drawing, median",
    "back, with its drawing", "why, median", ("why, "
                                             "longest"), "continue to the end past a watch", "journal, an event",
)  # fmt: skip


def test_every_row_is_there_with_a_number():
    command = [
        sys.executable,
        "-m",
        "tests.bench.timetravel",
        "--events",
        "9000",
        "--pages",
        "80",
        "--repeat",
        "5",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    cells = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    for title in ROWS:
        found = [row for row in cells if row[0].startswith("| " + title)]
        assert found, title
        assert all(any(c.isdigit() for c in row[1]) for row in found), title


def test_a_missed_bar_is_shown():
    found = dict.fromkeys(
        (
            "jump",
            "jump_p95",
            "jump_max",
            "first_jump",
            "step",
            "step_max",
            "back",
            "why",
            "why_max",
            "first_why",
            "watch",
        ),
        300.0,
    ) | {"events": 1000, "calls": 400, "bytes": 201}
    verdicts = {row.cells()[-1] for row in rows(found)}
    assert verdicts == {"MISSED", ""}
