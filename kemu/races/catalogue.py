"""The list of wrong kernels: (name, function, text, text instead, story, who notices).

Each is one place that a real kernel, or a student's, once had wrong.
"""

from __future__ import annotations

from typing import Any

from kemu.kernel.arch import tlbflush, uaccess
from kemu.kernel.kernel import exit as exiting
from kemu.kernel.kernel import fork, mm_life, sched
from kemu.kernel.mm import (
    fault,
    fault_missing,
    fault_wp,
    fork_mm,
    move_tables,
    mprotect,
    munmap,
    page_alloc,
    rmap,
    vma,
    zap,
)
from kemu.races import rules

Change = tuple[str, Any, str, str, str, str]

PUT_EARLY = """\
        if old is not None:
            folio_put(old)
            folio_put(old)
        ptep_clear_flush(vma, vmf.address, vmf.pte)
        if old is not None:
            folio_get(old)
            folio_get(old)
"""
"""The two puts of ``wp_page_copy`` too early; the count is made right again for those at its
end."""

LAST_LOOKS = """\
    if folio._refcount > 1:
        return False
    if not folio_trylock(folio):
        return False
    if folio._refcount != 1:
"""
"""The two looks of ``wp_can_reuse_anon_folio`` that decide."""

FORK: tuple[Change, ...] = (
    (
        "fork_forgets_wrprotect",
        fork_mm.__copy_present_ptes,
        "        ptep_set_wrprotect(src_vma.vm_mm, addr, src_pte)\n",
        "",
        "fork leaves the parent's entries writable: what the parent writes, the child sees",
        "writable_private_pages_are_exclusive",
    ),
    (
        "fork_child_keeps_write",
        fork_mm.__copy_present_ptes,
        "        pte = pte_wrprotect(pte)\n",
        "",
        "fork gives the child writable entries of shared pages",
        "writable_private_pages_are_exclusive",
    ),
    (
        "fork_forgets_exclusive",
        rmap.folio_try_dup_anon_rmap_pte,
        "        ClearPageAnonExclusive(folio)\n",
        "        pass\n",
        "fork leaves PageAnonExclusive set, so the next write reuses the shared page",
        "exclusive_pages_are_mapped_once",
    ),
    (
        "fork_forgets_reference",
        fork_mm.copy_present_ptes,
        "        folio_get(page)\n",
        "",
        "fork maps a page once more without a reference for it",
        "refcount_covers_mapcount",
    ),
    (
        "fork_forgets_mapcount",
        rmap.folio_try_dup_anon_rmap_pte,
        '    atomic_inc(folio, "_mapcount")\n',
        "",
        "fork maps a page once more and does not count it",
        "mapcount_counts_entries",
    ),
    (
        "fork_forgets_flush",
        fork_mm.dup_mmap,
        "    flush_tlb_mm(oldmm)\n",
        "",
        "fork write-protects the parent's entries, but its CPUs remember the writable ones",
        "tlbs_allow_no_more_than_the_tables",
    ),
    (
        "fork_shares_pinned_page",
        rmap.folio_try_dup_anon_rmap_pte,
        "        if maybe_pinned:\n            return False\n",
        "",
        (
            "fork shares a page that a device writes to: after the next store the device writes into "
            "the void"
        ),
        "pinned_pages_stay_exclusive",
    ),
    (
        "fork_forgets_charge",
        fork_mm.dup_vma,
        "    if charge and __vm_enough_memory(oldmm, charge):\n",
        "    if charge and False:\n",
        "fork does not promise the child's memory",
        "commit_charge_adds_up",
    ),
    (
        "fork_forgets_anon_vma",
        rmap.anon_vma_fork,
        "    _anon_vma_chain_link(vma, av)\n",
        "",
        "the child's own anon_vma is not linked: its new pages cannot be found from the frame",
        "anon_vmas_are_linked",
    ),
    (
        "vfork_does_not_wait",
        fork.kernel_clone,
        "        wait_for_vfork_done(current(), task)\n",
        "        pass\n",
        "the parent of a vfork goes on in the address space that the child uses",
        "vfork_parents_wait",
    ),
    (
        "double_put_on_failed_fork",
        fork_mm.dup_mm,
        "        mmput(mm)\n        return None\n",
        "        mmput(mm)\n        system.mmdrop(mm)\n        return None\n",
        "when fork runs out of memory, the child's half-made address space is dropped twice",
        "refcount_covers_mapcount",
    ),
    (
        "failed_fork_keeps_page",
        fork_mm.copy_present_page,
        "    if new is None:\n",
        "    if new is None:\n        folio_get(page)\n",
        "when the early copy of a pinned page fails, a reference is left behind",
        "refcount_is_explained",
    ),
)

