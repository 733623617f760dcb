"""Shortening files, punching holes, dropping cached pages (mm/truncate.c, mm/shmem.c, mm/memory.c:
unmap_mapping_range).

ftruncate down   pages beyond the new end leave the cache and every mapping; accesses get SIGBUS
punch hole       the file's pages in the hole are freed, private copies of them stay
fadvise          clean unmapped pages are dropped; they can be read again
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.fs.files import LLONG_MAX, i_size_write, inode_newsize_ok, is_shmem, s_maxbytes
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    FMODE_WRITE,
    PAGE_ALIGN,
    PAGE_MASK,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    address_space,
    file,
    folio,
    inode,
    vma_pages,
)
from kemu.kernel.include.pagemap import folio_trylock, folio_unlock
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.signal import fatal_signal_pending
from kemu.kernel.mm.filemap import (
    cached_page,
    filemap_get_entry,
    filemap_lock_folio,
    filemap_remove_folio,
    folio_mark_dirty,
    page_cache_ra_unbounded,
)
from kemu.kernel.mm.lru import folio_mark_accessed, lru_add_drain, lru_add_drain_all
from kemu.kernel.mm.page_alloc import folio_put
from kemu.kernel.mm.rmap import folio_mapcount
from kemu.kernel.mm.shmem import SGP_FALLOC, shmem_get_folio_gfp
from kemu.kernel.mm.writeback import filemap_write_and_wait_range
from kemu.kernel.mm.zap import zap_details, zap_page_range_single
from kemu.trace.frames import linux


@linux("mm/memory.c")
def unmap_mapping_pages(mapping: address_space, start: int, nr: int, even_cows: bool) -> None:
    """Clear the entries of file pages start..start+nr-1 in every mapping, with ``even_cows`` those
    of private copies too."""
    details = zap_details(even_cows=even_cows)
    for vma in mapping.i_mmap:
        first = max(start, vma.vm_pgoff)
        last = min(start + nr, vma.vm_pgoff + vma_pages(vma))
        if first < last:
            address = vma.vm_start + ((first - vma.vm_pgoff) << PAGE_SHIFT)
            zap_page_range_single(vma, address, (last - first) << PAGE_SHIFT, details)


@linux("mm/truncate.c")
def truncate_inode_pages_range(node: inode, start: int, end: int) -> None:
    """Remove the bytes [start, end) from the cache: drop whole pages, and zero the bytes in partial
    ones.  If pages are dropped, the batches of this CPU are drained
    (``__folio_batch_release``)."""
    first, last = (start + PAGE_SIZE - 1) >> PAGE_SHIFT, end >> PAGE_SHIFT
    whole = [index for index in sorted(node.i_mapping.i_pages) if first <= index < last]
    for index in whole:
        folio = filemap_lock_folio(node.i_mapping, index)
        if folio is not None:
            truncate_inode_folio(node, folio)
            folio_unlock(folio)
            folio_put(folio)
    if whole:
        lru_add_drain()
    if start % PAGE_SIZE:
        _zero_part(node, start, min(end, (start | PAGE_SIZE - 1) + 1))
    if end % PAGE_SIZE and (end >> PAGE_SHIFT != start >> PAGE_SHIFT or not start % PAGE_SIZE):
        _zero_part(node, max(start, end & PAGE_MASK), end)


def _zero_part(node: inode, start: int, end: int) -> None:
    """Zero bytes of one page; a disk file's page is read first if necessary."""
    if start >= min(end, node.i_size):
        return
    cached_page(node, start >> PAGE_SHIFT)
    folio = filemap_lock_folio(node.i_mapping, start >> PAGE_SHIFT)
    if folio is not None:
        system.phys.write((folio.pfn << PAGE_SHIFT) + start % PAGE_SIZE, bytes(end - start))
        folio_mark_dirty(folio)
        folio_unlock(folio)
        folio_put(folio)


