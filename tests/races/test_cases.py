"""Situations from bug reports and teaching kernels (cases on TLBs, lives of address spaces, COW
labs), right and wrong.

A test names its situation in the docstring ("Case Q02")."""

import pytest

from kemu.commands.run import run
from kemu.errors import KernelBug
from kemu.invariants import check
from kemu.kernel.include.mmzone import nr_free_pages
from kemu.races.mutants import bodies, read
from tests.races.raced import FORKED, THREADS, explored, session

WRITES = ("write parent 0x10000 2", "write child 0x10000 3")


def did(made, line):
    """The last reading of a line that must succeed."""
    results = run(made, line)
    assert results[-1].error is None, results[-1].error
    return results[-1].reading


def value(made, expression):
    return did(made, f"print {expression}").value


def names(reading):
    return {outcome.name for outcome in reading.outcomes}


# ---------------------------------------------------------------- TLBs


def test_pages_are_freed_only_when_no_cpu_can_reach_them_any_more():
    """Case Q02. Clear, flush, free: with the free before the flush another CPU reaches a free
    frame."""
    assert explored("tlb-shootdown", bound=1).bad == 0
    wrong = explored("tlb-shootdown", bound=1, mutant="put_before_flush")
    assert wrong.bad == wrong.schedules
    assert names(wrong) == {"tlbs_lead_to_no_free_frame"}


FLUSHES_ANOTHER_PAGE = read("""\
Name: munmap_flushes_another_page
Function: tlb_track
Story: munmap flushes the page after the one that it takes away
Noticed-by: tlbs_allow_no_more_than_the_tables

--- a/kemu/kernel/mm/zap.py
+++ b/kemu/kernel/mm/zap.py
@@ -1,2 +1,1 @@ def tlb_track
-    tlb.start = min(tlb.start, addr)
-    tlb.end = max(tlb.end, addr + size)
+    tlb.start, tlb.end = addr + size, addr + 2 * size
""")


@pytest.mark.parametrize(("mutant", "dies"), [(None, True), (FLUSHES_ANOTHER_PAGE, False)])
def test_a_flush_of_the_wrong_page_hides_a_use_after_free(mutant, dies):
    """Case Q03. The stale translation still works, so the fault that would show the bug does not
    come."""
    made = session(THREADS + "; write a 0x10000 7; on 1 read b 0x10000")
    if mutant is not None:
        made.kernel.bodies = bodies(mutant)
        made.kernel.activate()
    did(made, "munmap a 0x10000 1p")
    outcome = did(made, "on 1 read b 0x10000")
    assert outcome.killed == dies
    assert bool(check(made.kernel)) != dies


# ---------------------------------------------------------------- lives


def test_an_address_space_is_read_only_with_a_user_of_ones_own():
    """Case I10. The pointer alone leads to tables that are gone; with the lock and a get, the
    reader finds them or finds none."""
    right = explored("exit-reader", bound=1)
    assert names(right) == {"a has ended; b gets 1", "a has ended; b gets -ESRCH"}
    wrong = explored("exit-reader", mutant="get_on_zero")
    assert "the kernel crashes" in names(wrong)
    assert "the kernel stops" in names(wrong)


# ---------------------------------------------------------------- teaching kernels


def test_a_cow_lab_leaks_pages_only_with_two_cpus():
    """Case J02. Both store 1, nobody maps the page any more and its count stays 1; decrement and
    test must be one step."""
    made = session(FORKED)
    assert explored(*WRITES, on=made, bound=0, mutant="non_atomic_put").bad == 0
    wrong = explored(*WRITES, on=made, bound=1, mutant="non_atomic_put")
    leaked = next(outcome for outcome in wrong.outcomes if outcome.bad)
    assert leaked.name == "refcount_is_explained"
    assert "_refcount 1, but 0 mappings" in leaked.detail[0]
    right = explored(*WRITES, on=made, bound=1)
    assert right.bad == 0
    assert "parent copies the page; child copies the page" in names(right)


def test_a_user_who_touches_the_kernel_dies_alone():
    """Case J04."""
    made = session(FORKED)
    for address in ("0x0", "0xffff888000000000"):
        did(made, "fork parent as victim")
        outcome = did(made, f"read victim {address}")
        assert (outcome.signal, outcome.killed) == ("SIGSEGV", True)
        did(made, "wait parent")
    assert did(made, "read parent 0x10000").data == b"\x01"


