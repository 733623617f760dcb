"""`real`: an experiment as a program for a real kernel, and what the host says to it."""

from __future__ import annotations

import pytest

from kemu import Session
from kemu.commands import table
from kemu.conform import host, hostworker
from kemu.conform.actions import ACTIONS, REASONS, SILENT, translation_of
from kemu.conform.program import parse_program
from kemu.conform.replay import replay
from kemu.errors import HostUnavailable, UsageError


def translated(text):
    kemu = Session()
    kemu.run(text)
    return translation_of(kemu)


def operations(text):
    return [op for _, op in translated(text).ops]


def test_a_story_of_fork_becomes_a_program():
    assert operations(
        'spawn app; mmap app 0x10000 4p rw; write app 0x10ffc "12345678"; fork as kid; read kid '
        "0x10000 5000"
    ) == [
        {"op": "mmap", "p": "A", "page": 16, "len": 4, "prot": "rw", "flags": ["private", "anon"]},
        {"op": "write", "p": "A", "page": 16, "off": 4092, "byte": ord("1")},
        {"op": "write", "p": "A", "page": 17, "byte": ord("5")},
        {"op": "fork", "p": "A", "child": "B"},
        {"op": "read", "p": "B", "page": 16},
        {"op": "read", "p": "B", "page": 17},
    ]


def test_names_and_expressions_mean_what_they_meant_then():
    ops = operations(
        "spawn app; mmap app 0x10000 4p rw; fork as kid; use kid; write (0x10000 + 1p) 7b; exit "
        "kid; use app; read 0x10000"
    )
    assert [(op["op"], op["p"]) for op in ops] == [
        ("mmap", "A"),
        ("fork", "A"),
        ("write", "B"),
        ("exit", "B"),
        ("read", "A"),
    ]


def test_a_place_that_the_kernel_chose_gets_one_in_the_window():
    made = translated("spawn app; mmap app 2p rw; mmap app 1p r; write app (0x7ffff7fff000 - 1p) 7")
    assert [op.get("page") for _, op in made.ops] == [248, 247, 249]
    assert made.address(249) == 0x7FFFF7FFE000


def test_what_died_in_the_experiment_ends_in_the_program():
    ops = operations(
        "spawn app; mmap app 0x10000 1p r; fork app as kid; write kid 0x10000 7; fork app as b; "
        "kill b KILL"
    )
    assert [(op["op"], op["p"]) for op in ops] == [
        ("mmap", "A"), ("fork", "A"), ("write", "B"), ("exit", "B"), ("fork", "A"), ("exit", "C"),
    ]  # fmt: skip


def test_files_are_opened_once_as_they_were():
    made = "mkfile /d 2p 3; spawn app; open app /d rdwr; "
    ops = operations(made + "mmap app 0x10000 2p rw shared fd 3; ftruncate app 3 1p; close app 3")
    assert ops[0] == {
        "op": "file",
        "p": "A",
        "kind": "disk",
        "bytes": 8192,
        "k": 3,
        "id": "f0",
        "mode": "rw",
    }
    assert ops[1] == {
        "op": "mmap",
        "p": "A",
        "page": 16,
        "len": 2,
        "prot": "rw",
        "flags": ["shared"],
        "file": "f0",
        "foff": 0,
    }
    assert ops[2:] == [
        {"op": "ftruncate", "p": "A", "file": "f0", "size": 4096},
        {"op": "close", "p": "A", "file": "f0"},
    ]


def test_what_cannot_be_expressed_is_named_with_a_reason():
    made = translated(
        "spawn app; brk app; read app app.stack-8; spawn b; kill b KILL; madvise app 0x10000 1p "
        "hwpoison"
    )
    assert made.ops == []
    assert dict(made.unexpressed) == {
        "brk app": "the heap of a program on the host is elsewhere",
        "read app app.stack-8": "the stack of a program on the host lies elsewhere",
        "spawn b": "a program has one family of processes",
        "kill b KILL": "recorded programs send no signals",
        "madvise app 0x10000 1p hwpoison": "a program has no word for this advice",
    }