FAULT: tuple[Change, ...] = (
    (
        "put_before_set_pte",
        fault_wp.wp_page_copy,
        "        ptep_clear_flush(vma, vmf.address, vmf.pte)\n",
        PUT_EARLY,
        (
            "the old page is put before its entry is replaced: another CPU could free it under the "
            "entry"
        ),
        "refcount_covers_mapcount",
    ),
    (
        "cow_skips_flush",
        fault_wp.wp_page_copy,
        "        ptep_clear_flush(vma, vmf.address, vmf.pte)\n",
        "",
        (
            "copy-on-write replaces the entry without a flush: threads on other CPUs go on with the "
            "old page"
        ),
        "tlbs_allow_no_more_than_the_tables",
    ),
    (
        "cow_does_not_copy",
        fault_wp._copy_for_write,
        "            system.phys.copy_page(new.pfn, old.pfn)\n",
        "            pass\n",
        "copy-on-write gives an empty page",
        "model",
    ),
    (
        "cow_leaks_old_page",
        fault_wp.wp_page_copy,
        "    if spare is not None:\n        folio_put(spare)\n",
        "",
        "copy-on-write never drops the reference that the old mapping had",
        "refcount_is_explained",
    ),
    (
        "reuse_at_two_references",
        fault_wp.wp_can_reuse_anon_folio,
        LAST_LOOKS,
        LAST_LOOKS.replace("> 1", "> 2").replace("!= 1", "> 2"),
        "a write reuses a page that somebody else still has",
        "exclusive_pages_are_mapped_once",
    ),
    (
        "reuse_by_mapcount",
        fault_wp.wp_can_reuse_anon_folio,
        LAST_LOOKS,
        LAST_LOOKS.replace("_refcount > 1", "_mapcount > 0").replace("_refcount != 1", "_mapcount"),
        (
            "reuse asks how often the page is mapped, not who holds it (CVE-2020-29374): a pipe sees "
            "the write"
        ),
        "model",
    ),
    (
        "cow_not_broken_on_kernel_write",
        uaccess.copy_to_user,
        "        pa = access(cpu, to + done, WRITE, False, system.trap)\n",
        "        pa = access(cpu, to + done, READ, False, system.trap)\n",
        (
            "read(2) into a shared page writes through: the kernel itself did not ask for write "
            "permission"
        ),
        "model",
    ),
    (
        "private_file_write_reaches_file",
        fault_missing.finish_fault,
        "    page = vmf.cow_page if is_cow else vmf.page\n",
        "    page = vmf.page\n",
        "the first write to a private file mapping maps the file's own page",
        "refcount_is_explained",
    ),
    (
        "zero_page_counted",
        fault_missing._map_zero_page,
        "    entry = pte_mkspecial(pfn_pte(system.zero_pfn, vmf.vma.vm_page_prot))\n",
        "    entry = pfn_pte(system.zero_pfn, vmf.vma.vm_page_prot)\n",
        (
            "the zero page is mapped like any other page, so unmapping takes references that nobody "
            "gave"
        ),
        "mapcount_counts_entries",
    ),
    (
        "anon_page_not_zeroed",
        fault_missing.alloc_anon_folio,
        "    return alloc_page(GFP_ZERO)\n",
        "    return alloc_page(0)\n",
        "new memory holds what the last owner of the frame left in it",
        "model",
    ),
    (
        "anon_fault_forgets_rss",
        fault_missing.do_anonymous_page,
        "    inc_mm_counter(mm, MM_ANONPAGES)\n",
        "",
        "a new page is not counted as resident",
        "kernel",
    ),
    (
        "fault_forgets_unlock",
        fault_missing.fault_dirty_shared_page,
        "    folio_unlock(page)\n",
        "",
        "a write fault on a shared page leaves it locked: the next one waits for ever",
        "no_lock_is_held_at_rest",
    ),
    (
        "fault_around_too_small",
        fault_missing.do_fault_around,
        "    nr_pages = system.sysctl.fault_around_bytes >> PAGE_SHIFT\n",
        "    nr_pages = system.sysctl.fault_around_bytes >> PAGE_SHIFT + 1\n",
        "a read of a file maps half as many of the cached pages around it as Linux does",
        "conformance",
    ),
    (
        "fault_counted_twice",
        fault.mm_account_fault,
        "        task.min_flt += 1\n",
        "        task.min_flt += 2\n",
        "every minor fault counts for two",
        "faults_are_counted_once",
    ),
)

