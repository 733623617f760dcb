"""What was once different from Linux 6.18, with what was seen there."""

import pytest

from kemu import Session
from kemu.abi.uapi import (
    EAGAIN,
    EEXIST,
    EFAULT,
    EINVAL,
    EIO,
    ENOMEM,
    ENOSPC,
    EPIPE,
    ESRCH,
    MREMAP_DONTUNMAP,
    MREMAP_FIXED,
    MREMAP_MAYMOVE,
)
from kemu.invariants import check
from kemu.kernel.include.mm_types import PAGE_SIZE
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm.filemap import load_file
from kemu.userland.script import Script
from tests.kernel.elf import tiny_elf


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


# ---------------------------------------------------------------- memory of files


def committed(session):
    return session.reading("free").committed


def test_a_fallocate_that_fails_gives_its_pages_back():
    session, _ = run("set tmpfs 10p; mkfile /t 0 tmpfs; spawn b; open b /t rdwr")
    free = session.value("free_frames()")
    assert session.reading("fallocate b 3 0 20p").errno == ENOSPC
    assert session.value("free_frames()") == free
    session.run("pwrite b 3 b.stack-64 8 3p")
    assert session.reading("fallocate b 3 0 10p").errno == 0
    assert session.reading("fallocate b 3 5p 6p").errno == ENOSPC
    assert not session.reading("verify").violations


def test_memory_that_runs_out_in_fallocate_is_not_lost():
    session, _ = run("mkfile /t 0 tmpfs; spawn c; open c /t rdwr", mem="10M")
    free = session.value("free_frames()")
    session.run("fallocate c 3 0 100M")
    assert "c" not in tasks(session), "nothing else could be killed"
    assert session.value("free_frames()") >= free
    assert not session.reading("verify").violations


@pytest.mark.parametrize(
    "made",
    ["memfd_create a x; ftruncate a 3 64p", "mkfile /x 64p tmpfs sparse; open a /x rdwr"],
)
def test_the_pages_of_a_file_of_memory_are_charged_as_they_come(made):
    session, _ = run(f"spawn a; {made}; mmap a 0x10000 64p rw shared fd 3")
    before = committed(session)
    session.run("write a 0x10000 1b 64p")
    assert committed(session) == before + 64
    session.run("fallocate a 3 0 32p punch_hole keep_size")
    assert committed(session) == before + 32
    session.run("ftruncate a 3 16p")
    assert committed(session) == before, "punched out from its beginning: nothing is left"
    assert not session.reading("verify").violations
    session.run("exit a")
    assert not session.reading("verify").violations


def test_shared_anonymous_memory_is_charged_by_its_size_or_by_its_pages():
    session, _ = run("spawn a")
    before = committed(session)
    session.run("mmap a 0x10000 8p rw shared")
    assert committed(session) == before + 8
    session.run("write a 0x10000 1b 8p")
    assert committed(session) == before + 8
    session.run("mmap a 0x20000 8p rw shared noreserve")
    assert committed(session) == before + 8
    session.run("write a 0x20000 1b 3p")
    assert committed(session) == before + 11
    assert not session.reading("verify").violations


# ---------------------------------------------------------------- the kernel's own mappings

NOT_ADVISED = {  # advice that is EINVAL there; 4 is DONTNEED, 24 is DONTNEED_LOCKED
    "[vvar]": {4, 8, 9, 11, 17, 20, 21, 22, 23, 24, 25, 102, 103},
    "[vvar_vclock]": {4, 8, 9, 11, 17, 20, 21, 22, 23, 24, 25, 102, 103},
    "[vdso]": {8, 9, 17, 23, 25, 102, 103},
}
ADVICE = [*range(5), *range(8, 26), 102, 103]


def executed():
    """A machine, and a task that executes a program."""
    kernel = Kernel()
    script = Script(kernel)
    load_file("/p", tiny_elf(bss=8))
    task = script.spawn("a")
    assert script.syscall(task, "execve", "/p", [b"p"]).errno == 0
    return script, task


def special(task):
    return {
        vma.vm_name: (vma.vm_start, vma.vm_end - vma.vm_start)
        for vma in task.mm.mm_mt
        if vma.vm_name in NOT_ADVISED
    }


@pytest.mark.parametrize("name", NOT_ADVISED)
def test_advice_on_the_kernel_s_own_mappings(name):
    script, task = executed()
    where = special(task)[name]
    for advice in ADVICE:
        refused = script.syscall(task, "madvise", *where, advice).errno
        assert refused == (EINVAL if advice in NOT_ADVISED[name] else 0), advice


