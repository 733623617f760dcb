"""The call tree of a command against what the real kernel was seen doing (trace events with stacks,
recorded once).

A recording shows the functions that stood above a trace event; it names inlined ones of the
compiler's choice and much that kemu leaves out. After dropping that plumbing, listed here, nine in
ten of the functions that were seen must appear in kemu's calls, in the same order.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kemu.api import Session
from kemu.readings import CallReading

FOLDER = Path(__file__).parents[1] / "data" / "traces"
MAP = "spawn A; mmap A 0x10000000000 4p rw fixed"
BASE = 0x10000000000
FILE = "mkfile /data 4p; spawn A; mmap A 0x10000000000 8p rw private fixed file /data"

PLUMBING = re.compile(
    r"memcg|obj_cgroup|obj_stock|cgroup|lruvec|_stat\b|kmem_cache|kmalloc|kvmalloc|kfree|slab|rcu|percpu|pcpu|trace"
    r"|^(__)?mas_|^(__)?mt_|^mtree|maple|security|lsm|creds|fdtable|files|ida_|fs_struct|futex|acct_collect|cpus_ptr|dup_fd"
    r"|alloc_pages_mpol|^alloc_pages_noprof|folio_alloc_mpol|get_free_pages|stack_account|account_kernel_stack"
    r"|__x64_sys|__do_sys|do_syscall|page_cache_release|tlb_batch|tlb_next_batch|tlb_remove|free_unref|folios_put_refs"
    r"|free_pages_and_swap|vm_area_free|walk_page_range|block_|ext4|mark_buffer|mark_inode|update_stats|madvise_do_behavior"
    r"|uncharge|vma_alloc_folio|folio_batch|^lru_add$|^lru_activate$|vma_lookup|find_vma_intersection"
)
"""Memory cgroups, statistics, slab, RCU, maple tree, file descriptors, security, the entry of
system calls, the batches between the TLB and the allocator, the file system below the page cache,
and helpers that only this compiler kept apart."""

BELOW_PLUMBING = re.compile(r"tlb_next_batch|tlb_remove_table")
"""Plumbing whose own calls are plumbing too: Linux takes a page from the allocator to write down
which pages and tables are to be freed behind the flush. kemu keeps that list in the `mmu_gather`
itself."""

NO_FRAME = {"folio_remove_rmap_ptes", "folio_add_file_rmap_ptes", "vma_complete"}
"""Small helpers whose work kemu does without a call of its own that is marked: counting a mapping,
and the end of a split."""

SAME = {
    "__alloc_frozen_pages_noprof": "__alloc_pages_noprof",
    "__vmf_anon_prepare": "__anon_vma_prepare",
    "tlb_flush_mmu_tlbonly": "tlb_flush_mmu",
    "__mmap_region": "mmap_region",
    "vma_modify": "vma_modify_flags",
    "zap_page_range_single_batched": "zap_page_range_single",
    "__free_frozen_pages": "free_frozen_pages",
}
"""Functions that kemu has under the name of their neighbour."""

CASES = {
    "anon_read_first_touch": (MAP, f"read A {BASE:#x} 1"),
    "anon_write_first_touch": (MAP, f"write A {BASE:#x} 1b"),
    "anon_write_over_zero_page": (f"{MAP}; read A {BASE:#x} 1", f"write A {BASE:#x} 1b"),
    "anon_write_second_page_of_vma": (
        f"{MAP}; write A {BASE + 4096:#x} 1b",
        f"write A {BASE:#x} 1b",
    ),
    "cow_write_copies": (
        f"{MAP}; write A {BASE:#x} 1b; fork A as B; use A",
        f"write A {BASE:#x} 2b",
    ),
    "cow_write_reuses": (
        f"{MAP}; write A {BASE:#x} 1b; fork A as B; exit B; use A",
        f"write A {BASE:#x} 2b",
    ),
    "fork": (f"{MAP}; write A {BASE:#x} 1b; write A {BASE + 4096:#x} 1b", "fork A as B"),
    "madvise_dontneed": (f"{MAP}; write A {BASE + 4096:#x} 1b", f"madvise A {BASE:#x} 4p dontneed"),
    "mlock_populates": (MAP, f"mlock A {BASE:#x} 1p"),
    "mmap_merges": (MAP, f"mmap A {BASE + 4 * 4096:#x} 2p rw fixed"),
    "mmap_new_vma": ("spawn A", f"mmap A {BASE:#x} 4p rw fixed"),
    "mprotect_split": (f"{MAP}; write A {BASE + 4096:#x} 1b", f"mprotect A {BASE + 4096:#x} 1p r"),
    "mprotect_merge_back": (
        f"{MAP}; write A {BASE + 4096:#x} 1b; mprotect A {BASE + 4096:#x} 1p r",
        f"mprotect A {BASE + 4096:#x} 1p rw",
    ),
    "munmap_middle_splits": (
        f"{MAP}; write A {BASE + 4096:#x} 1b",
        f"munmap A {BASE + 4096:#x} 1p",
    ),
    "munmap_whole": (f"{MAP}; write A {BASE + 4096:#x} 1b", f"munmap A {BASE:#x} 4p"),
    "segv_unmapped": ("spawn A; signal A SEGV handle", f"read A {BASE:#x} 1"),
    "segv_write_readonly": (
        f"spawn A; signal A SEGV handle; mmap A {BASE:#x} 4p r fixed",
        f"write A {BASE:#x} 1b",
    ),
    "mremap_move": (
        f"{MAP}; write A {BASE + 4096:#x} 1b",
        f"mremap A {BASE:#x} 4p 4p maymove fixed to {BASE + 16 * 4096:#x}",
    ),
    "exit_mmap": (
        (
            f"{MAP}; write A {BASE:#x} 1b; fork A as B; write B {BASE + 4096:#x} 1b; signal A CHLD "
            "ignore"
        ),
        "exit B",
    ),
    "file_private_cow_after_read": (f"{FILE}; read A {BASE:#x} 1", f"write A {BASE:#x} 1b"),
    "file_shared_disk_write_after_read": (
        (
            f"mkfile /data 4p disk; spawn A; mmap A {BASE:#x} 4p rw shared fixed file /data; read A "
            f"{BASE:#x} 1"
        ),
        f"write A {BASE:#x} 1b",
    ),
    "file_private_read_fault": (FILE, f"read A {BASE:#x} 1"),
    "file_private_write_fault": (FILE, f"write A {BASE:#x} 1b"),
    "sigbus_beyond_eof": (f"{FILE}; signal A BUS handle", f"read A {BASE + 6 * 4096:#x} 1"),
    "shared_anon_write_fault": (
        f"spawn A; mmap A {BASE:#x} 4p rw shared anon fixed",
        f"write A {BASE:#x} 1b",
    ),
}
"""Recording -> (what came before, the command that was traced)."""


def seen(name):
    """The functions of the recording in the order in which they were first seen, without
    plumbing."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    calls = _outside_plumbing(re.findall(r"^( *)([\w.]+)\(\)", text, re.MULTILINE))
    names = [re.sub(r"\.(constprop|isra|part|cold)(\.\d+)*", "", found) for found in calls]
    kept = [found for found in names if not PLUMBING.search(found) and found not in NO_FRAME]
    return list(dict.fromkeys(SAME.get(found, found) for found in kept))


