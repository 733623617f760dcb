"""What people stumbled over: what they typed, and what is said or done about it."""

from __future__ import annotations

import pytest

from kemu.abi.words import ERRNO
from kemu.api import Session
from kemu.errors import UsageError
from kemu.front.terminal.complaint import render
from kemu.language.result import Complaint
from kemu.language.tokens import LONGEST_LINE

START = "spawn app; mmap app 0x10000 2p rw; "


@pytest.fixture
def session():
    session = Session()
    session.run(START)
    return session


def complaint(session, line):
    with pytest.raises(UsageError) as caught:
        session.run(line)
    return caught.value


# ---------------------------------------------------------------- words and units


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("write app 0x10000 = 5", "write app 0x10000 5"),
        ("mmap app 2 pages", "one word: 2p"),
        ("mmap app 0x50000 2 pages rw", "one word: 2p"),
        ("munmap app 0x10000 8 KB", "one word: 8K"),
        ("read app 0x10000 16 bytes", "one word: 16"),
        ("fork app kid", "fork app as kid"),
        ("vfork app kid", "vfork app as kid"),
        ("set pager off", "did you mean 'paging'?"),
    ],
)
def test_a_slip_gets_the_right_line(session, line, hint):
    assert hint in complaint(session, line).hint


@pytest.mark.parametrize("typed", ["0xccb", "0xFFB", "0x00b", "0X12b"])
def test_a_byte_in_base_16_is_not_taken_for_eight(session, typed):
    before = session.state_hash()
    error = complaint(session, f"write app 0x10000 {typed}")
    assert error.what.startswith("data: the byte 0x")
    assert session.state_hash() == before
    byte, number = error.hint.split("write ")[1].split(" for one byte, ")
    session.run(f"write app 0x10000 {byte}; write app 0x11000 {number.split()[0]}")
    assert session.value("byte(app, 0x10000)") == int(typed[2:4], 16)
    assert session.value("byte(app, 0x11000)") == int(typed, 16) & 0xFF


def test_hex_numbers_that_cannot_be_bytes_are_numbers(session):
    session.run("write app 0x10000 0xb; write app 0x10008 0xcccb; write app 0x10010 0x0ccb")
    assert session.reading("x/3xg app 0x10000").lines[0].split()[1:] == [
        "0x000000000000000b",
        "0x000000000000cccb",
    ]


# ---------------------------------------------------------------- stops


def test_delete_alone_removes_one_breakpoint_and_asks_about_several(session):
    session.run("break do_wp_page; delete")
    assert session.debugger.stops == []
    session.run("break do_wp_page; catch fault")
    error = complaint(session, "delete")
    assert (error.what, error.hint.split(",")[0]) == (
        "delete: which of the 2 breakpoints?",
        "delete all",
    )
    session.run("delete all")
    assert session.debugger.stops == []


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("end", "code", "status"),
    [
        ("exit kid 3", 768, 3),
        ("kill kid SEGV", 11, 139),
        ("kill kid KILL", 9, 137),
        ("exit kid", 0, 0),
    ],
)
def test_exit_codes_are_the_kernels_and_the_status_is_the_shells(session, end, code, status):
    session.run(f"fork app as kid; {end}")
    assert session.value("kid.exit_code") == code
    assert session.value("kid.exit_status") == status
    stat = dict(session.reading("stat kid").fields)
    assert stat["exit_code"] == code


def test_wait_tells_what_a_shell_shows_of_a_signal(session):
    (*_, result) = session.run("fork app as kid; kill kid BUS; wait app")
    assert "kid was killed by SIGBUS (a shell shows 135)" in result.notes


# ---------------------------------------------------------------- pids that are gone


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("kill @4", "ESRCH"),
        ("kill @77 KILL", "ESRCH"),
        ("tgkill @4", "ESRCH"),
        ("wait app for @4", "ECHILD"),
        ("process_vm_readv app @4 0x10000 8", "ESRCH"),
    ],
)
def test_a_call_that_names_a_reaped_pid_gets_the_kernels_answer(session, line, error):
    session.run("fork app as kid; exit kid; wait app")
    assert session.reading(line).error == error


def test_a_look_at_a_reaped_pid_stays_a_mistake(session):
    session.run("fork app as kid; exit kid; wait app")
    assert complaint(session, "maps @4").what.endswith("no task '@4'")


# ---------------------------------------------------------------- files, arguments, advice


def test_a_file_may_be_given_its_content(session):
    session.run("mkfile /hello 1p with 'hello'; mmap app 0x50000 1p r file /hello")
    assert session.reading("read app 0x50000 6").data == b"hello\0"
    assert complaint(session, "mkfile /d 1p 999").what.startswith("seed:")


def test_an_argument_can_be_too_long_for_exec(session):
    session.run("load tests/data/exec/files/tiny-static as /tiny")
    assert LONGEST_LINE > 2 * 131_072
    long = "x" * 131_072
    assert session.reading(f"exec app /tiny {long}").error == "E2BIG"
    assert session.reading(f"exec app /tiny {long[1:]}").errno == 0


@pytest.mark.parametrize("advice", ["hugepage", "mergeable"])
def test_advice_that_does_nothing_here_says_so(session, advice):
    (result,) = session.run(f"madvise app 0x10000 2p {advice}")
    assert any("kemu has no" in note for note in result.notes)
    (result,) = session.run("madvise app 0x10000 2p dontneed")
    assert result.notes == ()


