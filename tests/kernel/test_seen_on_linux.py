"""What was once different from Linux 6.18, with what was seen there."""

import pytest

from kemu import Session
from kemu.abi.uapi import EAGAIN, EPIPE


def run(text, **machine):
    """A session in which these commands ran, and their results."""
    session = Session(**machine)
    results = session.run(text)
    assert all(result.ok for result in results), [r.error for r in results if not r.ok]
    return session, results


def mappings(session, name="a"):
    return [
        (vma.start, vma.end, vma.name)
        for vma in session.reading(f"maps {name}").vmas
        if vma.start < 0x7000_0000_0000
    ]


def tasks(session):
    return {task.name: task for task in session.reading("ps").tasks}


# ---------------------------------------------------------------- memory


def test_the_first_brk_does_not_make_the_bss_part_of_the_heap():
    session, _ = run("spawn a")
    start = session.value("a.brk")
    session.run(f"mmap a {start - 0x2000:#x} 2p rw fixed; brk a {start + 0x3000:#x}")
    assert mappings(session)[-2:] == [
        (start - 0x2000, start, ""),
        (start, start + 0x3000, "[heap]"),
    ]
    session.run(f"brk a {start + 0x5000:#x}")
    assert mappings(session)[-1] == (start, start + 0x5000, "[heap]")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("0x12000 6p", "0x15000 6p", [(0x10, 0x12), (0x12, 0x1B), (0x1B, 0x20)]),
        ("0x12000 6p", "0x10000 4p", [(0x10, 0x18), (0x18, 0x20)]),
        ("0x12000 6p", "0x13000 2p", [(0x10, 0x12), (0x12, 0x18), (0x18, 0x20)]),
        ("0x12000 6p", "0x11000 12p", [(0x10, 0x11), (0x11, 0x1D), (0x1D, 0x20)]),
    ],
)
def test_mseal_leaves_a_sealed_mapping_in_one_piece(first, second, expected):
    session, _ = run(f"spawn a; mmap a 0x10000 16p rw; mseal a {first}; mseal a {second}")
    assert [(start >> 12, end >> 12) for start, end, _ in mappings(session)] == expected


# ---------------------------------------------------------------- out of memory

THREADS = "spawn app; mmap app 0x10000 {}M rw populate; clone app vm fs files sighand thread sysvsem as t1"
"""A process of two threads."""


def test_the_oom_killer_takes_a_process_with_its_threads():
    session, _ = run(
        f"{THREADS.format(30)}; spawn other; mmap other 0x10000 40M rw populate",
        mem="64M",
    )
    assert set(tasks(session)) == {"swapper/0", "init", "kthreadd", "other"}
    assert not session.reading("verify").violations


@pytest.mark.parametrize("asking", ["t1", "app"])
def test_any_thread_of_the_victim_may_be_the_one_that_needs_memory(asking):
    session, _ = run(f"{THREADS.format(8)}; mmap app 0x1000000 12M rw", mem="16M")
    outcome = session.reading(f"write {asking} 0x1000000 1b 12M")
    assert outcome.signal == "SIGKILL"
    assert set(tasks(session)) == {"swapper/0", "init", "kthreadd"}
    assert not session.reading("verify").violations


# ---------------------------------------------------------------- fatal signals


@pytest.mark.parametrize("sig", ["TERM", "INT", "HUP", "USR1", "KILL"])
def test_a_parent_in_vfork_dies_of_a_fatal_signal_at_once(sig):
    session, _ = run(f"spawn c; vfork c as cv; kill c {sig} by init")
    assert "c" not in tasks(session)
    assert tasks(session)["cv"].ppid == 1


@pytest.mark.parametrize("sig", ["SEGV", "QUIT", "ABRT"])
def test_a_parent_in_vfork_outlives_a_signal_that_dumps_core(sig):
    session, _ = run(f"spawn c; vfork c as cv; kill c {sig} by init")
    assert tasks(session)["c"].state == "D"
    session.run("exit cv")
    assert "c" not in tasks(session)


def test_a_handled_or_ignored_signal_does_not_wake_a_parent_in_vfork():
    session, _ = run(
        "spawn c; signal c TERM handle; signal c HUP ignore; vfork c as cv; kill c TERM by init; "
        "kill c HUP by init"
    )
    assert tasks(session)["c"].state == "D"


def test_the_status_of_a_killed_process_names_the_signal():
    session, _ = run("spawn p; fork p as c; vfork c as cv; kill c TERM by init")
    assert session.text("stat c proc").split()[51] == "15"


# ---------------------------------------------------------------- pipes

PIPE = "spawn a; mmap a 0x100000 32p rw populate; pipe2 a"


def test_vmsplice_fills_a_pipe_to_its_capacity_and_no_further():
    session, _ = run(PIPE)
    assert session.reading("vmsplice a 4 0x100000 8p").value == 8 * 4096
    assert session.reading("vmsplice a 4 0x100000 16p").value == 8 * 4096
    assert session.reading("vmsplice a 4 0x100000 1").errno == EAGAIN
    assert session.reading("write_fd a 4 0x100000 1").errno == EAGAIN


def test_vmsplice_into_a_pipe_without_readers_is_a_broken_pipe():
    session, _ = run(f"{PIPE}; signal a PIPE ignore; close a 3")
    assert session.reading("vmsplice a 4 0x100000 1p").errno == EPIPE
    session, _ = run(f"{PIPE}; close a 3; vmsplice a 4 0x100000 1p")
    assert "a" not in tasks(session)


def test_a_write_appends_what_it_has_beyond_whole_pages_if_that_fits():
    session, _ = run(f"{PIPE}; write_fd a 4 0x100000 1000")
    for _ in range(2):
        assert session.reading("write_fd a 4 0x100000 4596").value == 4596
    pages = 4  # 1500, 4096, 4096 and 500 bytes: after a full page there is nothing to append to
    while session.reading("write_fd a 4 0x100000 4096").value == 4096:
        pages += 1
    assert pages == 16
    assert session.reading("write_fd a 4 0x100000 1").errno == EAGAIN
