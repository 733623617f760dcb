"""ECE344's fork tests: after every step of every script the kernel uses exactly as many frames as
the course says."""

import pytest

from kemu.abi.uapi import SEGV_ACCERR, SEGV_MAPERR, SIGSEGV
from kemu.kernel.include.system import system
from kemu.machine.geometry import RISCV_SV39
from tests.peers.ece344 import Machine
from tests.peers.peerdata import load

CASES = load("ece344-vms")["cases"]


def by_name(case):
    return case["test"]


def test_all_scripts_are_here():
    assert [case["test"] for case in CASES] == [f"copy-{n}" for n in range(1, 6)] + [
        f"cow-{n}" for n in range(1, 10)
    ]
    assert sum(op.startswith("expect used_pages") for case in CASES for op in case["ops"]) == 64


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_addresses_split_as_the_course_says(case):
    for va, indices, offset in case["addresses"]:
        assert RISCV_SV39.indices(va) == tuple(indices)
        assert va % 4096 == offset


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_every_step_of_the_script(case):
    machine = Machine(case["ops"])
    for op in case["ops"]:
        machine.run(op)
    assert (machine.fatal is not None) == (case["expected_exit"] == "EFAULT")


@pytest.mark.parametrize(
    ("name", "code"), [("copy-3", SEGV_ACCERR), ("copy-5", SEGV_MAPERR), ("cow-3", SEGV_ACCERR)]
)
def test_a_fatal_fault_is_a_segmentation_violation(name, code):
    """A write to a read-only page has a VMA without the right; a page that was added to the parent
    later has no VMA here."""
    case = next(case for case in CASES if case["test"] == name)
    machine = Machine(case["ops"])
    for op in case["ops"]:
        machine.run(op)
    assert (machine.fatal.signo, machine.fatal.code) == (SIGSEGV, code)
    assert machine.fatal.killed


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_when_all_processes_have_ended_every_frame_is_free(case):
    machine = Machine(case["ops"])
    for op in case["ops"]:
        machine.run(op)
    for task in machine.tasks.values():
        if task.mm is not None:
            machine.script.syscall(task, "exit_group", 0)
    machine.script.schedule(system.tasks[1])  # an idle CPU would keep the last root page loaded
    assert machine.used() == 0
