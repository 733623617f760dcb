"""Why a call failed or a signal came: the check, the function, and what would have made it come out
otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.abi.words import ERRNO_TEXT, errno_name
from kemu.api import Session
from kemu.errors import UsageError
from kemu.explain.advice import ADVICE
from kemu.explain.rules import SIGNALS
from kemu.observe.moves import functions

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent.parent / "data" / "exec" / "files"
START = (
    "spawn app; mmap app 0x10000 4p rw; spawn other; mkfile /data 2p; open app /data rdonly; "
    "signal app SEGV handle; "
    "signal app BUS handle; use app; "
)


def why(line, *before, what="last"):
    session = Session()
    for one in (START, *before, line):
        session.run(one)
    return session.run(f"why {what}")[-1].reading


FAILURES = {
    "mmap app 0x10001 1p rw fixed": (
        "EINVAL",
        "__get_unmapped_area",
        "0x10001 is not a multiple",
    ),
    "mmap app 0 rw": ("EINVAL", "do_mmap", "the length is 0"),
    "mmap app 1000000000p rw": (
        "ENOMEM",
        "__vm_enough_memory",
        "more than all of RAM (15616)",
    ),
    "mmap app 0x10000 1p rw fixed_noreplace": (
        "EEXIST",
        "do_mmap",
        "0x10000-0x14000 is mapped there already",
    ),
    "munmap app 0x10001 1p": ("EINVAL", "do_vmi_munmap", "0x10001 is not a multiple"),
    "munmap app 0x10000 0": ("EINVAL", "do_vmi_munmap", "the length is 0"),
    "mprotect app 0x10001 1p r": ("EINVAL", "do_mprotect_pkey", "0x10001 is not a multiple"),
    "mprotect app 0x10000 9p r": ("ENOMEM", "_protect_range", "nothing is mapped at 0x14000"),
    "mremap app 0x90000 1p 2p maymove": (
        "EFAULT",
        "check_prep_vma",
        "nothing is mapped at 0x90000",
    ),
    "mremap app 0x10000 1p 9p": ("ENOMEM", "mremap_at", "may not move"),
    "mlock app 0x90000 1p": ("ENOMEM", "apply_vma_lock_flags", "nothing is mapped at 0x90000"),
    "madvise app 0x90000 1p dontneed": (
        "ENOMEM",
        "madvise_walk_vmas",
        "nothing is mapped at 0x90000",
    ),
    "madvise app 0x10001 1p dontneed": ("EINVAL", "do_madvise", "not a multiple of the page size"),
    "msync app 0x90000 1p sync": ("ENOMEM", "do_msync", "nothing is mapped at 0x90000"),
    "mincore app 0x90000 1p": ("ENOMEM", "do_mincore", "nothing is mapped at 0x90000"),
    "wait app": ("ECHILD", "do_wait", "no child to wait for"),
    "exec app /nothere": ("ENOENT", "do_open_execat", "no file /nothere"),
    "exec app /data": ("ENOEXEC", "load_elf_binary", "not an ELF program"),
    "open app /nothere rdonly": ("ENOENT", "do_open", "no file /nothere"),
    "pread app 9 0x10000 4": ("EBADF", "sys_pread", "descriptor 9 is not open"),
    "pread app 3 0x90000 4": ("EFAULT", "generic_file_read", "nothing is mapped at 0x90000"),
    "pwrite app 3 0x10000 4": ("EBADF", "sys_pwrite", "descriptor 3 is not open for writing"),
    "ftruncate app 3 1p": (
        "EINVAL",
        "sys_ftruncate",
        "descriptor 3 is not open for writing",
    ),
    "mseal app 0x10000 1p; munmap app 0x10000 1p": (
        "EPERM",
        "vms_gather_munmap_vmas",
        "0x10000-0x11000 is sealed",
    ),
    "setrlimit app as 1p; mmap app 8p rw": (
        "ENOMEM",
        "mmap_region",
        "8 pages more would exceed RLIMIT_AS",
    ),
    "set fail alloc 1; fork app": (
        "ENOMEM",
        "copy_mm",
        "set fail made the allocation of a page fail",
    ),
}


@pytest.mark.parametrize("line", FAILURES)
def test_an_errno_names_the_check_the_function_and_what_would_have_helped(line):
    errno, function, text = FAILURES[line]
    reading = why(line)
    assert f"-{errno} (" in reading.thing
    assert text in reading.rule
    assert reading.calls[-1] == function
    decides = reading.place.partition(":")[0]
    assert f"def {function}(" in (ROOT / decides).read_text(encoding="utf-8")
    assert reading.calls[0].startswith("sys_")
    assert reading.place.startswith("kemu/kernel/")
    assert reading.advice
    assert reading.command == line.rpartition("; ")[2]


def test_what_the_advice_says_does_help():
    for line, better in (
        ("mmap app 0x10001 1p rw fixed", "mmap app 0x20000 1p rw fixed"),
        ("mprotect app 0x10000 9p r", "mprotect app 0x10000 4p r"),
        ("mremap app 0x10000 1p 9p", "mremap app 0x10000 1p 9p maymove"),
        ("open app /nothere rdonly", "open app /nothere creat rdwr"),
    ):
        session = Session()
        session.run(START)
        assert session.run(line)[-1].reading.errno
        assert not session.run(better)[-1].reading.errno


@pytest.mark.parametrize(
    ("line", "before", "code", "words", "advice"),
    [
        ("read app 0x30000", (), "SEGV_MAPERR", "read at 0x30000: no mapping", "mmap it"),
        ("read app 0", (), "SEGV_MAPERR", "null pointer", "maps"),
        ("read app 0xffff888000000000", (), "SEGV_MAPERR", "kernel's half", "task_size"),
        (
            "read app 0x10000",
            ("madvise app 0x10000 1p guard_install",),
            "SEGV_MAPERR",
            "guard page",
            "guard_remove",
        ),
        (
            "write app 0x10000 1",
            ("mprotect app 0x10000 1p r",),
            "SEGV_ACCERR",
            "0x10000-0x11000 is r--",
            "mprotect",
        ),
        ("fetch app 0x10000", (), "SEGV_ACCERR", "fetch at 0x10000", "mprotect"),
        ("read app 0x900000000000", (), "SI_KERNEL", "not canonical", "task_size"),
        (
            "read app 0x41000",
            ("mkfile /one 1p; mmap app 0x40000 2p r file /one",),
            "BUS_ADRERR",
            "file ends",
            "ftruncate",
        ),
    ],
)
def test_a_signal_of_an_access_names_the_check_and_the_mapping(line, before, code, words, advice):
    for what in ("last", "signal"):
        reading = why(line, *before, what=what)
        assert code in reading.thing
        assert words in reading.rule
        assert advice in reading.advice
        assert reading.command == line
        assert reading.place


def test_a_signal_that_was_sent_names_its_sender():
    reading = why("kill other TERM", what="signal")
    assert reading.thing == "SIGTERM (SI_USER)"
    assert reading.rule.startswith("app (pid 3) sent it")
    child = why("exit kid 3", "signal app CHLD handle", "fork app as kid; use app", what="signal")
    assert child.thing.startswith("SIGCHLD")
    assert child.place == "do_notify_parent"


def test_the_killer_of_last_resort_says_so():
    session = Session(mem=8 << 20)
    session.run("spawn app; mmap app 0x10000000 1000p rw populate; mmap app 0x20000000 900p rw")
    session.run("mmap app 0x30000000 1000p rw populate")
    reading = session.run("why signal")[-1].reading
    assert reading.thing.startswith("SIGKILL")
    assert "memory had run out" in reading.rule


def test_a_program_that_cannot_be_mapped_dies_of_what_exec_has_thrown_away():
    reading = why(f"load {PROGRAMS / 'entry-kernel'} as /x; exec other /x", what="signal")
    assert reading.thing == "SIGSEGV (SI_KERNEL)"
    assert reading.rule.startswith("exec had thrown the old program away")
    assert why("read app 0x8000000000000000", what="signal").rule.startswith(
        "the address is not canonical"
    )


def test_before_the_failure_nothing_has_failed():
    session = Session()
    session.run(START + "mark before; read app 0x30000; goto before")
    for what in ("signal", "errno", "last"):
        with pytest.raises(UsageError):
            session.run(f"why {what}")


def test_the_tables_name_what_exists():
    assert set(ADVICE) <= {errno_name(number) for number in ERRNO_TEXT}
    names = {function.name for function in functions()}
    assert {rule.function for rule in SIGNALS if rule.function} <= names


def test_a_broken_pipe_is_not_a_trap_of_the_cpu():
    reading = why("write_fd other 4 0x7fffffffe000 1", "pipe2 other; close other 3", what="signal")
    assert reading.rule.startswith("no process can read the pipe any more")
    assert "protection fault" not in reading.place
