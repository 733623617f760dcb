"""read(2) and write(2) on files: between the page cache and user memory.  mm/filemap.c:
generic_file_read_iter, generic_file_write_iter.

read   page cache -> copy_to_user      a store in kernel mode: it may fault and break COW
write  copy_from_user -> page cache
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import (
    access_ok,
    copy_from_user_inatomic,
    copy_to_user,
    fault_in_readable,
)
from kemu.kernel.fs.files import LLONG_MAX, i_size_write, is_shmem, s_maxbytes
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, file, folio, inode
from kemu.kernel.include.pagemap import folio_unlock
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.signal import send_sig
from kemu.kernel.mm.filemap import (
    filemap_get_folio,
    filemap_lock_folio,
    folio_mark_dirty,
    page_cache_sync_ra,
    read_folio,
)
from kemu.kernel.mm.lru import folio_mark_accessed
from kemu.kernel.mm.page_alloc import folio_put
from kemu.kernel.mm.shmem import SGP_WRITE, shmem_get_folio_gfp
from kemu.kernel.mm.truncate import pagecache_isize_extended
from kemu.kernel.mm.util import rlimit
from kemu.trace.frames import linux

MAX_RW_COUNT = 0x7FFFFFFF & PAGE_MASK
"""The most bytes that one call moves."""


def rw_verify_area(pos: int, count: int) -> int:
    """0, or -EINVAL if no file can have the bytes [pos, pos+count) (fs/read_write.c)."""
    #: offset {pos:#x} and length {count:#x} reach beyond the largest file -> a smaller offset
    return 0 if 0 <= pos <= LLONG_MAX - count else -EINVAL


def vfs_read(file: file, addr: int, count: int, pos: int) -> int:
    """Read ``count`` bytes of a file from ``pos``: bytes, -EFAULT, -EINVAL (fs/read_write.c)."""
    if not access_ok(addr, count):
        return -EFAULT  #: {addr:#x} is not an address of user memory
    return rw_verify_area(pos, count) or generic_file_read(
        file, addr, min(count, MAX_RW_COUNT), pos
    )


def vfs_write(file: file, addr: int, count: int, pos: int) -> int:
    """Write ``count`` bytes to a file at ``pos``: bytes, -EFAULT, -EINVAL, -EFBIG (and SIGXFSZ),
    -ENOSPC (fs/read_write.c)."""
    if not access_ok(addr, count):
        return -EFAULT  #: {addr:#x} is not an address of user memory
    error = rw_verify_area(pos, count)
    if error or not count:
        return error
    room = generic_write_check_limits(file, pos, min(count, MAX_RW_COUNT))
    return room if room < 0 else generic_perform_write(file, addr, room, pos)


def generic_write_check_limits(file: file, pos: int, count: int) -> int:
    """How many of the ``count`` bytes may be written at ``pos``; -EFBIG if none, with SIGXFSZ if
    the task's limit is the reason (fs/read_write.c)."""
    limit = rlimit(RLIMIT_FSIZE)
    if pos >= limit:
        send_sig(SIGXFSZ, current())
        return -EFBIG  #: the file has reached the limit, {limit:#x} bytes -> setrlimit fsize
    most = s_maxbytes(file.f_inode)
    if pos >= most:
        return -EFBIG  #: a file of this kind has at most {most:#x} bytes
    return min(count, limit - pos, most - pos)


def generic_file_read(file: file, addr: int, count: int, pos: int) -> int:
    """Copy up to ``count`` bytes from file offset ``pos`` to user memory; bytes copied, or -EFAULT
    if none."""
    node = file.f_inode
    count = max(0, min(count, node.i_size - pos))
    done = 0
    while done < count:
        data = _file_bytes(file, pos + done, count - done)
        left = copy_to_user(addr + done, data)
        done += len(data) - left
        if left:
            #: {copy_to_user} -> a buffer that is mapped rw: mmap it first
            return done or -EFAULT
    return done


