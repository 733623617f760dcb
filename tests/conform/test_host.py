"""The host's kernel, asked again, gives what was recorded; and asking it leaves nothing behind."""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

from kemu.conform import host, hostworker
from kemu.conform.compare import first_difference
from kemu.conform.host import (
    TRIES,
    compare_with,
    run_on_host,
    without_own_locks,
    without_root,
)
from kemu.conform.hostfiles import SHARED_MEMORY
from kemu.conform.program import parse_program
from kemu.conform.replay import replay
from kemu.errors import HostUnavailable, UsageError
from tests.conform.hosted import needs_host
from tests.conform.recorded import random_programs, scenarios

MMAP = {"op": "mmap", "page": 0, "len": 4, "prot": "rw-", "flags": ["private", "anon", "fixed"]}


def program(*ops, **more):
    return parse_program({"name": "made here", "ops": list(ops), **more}, "made here")


def asked(one):
    """The recorded program cut to what this user can see, and what the host did."""
    run = run_on_host(one)
    assert not run.stopped
    return attrs.evolve(one, steps=without_root(one.steps)) if run.left_out else one, run


def workers():
    """How many workers there are of this process and those that it started."""
    found = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # a process that has ended while we looked
            ours = entry.name.isdecimal() and os.getpgid(int(entry.name)) == os.getpgrp()
            found += ours and (entry / "cmdline").read_bytes() == b"kemu-worker\0"
    return found


@needs_host
@pytest.mark.parametrize("name", sorted(scenarios())[::16])
def test_the_host_gives_the_recorded_answers(name):
    found = [
        first_difference(recorded, run.steps)
        for recorded, run in map(asked, [scenarios()[name]] * TRIES)
    ]
    assert None in found, f"{name}: {found[0]}"


@needs_host
def test_random_programs_too_but_for_the_luck_of_a_batch():
    """One in some hundred programs depends on what else this CPU did just then."""
    differ = [
        recorded.name
        for recorded, run in map(asked, random_programs()[::40])
        if first_difference(recorded, run.steps)
    ]
    assert len(differ) <= 1, differ


@needs_host
def test_kemu_gives_what_the_host_gives_and_both_are_shown(tmp_path):
    file = tmp_path / "cow.json"
    ops = [
        MMAP, {"op": "write", "page": 0, "byte": 1}, {"op": "fork", "child": "B"},
        {"op": "write", "p": "B", "page": 0, "byte": 2}, {"op": "read", "page": 0}, {"op": "read", "page": 9},
    ]  # fmt: skip
    file.write_text(json.dumps({"name": "cow", "ops": ops}))
    out = io.StringIO()
    assert host.main([str(file)], out) == 0
    lines = out.getvalue().splitlines()
    assert lines[0] == "cow"
    assert " ".join(lines[4].split()) == "3 B.write page=0 byte=2 host and kemu: ok, 1 minor"
    assert lines[6].endswith("host and kemu: SIGSEGV MAPERR at page 9+0 (U)")
    assert lines[-1] == "no difference"


@needs_host
def test_a_difference_is_shown_with_both_sides_and_gives_status_3():
    one = program(MMAP, {"op": "read", "page": 0})
    wrong = replay(program(MMAP, {"op": "read", "page": 9}))
    meeting = compare_with(one, run_on_host(one), wrong)
    assert meeting.difference.step == 1
    out = io.StringIO()
    host.show(meeting, out)
    assert "*   1 A.read page=0" in out.getvalue()
    assert "host: byte 0, 1 minor   kemu: SIGSEGV MAPERR at page 9+0 (U)" in out.getvalue()
    assert "first difference: step 1 (A.read page=0): result.addr: host nothing" in out.getvalue()


@needs_host
def test_operations_of_a_session_are_repeated_one_step_each():
    one = program(MMAP, {"op": "write", "page": 3, "byte": 7}, {"op": "read", "page": 3})
    run = run_on_host(one)
    assert [step["res"] for step in run.steps] == [
        {"ret": {"page": 0}, "flt": [0, 0]},
        {"ok": 1, "flt": [1, 0]},
        {"byte": 7, "ok": 1, "flt": [0, 0]},
    ]


@needs_host
def test_nothing_is_left_behind():
    before, cpus = workers(), os.sched_getaffinity(0)
    fds = len(list(Path("/proc/self/fd").iterdir()))
    ops = [
        {"op": "fork", "child": "B"},
        {"op": "exit"},
        {"op": "file", "id": "f", "kind": "tmpfs", "pages": 1, "p": "B"},
    ]
    assert run_on_host(program(MMAP, *ops)).stopped == ""
    assert workers() <= before
    assert os.sched_getaffinity(0) == cpus
    assert len(list(Path("/proc/self/fd").iterdir())) <= fds + 1  # the worker's file stays open
    assert not list(SHARED_MEMORY.glob(f"kemu-{os.getpid()}-*"))


