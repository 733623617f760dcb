"""The page cache, and faults on file mappings (mm/filemap.c).

    inode.i_mapping.i_pages   index -> page        one reference held by the cache
         |  hit: minor fault
         |  miss on a disk file: read from disk, major fault
         `- beyond the end of the file: SIGBUS

A read fault does not map one page: ``filemap_map_pages`` maps every page of the 64 KiB around the
address that is already cached ("fault-around"), since the cost of a fault is in the fault.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.errors import KernelBug
from kemu.kernel.arch.pgtable import (
    entry_none,
    maybe_mkwrite,
    mk_pte,
    pte_alloc,
    pte_mkdirty,
    pte_mkyoung,
    pte_none,
    pte_offset_map_lock,
    pte_unmap_unlock,
    ptep_get,
    set_pte_at,
)
from kemu.kernel.fs.files import (
    create_file,
    is_shmem,
    normalize,
    shmem_acct_blocks,
    shmem_inode_acct_blocks,
    shmem_inode_unacct_blocks,
    shmem_unacct_blocks,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    MM_FILEPAGES,
    MM_SHMEMPAGES,
    PAGE_MASK,
    PAGE_SHIFT,
    PAGE_SIZE,
    address_space,
    file,
    folio,
    folio_nr_pages,
    inode,
    super_operations,
    vm_fault,
    vm_operations_struct,
    vma_pages,
)
from kemu.kernel.include.mmzone import nr_spare_pages
from kemu.kernel.include.pagemap import __folio_lock, folio_lock, folio_trylock, folio_unlock
from kemu.kernel.include.system import system
from kemu.kernel.mm.lru import folio_add_lru, folio_add_lru_vma, lru_add_drain
from kemu.kernel.mm.mmap_lock import release_fault_lock
from kemu.kernel.mm.page_alloc import alloc_page, folio_put, folio_try_get
from kemu.kernel.mm.rmap import folio_add_file_rmap_pte, folio_add_new_anon_rmap
from kemu.trace.frames import linux

READAHEAD_PAGES = 32
"""The pages that a miss reads around itself (the default window of 128 KiB)."""


def file_pages(node: inode) -> int:
    """Pages up to the end of the file, the last one possibly partial."""
    return (node.i_size + PAGE_SIZE - 1) >> PAGE_SHIFT


def mm_counter_file(folio: folio) -> int:
    """The rss counter in which a page of the page cache counts."""
    return MM_SHMEMPAGES if folio.flags & PG_swapbacked else MM_FILEPAGES


def filemap_get_folio(mapping: address_space, index: int) -> folio | None:
    """The cached page at ``index``, or None.  No reference is taken: the page is guaranteed to
    exist until the next step."""
    return mapping.i_pages.get(index)


@linux("mm/filemap.c")
def filemap_get_entry(mapping: address_space, index: int) -> folio | None:
    """The cached page at ``index`` with a reference, or None.  It is found without a lock, so with
    the reference held it is checked to be still the page at ``index``.  ``KernelBug`` for a page
    that can be found although it was freed or has left the file: the lookup would never end."""
    while True:
        found = mapping.i_pages.get(index)
        if found is None:
            return None
        owner: address_space | None = found.mapping
        if found._refcount <= 0 or owner is not mapping:
            raise KernelBug(f"page cache: {found} is at index {index}, but does not belong there")
        if folio_try_get(found):
            if mapping.i_pages.get(index) is found:
                return found
            folio_put(found)


def filemap_lock_folio(mapping: address_space, index: int) -> folio | None:
    """The cached page at ``index``, referenced and locked, or None.  The lookup is repeated if the
    page left the cache during the wait for its lock."""
    while True:
        folio = filemap_get_entry(mapping, index)
        if folio is None:
            return None
        folio_lock(folio)
        if folio.mapping is mapping:
            return folio
        folio_unlock(folio)
        folio_put(folio)


@linux("mm/filemap.c")
def filemap_add_folio(mapping: address_space, folio: folio, index: int) -> None:
    """Add a new page to the cache and the LRU; the cache takes over the caller's reference."""
    folio.mapping = mapping
    folio.index = index
    mapping.i_pages.put(index, folio)
    mapping.nrpages += folio_nr_pages(folio)
    folio_add_lru(folio)


@linux("mm/filemap.c")
def filemap_remove_folio(folio: folio) -> None:
    """Remove a locked page from the cache, and drop the cache's reference."""
    mapping = folio.mapping
    mapping.i_pages.put(folio.index, None)
    mapping.nrpages -= folio_nr_pages(folio)
    shmem_unacct_blocks(mapping.host, folio_nr_pages(folio))
    if mapping.host.kind == "tmpfs":
        shmem_inode_unacct_blocks(folio_nr_pages(folio))
    folio.mapping = None
    folio_put(folio)


