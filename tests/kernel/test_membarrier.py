"""membarrier(2) as the real kernel answers (a kernel 6.18 was asked; where this host can be, it is
asked again)."""

import pytest

from kemu import Session
from kemu.conform.host import meet
from kemu.conform.program import parse_program
from tests.conform.hosted import needs_host

PRIVATE = ("private_expedited", "private_expedited_sync_core", "private_expedited_rseq")


@pytest.fixture
def kemu():
    made = Session()
    made.run("spawn app")
    return made


def answer(kemu, *words, task="app"):
    reading = kemu.reading(" ".join(["membarrier", task, *words]))
    return reading.error or reading.value


def test_query_names_every_command(kemu):
    assert answer(kemu, "query") == 0x3FF


@pytest.mark.parametrize("cmd", PRIVATE)
def test_a_private_command_needs_registration(kemu, cmd):
    assert answer(kemu, cmd) == "EPERM"
    assert answer(kemu, f"register_{cmd}") == 0
    assert answer(kemu, cmd) == 0


def test_the_global_commands_need_none(kemu):
    assert answer(kemu, "global") == 0
    assert answer(kemu, "global_expedited") == 0


@pytest.mark.parametrize("cmd", ["3", "1024", "-1", "query cpu", "private_expedited cpu"])
def test_unknown_commands_and_flags_are_refused(kemu, cmd):
    assert answer(kemu, *cmd.split()) == "EINVAL"


def test_only_rseq_takes_a_cpu_and_any_number_will_do(kemu):
    assert answer(kemu, "private_expedited_rseq", "cpu", "cpu_id", "9") == "EPERM"
    answer(kemu, "register_private_expedited_rseq")
    assert answer(kemu, "private_expedited_rseq", "cpu", "cpu_id", "9") == 0


def test_registrations_are_inherited_and_gone_after_exec(kemu):
    answer(kemu, "register_private_expedited_sync_core")
    answer(kemu, "register_global_expedited")
    assert answer(kemu, "get_registrations") == 0x40 | 0x10 | 4
    kemu.run("fork app as kid")
    assert answer(kemu, "get_registrations", task="kid") == 0x40 | 0x10 | 4


def test_why_errno_says_what_is_missing(kemu):
    kemu.run("membarrier app private_expedited")
    assert "has not registered" in kemu.text("why errno")


@needs_host
def test_the_host_answers_the_same():
    asked = [
        "query", "unknown", "private_expedited", "register_private_expedited_sync_core", "get_registrations",
        "private_expedited", "private_expedited_sync_core", "register_private_expedited",
        "private_expedited", "register_global_expedited", "global", "global_expedited",
        "private_expedited_rseq", "register_private_expedited_rseq", "private_expedited_rseq",
        "get_registrations",
    ]  # fmt: skip
    ops = [{"op": "membarrier", "cmd": cmd} for cmd in asked]
    ops += [{"op": "membarrier", "cmd": cmd, "flags": ["cpu"]} for cmd in ("query", *PRIVATE)]
    ops += [
        {"op": "fork", "child": "B"},
        {"op": "membarrier", "p": "B", "cmd": "get_registrations"},
    ]
    meeting = meet(parse_program({"name": "membarrier", "ops": ops}, "membarrier"))
    assert meeting.host.stopped == ""
    assert meeting.difference is None
