"""Why a call on memory failed, in words: one sentence for a check, and advice that helps."""

from pathlib import Path

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.explain.advice import ADVICE

START = "spawn app; mmap app 0x10000 4p rw; mkfile /data 2p; open app /data rdonly; use app"

REASONS = {
    "setrlimit as 200K; mmap 0x40000 100p rw": "100 pages more would exceed RLIMIT_AS (37 of 50 in "
    "use)",
    "setrlimit as 37p; mmap 0x40000 1p rw": "1 page more would exceed RLIMIT_AS (37 of 37 in use)",
    "setrlimit as 37p; mmap 0x12000 4p rw fixed": "2 pages more would exceed RLIMIT_AS (37 of 37 in "
    "use)",
    "setrlimit data 4p; mmap 3p rw": "3 pages more would exceed RLIMIT_DATA (4 of 4 in use)",
    "setrlimit as 37p; mremap 0x10000 4p 6p": "2 pages more would exceed RLIMIT_AS (37 of 37 in use)",
    "mmap 0x7ffffffff000 1p rw fixed": "it would end above user memory (0x7ffffffff000)",
    "mmap 0x800000000000 rw": "it is longer than all of user memory (0x7ffffffff000)",
    "mmap 1000000p rw": "1000000 pages are more than all of RAM (",
    "mmap 0 rw": "the length is 0",
    "mmap 0x10001 1p rw fixed": "the address 0x10001 is not a multiple of the page size",
    "mmap 0x12000 4p rw fixed_noreplace": "0x10000-0x14000 is mapped there already",
    "mmap 1p rw fd 77": "descriptor 77 is not open",
    "mmap 1p rw shared fd 3": "the file is not open for writing",
    "pread 77 0x10000 4": "descriptor 77 is not open",
    "vmsplice 77 0x10000 4": "descriptor 77 is not open",
    "vmsplice 3 0x10000 4": "descriptor 3 is not a pipe",
    "memfd_create x; fallocate 4 0 0": "the length 0 is not above 0",
    "munmap 0x10001 1p": "the address 0x10001 is not a multiple of the page size",
    "munmap 0x10000 0": "the length is 0",
    "munmap 0x7fffffffe000 2p": "it would end above user memory (0x7ffffffff000)",
    "mseal 0x11000 1p; munmap 0x10000 4p": "the mapping 0x11000-0x12000 is sealed",
    "mprotect 0x12000 9p r": "nothing is mapped at 0x14000",
    "mprotect 0x50000 1p r": "nothing is mapped at 0x50000",
    "mlock 0x12001 3p": "nothing is mapped at 0x14000",
    "munlock 0x50000 1p": "nothing is mapped at 0x50000",
    "madvise 0x13000 2p dontneed": "nothing is mapped at 0x14000",
    "msync 0x50000 1p sync": "nothing is mapped at 0x50000",
    "mincore 0x50000 1p": "nothing is mapped at 0x50000",
    "mremap 0x50000 1p 2p": "nothing is mapped at 0x50000",
    "mremap 0x10001 1p 2p": "the address 0x10001 is not a multiple of the page size",
    "mremap 0x10000 1p 0": "the new length is 0",
    "mremap 0x12000 4p 6p": "the mapping ends at 0x14000, within the old size",
    "mmap 0x14000 1p r; mremap 0x10000 4p 6p": "the mapping cannot grow where it is, and may not "
    "move",
    "set fail alloc 1; fork": "set fail made the allocation of a page fail",
    "set fail slab 1; fork": "set fail made the allocation of task_struct fail",
}


def made(line):
    """The session behind the line, and the reading of its last command."""
    session = Session()
    session.run(START)
    return session, session.run(line)[-1].reading


@pytest.mark.parametrize("line", REASONS)
def test_a_call_that_failed_says_which_check_was_not_met(line):
    session, reading = made(line)
    assert reading.errno
    assert reading.why.startswith(REASONS[line])
    assert len(f"{reading.call} -> -{reading.error} ({reading.errno}): {reading.why}") <= 80
    asked = session.run("why errno")[-1].reading
    assert asked.thing == f"{reading.call} -> -{reading.error} ({reading.errno})"
    assert asked.rule == reading.why
    assert asked.advice == reading.decision.instead != ""
    assert asked.place.startswith(reading.decision.place)