def folio_mark_dirty(folio: folio) -> None:
    """Mark the page as different from the disk (``a_ops->dirty_folio``); shared memory has no
    disk."""
    mapping = folio.mapping
    if (
        isinstance(mapping, address_space)
        and not is_shmem(mapping.host)
        and not folio.flags & PG_dirty
    ):
        __folio_mark_dirty(folio)
    else:
        folio.flags |= PG_dirty


@linux("mm/page-writeback.c")
def __folio_mark_dirty(folio: folio) -> None:
    """Mark a page of a disk file for writeback.  (Linux also sets a tag in the cache; here the flag
    serves for both.)"""
    folio.flags |= PG_dirty


@linux("mm/readahead.c")
def page_cache_ra_unbounded(node: inode, index: int, nr: int) -> bool:
    """Read up to ``nr`` pages from ``index`` that are not cached yet; False when out of memory."""
    for at in range(index, min(index + nr, file_pages(node))):
        if at not in node.i_mapping.i_pages and not read_folio(node, at):
            return False
    return True


@linux("mm/readahead.c")
def page_cache_sync_ra(file: file, index: int, req_count: int) -> None:
    """A read of ``req_count`` pages from ``index`` missed the cache: read them, and more if this
    looks like a stream: the start of the file, the place where the last read ended, or a place
    after more cached pages than are requested.  (The marks that would start the next window early
    are not kept.)"""
    node = file.f_inode
    if not index or index - (file.prev_pos >> PAGE_SHIFT) <= 1:
        req_count = get_init_ra_size(req_count)
    else:
        history = page_cache_history(node.i_mapping, index)
        if history > req_count:
            req_count = min(
                (history * 2 if history == index else history) + req_count, READAHEAD_PAGES
            )
    page_cache_ra_unbounded(node, index, req_count)


def page_cache_history(mapping: address_space, index: int) -> int:
    """The number of cached pages directly before ``index``."""
    history = 0
    while history < min(index, READAHEAD_PAGES) and index - history - 1 in mapping.i_pages:
        history += 1
    return history


def get_init_ra_size(size: int) -> int:
    """The first window of a sequential read of ``size`` pages."""
    newsize = 1 << (size - 1).bit_length()
    if newsize <= READAHEAD_PAGES // 32:
        return newsize * 4
    return newsize * 2 if newsize <= READAHEAD_PAGES // 4 else READAHEAD_PAGES


def read_folio(node: inode, index: int) -> bool:
    """Read one page from disk into the cache (``a_ops->read_folio``), unless another CPU has done
    so while memory was reclaimed for this one; False when out of memory."""
    page = alloc_page()
    if page is None:
        return False
    if index in node.i_mapping.i_pages:
        folio_put(page)
        return True
    system.phys.set_page(page.pfn, node.disk.get(index, b""))
    page.flags |= PG_uptodate
    filemap_add_folio(node.i_mapping, page, index)
    return True


@linux("mm/filemap.c")
def filemap_fault(vmf: vm_fault) -> int:
    """The page of a disk file at ``vmf.pgoff``, referenced and locked, in ``vmf.page``.

    A page that is not cached is read without the lock of the fault (``maybe_unlock_mmap_for_io``):
    the result is RETRY with the lock released, and the fault runs again, with the page and its
    neighbours in the cache."""
    assert vmf.vma.vm_file is not None
    node = vmf.vma.vm_file.f_inode
    mapping = node.i_mapping
    ret = 0
    while vmf.pgoff < file_pages(node):
        folio = filemap_get_entry(mapping, vmf.pgoff)
        if folio is None:
            system.vmstat.PGMAJFAULT += not ret
            ret = VM_FAULT_MAJOR
            if not do_sync_mmap_readahead(node, vmf):
                return VM_FAULT_OOM  #: {do_sync_mmap_readahead}
            if fault_flag_allow_retry_first(vmf.flags):
                release_fault_lock(vmf)
                return ret | VM_FAULT_RETRY
        elif not lock_folio_maybe_drop_mmap(vmf, folio):
            folio_put(folio)
            return ret | VM_FAULT_RETRY
        elif folio.mapping is mapping and vmf.pgoff < file_pages(node):
            vmf.page = folio
            return ret | VM_FAULT_LOCKED
        else:
            folio_unlock(folio)
            folio_put(folio)
    #: the file ends before {vmf.address:#x} -> ftruncate the file to a larger size first
    return VM_FAULT_SIGBUS


def fault_flag_allow_retry_first(flags: int) -> bool:
    """True for the first try of a fault that may release its lock and run again."""
    return flags & (FAULT_FLAG_ALLOW_RETRY | FAULT_FLAG_TRIED) == FAULT_FLAG_ALLOW_RETRY


