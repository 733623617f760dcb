"""Every system call of the kernel has a word in the shell, with Linux's own names for what it
takes."""

from __future__ import annotations

import pytest

from kemu import Session
from kemu.abi import words
from kemu.abi.calls import BY_OPERATION, BY_WORD
from kemu.commands import table
from kemu.errors import UsageError
from kemu.kernel.include.linkage import SYSCALLS
from kemu.readings import DataOutcome, Residency

NO_WORD = {"getpid", "getppid"}
"""Calls that only ask what `ps` shows."""


@pytest.fixture
def kemu():
    made = Session()
    made.run('spawn app; mmap app 0x10000 4p rw; write app 0x10000 "hello"')
    return made


def test_every_system_call_has_a_command():
    words = {row.name: word for word, row in BY_WORD.items()}
    assert {name for name in SYSCALLS if words.get(name, name) not in table.TABLE} == NO_WORD


def test_the_words_are_those_of_the_recordings():
    assert {
        word.upper(): number for word, number in words.MADVISE.items() if number < 100
    }.items() <= words.RECORDED_ADVICE.items()
    assert {
        name: words.RLIMITS[name.lower()] for name in words.RECORDED_RLIMITS
    } == words.RECORDED_RLIMITS
    for name in ("mremap", "msync", "mlockall"):
        flags = next(arg for arg in BY_OPERATION[name].args if arg.kind == "flags")
        assert flags.in_recordings == flags.words


def test_mremap_moves_a_mapping_and_keeps_its_frames(kemu):
    before = kemu.value("pfn(app, 0x10000)")
    outcome = kemu.reading("mremap app 0x10000 4p 4p maymove fixed to 0x200000")
    assert (outcome.value, outcome.errno) == (0x200000, 0)
    assert kemu.value("pfn(app, 0x200000)") == before
    assert kemu.value("pfn(app, 0x10000)") is None


def test_advice_is_a_word_or_a_number(kemu):
    kemu.run("madvise app 0x10000 1p dontneed")
    assert kemu.value("pfn(app, 0x10000)") is None
    assert kemu.reading("madvise app 0x10000 1p 4").errno == 0
    assert kemu.reading("madvise app 0x10000 1p 77").error == "EINVAL"
    with pytest.raises(
        UsageError, match=r"advice: expected advice such as dontneed.*got 'dontned'"
    ) as caught:
        kemu.run("madvise app 0x10000 1p dontned")
    assert caught.value.hint == "did you mean 'dontneed'?"


def test_mincore_gives_one_digit_a_page(kemu):
    reading = kemu.reading("mincore app 0x10000 4p")
    assert isinstance(reading, Residency)
    assert (reading.start, reading.vector) == (0x10000, "1000")
    assert kemu.text("mincore app 0x10000 4p into 0x11000").split("\n")[1:] == [
        "  0x10000  1 page in memory",
        "  0x11000  3 pages not in memory",
    ]
    assert kemu.reading("mincore app 0x200000 1p").error == "ENOMEM"


def test_a_range_too_long_for_an_answer_is_refused(kemu):
    with pytest.raises(UsageError, match="too many for one mincore"):
        kemu.run("mincore app 0x10000 1G")


def test_the_kernel_stores_what_it_reads_from_a_file(kemu):
    kemu.run("mkfile /data 2p 0; open app /data rdwr")
    reading = kemu.reading("pread app 3 0x11000 4 1p")
    assert isinstance(reading, DataOutcome)
    assert (reading.value, reading.address, reading.data, reading.minor) == (
        4,
        0x11000,
        b"\x11" * 4,
        1,
    )
    assert kemu.reading("read app 0x11000").data == b"\x11"
    assert kemu.reading("pread app 3 0x900000 4").error == "EFAULT"
    assert kemu.reading("pread app 9 0x11000 4").error == "EBADF"


def test_a_write_to_a_file_is_seen_by_its_mappings(kemu):
    kemu.run(
        "mkfile /data 2p; open app /data rdwr; mmap app 0x30000 2p r shared fd 3; pwrite app 3 "
        "0x10000 5 1p"
    )
    assert kemu.reading("read app 0x31000 5").data == b"hello"


def test_another_process_is_read_and_written(kemu):
    kemu.run("fork app as kid")
    assert kemu.reading("process_vm_readv app kid 0x10000 5").data == b"hello"
    assert kemu.reading("memread kid 0x10000 5").data == b"hello"
    kemu.run('process_vm_writev app kid 0x10000 "J"')
    assert kemu.reading("read kid 0x10000 5").data == b"Jello"
    assert kemu.reading("read app 0x10000 5").data == b"hello"


