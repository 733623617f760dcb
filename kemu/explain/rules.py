"""Why Linux writes what it writes: one sentence for a function and a thing, as a table.

`how` narrows a rule to entries that were "made" (nothing there before), "changed" or became "gone".
The first rule that fits is taken, so narrow rules come before wide ones; "" fits everything.

Data only. A test finds a sentence for every entry of a page
table that the golden scripts write, and every function named here in the kernel.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """`kind` and `field` as in EventReading (for entries of page tables the level), `function`
    Linux's."""

    kind: str
    field: str
    function: str
    how: str
    sentence: str


RULES: tuple[Rule, ...] = (
    Rule("pte", "pte", "__copy_present_ptes", "changed",
         "write-protected by fork: both sides must trap, so that the first writer copies"),
    Rule("pte", "pte", "__copy_present_ptes", "made",
         "copied by fork without W: the child shares the frame until someone writes"),
    Rule("pte", "pte", "copy_pte_range", "changed",
         "write-protected by fork: both sides must trap, so that the first writer copies"),
    Rule("pte", "pte", "copy_pte_range", "made",
         "copied by fork without W: the child shares the frame until someone writes"),
    Rule("pte", "pte", "copy_present_page", "", "fork copied at once: the page is pinned, and "
                                                "the pin must stay with the parent"),
    Rule("pte", "pte", "do_anonymous_page", "made",
         "first touch: a read gets the shared zero page without W, a write a zeroed frame of its "
         "own"),
    Rule("pte", "pte", "wp_page_copy", "made",
         "a write to a shared page or the zero page: the writer gets a copy of its own, "
         "writable; the others keep the old frame"),
    Rule("pte", "pte", "ptep_clear_flush", "gone",
         "the old entry goes and is flushed before the new one is set: no CPU may use both at "
         "once"),
    Rule("pte", "pte", "wp_page_reuse", "", "nobody else maps the frame any more: the last owner "
                                            "may write it without a copy"),
    Rule("pte", "pte", "ptep_set_access_flags", "changed",
         "an entry only gained rights (W, A or D): no copy is needed, and no flush, an old TLB "
         "entry would just trap again"),
    Rule("pte", "pte", "set_pte_range", "made", "a file's page was mapped from the page cache"),
    Rule("pte", "pte", "change_pte_range", "gone",
         "mprotect takes the entry out while it rewrites it, so that the CPU cannot set A or D "
         "meanwhile"),
    Rule("pte", "pte", "change_pte_range", "",
         "mprotect: the entry follows the mapping; where writing is allowed, W comes at once only "
         "to a page that is exclusively "
         "this address space's own: for any other the next write asks whether it must copy"),
    Rule("pte", "pte", "zap_pte_range", "gone", "the range was unmapped (munmap, madvise, exec "
                                                "or exit)"),
    Rule("pte", "pte", "move_ptes", "", "mremap moves entries to another address; the frames "
                                        "stay where they are"),
    Rule("pte", "pte", "try_to_unmap", "", "the frame is needed elsewhere: its entries go, or "
                                           "point to swap"),
    Rule("pte", "pte", "page_walk", "changed", "the CPU itself sets A on the first use and D on "
                                               "the first write"),
    Rule("pte", "", "__pte_alloc", "made", "a table of the last level was missing on the way to "
                                           "an address that is used now"),
    Rule("pte", "", "__pmd_alloc", "made", "a table was missing on the way to an address that is "
                                           "used now"),
    Rule("pte", "", "__pud_alloc", "made", "a table was missing on the way to an address that is "
                                           "used now"),
    Rule("pte", "", "pgd_alloc", "", "every address space shares the kernel's half of the root"),
    Rule("pte", "", "free_pgd_range", "gone", "no mapping needs the table any more"),
    Rule("pte", "", "pgd_free", "", "the address space is gone, its root with it"),
    Rule("frame", "_refcount", "__alloc_pages_noprof", "", "fresh from the allocator: one "
                                                           "reference, the allocating code's"),
    Rule("row", "", "zap_pte_range", "", "a whole table of entries was taken away: one entry less "
                                         "maps each frame"),
    Rule("row", "", "folios_put_refs", "", "the entries are gone and flushed: their references are "
                                           "dropped, and the last one frees a frame"),
    Rule("row", "", "", "", "fork copied a whole table: one more entry maps each frame, and "
                            "holds a reference to it"),
    Rule("frame", "_refcount", "copy_present_ptes", "", "fork: the child's entry holds a "
                                                        "reference to the shared frame"),
    Rule("frame", "_refcount", "do_wp_page", "", "held while it is copied, so that it cannot be "
                                                 "freed meanwhile"),
    Rule("frame", "_refcount", "wp_page_copy", "", "the writer has its copy now: its reference "
                                                   "to the old frame is given back"),
    Rule("frame", "_refcount", "tlb_flush_mmu", "", "given back only after the TLB flush: until "
                                                    "then a CPU could still use it"),
    Rule("frame", "_refcount", "filemap_fault", "", "a mapping of the file's page holds a "
                                                    "reference besides the page cache's"),
    Rule("frame", "_refcount", "follow_page_pte", "", "the kernel itself reads or writes the "
                                                      "page, and holds it meanwhile"),
    Rule(
        "frame",
        "_mapcount",
        "folio_add_new_anon_rmap",
        "",
        "the first entry maps it (-1 means none)",
    ),
    Rule("frame", "_mapcount", "copy_present_ptes", "", "fork: one more entry maps the frame"),
    Rule("frame", "_mapcount", "wp_page_copy", "", "the writer's entry maps the copy now, one "
                                                   "entry less maps this frame"),
    Rule("frame", "_mapcount", "zap_pte_range", "", "an entry that mapped it is gone"),
    Rule("frame", "flags", "copy_present_ptes", "", "shared by fork: it is no longer exclusive "
                                                    "to one address space"),
    Rule("frame", "flags", "folio_add_new_anon_rmap", "", "a new anonymous page belongs to one "
                                                          "address space alone: exclusive"),
    Rule("frame", "flags", "do_wp_page", "", "only one address space is left: it is exclusive "
                                             "again"),
    Rule("frame", "flags", "folio_add_lru", "", "on the lists of reclaim from now on"),
    Rule("frame", "page_type", "pte_alloc_one", "", "the frame holds a page table"),
    Rule("frame", "mapping", "folio_add_new_anon_rmap", "", "where to look for all entries that "
                                                            "map it: the anon_vma"),
    Rule("frame", "mapping", "folio_move_anon_rmap", "", "the last owner took the page into its "
                                                         "own anon_vma"),
    Rule("tlb", "", "page_walk", "", "the CPU remembers a translation that it has just used"),
    Rule("tlb", "", "flush_tlb_func", "", "the entry had lost rights or is gone: a remembered "
                                          "translation would be stale"),
    Rule("tlb", "", "switch_mm_irqs_off", "", "the PCID was given to another address space"),
    Rule("vma", "", "dup_mmap", "", "fork copies every mapping, but no page of it"),
    Rule("vma", "", "mmap_region", "", "mmap: a promise of memory; pages come with the first "
                                       "touch"),
    Rule("vma", "", "do_vmi_align_munmap", "", "munmap: the mapping goes, then its entries"),
    Rule("vma", "", "exit_mmap", "", "the address space ends, all its mappings with it"),
    Rule("vma", "", "__split_vma", "", "a change of a part of a mapping splits it in two"),
    Rule("vma", "vm_flags", "mprotect_fixup", "", "mprotect: what may be done from now on; "
                                                  "entries follow"),
    Rule("vma", "", "expand_downwards", "", "the stack grows when something just below it is "
                                            "touched"),
    Rule("mm", "mm_users", "copy_mm", "", "a thread (or vfork) shares the address space: one "
                                          "more user"),
    Rule("mm", "mm_users", "mmput", "", "a user is gone; the last one takes the mappings down"),
    Rule("mm", "mm_count", "", "", "holders of the structure: all users together count one, each "
                                   "borrowing kernel thread one"),
    Rule("mm", "MM_ANONPAGES", "do_anonymous_page", "", "a page of anonymous memory is resident: "
                                                        "first touch"),
    Rule("mm", "MM_ANONPAGES", "wp_page_copy", "", "the zero page or a file's page became a page "
                                                   "of its own"),
    Rule("mm", "MM_ANONPAGES", "copy_pte_range", "", "fork: shared pages count for the child too"),
    Rule("mm", "MM_ANONPAGES", "zap_pte_range", "", "pages were unmapped"),
    Rule("mm", "", "dup_mm", "", "copied from the parent by fork"),
    Rule("mm", "", "dup_mmap", "", "copied from the parent by fork, mapping by mapping"),
    Rule("mm", "", "vm_stat_account", "", "pages of address space, touched or not"),
    Rule("mm", "pgtables_bytes", "", "", "page tables are memory too: 4096 bytes each"),
    Rule("task", "exit_state", "exit_notify", "", "it has ended; a zombie keeps its exit code "
                                                  "until the parent waits for it"),
    Rule("task", "exit_state", "wait_task_zombie", "", "the parent has taken the exit code"),
    Rule("task", "exit_code", "get_signal", "", "a signal ended it"),
    Rule("task", "exit_code", "do_exit", "", "what it said at exit, or the signal that ended it"),
    Rule("task", "state", "do_task_dead", "", "it never runs again"),
    Rule("task", "state", "wake_up_new_task", "", "a child of fork may run from now on"),
    Rule("task", "state", "wake_up_process", "", "what it waited for has happened"),
    Rule("task", "state", "wait_for_vfork_done", "", "after vfork the parent waits until the "
                                                     "child gives the address space back"),
    Rule("task", "mm", "copy_mm", "", "fork: a copy of the address space, or the same one for a "
                                      "thread"),
    Rule("task", "mm", "exec_mmap", "", "exec: a new address space takes the place of the old one"),
    Rule("task", "mm", "exit_mm", "", "it gives its address space back before it becomes a zombie"),
    Rule("task", "min_flt", "handle_mm_fault", "", "a fault that needed no disk"),
    Rule("task", "", "copy_process", "", "a child begins as a copy of its parent"),
    Rule("task", "", "dup_task_struct", "", "a child begins as a copy of its parent"),
    Rule("counter", "PGFAULT", "", "", "one more fault was served, whatever it needed"),
    Rule("counter", "PGMAJFAULT", "", "", "a fault had to wait for the disk"),
    Rule("counter", "PGREUSE", "", "", "a write fault found that it was the last owner: no copy"),
    Rule("counter", "PGALLOC", "", "", "a frame was taken from the free lists"),
    Rule("counter", "PGFREE", "", "", "a frame went back to the free lists"),
    Rule("counter", "OOM_KILL", "", "", "memory had run out: a task was ended for its memory"),
    Rule("counter", "nr_free_pages", "", "", "frames left the free lists, or came back to them"),
    Rule("counter", "vm_committed_as", "", "", "memory that was promised, touched or not"),
    Rule("counter", "last_pid", "", "", "pids count up: this is the newest one"),
    Rule("ram", "", "wp_page_copy", "", "the copy of a page that was shared"),
    Rule("ram", "", "", "", "user code stored it"),
)  # fmt: skip


