"""What a replay does besides agreeing: it writes the format that it reads, looks without touching,
and never skips in silence."""

import json

import pytest

from kemu.conform.act import run_lengths
from kemu.conform.cast import MEMORY_PAGES, Cast
from kemu.conform.compare import first_difference
from kemu.conform.fields import OPERATIONS
from kemu.conform.perform import ACTIONS
from kemu.conform.program import Program, parse_program
from kemu.conform.replay import replay
from kemu.conform.steps import check_step
from kemu.kernel.include.system import system
from kemu.kernel.mm.lru import PAGEVEC_SIZE
from tests.conform.recorded import DATA, scenarios


def program(*ops, **more):
    return parse_program({"name": "test", "ops": list(ops), **more}, "test")


def mmap(page, length, *flags, p="A", prot="rw-"):
    return {
        "op": "mmap",
        "p": p,
        "page": page,
        "len": length,
        "prot": prot,
        "flags": ["fixed", *flags],
    }


@pytest.mark.parametrize(
    "name", ["fork_child_writes", "private_file_fork", "brk_grow_shrink", "merge_shared_anon"]
)
def test_a_replay_writes_the_format_that_it_reads(name):
    recorded = scenarios()[name]
    steps = json.loads(json.dumps(replay(recorded).steps))
    for number, step in enumerate(steps):
        check_step(step, f"step {number}")
    assert first_difference(recorded, tuple(steps)) is None


def test_every_operation_of_the_format_is_performed():
    assert set(ACTIONS) == set(OPERATIONS)


def test_operations_that_no_recording_uses():
    pages = [mmap(0, 2, "private", "anon", prot="rwx"), {"op": "write", "page": 0, "byte": 0xC3}]
    run = replay(program(
        *pages, {"op": "exec", "page": 0}, {"op": "pkey_mprotect", "page": 0, "len": 1, "prot": "rw-"}, {"op": "exec", "page": 0},
        {"op": "pin", "page": 1, "len": 1}, {"op": "unpin"},
        {"op": "file", "id": "f", "pages": 1}, {"op": "close", "file": "f"}, {"op": "pread", "file": "f", "foff": 0},
    ))  # fmt: skip
    assert [step["res"] for step in run.steps[2:]] == [
        {"ok": 1, "flt": [0, 0]},
        {"ret": 0, "flt": [0, 0]},
        {"sig": "SIGSEGV", "code": "ACCERR", "addr": [0, 0], "pf": "PUI", "flt": [0, 0]},
        {"ret": 0, "flt": [1, 0]},
        {"ret": 0},
        {"ret": 0},
        {"ret": 0},
        {"err": "EBADF", "flt": [0, 0]},
    ]
    assert run.steps[5]["obs"]["A"]["mm"]["VmPin"] == 4
    assert "VmPin" not in run.steps[6]["obs"]["A"]["mm"]


def test_a_dead_process_does_nothing():
    run = replay(
        program(
            {"op": "fork", "child": "B"},
            {"op": "exit", "p": "B"},
            {"op": "read", "p": "B", "page": 0},
        )
    )
    assert run.steps[1]["live"] == ["A"]
    assert run.steps[2] == {"res": {"skipped": "no such process"}, "live": ["A"], "obs": {}}


def test_looking_twice_shows_the_same_and_changes_no_memory():
    cast = Cast(Program("test", ()))
    base = cast.window.base
    cast.must(cast.processes["A"], "mmap", base, 0x4000, 3, 0x22, -1, 0)
    cast.store(cast.processes["A"], base, b"x")
    before = {pfn: dict(frame) for pfn, frame in system.phys.frames.items()}
    first, _ = cast.observe("A")
    assert first["pages"]["0"]["pm"] == "PX"
    assert cast.observe("A")[0] == first
    assert {pfn: dict(frame) for pfn, frame in system.phys.frames.items()} == before


def test_a_program_without_observations_is_run_without_looking():
    run = replay(program(mmap(0, 1, "private", "anon"), noobs=True))
    assert run.steps == ({"res": {"ret": {"page": 0}, "flt": [0, 0]}, "live": ["A"], "obs": {}},)


def test_a_parent_touches_more_than_a_batch_of_the_lru_holds():
    """So that a page written before a fork has left the batch after it, as in the recorder's
    processes."""
    assert MEMORY_PAGES > PAGEVEC_SIZE
    cast = Cast(Program("test", ()))
    parent = cast.processes["A"]
    cast.must(parent, "mmap", cast.window.base, 0x1000, 3, 0x32, -1, 0)
    cast.store(parent, cast.window.base, b"x")
    assert system.cpu.lru_add
    waiting = set(system.cpu.lru_add)
    cast.born(parent, "B", cast.must(parent, "fork"))
    assert not waiting & set(system.cpu.lru_add)


def test_an_access_outside_the_window_is_given_by_its_address():
    run = replay(
        program(
            {"op": "read", "addr": "0x10000"},
            {"op": "write", "page": -3, "off": 5},
            {"op": "read", "page": None},
        )
    )
    assert [step["res"]["addr"] for step in run.steps] == ["0x10000", [-3, 5], "0x0"]


def test_a_file_has_bytes_of_its_own():
    ops = [
        {"op": "file", "id": name, "bytes": 5000, "kind": kind}
        for name, kind in (("f", "memfd"), ("g", "disk"))
    ]
    run = replay(program(*ops, {"op": "pread", "file": "g", "foff": 0, "n": 8000}))
    assert run.steps[2]["res"] == {"ret": 5000, "flt": [0, 0], "data": [[0x20, 4096], [0x21, 904]]}


def test_run_lengths():
    assert run_lengths(b"") == []
    assert run_lengths(b"aab") == [[97, 2], [98, 1]]


def test_the_recordings_of_the_project_are_complete():
    assert sorted(path.name for path in DATA.iterdir()) == [
        "found.jsonl",
        "random.jsonl.gz",
        "scenarios.jsonl.gz",
    ]