def test_every_changing_command_of_a_process_is_in_a_table():
    known = {*ACTIONS, *REASONS, *SILENT, "on"}
    groups = ("doing", "memory", "files")
    doing = {
        made.name
        for made in table.load_all()
        if table.TABLE[made.name].group in groups and made.effect == "change"
    }
    assert doing - known == set()
    assert not set(ACTIONS) & {*REASONS, *SILENT}


EVERYTHING = """
spawn app; mmap app 0x10000 4p rw; write app 0x10000 7 4p; fork app as kid; write kid 0x10000 8
mprotect kid 0x11000 1p r; mremap app 0x13000 1p 1p maymove fixed to 0x40000; madvise app 0x11000 1p dontneed
mlock app 0x10000 1p; mlock2 kid 0x12000 1p onfault; munlock app 0x10000 1p; mincore app 0x10000 3p; msync app 0x10000 1p
memfd app x; ftruncate app 3 2p; mmap app 0x50000 2p rw shared fd 3; write app 0x50000 7; fsync app 3
fallocate app 3 0 1p punch_hole keep_size
pwrite app 3 0x10000 8; pread app 3 0x10000 8; fadvise app 3 dontneed; mseal app 0x50000 1p; munmap app 0x50000 1p
process_vm_readv app kid 0x10000 8; process_vm_writev app kid 0x10000 "x"; memread app kid 0x10000 1; memwrite app kid 0x10000 1b
pipe app; vmsplice app 4 0x10000 8; pipe_read app 4 8; pin app 0x10000 1p; unpin app 0x10000 1p; setrlimit app as unlimited
write app 0x10000 195b; mprotect app 0x10000 1p rx; fetch app 0x10000; clone app vm as thread; write thread 0x12000 7; exit thread
on 1 read kid 0x10000; mlockall kid current; munlockall kid; remap_file_pages app 0x50000 1p 1; pkey_mprotect app 0x10000 1p r 3
"""


def test_every_operation_can_be_performed():
    made = translated(EVERYTHING.strip())
    assert made.unexpressed == []
    program = parse_program({"name": "all", "ops": [op for _, op in made.ops]}, "all")
    steps = replay(program).steps
    assert len(steps) == len(made.ops)
    assert not [step["res"] for step in steps if "skipped" in step["res"]]


def test_elsewhere_it_is_said_kindly(monkeypatch):
    def refuse():
        raise HostUnavailable("asking the real kernel needs a Linux host on x86-64; this is Plan 9")

    monkeypatch.setattr(hostworker, "check_host", refuse)
    with pytest.raises(UsageError, match="needs a Linux host on x86-64"):
        Session().run("real")


def usable_host():
    try:
        hostworker.check_host()
        op = {"op": "mmap", "page": 0, "len": 1, "prot": "rw", "flags": ["private", "anon"]}
        host.run_on_host(parse_program({"name": "one", "ops": [op]}, "one"))
    except HostUnavailable as error:
        return str(error)
    return ""


def test_the_host_and_kemu_stand_side_by_side():
    unusable = usable_host()
    if unusable:
        pytest.skip(unusable)
    kemu = Session()
    kemu.run(
        "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; fork as kid; write kid 0x10000 8; "
        "brk app"
    )
    kemu.run("read kid 0x90000")
    state = kemu.state_hash()
    reading = kemu.reading("real")
    assert [row.same for row in reading.rows] == [True] * len(reading.rows)
    assert reading.difference == ""
    assert reading.unexpressed == (("brk app", "the heap of a program on the host is elsewhere"),)
    text = kemu.text("real").split("\n")
    assert text[1:3] == ["  mmap app 0x10000 2p rw", "      both  ret 0x10000"]
    assert "      both  SIGSEGV MAPERR at 0x90000 (U)" in text
    assert text[-1] == "no difference"
    assert kemu.state_hash() == state
