"""How long kemu takes to replay what the real kernel recorded, with a full comparison after each
operation."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[1] / "conform" / "data" / "random.jsonl.gz"


def measure(programs):
    """``seconds``, ``programs`` and ``operations`` of one replay of the first ``programs`` recorded
    random programs (0: of all of them), by two processes on all CPUs."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        chosen = [line for number, line in enumerate(lines) if not programs or number < programs]
    operations = sum(len(json.loads(line)["ops"]) for line in chosen)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "programs.jsonl"
        path.write_text("".join(chosen), encoding="utf-8")
        kept = all_cpus()
        start = time.perf_counter()
        command = [sys.executable, "-m", "kemu", "conform", "--jobs", "2", str(path)]
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1800,
        )
        took = time.perf_counter() - start
        if kept:
            os.sched_setaffinity(0, kept)
    assert not done.returncode, f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"
    return {"seconds": took, "programs": len(chosen), "operations": operations}


def all_cpus():
    """Use every CPU from now on; the ones that were used before, or nothing where that cannot be
    said."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return before
