"""The state machine over everything that processes do, and the strategies that it is made of."""

import subprocess
import sys

from hypothesis import given, settings

from kemu.kernel.include.linkage import SYSCALLS
from kemu.kernel.mm.rows import bulk
from kemu.machine.geometry import RISCV_SV39, X86_64_5LEVEL
from kemu.testing.family import PLAIN_CALLS
from kemu.testing.machine import MemoryMachine
from kemu.testing.strategies import RULES, play, programs

ALONE = """
import os
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from kemu.testing.machine import MemoryMachine
from kemu.testing.strategies import profile

chosen = settings(profile("ci"), report_multiple_bugs=False)
if os.environ.get("CI"):  # one seed, and a failure as it was found: making it small takes minutes, and is done at a desk
    chosen = settings(chosen, derandomize=True, phases=(Phase.explicit, Phase.generate))
run_state_machine_as_test(MemoryMachine, settings=chosen)
"""


def test_whatever_processes_do_the_invariants_and_the_model_hold():
    """In a process of its own: behind thousands of other tests, in one with half a gigabyte, it
    takes minutes."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


ELSEWHERE = {
    "clone": "fork, clone, thread",
    "mmap": "mmap",
    "execve": "exec",
    "exit": "leave",
    "exit_group": "exit",
    "wait4": "wait",
    "tgkill": "kill",
    "setrlimit": "limit",
    "ftruncate": "ftruncate",
    "fallocate": "punch",
    "fsync": "sync",
    "fadvise64": "sync",
    "mlock2": "mlock",
    "munlock": "mlock",
    "munlockall": "mlockall",
    "mincore": "look",
    "msync": "look",
    "pkey_mprotect": "mprotect",
    "process_vm_readv": "process_vm",
    "process_vm_writev": "process_vm",
    "memread": "memory",
    "memwrite": "memory",
    "vmsplice": "splice",
    "read": "drain",
    "remap_file_pages": "remap",
    "getpid": "whoami",
    "getppid": "whoami",
    "close": "reopen",
    "lseek": "pwrite",
    "write": "pwrite",
}
"""System calls whose rule has another name."""
AT_THE_BEGINNING = {"open", "memfd_create", "pipe", "pipe2", "sigaction"}
"""System calls that every world makes before the first rule."""


def test_there_is_a_rule_for_every_system_call_and_access():
    missing = (
        {name for name in SYSCALLS if ELSEWHERE.get(name, name).split(", ")[0] not in RULES}
        - AT_THE_BEGINNING
        - {row.name for row in PLAIN_CALLS}
    )
    assert missing == set()
    assert {"read", "write", "fetch"} <= set(RULES)
    assert {name for name in vars(MemoryMachine) if not name.startswith("_")} >= set(RULES)


@settings(max_examples=15)
@given(programs())
def test_the_same_with_batches_and_whole_rows(program):
    bulk.min_entries = 1
    try:
        world = play(program, lru_batch=True)
        world.verify()
        world.finish()
    finally:
        bulk.min_entries = 64


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
        "import sys\nsys.modules['hypothesis'] = None\nfrom kemu.errors import UsageError\nfrom "
        "kemu.testing import World\n"
        "try:\n    import kemu.testing.strategies\nexcept UsageError as error:\n    "
        "print(error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pip install 'kemu[fuzz]'\n"