def test_pagemap_without_a_range_shows_a_mapping(session):
    session.run("write app 0x11000 7")
    assert session.reading("pagemap app") == session.reading("pagemap app 0x10000 2p")
    assert session.reading("pagemap app 0x11000") == session.reading("pagemap app 0x11000 1p")


def test_a_dynamic_program_without_its_loader_names_it(session):
    session.run("load tests/data/exec/files/hello-dyn as /hello")
    reading = session.reading("exec app /hello")
    assert reading.error == "ENOENT"
    assert "asks for a loader" in reading.why
    assert "/ld-linux" in reading.why
    shown = session.text("why errno")
    assert "fs/exec.c" in shown
    assert "/ld-linux" in shown


# ---------------------------------------------------------------- text


def test_a_list_of_words_does_not_wrap_inside_a_word():
    hint = "known are color, characters, toolbar, suggestions, repeat, paging, errno-fails"
    for width in range(40, 90):
        assert "errno-\n" not in render(Complaint("what", "", 0, 1, hint), width=width)


def test_the_star_stays_in_its_column():
    session = Session()
    session.run("context short; spawn app; mmap app 0x401000 3p rx")
    from kemu.commands.context import change_of
    from kemu.views.terminal import render as drawn

    (result,) = session.run("mprotect app 0x401000 1p rw")
    lines = drawn(change_of(session, "", result.first, result.last, "short")).splitlines()[1:]
    columns = {line.index(" * ") for line in lines if " * " in line}
    assert len(columns) == 1


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("restore {}/nosuch/x", "there is no folder '{}/nosuch'"),
        ("restore {}/story.kem", "did you mean 'story.kemu'?"),
        ("run {}/story", "did you mean 'story.kemu'?"),
        ("load {}/sotry.kemu as /x", "did you mean 'story.kemu'?"),
        ("load {}/nosuch/x as /x", "there is no folder '{}/nosuch'"),
        ("save {}/nosuch/x", "there is no folder '{}/nosuch'"),
        ("transcript {}/nosuch/x", "there is no folder '{}/nosuch'"),
    ],
)
def test_a_file_of_the_host_that_is_not_there_is_asked_for_by_a_name_that_is(
    session, tmp_path, line, hint
):
    (tmp_path / "story.kemu").write_text("ps\n")
    assert complaint(session, line.format(tmp_path)).hint == hint.format(tmp_path)


FLAGS = ("", "rdwr", "creat", "creat rdwr")


@pytest.mark.parametrize(
    ("path", "errnos"),
    [
        ("", "ENOENT ENOENT ENOENT ENOENT"),
        ("/", "EISDIR EISDIR EISDIR EISDIR"),
        ("/dir", "EISDIR EISDIR EISDIR EISDIR"),
        ("/dir/", "EISDIR EISDIR EISDIR EISDIR"),
        ("/dir/f/", "ENOTDIR ENOTDIR EISDIR EISDIR"),
        ("/dir/f/.", "ENOTDIR ENOTDIR ENOTDIR ENOTDIR"),
        ("/dir/f/x", "ENOTDIR ENOTDIR ENOTDIR ENOTDIR"),
        ("/dir/new/", "ENOENT ENOENT EISDIR EISDIR"),
        ("/dir/new", "ENOENT ENOENT - -"),
        ("/" + "b" * 256, "ENAMETOOLONG ENAMETOOLONG ENAMETOOLONG ENAMETOOLONG"),
        ("/" + "b" * 255, "ENOENT ENOENT - -"),
        ("/" + "b/" * 2047 + "c", "ENAMETOOLONG ENAMETOOLONG ENAMETOOLONG ENAMETOOLONG"),
    ],
)
def test_a_path_of_open_gets_the_errno_of_linux(path, errnos):
    """As Linux 6.18 answered for the same paths and flags, but for a directory that is opened for
    reading: kemu has no descriptors of directories (docs/differences.md)."""
    for flags, wanted in zip(FLAGS, errnos.split(), strict=True):
        session = Session()
        session.run("mkfile /dir/f 1p; spawn app")
        outcome = session.reading(f'open app "{path}" {flags}')
        assert (ERRNO.get(outcome.errno, "-"), flags) == (wanted, flags)


def test_an_empty_path_is_called_empty(session):
    session.run('open app ""')
    assert "the path is empty" in session.text("why errno")


# ---------------------------------------------------------------- no function is open


@pytest.mark.parametrize("line", ["bt", "where", "backtrace"])
def test_where_no_function_is_open_bt_says_how_to_get_into_one(session, line):
    said = session.text(line)
    assert "no kernel function is open" in said
    assert "break FUNCTION" in said


@pytest.mark.parametrize("line", ["finish 1", "finish nosuch", "reverse-finish do_wp_page"])
def test_where_no_function_is_open_finish_says_how_to_get_into_one(session, line):
    assert "step goes into one" in complaint(session, line).hint


# ---------------------------------------------------------------- names of C without a prefix


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("setrlimit app as 4M RLIM_INFINITY", "setrlimit app as 4M unlimited"),
        ("setrlimit app as RLIM_INFINITY", "setrlimit app as unlimited"),
        ("signal app SIGSEGV SIG_IGN", "signal app SEGV ignore"),
        ("signal app SIGTERM SIG_DFL", "signal app TERM default"),
    ],
)
def test_a_name_of_c_without_a_word_of_its_own_is_read(line, same):
    hashes = []
    for said in (line, same):
        session = Session()
        session.run("spawn app")
        session.run(said)
        hashes.append(session.state_hash())
    assert hashes[0] == hashes[1]
