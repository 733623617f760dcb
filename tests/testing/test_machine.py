"""The state machine over everything that processes do, and the strategies that it is made of."""

import subprocess
import sys

from hypothesis import given, settings

from kemu.kernel.fork_row import row_copy
from kemu.machine.geometry import RISCV_SV39, X86_64_5LEVEL
from kemu.testing.machine import MemoryMachine
from kemu.testing.strategies import play, programs

TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(max_examples=40, stateful_step_count=30)


@settings(max_examples=15)
@given(programs())
def test_the_same_with_batches_and_whole_rows(program):
    row_copy.min_entries = 1
    try:
        world = play(program, lru_batch=True)
        world.verify()
        world.finish()
    finally:
        row_copy.min_entries = 64


@settings(max_examples=10)
@given(programs())
def test_the_same_on_sv39(program):
    world = play(program, geometry=RISCV_SV39)
    world.verify()
    world.finish()


@settings(max_examples=10)
@given(programs())
def test_the_same_on_five_levels(program):
    world = play(program, geometry=X86_64_5LEVEL)
    world.verify()
    world.finish()


def test_without_hypothesis_it_says_what_to_install():
    code = (
        "import sys\nsys.modules['hypothesis'] = None\nfrom kemu.errors import UsageError\nfrom kemu.testing import World\n"
        "try:\n    import kemu.testing.strategies\nexcept UsageError as error:\n    print(error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pip install 'kemu[fuzz]'\n"
