"""Wrong kernels that break one rule of bookkeeping each: (name, function, text, text instead,
story, who notices).

Together with catalogue.py there is one for every invariant (docs/invariants.md says which).
"""

from __future__ import annotations

from typing import Any

from kemu.kernel.arch import pgtable, tlbflush
from kemu.kernel.kernel import exit as exiting
from kemu.kernel.kernel import fork, sched
from kemu.kernel.mm import (
    brk,
    filemap,
    fork_mm,
    mlock,
    mmap,
    mprotect,
    mremap,
    munmap,
    page_alloc,
    readwrite,
    rmap,
    shmem,
    truncate,
    vma,
    zap,
)

Change = tuple[str, Any, str, str, str, str]

TASKS: tuple[Change, ...] = (
    (
        "clone_forgets_user",
        fork.copy_mm,
        "        mmget(oldmm)\n",
        "        pass\n",
        (
            "a task that shares an address space is not counted as its user: the first that ends "
            "tears it down for both"
        ),
        "mm_users_are_tasks",
    ),
    (
        "exit_puts_mm_twice",
        exiting.exit_mm,
        "    mmput(mm)\n",
        "    mmput(mm)\n    if mm.mm_users == 0:\n        mm.mm_users -= 1\n",
        "the end of a process drops the address space once too often",
        "mm_counts_are_sane",
    ),
    (
        "kthread_keeps_borrowed_mm",
        sched.context_switch,
        "            prev.active_mm = None\n    cpu.curr = next\n",
        "            pass\n    cpu.curr = next\n",
        "a kernel thread that no longer runs still points to the tables that it had borrowed",
        "running_tasks_have_tables",
    ),
    (
        "thread_has_its_own_signals",
        fork.copy_signal,
        "    if flags & CLONE_THREAD:\n",
        "    if flags & CLONE_THREAD and not flags:\n",
        "a thread gets a signal structure of its own: it does not die with its process",
        "threads_share_their_process",
    ),
    (
        "clone_forgets_files",
        fork.copy_files,
        '        atomic_inc(old, "count")\n',
        "        pass\n",
        (
            "shared descriptors are not counted: the first of the sharers that ends closes the files "
            "of the others"
        ),
        "shared_structures_are_counted",
    ),
    (
        "reaped_task_keeps_its_pid",
        exiting.release_task,
        "    system.tasks.put(p.pid, None)\n",
        "    p.exit_state = EXIT_DEAD\n",
        "a task that was reaped can still be found under its pid",
        "threads_share_their_process",
    ),
    (
        "dead_space_keeps_a_vma",
        zap.exit_mmap,
        "    vm_unacct_memory(nr_accounted)\n",
        "    vm_unacct_memory(nr_accounted)\n    mm.mm_mt.insert(vmas[-1])\n",
        "the end of an address space leaves a mapping behind",
        "unused_spaces_are_empty",
    ),
)

SPACES: tuple[Change, ...] = (
    (
        "split_forgets_to_shrink",
        vma.__split_vma,
        "        vma.vm_end = addr\n",
        "        pass\n",
        "after a split both mappings claim the upper half",
        "kernel",
    ),
    (
        "mappings_without_limit",
        mmap.do_mmap,
        "    if mm.map_count > system.sysctl.max_map_count:\n",
        "    if mm.map_count > system.sysctl.max_map_count << 8:\n",
        "a process may have any number of mappings",
        "map_count_is_limited",
    ),
    (
        "mprotect_forgets_size",
        mprotect.mprotect_fixup,
        "    vm_stat_account(mm, newflags, nrpages)\n",
        "",
        "memory that changes its rights is counted in no class any more",
        "vm_sizes_add_up",
    ),
    (
        "mlock_is_not_counted",
        mlock.mlock_fixup,
        "    changed.vm_mm.locked_vm += nr_pages\n",
        "    changed.vm_mm.locked_vm += min(nr_pages, 0)\n",
        "locked pages do not count against RLIMIT_MEMLOCK",
        "locked_vm_covers_locked_vmas",
    ),
    (
        "mprotect_asks_nobody",
        mprotect._protect_range,
        "        if newflags & ~(newflags >> 4) & VM_ACCESS_FLAGS:\n",
        "        if newflags & ~(newflags >> 4) & VM_ACCESS_FLAGS & ~VM_WRITE:\n",
        "mprotect makes a file writable that was opened for reading",
        "rights_are_permitted",
    ),
    (
        "mremap_keeps_the_old_offset",
        mremap.copy_vma,
        "        pgoff = addr >> PAGE_SHIFT\n",
        "        pass\n",
        (
            "untouched memory that moves keeps the offset of its old address, and merges with nothing "
            "there"
        ),
        "anonymous_vmas_are_private",
    ),
    (
        "file_remembers_dead_mappings",
        vma.unlink_file_vma,
        "        mapping.i_mmap = tuple(v for v in mapping.i_mmap if v is not vma)\n",
        "",
        "a file still lists mappings that are gone: truncation walks into freed memory",
        "files_know_their_vmas",
    ),
    (
        "fork_forgets_file",
        fork_mm.dup_vma,
        "        get_file(tmp.vm_file)\n",
        "        pass\n",
        "the child's mapping of a file does not hold it: the file is closed under it",
        "open_files_are_counted",
    ),
    (
        "brk_below_its_start",
        brk._move_break,
        "    if brk < mm.start_brk or ",
        "    if ",
        "the heap can be shrunk to below its beginning",
        "brk_is_above_its_start",
    ),
)