def _file_bytes(file: file, pos: int, count: int) -> bytes:
    """The bytes of one page of the file from ``pos``."""
    node = file.f_inode
    offset = pos % PAGE_SIZE
    size = min(count, PAGE_SIZE - offset)
    page = filemap_get_folio(node.i_mapping, pos >> PAGE_SHIFT)
    if page is None and not is_shmem(node):
        last = (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
        page_cache_sync_ra(file, pos >> PAGE_SHIFT, last - (pos >> PAGE_SHIFT))
        page = filemap_get_folio(node.i_mapping, pos >> PAGE_SHIFT)
    if page is None or not page.flags & PG_uptodate:
        return bytes(size)
    if offset == 0 if is_shmem(node) else pos >> PAGE_SHIFT != (file.prev_pos - 1) >> PAGE_SHIFT:
        folio_mark_accessed(page)
    file.prev_pos = pos + size
    return system.phys.read((page.pfn << PAGE_SHIFT) + offset, size)


@linux("mm/filemap.c")
def mapping_seek_hole_data(node: inode, start: int, whence: int) -> int:
    """The first offset from ``start`` on that is data, or in a hole; the end of the file counts as
    a hole.  -ENXIO beyond the end, or if no data follows.  A page of a disk file is data if it has
    a block, or will get one when it is written back."""
    size = node.i_size
    if not 0 <= start < size:
        return -ENXIO  #: the offset {start:#x} is not in the file, which has {size:#x} bytes
    pages = node.i_mapping.i_pages
    known = {index for index, folio in pages.items() if folio.flags & _DATA[is_shmem(node)]}
    known |= set(node.disk)
    at = start
    while at < size and (at >> PAGE_SHIFT in known) != (whence == SEEK_DATA):
        if whence == SEEK_DATA:
            following = [index for index in known if index > at >> PAGE_SHIFT]
            at = min(following) << PAGE_SHIFT if following else size
        else:
            at = (at | PAGE_SIZE - 1) + 1
    if at >= size and whence == SEEK_DATA:
        return -ENXIO  #: no data follows {start:#x}
    return min(at, size)


_DATA = (PG_dirty, PG_uptodate)
"""The page flag that marks data in the cache, for a file on disk or in memory."""


@linux("mm/filemap.c")
def generic_perform_write(file: file, addr: int, count: int, pos: int) -> int:
    """Copy up to ``count`` bytes of user memory to file offset ``pos``; bytes copied, or an error
    if none.

    The page of the file is locked during the copy.  It may itself be the source, and then a fault
    on it would wait for the lock that the writer holds.  So the copy does not take faults; missing
    pages are faulted in between two attempts.  Even an attempt that copies nothing can extend the
    file to ``pos``."""
    done = 0
    while done < count:
        size = min(count - done, PAGE_SIZE - (pos + done) % PAGE_SIZE)
        folio = write_begin(file.f_inode, (pos + done) >> PAGE_SHIFT)
        if folio is None:
            #: the file system has no room for another page, or memory is full
            return done or -ENOSPC
        copied = copy_from_user_inatomic(addr + done, size)
        write_end(file.f_inode, folio, pos + done, copied)
        if not copied and fault_in_readable(addr + done, size) == size:
            #: {fault_in_readable} -> a buffer that is mapped: see maps
            return done or -EFAULT
        done += len(copied)
    return done


def write_begin(node: inode, index: int) -> folio | None:
    """The page at ``index``, made if necessary, referenced and locked (``a_ops->write_begin``);
    None when out of memory."""
    if is_shmem(node):
        page = shmem_get_folio_gfp(node, index, SGP_WRITE)
        return None if isinstance(page, int) else page
    folio = filemap_lock_folio(node.i_mapping, index)
    if folio is None and read_folio(node, index):
        folio = filemap_lock_folio(node.i_mapping, index)
    return folio


def write_end(node: inode, folio: folio, pos: int, data: bytes) -> None:
    """``data`` was written at ``pos``: mark the page dirty, extend the file if it ended before
    that, and release the page (``a_ops->write_end``)."""
    system.phys.write((folio.pfn << PAGE_SHIFT) + pos % PAGE_SIZE, data)
    folio.flags |= PG_uptodate
    new_block = not is_shmem(node) and folio.index not in node.disk  # zeroed, if nothing was copied
    if data or is_shmem(node) or new_block:
        folio_mark_dirty(folio)
    old = node.i_size
    i_size_write(node, max(old, pos + len(data)))
    folio_unlock(folio)
    folio_put(folio)
    if pos > old:
        pagecache_isize_extended(node, old, pos)