@needs_host
def test_if_this_process_is_killed_its_workers_die_too():
    """Even one that runs for ever, one whose parent has ended, and one that shares memory."""
    before = workers()
    script = """
import os, signal
from kemu.conform.hostasm import CHILD_STACK, EXEC, WRITE
from kemu.conform.hostworker import Crew
crew = Crew().__enter__()
a = crew.members["A"]
b = crew.fork(a, "B", 17)[1]
crew.fork(b, "C", 17)
crew.fork(a, "D", 0x100 | 17, CHILD_STACK)
crew.finish(b)
crew.call(a, "mmap", 1 << 30, 4096, 7, 0x32, -1, 0)
crew.access(a, WRITE, 1 << 30, 0xEB)
crew.access(a, WRITE, (1 << 30) + 1, 0xFE)
crew._send(a, EXEC, 0, (1 << 30,))
print(len(crew.members), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, check=False, text=True
    )
    assert (done.returncode, done.stdout) == (-9, "3\n")
    deadline = time.monotonic() + 5
    while workers() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert workers() <= before


@needs_host
def test_a_program_that_eats_memory_is_ended(monkeypatch):
    monkeypatch.setattr(hostworker, "MEMORY_LIMIT", 32 << 20)
    monkeypatch.setattr(hostworker, "_SLICE", 0.001)
    run = run_on_host(
        program({**MMAP, "len": "0x60000000", "flags": ["private", "anon", "populate"]})
    )
    assert run.stopped == "operation 0 (mmap): process A uses more than 32 MiB"
    assert not run.steps


@needs_host
def test_code_that_does_not_return_is_ended_in_time():
    """Two bytes that jump to themselves, where a RET should stand."""
    ops = [
        {**MMAP, "prot": "rwx"},
        {"op": "write", "page": 0, "byte": 0xEB},
        {"op": "write", "page": 0, "off": 1, "byte": 0xFE},
    ]
    start = time.monotonic()
    run = run_on_host(program(*ops, {"op": "exec", "page": 0}), seconds=1.0)
    assert run.stopped == "operation 3 (exec): process A did not answer in time"
    assert time.monotonic() - start < 10


@needs_host
def test_code_that_is_no_ret_is_named():
    run = run_on_host(
        program(
            {**MMAP, "prot": "rwx"},
            {"op": "write", "page": 0, "byte": 0},
            {"op": "exec", "page": 0},
        )
    )
    assert run.stopped == "operation 2 (exec): the code there is no RET (write 195 first)"


def test_what_would_ask_too_much_of_the_host_is_refused_before_it_runs():
    with pytest.raises(
        UsageError,
        match=r"operation 0 \(fallocate\): a file can have at most 65536 pages on the host",
    ):
        run_on_host(
            program({"op": "fallocate", "fd": 3, "foff": 0, "len": 1 << 40, "mode": "alloc"})
        )


def test_without_root_only_pagemap_is_left_of_a_page():
    page = {"pm": "PX", "id": 1, "mc": 1, "kf": "U"}
    step = {
        "res": {"ret": 0},
        "live": ["A"],
        "obs": {"A": {"vmas": [], "mm": {}, "pages": {"0": page}}},
    }
    assert without_root([step])[0]["obs"]["A"]["pages"] == {"0": {"pm": "PX"}}


def test_after_mlockall_of_what_is_there_the_locked_total_is_not_compared():
    step = {
        "res": {"ret": 0},
        "live": ["A"],
        "obs": {"A": {"vmas": [], "pages": {}, "mm": {"VmLck": 4, "VmSize": 8}}},
    }
    one = program({"op": "munlockall"}, {"op": "mlockall", "flags": ["current"]})
    first, second = without_own_locks(one, (step, step))
    assert first["obs"]["A"]["mm"] == {"VmLck": 4, "VmSize": 8}
    assert second["obs"]["A"]["mm"] == {"VmSize": 8}


def test_elsewhere_it_is_said_kindly(monkeypatch, tmp_path):
    monkeypatch.setattr(hostworker.sys, "platform", "darwin")
    monkeypatch.setattr(hostworker.platform, "system", lambda: "Darwin")
    with pytest.raises(
        HostUnavailable,
        match="asking the real kernel needs a Linux host on x86-64; this is Darwin on",
    ):
        run_on_host(program(MMAP))
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"name": "p", "ops": [MMAP]}))
    err = io.StringIO()
    assert host.main([str(file)], io.StringIO(), err) == 2
    assert err.getvalue().startswith("asking the real kernel needs a Linux host")


def test_a_missing_file_is_named():
    err = io.StringIO()
    assert host.main(["/nowhere/p.json"], io.StringIO(), err) == 2
    assert err.getvalue().startswith("/nowhere/p.json: ")


@needs_host
@pytest.mark.parametrize("kind", ["vmread", "memread"])
def test_a_transfer_that_ends_early_shows_the_bytes_that_came(kind):
    """The mapping ends 96 bytes after the start of the transfer."""
    one = program(
        {"op": "mmap", "p": "A", **MMAP, "len": 1},
        {"op": kind, "p": "A", "t": "A", "page": 0, "off": 4000, "n": 4096},
    )
    on_host, here = run_on_host(one).steps[1]["res"], replay(one).steps[1]["res"]
    assert (on_host["ret"], on_host["data"]) == (96, [[0, 96]])
    assert here == on_host
