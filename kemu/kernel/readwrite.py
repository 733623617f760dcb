"""read(2) and write(2) on files: between the page cache and user memory (mm/filemap.c: generic_file_read_iter, _write_iter).

read   page cache -> copy_to_user      a store in kernel mode: it may fault, and breaks copy-on-write like any store
write  copy_from_user -> page cache
"""

from __future__ import annotations

from kemu.kernel.filemap import cached_page, folio_mark_dirty, read_folio
from kemu.kernel.files import is_shmem
from kemu.kernel.lru import folio_mark_accessed
from kemu.kernel.mm_types import PAGE_SHIFT, PAGE_SIZE, file, folio, inode
from kemu.kernel.mman import EFAULT, EINVAL, ENOSPC
from kemu.kernel.shmem import shmem_get_folio_gfp
from kemu.kernel.system import system
from kemu.kernel.uaccess import copy_from_user, copy_to_user


def generic_file_read(file: file, addr: int, count: int, pos: int) -> int:
    """Copy up to ``count`` bytes from file offset ``pos`` to user memory; bytes done, or -EFAULT if none, -EINVAL."""
    node = file.f_inode
    if pos < 0:
        return -EINVAL
    count = max(0, min(count, node.i_size - pos))
    done = 0
    while done < count:
        data = _file_bytes(node, pos + done, count - done)
        left = copy_to_user(addr + done, data)
        done += len(data) - left
        if left:
            return done or -EFAULT
    return done


def _file_bytes(node: inode, pos: int, count: int) -> bytes:
    """The bytes of one page of the file from ``pos``."""
    offset = pos % PAGE_SIZE
    size = min(count, PAGE_SIZE - offset)
    page = cached_page(node, pos >> PAGE_SHIFT)
    if page is None:
        return bytes(size)
    folio_mark_accessed(page)
    return system.phys.read((page.pfn << PAGE_SHIFT) + offset, size)


def generic_file_write(file: file, addr: int, count: int, pos: int) -> int:
    """Copy up to ``count`` bytes of user memory to file offset ``pos``; bytes done, or an error if none."""
    node = file.f_inode
    if pos < 0:
        return -EINVAL
    done = 0
    while done < count:
        offset = (pos + done) % PAGE_SIZE
        data, _ = copy_from_user(addr + done, min(count - done, PAGE_SIZE - offset))
        if not data:
            return done or -EFAULT
        if not write_to_cache(node, pos + done, data):
            return done or -ENOSPC
        done += len(data)
        if len(data) < min(count - done + len(data), PAGE_SIZE - offset):
            return done
    return done


def write_to_cache(node: inode, pos: int, data: bytes) -> bool:
    """Store ``data`` (within one page) in the page cache and mark the page dirty; False when out of memory."""
    index = pos >> PAGE_SHIFT
    page = cached_page(node, index)
    if page is None:
        page = shmem_get_folio_gfp(node, index) if is_shmem(node) else _new_disk_page(node, index)
    if page is None:
        return False
    system.phys.write((page.pfn << PAGE_SHIFT) + pos % PAGE_SIZE, data)
    folio_mark_dirty(page)
    folio_mark_accessed(page)
    node.i_size = max(node.i_size, pos + len(data))
    return True


def _new_disk_page(node: inode, index: int) -> folio | None:
    """A page beyond what is on disk."""
    return node.i_mapping.i_pages.get(index) if read_folio(node, index) else None
