"""Page tables against their VMAs (reference C: numbers 25 to 33).

Most hold after every event unless the VMAs of the address space are being changed: munmap takes a
VMA out of the tree before it clears the entries, mprotect changes the VMA before the entries; both
hold the mmap lock for writing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kemu.invariants.registry import ALWAYS, QUIESCENT, Finding, invariant
from kemu.invariants.scan import Mapped, Scan, TableFrame
from kemu.kernel.arch.pgtable import pte_dirty, pte_present, pte_write
from kemu.kernel.include.flags import (
    VM_ACCESS_FLAGS,
    VM_EXEC,
    VM_SHARED,
    VM_WRITE,
    PG_dirty,
    PG_uptodate,
)
from kemu.kernel.include.mm_types import (
    PAGE_SHIFT,
    PAGE_SIZE,
    PGTY_table,
    mm_struct,
    vm_area_struct,
)
from kemu.kernel.include.system import system


def settled(scan: Scan) -> Iterator[Mapped]:
    """The entries of the tables and address spaces that are not being changed."""
    for mapped in scan.mapped:
        if mapped.mm.mmap_lock >= 0 and not scan.table_locked(mapped):
            yield mapped


@invariant(25, when=ALWAYS)
def entries_lie_in_vmas(scan: Scan) -> Iterator[Finding]:
    """Every entry that is not empty lies in a VMA, and maps a page or is a guard marker.

    No code makes other kinds of entries.  Not checked between the two steps of munmap, which holds
    the mmap lock for writing.  mm/vma.c: vms_complete_munmap_vmas."""
    for mapped in settled(scan):
        if mapped.vma is None:
            yield scan.at(mapped), f"maps frame {mapped.pfn:#x}", "no VMA is there"
    for marker in scan.markers:
        if marker.kind != "guard":
            yield scan.at(marker), f"an entry of kind {marker.kind}", "no code makes one"
        if marker.vma is None and marker.mm.mmap_lock >= 0:
            yield scan.at(marker), "a marker", "no VMA is there"


@invariant(26, when=QUIESCENT)
def tables_serve_a_vma(scan: Scan) -> Iterator[Finding]:
    """The span of every table overlaps a VMA.  The table may be empty.

    mm/memory.c: free_pgtables, floor and ceiling."""
    for table in scan.tables:
        end = table.address + span(table)
        vma = table.mm.mm_mt.find(table.address)
        if vma is None or vma.vm_start >= end:
            yield named(scan, table), f"covers {table.address:#x}-{end:#x}", "no VMA is there"


@invariant(26, when=QUIESCENT)
def tables_belong_to_one_space(scan: Scan) -> Iterator[Finding]:
    """Exactly one entry of one address space points to each allocated page table.

    mm/memory.c: __pte_alloc; mm/mmu_gather.c."""
    hung = Counter(table.pfn for table in scan.tables)
    for table in scan.tables:
        found = system.mem_map.get(table.pfn)
        if found is None or found.page_type != PGTY_table:
            yield (
                named(scan, table),
                f"lies in frame {table.pfn:#x}",
                "that frame is not a page table",
            )
        elif hung[table.pfn] > 1:
            yield (
                named(scan, table),
                f"frame {table.pfn:#x}",
                f"{hung[table.pfn]} entries lead to it",
            )
    known = set(hung) | set(scan.roots) | scan.kernels_own
    for pfn, page in system.mem_map.items():
        if page.page_type == PGTY_table and pfn not in known:
            yield f"frame {pfn:#x}", "a page table", "no address space has it"


@invariant(27, when=QUIESCENT)
def pgtables_bytes_add_up(scan: Scan) -> Iterator[Finding]:
    """``pgtables_bytes`` counts PTE, PMD and PUD tables, but neither the root nor P4D tables.

    include/linux/mm.h: mm_inc_nr_ptes."""
    counted = Counter(
        id(t.mm) for t in scan.tables if system.geometry.levels[t.level].name != "p4d"
    )
    for mm in scan.spaces:
        if mm.pgtables_bytes != counted[id(mm)] * PAGE_SIZE:
            yield (
                f"mm of {scan.space(mm)}",
                f"pgtables_bytes {mm.pgtables_bytes}",
                f"{counted[id(mm)]} tables",
            )


@invariant(28, when=ALWAYS)
def upper_entries_allow_everything(scan: Scan) -> Iterator[Finding]:
    """An entry that points to a table gives all permissions; only leaves restrict.

    On RISC-V R, W and X are all clear: that is what makes the entry point to a table.  arch/x86:
    _PAGE_TABLE."""
    bits = system.bits
    if bits.leaf_is_rwx:
        return
    wanted = bits.present | bits.write | bits.user
    for table in scan.tables:
        if table.entry & wanted != wanted or table.entry & bits.nx:
            yield (
                named(scan, table),
                f"its entry is {table.entry:#x}",
                "P, RW and US must be set and NX clear",
            )


@invariant(29, when=ALWAYS)
def writable_entries_are_permitted(scan: Scan) -> Iterator[Finding]:
    """An entry with W is in a VMA that is writable now.

    Not checked during mprotect, which holds the mmap lock for writing.  mm/mprotect.c:
    change_protection."""
    for mapped in settled(scan):
        if (
            mapped.vma is not None
            and pte_write(mapped.entry)
            and not mapped.vma.vm_flags & VM_WRITE
        ):
            yield scan.at(mapped), f"entry {mapped.entry:#x} allows writing", "the VMA does not"


@invariant(30, when=ALWAYS)
def usable_entries_are_permitted(scan: Scan) -> Iterator[Finding]:
    """Executable entries are in executable VMAs, hardware-present ones in VMAs with permissions.

    A VMA without permissions has PROT_NONE entries.  mm/mprotect.c: change_protection."""
    bits = system.bits
    for mapped in settled(scan):
        if mapped.vma is None or not mapped.entry & bits.present:
            continue
        executable = mapped.entry & bits.exec_ == bits.exec_ and not mapped.entry & bits.nx
        if executable and not mapped.vma.vm_flags & VM_EXEC:
            yield scan.at(mapped), f"entry {mapped.entry:#x} allows fetching", "the VMA does not"
        elif not mapped.vma.vm_flags & VM_ACCESS_FLAGS:
            yield (
                scan.at(mapped),
                f"entry {mapped.entry:#x} is present for the hardware",
                "the VMA gives no permission",
            )


@invariant(32, when=ALWAYS)
def zero_page_is_read_only(scan: Scan) -> Iterator[Finding]:
    """The zero page is mapped without W, marked special, and never in a shared mapping.

    mm/memory.c: do_anonymous_page."""
    for mapped in scan.mapped:
        if mapped.pfn != system.zero_pfn or not pte_present(mapped.entry):
            continue
        if pte_write(mapped.entry):
            yield (
                scan.at(mapped),
                f"entry {mapped.entry:#x} allows writing",
                "it maps the zero page",
            )
        if mapped.page is not None:
            yield (
                scan.at(mapped),
                f"entry {mapped.entry:#x} is not special",
                "it maps the zero page, which is not counted",
            )
        if mapped.vma is not None and mapped.vma.vm_flags & VM_SHARED:
            yield scan.at(mapped), "the zero page", "the mapping is shared"


@invariant(33, when=QUIESCENT)
def file_systems_hear_of_writes(scan: Scan) -> Iterator[Finding]:
    """Where the file system tracks the first write, a page mapped with W is dirty.

    Write-back clears W.  mm/memory.c: do_shared_fault, wp_page_shared; mm/page-writeback.c:
    folio_clear_dirty_for_io."""
    for mapped in scan.mapped:
        if (
            mapped.vma is None
            or mapped.page is None
            or not pte_write(mapped.entry)
            or not _is_told(mapped.vma)
        ):
            continue
        if not pte_dirty(mapped.entry) and not mapped.page.flags & PG_dirty:
            yield (
                scan.at(mapped),
                f"entry {mapped.entry:#x} allows writing",
                f"page {mapped.pfn:#x} is clean",
            )


def _is_told(vma: vm_area_struct) -> bool:
    """True for a shared writable mapping of a file whose file system has a ``page_mkwrite``."""
    shared = vma.vm_flags & (VM_WRITE | VM_SHARED) == VM_WRITE | VM_SHARED
    return shared and vma.vm_ops is not None and vma.vm_ops.page_mkwrite is not None


@invariant(31, when=QUIESCENT)
def what_was_written_is_dirty(scan: Scan) -> Iterator[Finding]:
    """A cached page that differs from its file on disk is dirty, or an entry that maps it is.

    When the entry is cleared, its dirty bit moves to the page.  mm/memory.c:
    zap_present_folio_ptes; mm/rmap.c: folio_mkclean."""
    marked = {mapped.pfn for mapped in scan.mapped if pte_dirty(mapped.entry)}
    for node in scan.inodes:
        for index, p in node.i_mapping.i_pages.items() if node.kind == "disk" else ():
            if p.flags & PG_dirty or p.pfn in marked or not p.flags & PG_uptodate:
                continue
            if system.phys.read(p.pfn << PAGE_SHIFT, PAGE_SIZE) != (
                node.disk.get(index) or b""
            ).ljust(PAGE_SIZE, b"\0"):
                yield (
                    f"{node} page {index:#x}",
                    f"frame {p.pfn:#x} is clean",
                    "the disk holds something else",
                )


def span(table: TableFrame) -> int:
    """How many bytes of address space the table covers."""
    return 1 << system.geometry.levels[table.level - 1].shift


def named(scan: Scan, table: TableFrame) -> str:
    """``pte table of app from 0x0``."""
    return (
        f"{system.geometry.levels[table.level].name} table of {owner(scan, table.mm)} from "
        f"{table.address:#x}"
    )


def owner(scan: Scan, mm: mm_struct) -> str:
    """The owner of the address space."""
    return scan.space(mm)
