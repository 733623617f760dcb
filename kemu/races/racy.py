"""Wrong kernels that are right on one CPU: (name, function, text, text instead, story, who notices,
the race that shows it).

Whoever runs one command after the other sees nothing of them; two CPUs and the right preemption do
(races/explorer.py).
"""

from __future__ import annotations

from typing import Any

from kemu.kernel.arch import pgtable
from kemu.kernel.include import pagemap
from kemu.kernel.kernel import mm_life
from kemu.kernel.mm import fault_missing, fault_wp, filemap, mmap_lock, munmap, page_alloc

Change = tuple[str, Any, str, str, str, str]

EXPLORER = "explorer"

NON_ATOMIC_PUT = """\
    from kemu.machine.atomic import atomic_read, atomic_set
    left = atomic_read(folio, "_refcount") - 1
    atomic_set(folio, "_refcount", left)
    if left == 0:
"""
NON_ATOMIC_GET = """\
    from kemu.machine.atomic import atomic_read, atomic_set
    atomic_set(folio, "_refcount", atomic_read(folio, "_refcount") + 1)
"""

SECOND_LOOK = """\
    if mm.mmap_lock < 0 or not vma.vm_start <= address < vma.vm_end:
        vma_end_read(vma)
        return None
"""

RACY: tuple[tuple[Change, str], ...] = (
    (
        (
            "non_atomic_put",
            page_alloc.folio_put,
            '    if atomic_dec_and_test(folio, "_refcount"):\n',
            NON_ATOMIC_PUT,
            (
                "a page's reference is dropped by load, subtract, store: of two puts at once one is "
                "lost"
            ),
            EXPLORER,
        ),
        "cow-cow",
    ),
    (
        (
            "non_atomic_get",
            page_alloc.folio_get,
            '    atomic_inc(folio, "_refcount")\n',
            NON_ATOMIC_GET,
            "a page's reference is taken by load, add, store: of two gets at once one is lost",
            EXPLORER,
        ),
        "cow-cow",
    ),
    (
        (
            "get_on_zero",
            mm_life.get_task_mm,
            "    if mm is not None:\n        mm.mm_users += 1\n",
            "    if mm is not None:\n        step()\n        mm.mm_users += 1\n",
            (
                "who reads another process takes its address space without the lock: the last user "
                "may be gone in between"
            ),
            EXPLORER,
        ),
        "exit-reader",
    ),
    (
        (
            "cow_does_not_look_again",
            fault_wp.wp_page_copy,
            "    if ptep_get(vmf.pte) == vmf.orig_pte:\n",
            "    if True:\n",
            (
                "copy-on-write does not look at the entry again once the table is locked: a copy that "
                "another thread made is lost"
            ),
            EXPLORER,
        ),
        "cow-threads",
    ),
    (
        (
            "first_touch_does_not_look_again",
            fault_missing.do_anonymous_page,
            "    if not pte_none(ptep_get(vmf.pte)):\n",
            "    if False:\n",
            "a first touch maps its page over the one that another thread has mapped meanwhile",
            EXPLORER,
        ),
        "first-touch",
    ),
    (
        (
            "table_linked_twice",
            pgtable._populate,
            "    if not entry_none(entry_pa):\n",
            "    if False:\n",
            "a new page table is linked over the one that another thread has linked meanwhile",
            EXPLORER,
        ),
        "first-touch",
    ),
    (
        (
            "munmap_does_not_wait_for_faults",
            munmap.vms_gather_munmap_vmas,
            "        vma_start_write(vma)\n        vms.vmas.append(vma)\n",
            "        vms.vmas.append(vma)\n",
            "munmap takes a mapping away while a fault is under way in it",
            EXPLORER,
        ),
        "munmap-fault",
    ),
    (
        (
            "fault_does_not_look_again",
            mmap_lock.lock_vma_under_rcu,
            SECOND_LOOK,
            "",
            (
                "a fault holds the mapping that it has found and does not ask whether the address "
                "still lies in it"
            ),
            EXPLORER,
        ),
        "mprotect-fault",
    ),
    (
        (
            "folio_lock_does_not_wait",
            pagemap.__folio_lock,
            "    step_until(_is_unlocked, folio, FOLIO_LOCK)\n",
            "    step()\n",
            "who finds a page locked takes it all the same: two CPUs hold it, and unlock it twice",
            EXPLORER,
        ),
        "file-write",
    ),
    (
        (
            "fault_maps_truncated_page",
            filemap.filemap_fault,
            "        elif folio.mapping is mapping and vmf.pgoff < file_pages(node):\n",
            "        elif folio.flags & PG_uptodate:\n",
            (
                "a fault does not look again, once it has locked the page, whether it still belongs "
                "to the file"
            ),
            EXPLORER,
        ),
        "truncate-fault",
    ),
)

CHANGES: tuple[Change, ...] = tuple(change for change, _ in RACY)
SHOWN_BY: dict[str, str] = {change[0]: case for change, case in RACY}
"""The built-in race that shows each of them."""