def test_a_pipe_holds_the_page_and_not_a_copy(kemu):
    kemu.run('pipe app; vmsplice app 3 0x10000 5; write app 0x10000 "J"')
    assert kemu.reading("pipe_read app 3 5").data == b"Jello"
    assert kemu.reading("pipe_read app 3 5").error == "EAGAIN"


def test_a_limit_keeps_its_hard_half_unless_it_is_given(kemu):
    kemu.run("setrlimit app as 1M 2M; prlimit app as 1M")
    assert kemu.reading("mmap app 2M rw").error == "ENOMEM"
    assert kemu.reading("setrlimit app as 4M").error == "EINVAL"
    assert kemu.reading("setrlimit app as unlimited unlimited").errno == 0
    assert kemu.reading("mmap app 2M rw").errno == 0


def test_a_pinned_page_is_copied_by_fork_at_once(kemu):
    kemu.run("pin app 0x10000 1p; fork app as kid")
    assert kemu.value("pfn(app, 0x10000) != pfn(kid, 0x10000)")
    assert kemu.reading("unpin app 0x10000 1p").errno == 0
    assert kemu.reading("unpin app 0x10000 1p").error == "EINVAL"


def test_a_file_is_made_with_pages_that_can_be_told_apart(kemu):
    kemu.run("mkfile /a 5000 2; mkfile /b 1p 0 tmpfs; mkfile /c 3p sparse")
    rows = {row.path: (row.kind, row.size, row.cached) for row in kemu.reading("ls").files}
    assert rows == {"/a": ("disk", 5000, 2), "/b": ("tmpfs", 4096, 1), "/c": ("disk", 12288, 0)}
    kemu.run("mmap app 0x30000 2p r file /a")
    assert kemu.reading("read app 0x30fff 2").data == b"\x30\x31"


def test_a_file_in_memory_takes_what_the_tmpfs_may_hold_and_no_more(kemu):
    kemu.run(
        "set tmpfs 4p; mkfile /f 3p tmpfs; signal app BUS handle; mmap app 0x60000 2p rw shared "
        "file /f"
    )
    with pytest.raises(UsageError, match="more than the tmpfs may hold"):
        kemu.run("mkfile /g 2p tmpfs")
    assert [row.path for row in kemu.reading("ls").files] == ["/f"]
    kemu.run(
        "mkfile /g 1p tmpfs; mkfile /g 1p tmpfs; mkfile /h 9p tmpfs sparse; mmap app 0x80000 1p rw "
        "shared file /h"
    )
    assert kemu.reading("write app 0x80000 1").signal == "SIGBUS"
    kemu.run("open app /g rdwr; ftruncate app 3 0")
    assert kemu.reading("write app 0x80000 1").signal == ""


def test_a_file_that_memory_has_no_room_for_kills_nobody():
    kemu = Session(mem="8M")
    kemu.run("spawn app; mmap app 0x10000 100p rw populate")
    before = kemu.state_hash()
    with pytest.raises(UsageError, match="more than memory has to spare"):
        kemu.run("mkfile /f 1200p tmpfs")
    assert kemu.state_hash() == before
    kemu.run("mkfile /f 900p tmpfs; mkfile /f 950p tmpfs; spawn other")
    (row,) = kemu.reading("ls").files
    assert row.cached == 950
    assert kemu.value("tasks()") == 5


def test_these_changes_can_be_undone_and_done_again(kemu):
    kemu.run("mark before")
    state = kemu.state_hash()
    kemu.run(
        "mkfile /d 2p tmpfs; memfd app x; ftruncate app 3 1p; mlock app 0x10000 4p; madvise app "
        "0x11000 1p guard_install"
    )
    after = kemu.state_hash()
    kemu.run("goto before")
    assert kemu.state_hash() == state
    kemu.run("goto end")
    assert kemu.state_hash() == after


@pytest.mark.parametrize("word", ["kill", "tgkill"])
def test_a_signal_that_would_stop_a_process_says_that_here_it_does_not(kemu, word):
    for signal in ("STOP", "TSTP"):
        (result,) = kemu.run(f"{word} app {signal} by init")
        assert "app goes on: kemu has no job control" in result.notes
    kemu.run("signal app TSTP handle")
    for signal in ("TSTP", "CONT"):
        (result,) = kemu.run(f"{word} app {signal} by init")
        assert not any("goes on" in note for note in result.notes)