def _outside_plumbing(calls):
    """The functions, without those that were called by `BELOW_PLUMBING`; each is given with its
    indentation."""
    inside = None
    for indent, name in calls:
        if inside is not None and len(indent) > inside:
            continue
        inside = len(indent) if BELOW_PLUMBING.search(name) else None
        yield name


def called(before, command):
    """The functions that kemu enters in the command (several where the recording holds several), in
    order."""
    session = Session()
    session.run(f"{before}; set lru_batch on; mark before; {command}")
    return list(_names(session.reading(f"calls {session.marks['before']} end").roots))


def _names(nodes):
    for node in nodes:
        if isinstance(node, CallReading):
            yield node.function
            yield from _names(node.children)


def in_order(wanted, given):
    """The length of the longest common subsequence."""
    row = [0] * (len(given) + 1)
    for one in wanted:
        previous = row
        row = [0]
        for i, other in enumerate(given):
            row.append(previous[i] + 1 if one == other else max(previous[i + 1], row[i]))
    return row[-1]


@pytest.mark.parametrize("name", CASES)
def test_nine_in_ten_functions_of_the_real_kernel_appear_in_the_same_order(name):
    wanted, given = seen(name), called(*CASES[name])
    assert wanted
    found = in_order(wanted, given)
    assert found >= 0.9 * len(wanted), (
        f"{found} of {len(wanted)}; missing: {sorted(set(wanted) - set(given))}"
    )


def test_every_recording_is_compared():
    assert set(CASES) == {path.stem for path in FOLDER.glob("*.txt")}


def test_the_measure_can_fail():
    assert in_order(["a", "b", "c"], ["c", "a", "x", "b"]) == 2
    assert in_order(["a"], []) == 0