@pytest.mark.parametrize(
    ("mutant", "parent"), [("", b"\x01"), ("cow_not_broken_on_kernel_write", b"Z")]
)
def test_the_kernel_honours_write_protection_too(mutant, parent):
    """Case J06. Without it a read(2) into a shared page changes both sides."""
    made = session(
        "mkfile /z 1p; spawn parent; mmap parent 0x10000 1p rw; open parent /z rdwr; write parent "
        '0x10000 "Z"'
    )
    did(made, "pwrite parent 3 0x10000 1; write parent 0x10000 1b; fork parent as child")
    if mutant:
        did(made, f"mutant plant {mutant}")
    assert did(made, "pread child 3 0x10000 1").value == 1
    assert did(made, "read child 0x10000").data == b"Z"
    assert did(made, "read parent 0x10000").data == parent


def test_a_fork_that_fails_half_way_gives_everything_back():
    """Case J09. Pinned pages are copied at once; the memory ends in the middle of it."""
    made = session("spawn p; mmap p 0x10000 10p rw populate; pin p 0x10000 10p")
    free = nr_free_pages()
    did(made, "set fail alloc 9")
    assert did(made, "fork p").error == "ENOMEM"
    assert nr_free_pages() == free
    assert check(made.kernel) == []


def test_a_second_fork_sees_what_the_first_parent_wrote():
    """Case J11. B, although neither the child nor the grandchild has touched the copy."""
    made = session("mkfile /f 1p; spawn p; mmap p 0x10000 1p rw file /f; read p 0x10000")
    did(made, 'write p 0x10000 "B"; mlock p 0x10000 1p; fork p as c; fork c as g')
    assert did(made, "read g 0x10000").data == b"B"
    assert value(made, "pfn(g, 0x10000)") == value(made, "pfn(p, 0x10000)")


def test_no_frame_is_freed_while_an_entry_leads_to_it():
    """Case J13. A forks B forks C; B writes, A ends: C keeps the old frame and its reference."""
    made = session("spawn a; mmap a 0x10000 1p rw; write a 0x10000 7; fork a as b; fork b as c")
    old = value(made, "pfn(c, 0x10000)")
    did(made, "write b 0x10000 8; exit a")
    assert value(made, "pfn(c, 0x10000)") == old
    assert value(made, f"refcount({old})") == 1
    assert did(made, "read c 0x10000").data == b"\x07"
    assert check(made.kernel) == []


def test_read_only_text_does_not_become_copy_on_write():
    """Case J14."""
    made = session(
        "mkfile /prog 1p; spawn p; mmap p 0x10000 1p rx file /prog; mmap p 0x20000 1p rw; read p "
        "0x10000"
    )
    did(made, "write p 0x20000 1; fork p as c")
    assert did(made, "write c 0x20000 2").effect.startswith("copied")
    outcome = did(made, "write c 0x10000 2")
    assert (outcome.signal, outcome.code) == ("SIGSEGV", "SEGV_ACCERR")


DROPS_TWICE = read("""\
Name: unmap_drops_too
Function: folio_remove_rmap_pte
Story: uncounting a mapping drops a reference too
Noticed-by: refcount_covers_mapcount

--- a/kemu/kernel/mm/rmap.py
+++ b/kemu/kernel/mm/rmap.py
@@ -1,1 +1,2 @@ def folio_remove_rmap_pte
     atomic_add_negative(page, "_mapcount", -1)
+    folio._refcount -= 1
""")


def test_a_reference_is_dropped_in_one_place_only():
    """Case J16. Dropped twice, a count of 2 becomes 0 and the page is freed while the parent maps
    it."""
    made = session(FORKED)
    frame = value(made, "pfn(parent, 0x10000)")
    did(made, "exit child")
    assert value(made, f"refcount({frame})") == 1
    wrong = session(FORKED)
    wrong.kernel.bodies = bodies(DROPS_TWICE)
    wrong.kernel.activate()
    with pytest.raises(KernelBug, match=f"page.{frame:#x}. freed with _mapcount 0"):
        run(wrong, "exit child")


def test_a_parent_that_waits_is_told_of_in_both_orders_with_what_the_call_gives_a_program():
    made = session("spawn a; mmap a 0x10000 1p rw; fork a as b")
    reading = explored("wait a", "exit b", on=made, bound=1)
    assert [(outcome.name, outcome.bad) for outcome in reading.outcomes] == [
        ("a gets 4; b has ended", False)
    ]
    assert reading.schedules > 1