TABLES: tuple[Change, ...] = (
    (
        "munmap_forgets_entries",
        munmap.vms_clear_ptes,
        "    unmap_vmas(tlb, vms.vmas, vms.vmas[0].vm_start, vms.vmas[-1].vm_end)\n",
        "",
        "the mapping is gone, its entries are not",
        "entries_lie_in_vmas",
    ),
    (
        "munmap_keeps_tables",
        munmap.vms_clear_ptes,
        "    free_pgtables(tlb, vms.vmas, floor, ceiling)\n",
        (
            "    from kemu.kernel.mm.zap import _unlink_vma\n    for vma in vms.vmas:\n        "
            "_unlink_vma(vma)\n"
        ),
        "unmapping leaves the empty page tables behind",
        "tables_serve_a_vma",
    ),
    (
        "tables_are_not_counted",
        pgtable._populate,
        "        mm.pgtables_bytes += accounted\n",
        "        mm.pgtables_bytes += 0\n",
        "page tables do not count as memory of their process",
        "kernel",
    ),
    (
        "upper_entries_without_user",
        pgtable._table_entry,
        "    user = bits.user if mm is not system.init_mm else 0\n",
        "    user = 0\n",
        "an upper entry forbids user access, whatever the leaves allow",
        "kernel",
    ),
    (
        "all_memory_is_executable",
        pgtable.vm_get_page_prot,
        "    return system.protection_map[vm_flags & (VM_READ | VM_WRITE | VM_EXEC | VM_SHARED)]\n",
        (
            "    return system.protection_map[vm_flags & (VM_READ | VM_WRITE | VM_EXEC | VM_SHARED)] "
            "& ~system.bits.nx\n"
        ),
        "the NX bit is never set: data can be executed",
        "usable_entries_are_permitted",
    ),
    (
        "write_forgets_dirty",
        readwrite.write_end,
        "        folio_mark_dirty(folio)\n",
        "        pass\n",
        "write(2) does not mark the page that it changed: the disk never gets the data",
        "what_was_written_is_dirty",
    ),
    (
        "mkwrite_is_skipped",
        vma.vma_wants_writenotify,
        "    return vma.vm_ops is not None and vma.vm_ops.page_mkwrite is not None\n",
        "    return False\n",
        "a page of a file that is only read may be written without the file system's knowledge",
        "file_systems_hear_of_writes",
    ),
    (
        "flush_counts_ahead",
        tlbflush.flush_tlb_func,
        "    cpu.ctxs.put(asid, (mm.context_id, mm.tlb_gen))\n",
        "    cpu.ctxs.put(asid, (mm.context_id, mm.tlb_gen + 1))\n",
        "a CPU notes one flush more than it did, and skips the next",
        "tlb_generations_do_not_run_ahead",
    ),
)

PAGES: tuple[Change, ...] = (
    (
        "truncate_puts_before_unlock",
        truncate.truncate_inode_pages_range,
        "            folio_unlock(folio)\n            folio_put(folio)\n",
        "            folio_put(folio)\n            folio_unlock(folio)\n",
        "truncation drops its reference before it unlocks: the page is freed while it is locked",
        "kernel",
    ),
    (
        "truncate_keeps_pages",
        truncate.do_truncate,
        "        truncate_pagecache(node, size)\n",
        "        pass\n",
        "a file gets shorter, and what was behind its end stays cached and mapped",
        "nothing_lies_behind_the_end",
    ),
    (
        "cache_keeps_freed_page",
        filemap.filemap_remove_folio,
        "    mapping.i_pages.put(folio.index, None)\n",
        "    pass\n",
        "a page that left the cache can still be found in it",
        "refcount_is_explained",
    ),
    (
        "cache_is_not_counted",
        filemap.filemap_add_folio,
        "    mapping.nrpages += 1\n",
        "    pass\n",
        "cached pages are not counted",
        "mappings_have_their_kind",
    ),
    (
        "freed_frame_is_lost",
        page_alloc.free_frozen_pages,
        "    __free_one_page(page, page_zone(page), order)\n",
        "    pass\n",
        "a freed frame goes to no list: it is never used again",
        "frames_are_free_or_used",
    ),
    (
        "frame_put_too_often",
        page_alloc.__folio_put,
        "    free_frozen_pages(folio, 0)\n",
        "    free_frozen_pages(folio, 0)\n    folio._refcount -= 1\n",
        "the last put of a page takes two references",
        "refcount_covers_mapcount",
    ),
    (
        "shared_memory_is_not_swapbacked",
        shmem.shmem_alloc_and_add_folio,
        "    page.flags |= PG_swapbacked | flags\n",
        "    page.flags |= flags\n",
        "a page of shared memory counts as one that can be read again from its file",
        "swapbacked_pages_are_memory",
    ),
    (
        "watermark_follows_the_free",
        page_alloc.account_freepages,
        "    zone.nr_free_pages += nr\n",
        "    zone.nr_free_pages += nr\n    zone.watermark_low += nr\n",
        "the low watermark moves with the number of free frames, so memory never seems short",
        "watermarks_are_ordered",
    ),
    (
        "zero_page_can_be_written",
        pgtable.pte_mkspecial,
        "    return pte | system.bits.special\n",
        "    return pte | system.bits.special | system.bits.write\n",
        "the page of zeros that all share is mapped writable",
        "zero_page_is_read_only",
    ),
    (
        "anon_vma_remembers_dead_vmas",
        rmap.unlink_anon_vmas,
        "        av.rb_root = tuple(a for a in av.rb_root if a is not avc)\n",
        (
            "        av.rb_root = tuple(a for a in av.rb_root if a is not avc or len(av.rb_root) > "
            "1)\n"
        ),
        "an anon_vma still leads to mappings that are gone",
        "anon_vmas_are_linked",
    ),
)

CHANGES = TASKS + SPACES + TABLES + PAGES
