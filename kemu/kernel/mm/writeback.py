"""Writing dirty pages back to disk (mm/page-writeback.c, mm/rmap.c: folio_mkclean).

    dirty page -> folio_mkclean: every shared entry becomes clean and read-only, so that the next
    store faults again
               -> its bytes are written to disk -> PG_dirty is cleared

Files in memory (memfd, tmpfs, shared anonymous) have no disk and are never written back.
"""

from __future__ import annotations

from kemu.abi.uapi import EINVAL
from kemu.kernel.arch.pgtable import (
    pte_dirty,
    pte_mkclean,
    pte_unmap_unlock,
    pte_write,
    pte_wrprotect,
    ptep_clear_flush,
    ptep_get,
    set_pte_at,
)
from kemu.kernel.fs.files import is_shmem
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import U64, folio, inode
from kemu.kernel.include.pagemap import folio_unlock
from kemu.kernel.include.system import system
from kemu.kernel.mm.filemap import filemap_lock_folio, folio_mark_dirty
from kemu.kernel.mm.lru import lru_add_drain
from kemu.kernel.mm.page_alloc import folio_put
from kemu.kernel.mm.rmap import lock_mapped, rmap_walk
from kemu.trace.frames import linux


@linux("mm/rmap.c")
def folio_mkclean(folio: folio) -> bool:
    """Write-protect and clean all shared entries of the page; True if any was dirty or writable."""
    cleaned = False
    for vma, address, ptep in rmap_walk(folio):
        if not vma.vm_flags & VM_SHARED or not lock_mapped(ptep, folio):
            continue
        pte = ptep_get(ptep)
        if pte_dirty(pte) or pte_write(pte):
            pte = ptep_clear_flush(vma, address, ptep)
            set_pte_at(vma.vm_mm, address, ptep, pte_mkclean(pte_wrprotect(pte)))
            cleaned = True
        pte_unmap_unlock(ptep)
    return cleaned


@linux("mm/page-writeback.c")
def folio_clear_dirty_for_io(folio: folio) -> bool:
    """Clean the page, which is locked, before it is written; True if it was dirty."""
    if folio_mkclean(folio):
        folio_mark_dirty(folio)
    if not folio.flags & PG_dirty:
        return False
    folio.flags &= ~PG_dirty
    return True


@linux("mm/filemap.c")
def filemap_write_and_wait_range(node: inode, first: int, last: int) -> int:
    """Write the dirty pages first..last (inclusive) of a disk file; 0.  If there were any, the
    batches of this CPU are drained (``__folio_batch_release``)."""
    if is_shmem(node):
        return 0
    written = False
    for index in [index for index in sorted(node.i_mapping.i_pages) if first <= index <= last]:
        folio = filemap_lock_folio(node.i_mapping, index)
        if folio is None:
            continue
        if folio_clear_dirty_for_io(folio):
            node.disk.put(index, system.phys.get_page(folio.pfn))
            written = True
        folio_unlock(folio)
        folio_put(folio)
    if written:
        lru_add_drain()
    return 0


def vfs_fsync(node: inode) -> int:
    """fsync(2): write all dirty pages; 0, -EINVAL."""
    if node.i_pipe is not None:
        return -EINVAL  #: a pipe is not stored on a disk -> a file
    return filemap_write_and_wait_range(node, 0, U64)
