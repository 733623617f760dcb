"""How long kemu takes to start, beside a Python that does nothing: milliseconds of a whole
process."""

import subprocess
import sys
import time

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "help": [sys.executable, "-m", "kemu", "--help"],
    "ps": [sys.executable, "-m", "kemu", "-c", "ps"],
}


def measure():
    """Milliseconds by name, each command once."""
    return {name: once(command) for name, command in COMMANDS.items()}


def once(command):
    start = time.perf_counter()
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    took = time.perf_counter() - start
    assert not done.returncode, f"{' '.join(command)} failed:\n{done.stderr}"
    return took * 1000
