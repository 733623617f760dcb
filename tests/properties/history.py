"""What a random program leaves behind, as plain data, so that two processes can be compared.

KEMU_PURE=1 python -m tests.properties.history        a program a line in JSON; what it left, a line each
"""

import json
import random
import sys

from kemu.errors import KernelBug
from kemu.kernel.include.mmzone import NODE_DATA
from kemu.kernel.include.system import system
from kemu.trace.barrier import sealed
from kemu.trace.frames import FUNCTIONS
from tests.properties.operations import run


def history(program, seed):
    """The log with its objects numbered as they come, the marks, the state after each operation,
    what is refused while sealed, and the state after jumps to random events."""
    kernel, moments = run(program)
    journal = kernel.journal
    numbers = {}

    def told(value):
        if isinstance(value, bool | int | str | bytes | None):
            return repr(value)
        return f"{type(value).__name__} {numbers.setdefault(id(value), len(numbers))}"

    log = [told(value) for value in journal.log]
    marks = [
        (("" if mark >= 0 else "end of ") + FUNCTIONS[max(mark, ~mark)].name) if i % 2 else mark
        for i, mark in enumerate(journal.marks)
    ]
    refused = refusals()
    choose, states = random.Random(seed), []
    for _ in range(10):
        journal.seek(choose.randrange(len(journal) + 1))
        states.append(kernel.state_hash())
    return [log, marks, moments, refused, states]


def refusals():
    """What is said of changes while the state is sealed; nothing is changed."""
    changes = (
        lambda: setattr(NODE_DATA(0), "lock", 1),
        lambda: system.tasks.put(7, None),
        lambda: system.phys.store(0x5000, 1),
        lambda: setattr(NODE_DATA(0), "colour", 1),
    )
    said = []
    for change in changes:
        try:
            with sealed():
                change()
        except (KernelBug, AttributeError) as error:
            said.append(f"{type(error).__name__}: {error}")
    return said


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(history(*json.loads(line))), flush=True)  # noqa: T201 - what this program is for
