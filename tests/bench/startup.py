"""How long kemu takes to start, beside a Python that does nothing: milliseconds of a whole
process.

Compiled modules are cached, as they are for a user from the second start on.
"""

import os
import subprocess
import sys
import time

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "help": [sys.executable, "-m", "kemu", "--help"],
    "ps": [sys.executable, "-m", "kemu", "-c", "ps"],
}


ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def measure():
    """Milliseconds by name, each command once, after a start that fills the caches."""
    for command in COMMANDS.values():
        once(command)
    return {name: once(command) for name, command in COMMANDS.items()}


def once(command):
    start = time.perf_counter()
    done = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=ENVIRONMENT,
    )
    took = time.perf_counter() - start
    assert not done.returncode, f"{' '.join(command)} failed:\n{done.stderr}"
    return took * 1000
