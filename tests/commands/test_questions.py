"""Questions about ranges, tables, families and the past: each on a small machine whose answers are
known by hand."""

from __future__ import annotations

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.names.questions import FUNCTIONS

SCENE = (
    "spawn app",
    "mmap app 0x10000 9p rw",
    "write app 0x10000 7",
    "write app 0x12000 7",
    "read app 0x11000",
    "munmap app 0x16000 1p",
    "mkfile /data 4p",
    "mmap app 0x40000 2p r file /data@1p",
    "fork app as kid",
    "write kid 0x12000 8",
)


@pytest.fixture(scope="module")
def scene():
    session = Session()
    for line in SCENE:
        session.run(line)
    return session


def value(session, text):
    return session.value(text)


KNOWN = [
    ("mapped(app, 0x10000, 20p)", 8),
    ("mapped(app, 0x15800, 2p)", 1),
    ("present(app, 0x10000, 9p)", 3),
    ("present(app, 0x11000, 1p)", 1),
    ("zero_pages(app, 0x10000, 9p)", 1),
    ("frames_in(0x10000, 9p, app)", 2),
    ("frames_in(0x10000, 9p, app, kid)", 3),
    ("vma_pages(app, 0x12345)", 6),
    ("vma_pages(app, 0x16000)", 0),
    ("rights(app, 0x17000)", "rw-p"),
    ("rights(app, 0x16000)", None),
    ("file_page(app, 0x41008)", 2),
    ("file_page(app, 0x10000)", None),
    ("file_vmas(app, '/data')", 1),
    ("file_vmas(app, '/nowhere')", 0),
    ("tables(app, 'pte')", 1),
    ("tables(app, 'pgd')", 1),
    ("tables(kthreadd, 'pte')", 0),
    ("entry(app, 0x10000, 'pte') >> 12 & 0xfffff == pfn(app, 0x10000)", True),
    ("entry(app, 0x40000000, 'pte')", None),
    ("entry_index(app, 0x12000, 'pte')", 0x12),
    ("entry_index(app, 0x40000000, 'pmd')", None),
    ("stops_at(app, 0x13000)", "pte"),
    ("stops_at(app, 0x7fff00000000)", "pgd"),
    ("stops_at(app, 0x40000000)", "pud"),
    ("stops_at(app, 0x10000)", None),
    ("small_read(5, small_address(5, 3)) < 0x1f", True),
    ("small_read(5, 0)", None),
    ("small_entry(5, small_address(5, 3), 0) >> 7", 1),
    ("small_entry(5, 0, 1)", None),
    ("table(app, 0x10000, 'pte') != table(kid, 0x10000, 'pte')", True),
    ("table(app, 0x40000000, 'pmd')", None),
    ("table(app, 0xffff888000000000, 'pud') == table(kid, 0xffff888000000000, 'pud')", True),
    ("in_tlb(0, kid, 0x12000) == pfn(kid, 0x12000)", True),
    ("in_tlb(1, kid, 0x12000)", None),
    ("children(app)", 1),
    ("descendants(init)", 2),
    ("descendants(kid)", 0),
    ("used('anon')", 3),
    ("zombies()", 0),
    ("pss(kid)", 6),
    ("on_cpu(0, 'mm_users')", 1),
    ("on_cpu(7, 'mm_users')", None),
    ("of_mm(kid, 'mm_users')", 1),
    ("of_mm(kid, 'MM_ANONPAGES')", 2),
    ("of_mm(kid, 'MM_FILEPAGES')", 0),
    ("of_mm(kid, 'MM_GOLD')", None),
    ("of_mm(kthreadd, 'mm_users')", None),
    ("of_mm(kid, 'nothing')", None),
    ("borrowed(0, 'mm_users')", None),
    ("borrowed(1, 'mm_users')", None),
    ("cached('/data', 1) != none", True),
    ("cached('/data', 9)", None),
    ("cached('/nowhere', 0)", None),
    ("called('wp_page_copy', 0)", 1),
    ("called('wp_page_copy', event())", 0),
    ("called('wp_page_reuse', 0)", 0),
    ("signal_code()", None),
    ("signal_addr()", None),
    ("errno()", None),
]


@pytest.mark.parametrize(("text", "expected"), KNOWN)
def test_a_question_has_the_answer_counted_by_hand(scene, text, expected):
    assert value(scene, text) == expected


def test_free_frames_move_with_an_allocation():
    session = Session()
    session.run("spawn app; mmap app 0x10000 4p rw; write app 0x10000 1")
    before = value(session, "free_frames()")
    session.run("write app 0x11000 1")
    assert value(session, "free_frames()") == before - 1


def test_a_kernel_thread_borrows_what_the_task_before_it_used():
    session = Session()
    session.run("spawn app; clone app vm as twin; schedule kthreadd")
    assert (
        value(session, "borrowed(0, 'mm_users')"),
        value(session, "borrowed(0, 'mm_count')"),
    ) == (2, 2)
    session.run("exit app; exit twin")
    assert value(session, "borrowed(0, 'mm_users')") == 0


def test_the_newest_signal_and_errno_are_told_until_one_goes_back_before_them():
    session = Session()
    session.run(
        "spawn app; fork app as kid; mark quiet; munmap app 0x10100 1p; read kid 0x5000; wait app"
    )
    assert value(session, "errno()") == "EINVAL"
    assert value(session, "signal_code()") == "SEGV_MAPERR"
    assert value(session, "signal_addr()") == 0x5000
    session.run("goto quiet")
    assert value(session, "signal_code()") is None
    assert value(session, "errno()") is None


@pytest.mark.parametrize(
    "text",
    [
        "mapped(app, none, 1p)",
        "children('nobody')",
        "used('gold')",
        "called('f')",
        "present(app, 0, 'x')",
    ],
)
def test_a_wrong_argument_is_a_usage_error(scene, text):
    with pytest.raises(UsageError):
        value(scene, text)


def test_every_question_says_what_it_answers():
    assert all(
        function.summary and function.signature.startswith(name + "(")
        for name, function in FUNCTIONS.items()
    )