HELPS = {
    "munmap 0x10001 1p": "munmap 0x10000 1p",
    "madvise 0x10001 1p dontneed": "madvise 0x10000 1p dontneed",
    "memfd_create x; fallocate 4 0 0": "fallocate 4 0 1p",
    "membarrier query cpu": "membarrier query",
    "setrlimit as 200K; mmap 0x40000 100p rw": "setrlimit as 1M; mmap 0x40000 100p rw",
    "setrlimit data 4p; mmap 3p rw": "setrlimit data 8p; mmap 3p rw",
    "mmap 0x7ffffffff000 1p rw fixed": "mmap 0x7fffffffe000 1p rw fixed",
    "mmap 1000000p rw": "mmap 1000000p rw noreserve",
    "mmap 0x12000 4p rw fixed_noreplace": "mmap 0x12000 4p rw fixed",
    "mprotect 0x12000 9p r": "mprotect 0x12000 2p r",
    "mmap 0x14000 1p r; mremap 0x10000 4p 6p": "mremap 0x10000 4p 6p maymove",
    "set fail alloc 1; fork": "fork",
}


@pytest.mark.parametrize("line", HELPS)
def test_what_is_said_instead_does_help(line):
    session, reading = made(line)
    assert reading.decision.instead not in ADVICE.values()
    assert not session.run(HELPS[line])[-1].reading.errno


INTO = (
    "spawn app; mmap app 0x10000 4p rw; write app 0x10000 1; mkfile /data 2p; open app /data rdwr; "
    "mmap app 0x40000 2p rw"
)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("alloc", "fork"),
        ("slab", "fork"),
        ("alloc", "exec /data"),
        ("slab", "exec /data"),
        ("alloc", "pipe2"),
        ("slab", "pipe2"),
        ("slab", "mmap 2p rw shared"),
        ("slab", "munmap 0x11000 1p"),
        ("alloc", "pread 3 0x40000 4"),
        ("slab", "pread 3 0x40000 4"),
        ("alloc", "mlock 0x12000 1p"),
    ],
)
def test_memory_that_was_made_to_fail_is_the_reason_wherever_it_failed(what, line):
    """Also behind an -EFAULT or -E2BIG."""
    failed = 0
    for number in range(1, 12):
        session = Session()
        session.run(f"{INTO}; set fail {what} {number}")
        reading = session.run(line)[-1].reading
        if reading.errno and reading.error != "ENOEXEC":
            failed += 1
            assert reading.why.startswith("set fail made the allocation of ")
    assert failed


PROGRAMS = sorted((Path(__file__).parents[1] / "data" / "exec" / "files").iterdir())


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_that_cannot_run_has_a_reason(path):
    session = Session()
    session.run(f"load '{path}' as /x; spawn app")
    reading = session.run("exec app /x")[-1].reading
    if reading.errno:
        assert reading.why == reading.decision.why
        assert reading.decision.function not in ("bprm_execve", "sys_execve")


def test_without_a_journal_the_errno_speaks_for_itself():
    session = Session(record=False)
    session.run("spawn app")
    reading = session.run("munmap app 0x10001 1p")[-1].reading
    assert (reading.why, reading.decision) == ("invalid argument", None)
    asked = session.run("why errno")[-1].reading
    assert (asked.rule, asked.advice) == (reading.why, ADVICE["EINVAL"])


def test_looking_for_the_line_changes_nothing():
    """The call is made twice, and counts once."""
    session = Session()
    session.run("spawn app; mmap app 0x10000 4p rw; set fail slab 2")
    reading = session.run("fork app")[-1].reading
    assert reading.why == "set fail made the allocation of files_cache fail"
    assert session.run("fork app as kid")[-1].reading.errno == 0
    assert [session.name_of(pid) for pid in session.tasks][-1] == "kid"


def test_a_spawn_that_was_made_to_fail_says_so():
    session = Session()
    session.run("set fail slab 3")
    with pytest.raises(UsageError) as refused:
        session.run("spawn a")
    assert "set fail asked for it" in refused.value.what


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mprotect a 0x10000 1p r", "the entry follows the mapping"),
        (
            "mprotect a 0x10000 1p r; mprotect a 0x10000 1p rw",
            "exclusively this address space's own",
        ),
        ("read a 0x11000; write a 0x11000 1", "or the zero page"),
    ],
)
def test_an_entry_that_mprotect_or_a_first_write_rewrote_has_a_sentence_of_the_table(line, words):
    made = Session()
    made.run(f"spawn a; mmap a 0x10000 2p rw; write a 0x10000 1; fork a as b; {line}")
    address = "0x11000" if "0x11000" in line else "0x10000"
    assert words in made.run(f"why pte a {address}")[-1].reading.rule