@linux("mm/truncate.c")
def truncate_inode_folio(node: inode, folio: folio) -> None:
    """Remove a whole page from the cache, and from any mapping that got it in the meantime.  The
    page is locked, so that no fault can map it again."""
    if folio_mapcount(folio):
        unmap_mapping_pages(node.i_mapping, folio.index, 1, False)
    folio.flags &= ~PG_dirty
    node.disk.put(folio.index, None)
    filemap_remove_folio(folio)


@linux("mm/truncate.c")
def truncate_pagecache(node: inode, newsize: int) -> None:
    """The file now ends at ``newsize``: unmap and drop everything beyond.  The mappings are cleared
    twice, since a fault can slip in between."""
    holebegin = (newsize + PAGE_SIZE - 1) >> PAGE_SHIFT
    unmap_mapping_pages(node.i_mapping, holebegin, U64 >> PAGE_SHIFT, True)
    truncate_inode_pages_range(node, newsize, U64 & PAGE_MASK)
    unmap_mapping_pages(node.i_mapping, holebegin, U64 >> PAGE_SHIFT, True)
    for index in sorted(node.disk):
        if index >= holebegin:
            node.disk.put(index, None)


@linux("mm/truncate.c")
def pagecache_isize_extended(node: inode, old: int, new: int) -> None:
    """A disk file grows from ``old`` to ``new`` bytes: what a mapping has stored in the last page
    beyond the old end must not become part of the file.  (In a file in memory it does.)"""
    if is_shmem(node) or not old % PAGE_SIZE:
        return
    folio = filemap_lock_folio(node.i_mapping, old >> PAGE_SHIFT)
    if folio is not None:
        size = min(new - old, PAGE_SIZE - old % PAGE_SIZE)
        system.phys.write((folio.pfn << PAGE_SHIFT) + old % PAGE_SIZE, bytes(size))
        folio_mark_dirty(folio)
        folio_mark_accessed(folio)
        folio_unlock(folio)
        folio_put(folio)


def do_truncate(node: inode, size: int) -> int:
    """ftruncate(2) on an open file, to ``size`` bytes: 0."""
    old = node.i_size
    if size > old:
        pagecache_isize_extended(node, old, size)
        i_size_write(node, size)
    elif size < old:
        _zero_part(node, size, min(old, (size | PAGE_SIZE - 1) + 1)) if size % PAGE_SIZE else None
        i_size_write(node, size)
        truncate_pagecache(node, size)
    return 0


@linux("mm/shmem.c")
def shmem_fallocate(node: inode, mode: int, offset: int, length: int) -> int:
    """fallocate(2) on a file in memory: punch a hole, or make all pages of a range or none; 0,
    -EOPNOTSUPP, -EFBIG (and SIGXFSZ), -ENOSPC, -EINTR."""
    if mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE):
        return -EOPNOTSUPP  #: memory has only punch_hole and keep_size -> one of the two
    end = offset + length
    if mode & FALLOC_FL_PUNCH_HOLE:
        truncate_pagecache_range(node, offset, end)
        return 0
    error = inode_newsize_ok(node, end)
    if error:
        return error
    start, last = offset >> PAGE_SHIFT, (end + PAGE_SIZE - 1) >> PAGE_SHIFT
    most = system.sysctl.shmem_max_blocks
    if node.kind == "tmpfs" and most and last - start > most:
        return -ENOSPC  #: the tmpfs has {most} pages -> a shorter range
    for index in range(start, last):
        if fatal_signal_pending(current()):
            _unfallocate(node, start, index)
            return -EINTR  #: a fatal signal is pending
        folio = shmem_get_folio_gfp(node, index, SGP_FALLOC)
        if isinstance(folio, int):
            _unfallocate(node, start, index)
            return folio
        folio_mark_dirty(folio)
        folio_unlock(folio)
        folio_put(folio)
    if not mode & FALLOC_FL_KEEP_SIZE and end > node.i_size:
        i_size_write(node, end)
    return 0


def _unfallocate(node: inode, start: int, end: int) -> None:
    """Undo a fallocate that failed: free the pages of [start, end) that have no content
    (``shmem_undo_range``)."""
    for index in range(start, end):
        folio = filemap_lock_folio(node.i_mapping, index)
        if folio is None:
            continue
        if not folio.flags & PG_uptodate:
            truncate_inode_folio(node, folio)
        folio_unlock(folio)
        folio_put(folio)
    lru_add_drain()