UNMAP: tuple[Change, ...] = (
    (
        "munmap_skips_tlb_flush",
        zap.tlb_flush_mmu,
        "    if tlb.end:\n",
        "    if tlb.end < 0:\n",
        "munmap frees pages that CPUs can still reach through their TLBs",
        "tlbs_allow_no_more_than_the_tables",
    ),
    (
        "put_before_flush",
        zap.tlb_flush_mmu,
        "    if tlb.end:\n",
        (
            "    for page in tlb.pages:\n        folio_put(page)\n    tlb.pages = []\n    if "
            "tlb.end:\n"
        ),
        "munmap frees the pages first and flushes then: for a moment a TLB leads to a free frame",
        "tlbs_lead_to_no_free_frame",
    ),
    (
        "munmap_forgets_mapcount",
        zap._zap_present_page,
        "    folio_remove_rmap_pte(page, vma)\n",
        "",
        "unmapping a page does not take it out of the mapcount",
        "kernel",
    ),
    (
        "munmap_forgets_put",
        zap._zap_present_page,
        "    tlb.pages.append(page)\n",
        "",
        "unmapping a page does not drop the reference of the entry: the frame is lost",
        "refcount_is_explained",
    ),
    (
        "munmap_forgets_rss",
        zap.zap_pte_range,
        "            rss[counter] = rss.get(counter, 0) - 1\n",
        "            pass\n",
        "unmapped pages stay counted as resident",
        "kernel",
    ),
    (
        "munmap_keeps_promise",
        munmap.vms_complete_munmap_vmas,
        "    vm_unacct_memory(vms.nr_accounted)\n",
        "",
        "memory that is gone stays promised, until nothing can be mapped any more",
        "commit_charge_adds_up",
    ),
    (
        "split_forgets_offset",
        vma.__split_vma,
        "        new.vm_pgoff += (addr - vma.vm_start) >> PAGE_SHIFT\n",
        "",
        "the upper half of a split mapping begins at the wrong offset",
        "reverse_map_finds_every_entry",
    ),
    (
        "mremap_skips_flush",
        move_tables.move_ptes,
        "    if force_flush:\n",
        "    if False:\n",
        "moved pages can still be reached at the old address",
        "tlbs_allow_no_more_than_the_tables",
    ),
    (
        "mprotect_skips_flush",
        mprotect.change_pte_range,
        "            tlb_track(tlb, address)\n",
        "            pass\n",
        "mprotect takes a right away that CPUs remember",
        "tlbs_allow_no_more_than_the_tables",
    ),
    (
        "mprotect_forgets_entries",
        mprotect.mprotect_fixup,
        (
            "    change_protection(tlb, changed, start, end, "
            "vma_wants_manual_pte_write_upgrade(changed))\n"
        ),
        "",
        "mprotect changes the mapping and leaves the entries as they are",
        "writable_entries_are_permitted",
    ),
    (
        "mprotect_makes_shared_page_writable",
        mprotect.can_change_pte_writable,
        " and PageAnonExclusive(page)\n",
        "\n",
        "mprotect(RW) gives write permission to a page that fork left shared",
        "writable_private_pages_are_exclusive",
    ),
)

LIFE: tuple[Change, ...] = (
    (
        "exit_forgets_page_tables",
        zap.exit_mmap,
        "    free_pgtables(tlb, vmas, 0, 0)\n",
        "    for vma in vmas:\n        _unlink_vma(vma)\n",
        "the page tables of a dead process are never freed",
        "kernel",
    ),
    (
        "exit_keeps_mm",
        exiting.exit_mm,
        "    tsk.mm = None\n",
        "",
        "a zombie still points to the address space that it has given back",
        "tables_belong_to_one_space",
    ),
    (
        "mm_freed_while_borrowed",
        sched.context_switch,
        "            mmgrab(prev.active_mm)\n",
        "            pass\n",
        (
            "a kernel thread borrows tables without a hold: when their process ends, it runs on freed "
            "ones"
        ),
        "mm_count_is_explained",
    ),
    (
        "mm_never_dropped",
        mm_life.__mmput,
        "    mmdrop(mm)\n",
        "",
        "the root table of every dead process is lost",
        "tables_belong_to_one_space",
    ),
    (
        "orphans_keep_their_parent",
        exiting.forget_original_parent,
        "            thread.real_parent = reaper\n",
        "            pass\n",
        "the children of a dead process go on naming it as their parent",
        "children_know_their_parent",
    ),
    (
        "refcount_too_narrow",
        page_alloc.folio_get,
        '    atomic_inc(folio, "_refcount")\n',
        "    folio._refcount = (folio._refcount + 1) & 3\n",
        (
            "the reference count has two bits (students take eight): the fourth sharer makes the page "
            "free"
        ),
        "refcount_covers_mapcount",
    ),
    (
        "freed_page_stays_on_lru",
        page_alloc.__folio_put,
        "    if folio.flags & PG_lru:\n        lruvec_del_folio(folio)\n",
        "",
        "a freed page stays linked into its LRU list",
        "lru_lists_are_right",
    ),
    (
        "free_frames_counted_twice",
        page_alloc.__free_one_page,
        "    account_freepages(zone, 1 << order)\n",
        "    account_freepages(zone, 2 << order)\n",
        "the allocator thinks that it has more free frames than it has",
        "free_lists_hold_free_frames",
    ),
    (
        "new_mm_not_in_cpumask",
        tlbflush.switch_mm_irqs_off,
        "    next.mm_cpumask |= {cpu.id}\n",
        "",
        "a CPU loads an address space and does not say so: no flush reaches it",
        "loaded_spaces_know_their_cpus",
    ),
    (
        "stale_asid_reused",
        tlbflush.choose_new_asid,
        "            return asid, tlb_gen < next.tlb_gen\n",
        "            return asid, False\n",
        "a CPU comes back to an address space and does not notice the flushes that it missed",
        "model",
    ),
)

CHANGES = FORK + FAULT + UNMAP + LIFE + rules.CHANGES