def rule_for(kind: str, field: str, function: str, how: str) -> str:
    """The sentence, or an empty text where the table has none."""
    for rule in RULES:
        wanted = (rule.kind, rule.field or field, rule.function or function, rule.how or how)
        if wanted == (kind, field, function, how):
            return rule.sentence
    return ""


class SignalRule(NamedTuple):
    """Why a signal is sent: its name and code as Linux says them ("" fits all), a function that
    must be open, and what must be true of the address; the sentence, and what would have made it
    come out otherwise."""

    signal: str
    code: str
    function: str
    where: str
    sentence: str
    advice: str


SIGNALS: tuple[SignalRule, ...] = (
    SignalRule("SIGSEGV", "SEGV_MAPERR", "", "null",
               "no mapping (VMA) holds the address: page 0 stays free, so that a null pointer "
               "traps",
               "an address that maps shows"),
    SignalRule("SIGSEGV", "SEGV_MAPERR", "", "kernel", "the address is in the kernel's half: no "
                                                       "user code may touch it",
               "an address below task_size, of a mapping that maps shows"),
    SignalRule("SIGSEGV", "SEGV_MAPERR", "", "mapped", "the mapping is there, but the page is a "
                                                       "guard page, made to trap",
               "madvise it guard_remove first"),
    SignalRule("SIGSEGV", "SEGV_MAPERR", "", "", "no mapping (VMA) holds the address",
               "mmap it first, or touch an address that maps shows"),
    SignalRule("SIGSEGV", "SEGV_ACCERR", "", "", "there is a mapping, but it does not allow this "
                                                 "access",
               "mprotect it with the right that is missing"),
    SignalRule("SIGSEGV", "SI_KERNEL", "bprm_execve", "",
               "exec had thrown the old program away when it failed: there is nothing left to "
               "return to",
               "a file whose segments fit into user memory: why errno names the check that failed"),
    SignalRule("SIGSEGV", "SI_KERNEL", "", "", "the address is not canonical: its upper bits must "
                                               "all be the same",
               "use an address below task_size"),
    SignalRule("SIGBUS", "BUS_ADRERR", "", "anonymous", "there was no page to be had for it",
               "more memory: end a process, or start with more --mem"),
    SignalRule("SIGBUS", "BUS_ADRERR", "", "", "the mapping is there, but the file ends before "
                                               "this page, or has no room for it",
               "ftruncate the file to a larger size first, or touch an earlier page"),
    SignalRule("SIGKILL", "", "oom_kill_process", "", "memory had run out, and the end of this "
                                                      "task gives most of it back",
               "less memory in use, or start with more --mem"),
    SignalRule("SIGCHLD", "", "", "", "a child of the task has ended: its parent can wait for it",
               "nothing was wrong: wait TASK takes the exit code"),
    SignalRule("SIGPIPE", "", "", "", "no process can read "
                                      "the pipe any more", "a reader that keeps its end open"),
    SignalRule("", "SI_USER", "", "", "sent by kill", "signal TASK SIGNAL ignore, or handle (not "
                                                      "for KILL and STOP)"),
    SignalRule("", "SI_TKILL", "", "", "sent to one "
                                       "thread by tgkill", "signal TASK SIGNAL ignore, or handle"),
    SignalRule("", "SI_KERNEL", "", "", "sent by "
                                        "the "
                                        "kernel "
                                        "itself", "another state: the functions above say which"),
    SignalRule("", "", "", "", "sent on the way through "
                               "the functions above", "signal TASK SIGNAL ignore, or handle"),
)  # fmt: skip


def signal_rule(
    signal: str, code: str, address: int, calls: tuple[str, ...], vm_flags: int | None
) -> tuple[str, str]:
    """(sentence, advice) of the first rule that fits; `vm_flags`: of the mapping at the address,
    None without one."""
    where = {
        "null": address < 4096 and vm_flags is None,
        "kernel": address >> 63 == 1,
        "mapped": vm_flags is not None,
        "anonymous": vm_flags is not None and "do_anonymous_page" in calls,
        "": True,
    }
    for rule in SIGNALS:
        fits = (
            rule.signal in ("", signal)
            and rule.code in ("", code)
            and rule.function in ("", *calls)
        )
        if fits and where[rule.where]:
            return rule.sentence, rule.advice
    return "", ""