def truncate_pagecache_range(node: inode, start: int, end: int) -> None:
    """Make the bytes [start, end) a hole (mm/truncate.c): remove whole pages from the cache, from
    shared mappings and from the disk, and zero the rest."""
    first, last = (start + PAGE_SIZE - 1) >> PAGE_SHIFT, end >> PAGE_SHIFT
    if last > first:
        unmap_mapping_pages(node.i_mapping, first, last - first, False)
    truncate_inode_pages_range(node, start, end)
    for index in [index for index in sorted(node.disk) if first <= index < last]:
        node.disk.put(index, None)


def ext4_fallocate(node: inode, mode: int, offset: int, length: int) -> int:
    """fallocate(2) on a file on disk: reserve, zero or punch out a range, cut it out of the file,
    or make room for it; 0, -EINVAL, -EOPNOTSUPP, -EFBIG (and SIGXFSZ) (fs/ext4/extents.c)."""
    if mode & FALLOC_FL_UNSHARE_RANGE:
        return -EOPNOTSUPP  #: the file system shares no blocks -> leave unshare_range out
    end = offset + length
    if mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE):
        return _ext4_move_range(node, mode, offset, length)
    if mode & FALLOC_FL_PUNCH_HOLE:
        truncate_pagecache_range(node, offset, min(end, PAGE_ALIGN(node.i_size)))
        return 0
    grows = not mode & FALLOC_FL_KEEP_SIZE and end > node.i_size
    error = inode_newsize_ok(node, end) if grows else 0
    if error:
        return error
    if mode & FALLOC_FL_ZERO_RANGE:
        truncate_pagecache_range(node, offset, end)
    if grows:
        pagecache_isize_extended(node, node.i_size, end)
        i_size_write(node, end)
    return 0


def _ext4_move_range(node: inode, mode: int, offset: int, length: int) -> int:
    """``ext4_collapse_range`` and ``ext4_insert_range``: move what follows the range down or up by
    its length, on disk, after dropping it from the cache."""
    size, collapse = node.i_size, mode & FALLOC_FL_COLLAPSE_RANGE
    if (offset | length) % PAGE_SIZE:
        #: offset {offset:#x} and length {length:#x} are not whole blocks -> multiples of 0x1000
        return -EINVAL
    if offset + length >= size if collapse else offset >= size:
        #: the range is not inside the file, which has {size:#x} bytes -> a range that ends before
        return -EINVAL
    if not collapse and length > s_maxbytes(node) - size:
        return -EFBIG  #: the file would have {length:#x} bytes more than {size:#x}: too many
    first, pages = offset >> PAGE_SHIFT, length >> PAGE_SHIFT
    filemap_write_and_wait_range(node, first, U64 >> PAGE_SHIFT)
    following = {index: node.disk[index] for index in sorted(node.disk) if index >= first}
    truncate_pagecache(node, offset)
    for index, data in following.items():
        if not collapse:
            node.disk.put(index + pages, data)
        elif index >= first + pages:
            node.disk.put(index - pages, data)
    i_size_write(node, size - length if collapse else size + length)
    return 0


FALLOC_FL_MODE_MASK = (
    FALLOC_FL_PUNCH_HOLE
    | FALLOC_FL_COLLAPSE_RANGE
    | FALLOC_FL_ZERO_RANGE
    | FALLOC_FL_INSERT_RANGE
    | FALLOC_FL_UNSHARE_RANGE
)
"""The modes of fallocate(2), which exclude each other (include/linux/falloc.h)."""


