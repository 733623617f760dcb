"""What Tab offers: typed by the declaration, looked up in the machine, quickly, and without
changing anything."""

from __future__ import annotations

import statistics
import time

import pytest

from kemu.api import Session
from kemu.commands import table
from kemu.completion.expect import candidates


@pytest.fixture(scope="module")
def session():
    made = Session()
    made.run(
        "spawn app; mmap app 0x10000 4p rw; write app 0x10000 7; mmap app 0x200000 2M rw populate; "
        "fork app as kid; mark before; "
        "mkfile /var/notes 4096; open kid /var/notes rdwr"
    )
    return made


def offered(session, text):
    return dict(candidates(session, text)[1])


@pytest.mark.parametrize(
    ("text", "word", "meta"),
    [
        ("walk app 0", "0x10000", "rw-p 4 pages"),
        ("walk app ", "0x7ffffffde000", "rw-p 33 pages [stack]"),
        ("walk app a", "app.stack", "0x7fffffffeff0"),
        ("munmap kid ", "0x200000", "rw-p 512 pages"),
        ("frame ", "0x112", "app 0x10000, r-"),
        ("use @", "@1", "init"),
        ("use ", "app", "pid 3"),
        ("close kid ", "3", "/var/notes"),
        ("mmap app 1p r file ", "/var/notes", "disk, 4096 bytes"),
        ("on ", "0", "runs "),
        ("goto ", "before", "#"),
        ("goto ", "0", "before 'spawn app'"),
        ("signal app ", "SEGV", "SIGSEGV"),
        ("madvise app 0x10000 1p ", "dontneed", "MADV_DONTNEED"),
        ("mmap app 1p rw ", "shared", "MAP_SHARED"),
        ("clone app ", "files", "CLONE_FILES"),
        ("set ", "paging", "on or off"),
        ("set granularity ", "function", "granularity"),
        ("context ", "picture", "the page in question"),
        ("lesson start ", "vm/fork", "fork copies"),
        ("graph ", "sharing", "joined at the frames"),
        ("graph sharing ", "kid", "pid"),
        ("race ", "gets", "takes a reference"),
        ("mutant plant ", "fork_forgets_wrprotect", "fork leaves"),
        ("break do_wp", "do_wp_page", "mm/memory.c"),
        ("why pte kid ", "0x10000", "rw-p 4 pages"),
        ("why frame ", "0x112", "app 0x10000"),
        ("why ", "pte", "pte TASK ADDRESS"),
        ("why ", "errno", "the newest errno"),
        ("history ", "tlb", "a TLB entry of a CPU"),
        ("print pfn(a", "app", "pid 3"),
        ("print 1 + pf", "pfn(", "the frame that"),
        ("print app.", "app.rss", "of app"),
        ("wa", "walk", "translate an address"),
        ("vt", "vtop", "walk: translate"),
    ],
)
def test_it_offers_what_the_machine_has_with_a_few_words_about_it(session, text, word, meta):
    found = offered(session, text)
    assert meta in found[word]


def test_frames_of_every_task_are_offered_however_many_one_has():
    session = Session()
    session.run(
        "spawn app; mmap app 0x200000 2M rw populate; fork app as kid; write kid 0x200000 8"
    )
    pfn = hex(session.value("pfn(kid, 0x200000)"))
    assert offered(session, "frame ")[pfn] == "kid 0x200000, rw"


def test_files_of_the_host_are_offered_folder_by_folder(session, tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.out").write_bytes(b"")
    (tmp_path / ".hidden").write_bytes(b"")
    assert offered(session, f"load {tmp_path}/") == {f"{tmp_path}/below/": "folder"}
    assert list(offered(session, f"load {tmp_path}/below/a")) == [f"{tmp_path}/below/a.out"]
    assert list(offered(session, f"load {tmp_path}/.h")) == [f"{tmp_path}/.hidden"]
    assert offered(session, "load /no/such/folder/x") == {}


def test_an_alias_is_completed_as_the_command_that_it_is(session):
    session.run("alias look walk")
    assert "0x10000" in offered(session, "look app ")
    session.run("unalias look")


def test_an_option_that_stands_there_is_not_offered_again(session):
    assert "shared" not in offered(session, "mmap app 1p rw shared ")


@pytest.mark.parametrize(
    "text", ["write app 0x10000 'ab", "# a comm", "ps # wa", "ps; # wa", "nonsense wa", "ps \x00wa"]
)
def test_nothing_is_offered_in_a_string_a_comment_or_nonsense(session, text):
    assert candidates(session, text)[1] == []


def test_it_changes_nothing_at_any_place_of_any_command(session):
    before = session.state_hash(), session.end, session.now
    for name in table.TABLE:
        for rest in (
            "",
            " ",
            " app ",
            " app 0x10000 ",
            " app 0x10000 1p ",
            " (",
            " 'x",
            " @",
            " 7 ",
        ):
            candidates(session, name + rest)
    assert (session.state_hash(), session.end, session.now) == before


def test_an_answer_takes_less_than_ten_milliseconds(session):
    texts = [
        "",
        "walk app 0x",
        "frame ",
        "goto ",
        "print pfn(",
        "break do_",
        "lesson start ",
        "graph sharing ",
        "mutant plant ",
    ]
    for text in texts:
        candidates(session, text)
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            candidates(session, text)
            taken.append(time.perf_counter() - start)
        assert statistics.median(taken) < 0.010, text