@linux("mm/filemap.c")
def lock_folio_maybe_drop_mmap(vmf: vm_fault, folio: folio) -> bool:
    """Lock the page; True if it is locked now.  On the first try the wait for a locked page is
    without the lock of the fault (``maybe_unlock_mmap_for_io``): False, and the fault runs
    again."""
    if folio_trylock(folio):
        return True
    if not fault_flag_allow_retry_first(vmf.flags):
        __folio_lock(folio)
        return True
    release_fault_lock(vmf)
    __folio_lock(folio)
    folio_unlock(folio)
    return False


@linux("mm/filemap.c")
def do_sync_mmap_readahead(node: inode, vmf: vm_fault) -> bool:
    """Read around a miss: the window centred on it; of a program's code only what follows, within
    the VMA [6.16]. False when out of memory."""
    vma = vmf.vma
    if vma.vm_flags & VM_EXEC:
        end = min(vmf.pgoff + READAHEAD_PAGES, vma.vm_pgoff + vma_pages(vma))
        page_cache_ra_unbounded(node, vmf.pgoff, end - vmf.pgoff)
    else:
        page_cache_ra_unbounded(node, max(0, vmf.pgoff - READAHEAD_PAGES // 2), READAHEAD_PAGES)
    return vmf.pgoff in node.i_mapping.i_pages


@linux("mm/filemap.c")
def filemap_map_pages(vmf: vm_fault, start_pgoff: int, end_pgoff: int) -> int:
    """Map the cached ones of the pages start..end (inclusive) into empty entries; NOPAGE if the
    faulting one was among them."""
    vma = vmf.vma
    mm = vma.vm_mm
    assert vma.vm_file is not None
    mapping = vma.vm_file.f_mapping
    folio = next_uptodate_folio(mapping, start_pgoff, end_pgoff)
    if folio is None:
        return 0
    start_pgoff = folio.index
    installs = not entry_none(vmf.pmd) or _installs_table(mapping, start_pgoff)
    if not installs or pte_alloc(mm, vmf.pmd):
        folio_unlock(folio)
        folio_put(folio)
        return VM_FAULT_OOM if installs else 0  #: {pte_alloc}
    ret = 0
    first = vma.vm_start + ((start_pgoff - vma.vm_pgoff) << PAGE_SHIFT)
    ptep = pte_offset_map_lock(mm, vmf.pmd, first)
    mapped: dict[int, int] = {}
    while folio is not None:
        index = folio.index
        vmf.pte = ptep + (index - start_pgoff) * 8
        if pte_none(ptep_get(vmf.pte)):
            address = vma.vm_start + ((index - vma.vm_pgoff) << PAGE_SHIFT)
            if address == vmf.address & PAGE_MASK:
                ret = VM_FAULT_NOPAGE
            set_pte_range(vmf, folio, address)
            counter = mm_counter_file(folio)
            mapped[counter] = mapped.get(counter, 0) + 1
            folio_unlock(folio)
        else:
            folio_unlock(folio)
            folio_put(folio)
        folio = next_uptodate_folio(mapping, index + 1, end_pgoff)
    for counter, nr in mapped.items():
        mm.rss_stat.put(counter, mm.rss_stat[counter] + nr)
    vmf.pte = ptep
    pte_unmap_unlock(ptep)
    return ret


@linux("mm/memory.c")
def set_pte_range(vmf: vm_fault, page: folio, addr: int) -> None:
    """Count the page as mapped and write its entry: for ``finish_fault``, and for each page of a
    fault-around."""
    vma = vmf.vma
    write = bool(vmf.flags & FAULT_FLAG_WRITE)
    entry = pte_mkyoung(mk_pte(page, vma.vm_page_prot))
    if write:
        entry = maybe_mkwrite(pte_mkdirty(entry), vma)
    if write and not vma.vm_flags & VM_SHARED:
        folio_add_new_anon_rmap(page, vma, addr)
        folio_add_lru_vma(page, vma)
    else:
        folio_add_file_rmap_pte(page, vma)
    set_pte_at(vmf.mm, addr, vmf.pte, entry)


def _installs_table(mapping: address_space, first: int) -> bool:
    """True if ``filemap_map_pmd`` is tried, which also installs the table where there is none: not
    with the last page of a disk file as the first one found [6.18], since a large mapping there
    would reach beyond the end of the file."""
    return is_shmem(mapping.host) or file_pages(mapping.host) - 1 >= first + 1


@linux("mm/filemap.c")
def next_uptodate_folio(mapping: address_space, index: int, end: int) -> folio | None:
    """The first of the pages index..end (inclusive) that is cached, uptodate and not locked:
    referenced and locked; or None.  Never waits: a locked page is skipped."""
    for at in range(index, min(end, file_pages(mapping.host) - 1) + 1):
        folio = mapping.i_pages.get(at)
        if folio is None or folio.flags & PG_locked or not folio_try_get(folio):
            continue
        if mapping.i_pages.get(at) is folio and folio.flags & PG_uptodate and folio_trylock(folio):
            if folio.mapping is mapping and at < file_pages(mapping.host):
                return folio
            folio_unlock(folio)
        folio_put(folio)
    return None


@linux("mm/filemap.c")
def filemap_page_mkwrite(vmf: vm_fault) -> int:
    """The first write through a shared mapping: tell the file system that the page will be
    dirty."""
    page = vmf.page
    assert page is not None
    assert vmf.vma.vm_file is not None
    folio_lock(page)
    if page.mapping is not vmf.vma.vm_file.f_mapping:
        folio_unlock(page)
        return VM_FAULT_NOPAGE
    folio_mark_dirty(page)
    return VM_FAULT_LOCKED


generic_file_vm_ops = vm_operations_struct(
    name="generic_file_vm_ops",
    fault=filemap_fault,
    map_pages=filemap_map_pages,
    page_mkwrite=filemap_page_mkwrite,
)
"""The operations of a mapping of a disk file (mm/filemap.c)."""


# ---------------------------------------------------------------- read and write


def cached_page(node: inode, index: int) -> folio | None:
    """The cached page at ``index``, read from disk if necessary; None when out of memory or in a
    hole."""
    page = node.i_mapping.i_pages.get(index)
    if page is None and not is_shmem(node) and index < file_pages(node):
        page_cache_ra_unbounded(node, index, READAHEAD_PAGES)
        page = node.i_mapping.i_pages.get(index)
    return page


def fill_page_cache(node: inode, data: bytes, *, dirty: bool) -> None:
    """Write ``data`` to an empty file, page by page."""
    for index in range((len(data) + PAGE_SIZE - 1) // PAGE_SIZE):
        page = alloc_page()
        if page is None:
            return
        shmem_acct_blocks(node, 1)
        system.phys.set_page(page.pfn, data[index * PAGE_SIZE : (index + 1) * PAGE_SIZE])
        page.flags |= (
            PG_uptodate
            | (PG_dirty if dirty else 0)
            | (PG_swapbacked | PG_referenced if is_shmem(node) else 0)
        )
        filemap_add_folio(node.i_mapping, page, index)
    node.i_size = max(node.i_size, len(data))


def load_file(path: str, data: bytes) -> inode:
    """Make (or replace) a file on disk whose pages are cached and clean, as long as memory is not
    short."""
    path = normalize(path)
    old = system.files.get(path)
    if old is not None:
        unlink_inode(old)
    node = create_file(path, "disk", data)
    node.s_op = disk_super_ops
    spare = nr_spare_pages()
    fill_page_cache(node, data[: spare // 2 * PAGE_SIZE], dirty=False)
    return node


def make_memory_file(path: str, data: bytes, size: int) -> int:
    """Make (or replace) a tmpfs file of ``size`` bytes that begins with ``data``; the rest is a
    hole.  0; or, with nothing changed, -ENOMEM if memory is short, -ENOSPC if the tmpfs is too
    small."""
    path = normalize(path)
    old = system.files.get(path)
    pages = (len(data) + PAGE_SIZE - 1) // PAGE_SIZE
    given_back = (
        old.i_mapping.nrpages if old is not None and old.kind == "tmpfs" and not old.i_count else 0
    )
    if pages > given_back + nr_spare_pages():
        return -ENOMEM  #: {pages:pages} of data need more memory than is free
    error = shmem_inode_acct_blocks(pages - given_back)
    if error:
        return error
    if old is not None:
        unlink_inode(old)
        shmem_inode_acct_blocks(given_back)
    node = create_file(path, "tmpfs")
    fill_page_cache(node, data, dirty=True)
    node.i_size = size
    return 0


def unlink_inode(node: inode) -> None:
    """The file has lost its name; its pages are freed with its last user."""
    node.i_nlink = 0
    if node.s_op is None:
        node.s_op = disk_super_ops
    if not node.i_count:
        node.s_op.evict_inode(node)


@linux("mm/truncate.c")
def truncate_inode_pages_final(node: inode) -> None:
    """The file is no longer reachable: free its cached pages.  If there were any, the batches of
    this CPU are emptied (``__folio_batch_release``)."""
    cached = sorted(node.i_mapping.i_pages)
    for index in cached:
        folio = filemap_lock_folio(node.i_mapping, index)
        if folio is not None:
            filemap_remove_folio(folio)
            folio_unlock(folio)
            folio_put(folio)
    if cached:
        lru_add_drain()


disk_super_ops = super_operations(evict_inode=truncate_inode_pages_final)
"""The operations at the end of a file on disk."""