def vfs_fallocate(file: file, mode: int, offset: int, length: int) -> int:
    """fallocate(2) of ``length`` bytes from ``offset`` on: 0, -EINVAL, -EOPNOTSUPP, -EBADF,
    -ESPIPE, -EFBIG, -ENOSPC (fs/open.c)."""
    node, chosen = file.f_inode, mode & FALLOC_FL_MODE_MASK
    if offset < 0:
        return -EINVAL  #: the offset {offset} is negative -> an offset from 0 up
    if length <= 0:
        return -EINVAL  #: the length {length} is not above 0 -> a length above 0
    if mode & ~(FALLOC_FL_MODE_MASK | FALLOC_FL_KEEP_SIZE):
        return -EOPNOTSUPP  #: unknown mode {mode:#x}
    if chosen & chosen - 1:
        return -EOPNOTSUPP  #: the modes exclude each other -> one of them
    if chosen == FALLOC_FL_PUNCH_HOLE and not mode & FALLOC_FL_KEEP_SIZE:
        return -EOPNOTSUPP  #: punch_hole goes only with keep_size -> both
    if chosen & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE) and mode & FALLOC_FL_KEEP_SIZE:
        return -EOPNOTSUPP  #: the size must change -> leave keep_size out
    if not file.f_mode & FMODE_WRITE:
        return -EBADF  #: the file is not open for writing -> open it rdwr
    if node.i_pipe is not None:
        return -ESPIPE  #: a pipe has no places to allocate or punch out -> a file
    if offset + length > s_maxbytes(node):
        return -EFBIG  #: the range ends beyond the largest file
    return (shmem_fallocate if is_shmem(node) else ext4_fallocate)(node, mode, offset, length)


@linux("mm/truncate.c")
def invalidate_mapping_pages(mapping: address_space, start: int, end: int) -> int:
    """Drop the pages start..end (inclusive) that are clean, unmapped and held only by the cache;
    returns how many.  It never waits: a locked page stays."""
    dropped = 0
    for index in [index for index in sorted(mapping.i_pages) if start <= index <= end]:
        folio = filemap_get_entry(mapping, index)
        if folio is None:
            continue
        if folio_trylock(folio):
            dropped += mapping_evict_folio(mapping, folio)
            folio_unlock(folio)
        folio_put(folio)
    return dropped


@linux("mm/truncate.c")
def mapping_evict_folio(mapping: address_space, folio: folio) -> bool:
    """Remove a page from the cache if it is clean and held only by the cache and the caller, which
    has locked it; True if it was removed."""
    if folio.mapping is not mapping or folio.flags & PG_dirty or folio._refcount > 2:
        return False
    filemap_remove_folio(folio)
    return True


@linux("mm/fadvise.c")
def generic_fadvise(node: inode, offset: int, length: int, advice: int) -> int:
    """posix_fadvise(2): 0, -EINVAL, -ESPIPE.  ``length`` 0: to the end of the file."""
    if node.i_pipe is not None:
        return -ESPIPE  #: a pipe has no pages to advise on -> a file
    if length < 0 or not 0 <= advice <= POSIX_FADV_NOREUSE:
        return -EINVAL  #: the length {length} is negative, or the advice {advice} is unknown
    if is_shmem(node) or offset < 0:  # as a page number, a negative offset is huge
        return 0
    endbyte = min(offset + length, LLONG_MAX) - 1 if length else LLONG_MAX
    first, last = offset >> PAGE_SHIFT, endbyte >> PAGE_SHIFT
    if advice == POSIX_FADV_WILLNEED:
        page_cache_ra_unbounded(node, first, last - first + 1)
    elif advice == POSIX_FADV_DONTNEED:
        filemap_write_and_wait_range(node, first, last)
        _discard(node, (offset + PAGE_SIZE - 1) >> PAGE_SHIFT, endbyte)
    return 0


def _discard(node: inode, first: int, endbyte: int) -> None:
    """Drop the clean pages from page ``first`` to the byte ``endbyte`` (inclusive): only whole
    pages, and the last page of the file even if it is not full."""
    last = endbyte >> PAGE_SHIFT
    if (endbyte + 1) % PAGE_SIZE and last != (node.i_size - 1) >> PAGE_SHIFT:
        last -= 1
    if last >= first:
        lru_add_drain_all()
        invalidate_mapping_pages(node.i_mapping, first, last)