@pytest.mark.parametrize("name", NOT_ADVISED)
def test_a_mapping_of_the_kernel_moves_as_a_whole_and_in_no_other_way(name):
    script, task = executed()
    start, size = special(task)[name]
    there, how = 0x2000_0000_0000, MREMAP_MAYMOVE | MREMAP_FIXED
    assert script.syscall(task, "mremap", start, size, size, how, there).value == there
    assert special(task)[name] == (there, size)
    for call in (
        ("mremap", there, PAGE_SIZE, PAGE_SIZE, how, there + 0x50000),
        ("munmap", there, PAGE_SIZE),
        ("mremap", there, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP),
    ):
        assert script.syscall(task, *call).errno == EINVAL, call
    assert not check(script.kernel)


# ---------------------------------------------------------------- /proc/PID/mem


@pytest.mark.parametrize("who", ["z", "kthreadd"])
def test_a_task_without_memory_has_no_mem_file(who):
    session, _ = run("spawn a; fork a as z; exit z")
    assert session.reading(f"memread a {who} 0x1000 1").errno == ESRCH
    assert session.reading(f"memwrite a {who} 0x1000 1b").errno == ESRCH


def test_an_address_that_is_negative_as_an_offset_is_refused():
    session, _ = run("spawn a; fork a as b")
    assert session.reading("memread a b 0xffff888000000000 1").errno == EINVAL
    assert session.reading("memread a b 0x7fffffffffff0000 1").errno == EIO


# ---------------------------------------------------------------- what verify believes

CHAIN = (
    "mmap a 0x40000000 1p rw; write a 0x40000000 1; "
    "mremap a 0x40000000 1p 1p maymove fixed dontunmap to 0x40004000; "
    "mremap a 0x40004000 1p 1p maymove fixed dontunmap to 0x40008000"
)


@pytest.mark.parametrize(
    "text",
    [
        CHAIN,
        "signal a SEGV handle; mmap a 0x18000 1p r growsdown; read a 0x10000",
        "signal a SEGV handle; mmap a 0x18000 1p none growsdown; read a 0x10000",
        "memfd_create a z; pwrite a 3 0x1000 8 1p",
        "memfd_create a z; fallocate a 3 0 4p keep_size",
    ],
)
def test_what_linux_does_too_breaks_no_invariant(text):
    session, _ = run(f"spawn a; {text}")
    assert not session.reading("verify").violations
    session.run("exit a")
    assert not session.reading("verify").violations


# ---------------------------------------------------------------- where mappings go


def test_a_mapping_stays_away_from_a_stack_also_below_other_mappings():
    session, _ = run("spawn a; mmap a 16p rw; mmap a 0x7ffff7f63000 16p rw; mmap a 4p rw growsdown")
    grows = session.reading("maps a").vmas[-3].start
    assert session.reading("mmap a 8p r").value == grows - 256 * 4096 - 8 * 4096


@pytest.mark.parametrize("kind", ["private", "shared"])
@pytest.mark.parametrize("pages", [1, 512])
def test_huge_pages_that_are_not_there_take_the_old_mapping_away(kind, pages):
    session, _ = run("spawn a; mmap a 0x40000000 1024p rw")
    text = f"mmap a {{}} {pages}p rw {kind} anon hugetlb"
    assert session.reading(f"{text.format(0x40001000)} fixed").errno == EINVAL
    assert session.reading(f"{text.format(0x40000000)} fixed_noreplace").errno == EEXIST
    assert session.reading(text.format(0x40000000)).errno == ENOMEM
    assert mappings(session) == [(0x40000000, 0x40400000, "")]
    assert session.reading(f"{text.format(0x40000000)} fixed").errno == ENOMEM
    assert mappings(session) == [(0x40200000, 0x40400000, "")]


@pytest.mark.parametrize(("sparse", "dirty"), [("sparse", True), ("", False)])
def test_a_write_that_fails_in_a_hole_leaves_a_zeroed_page_to_be_written(sparse, dirty):
    session, _ = run(f"mkfile /f 4p {sparse}; spawn a; open a /f rdwr; mmap a 0x10000 4p r fd 3")
    assert session.reading("pwrite a 3 0x1000 10").errno == EFAULT
    session.run("read a 0x10000 1")
    file = session.reading("smaps a").entries[0]
    assert file.vma.start == 0x10000
    assert file.counts.private_dirty == (4096 if dirty else 0)
