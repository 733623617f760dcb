"""Copy-on-write and exclusivity (reference D: numbers 34 to 43)."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.invariants.pages import is_anon
from kemu.invariants.registry import ALWAYS, QUIESCENT, Finding, invariant
from kemu.invariants.scan import Scan
from kemu.kernel.arch.pgtable import pte_write
from kemu.kernel.include.flags import VM_SHARED, PG_anon_exclusive
from kemu.kernel.include.mm_types import anon_vma


@invariant(34, when=ALWAYS)
def writable_private_pages_are_exclusive(scan: Scan) -> Iterator[Finding]:
    """An entry with W in a private mapping maps an anonymous page that is exclusively its own.

    Not checked while the table is locked: fork clears PageAnonExclusive before it clears W.
    mm/memory.c: __copy_present_ptes, do_wp_page."""
    for mapped in scan.mapped:
        if (
            mapped.vma is None
            or mapped.page is None
            or not pte_write(mapped.entry)
            or mapped.vma.vm_flags & VM_SHARED
        ):
            continue
        if scan.table_locked(mapped):
            continue
        if not is_anon(mapped):
            yield (
                scan.at(mapped),
                f"entry {mapped.entry:#x} allows writing",
                f"page {mapped.pfn:#x} is the file's",
            )
        elif not mapped.page.flags & PG_anon_exclusive:
            yield (
                scan.at(mapped),
                f"entry {mapped.entry:#x} allows writing",
                f"page {mapped.pfn:#x} is not exclusive",
            )


@invariant(35, when=ALWAYS)
def exclusive_pages_are_mapped_once(scan: Scan) -> Iterator[Finding]:
    """PageAnonExclusive implies an anonymous page with at most one mapping.

    A page that is being freed loses its mapping before its flags.  The converse does not hold (36):
    when only one sharer is left, the page stays unmarked until it is written.  mm/rmap.c."""
    for pfn, p in scan.pages.items():
        if not p.flags & PG_anon_exclusive or not p._refcount:
            continue
        if not isinstance(p.mapping, anon_vma):
            yield f"page {pfn:#x}", "PageAnonExclusive", f"its mapping is {p.mapping}"
        elif p._mapcount > 0:
            yield f"page {pfn:#x}", "PageAnonExclusive", f"{p._mapcount + 1} mappings are counted"


@invariant(37, when=QUIESCENT)
def pinned_pages_stay_exclusive(scan: Scan) -> Iterator[Finding]:
    """An anonymous page that is pinned for a registered buffer and mapped is exclusive.

    Fork gives the child a copy of it at once.  mm/internal.h: gup_must_unshare;
    include/linux/rmap.h: folio_try_dup_anon_rmap_pte."""
    for task in scan.tasks:
        for address, p in task.io_buffers:
            if (
                isinstance(p.mapping, anon_vma)
                and p._mapcount >= 0
                and not p.flags & PG_anon_exclusive
            ):
                yield (
                    f"{scan.task(task)} {address:#x}",
                    f"page {p.pfn:#x} is pinned",
                    "it is not exclusive",
                )
