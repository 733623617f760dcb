"""Shared memory: the pages of a memfd, a tmpfs file, or a shared anonymous mapping (mm/shmem.c).

The zero page is not used here: reading a hole makes a real page.  The entry template of a shared
writable mapping already allows writing, so a page that a read faulted in can be written without
another fault.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.fs.files import (
    new_inode,
    open_file,
    shmem_acct_blocks,
    shmem_inode_acct_blocks,
    shmem_inode_unacct_blocks,
    shmem_unacct_blocks,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    FMODE_READ,
    FMODE_WRITE,
    PAGE_SHIFT,
    address_space,
    file,
    folio,
    inode,
    super_operations,
    vm_area_struct,
    vm_fault,
    vm_operations_struct,
    vma_pages,
)
from kemu.kernel.include.pagemap import __folio_set_locked, folio_unlock
from kemu.kernel.mm.filemap import (
    file_pages,
    filemap_lock_folio,
    filemap_map_pages,
    truncate_inode_pages_final,
)
from kemu.kernel.mm.lru import folio_add_lru, folio_mark_accessed
from kemu.kernel.mm.page_alloc import GFP_ZERO, alloc_page, folio_get, folio_put
from kemu.kernel.mm.slab import slab_fails
from kemu.kernel.mm.util import __vm_enough_memory, vm_unacct_memory
from kemu.trace.frames import linux

SGP_CACHE, SGP_WRITE, SGP_FALLOC = range(3)
"""What a page of shared memory is needed for (include/linux/shmem_fs.h)."""


@linux("mm/shmem.c")
def shmem_get_folio_gfp(node: inode, index: int, sgp: int = SGP_CACHE) -> folio | int:
    """The page at ``index``, made if it is a hole, referenced and locked; -ENOMEM, -ENOSPC if the
    tmpfs is full, -EINVAL for a fault beyond the end.

    SGP_CACHE for a fault; SGP_WRITE for write(2), which fills the page and marks it used;
    SGP_FALLOC for fallocate(2), which makes pages without content (not uptodate) until they are
    needed."""
    if sgp == SGP_CACHE and index >= file_pages(node):
        return -EINVAL  #: the file ends before its page {index} -> enlarge it with ftruncate
    folio = filemap_lock_folio(node.i_mapping, index)
    if sgp == SGP_CACHE and index >= file_pages(node):
        if folio is not None:
            folio_unlock(folio)
            folio_put(folio)
        return -EINVAL  #: the file ends before its page {index} -> enlarge it with ftruncate
    if folio is not None:
        if sgp == SGP_WRITE:
            folio_mark_accessed(folio)
    else:
        made = shmem_alloc_and_add_folio(node, index, PG_referenced if sgp == SGP_WRITE else 0)
        if made == -EEXIST:
            return shmem_get_folio_gfp(node, index, sgp)
        if isinstance(made, int):
            return made
        folio = made
        sgp = SGP_WRITE if sgp == SGP_FALLOC else sgp
    if sgp != SGP_WRITE:
        folio.flags |= PG_uptodate
    return folio


@linux("mm/shmem.c")
def shmem_alloc_and_add_folio(node: inode, index: int, flags: int) -> folio | int:
    """A new page of zeros at ``index``, in the cache and on the LRU, with these PG_* flags,
    referenced and locked; -ENOMEM, -ENOSPC if the tmpfs is full, -EEXIST if another CPU made the
    page while memory was reclaimed for this one."""
    error = shmem_acct_blocks(node, 1)
    if error:
        return error
    error = shmem_inode_acct_blocks(1) if node.kind == "tmpfs" else 0
    if error:
        shmem_unacct_blocks(node, 1)
        return error
    page = shmem_alloc_folio()
    if page is None or index in node.i_mapping.i_pages:
        shmem_unacct_blocks(node, 1)
        shmem_inode_unacct_blocks(1 if node.kind == "tmpfs" else 0)
    if page is None:
        return -ENOMEM  #: {shmem_alloc_folio}
    if index in node.i_mapping.i_pages:
        folio_put(page)
        return -EEXIST  #: another CPU made the page meanwhile -> nothing: the kernel looks again
    __folio_set_locked(page)
    page.flags |= PG_swapbacked | flags
    shmem_add_to_page_cache(page, node.i_mapping, index)
    folio_add_lru(page)
    return page


@linux("mm/shmem.c")
def shmem_alloc_folio() -> folio | None:
    """A page of zeros, with one reference."""
    return alloc_page(GFP_ZERO)


@linux("mm/shmem.c")
def shmem_add_to_page_cache(folio: folio, mapping: address_space, index: int) -> None:
    """Add the page to the cache, which takes a reference of its own."""
    folio.mapping = mapping
    folio.index = index
    mapping.i_pages.put(index, folio)
    mapping.nrpages += 1
    folio_get(folio)


def vmf_error(err: int) -> int:
    """The fault result for the error ``err`` (include/linux/mm_types.h): VM_FAULT_OOM for -ENOMEM,
    which is worth a retry, otherwise VM_FAULT_SIGBUS."""
    return VM_FAULT_OOM if err == -ENOMEM else VM_FAULT_SIGBUS


@linux("mm/shmem.c")
def shmem_fault(vmf: vm_fault) -> int:
    """The page at ``vmf.pgoff``, referenced and locked, in ``vmf.page``; SIGBUS beyond the end, or
    if the tmpfs is full."""
    assert vmf.vma.vm_file is not None
    page = shmem_get_folio_gfp(vmf.vma.vm_file.f_inode, vmf.pgoff)
    if isinstance(page, int):
        return vmf_error(page)
    vmf.page = page
    return VM_FAULT_LOCKED


shmem_vm_ops = vm_operations_struct(
    name="shmem_vm_ops", fault=shmem_fault, map_pages=filemap_map_pages
)
"""The operations of a mapping of shared memory."""


@linux("mm/shmem.c")
def shmem_evict_inode(node: inode) -> None:
    """The file is gone: free its pages and take back its charge."""
    truncate_inode_pages_final(node)
    if not node.noreserve:
        vm_unacct_memory(file_pages(node))


shmem_ops = super_operations(evict_inode=shmem_evict_inode)


def _no_room_for_file() -> int:
    """0, or Linux's error if there is no memory for the inode (-ENOSPC) or the open file (-ENOMEM)
    of a nameless file."""
    if slab_fails("shmem_inode_cache"):
        return -ENOSPC  #: {slab_fails}
    return -ENOMEM if slab_fails("filp") else 0  #: {slab_fails}


def memfd_create(name: str) -> file | int:
    """A nameless file in memory, open for reading and writing, with one reference held by the
    caller; -ENOSPC, -ENOMEM."""
    error = _no_room_for_file()
    if error:
        return error
    node = new_inode("memfd", 0, shmem_ops)
    return open_file(node, FMODE_READ | FMODE_WRITE, f"/memfd:{name} (deleted)")


@linux("mm/shmem.c")
def shmem_zero_setup(vma: vm_area_struct) -> int:
    """Give a MAP_SHARED anonymous mapping its nameless file, and charge the whole size at once.  0,
    -ENOMEM, -ENOSPC."""
    noreserve = bool(vma.vm_flags & VM_NORESERVE)
    if not noreserve and __vm_enough_memory(vma.vm_mm, vma_pages(vma)):
        return -ENOMEM  #: {__vm_enough_memory}
    error = _no_room_for_file()
    if error:
        vm_unacct_memory(0 if noreserve else vma_pages(vma))
        return error
    node = new_inode("shm", vma_pages(vma) << PAGE_SHIFT, shmem_ops)
    node.noreserve = noreserve
    vma.vm_file = open_file(node, FMODE_READ | FMODE_WRITE, "/dev/zero (deleted)")
    vma.vm_ops = shmem_vm_ops
    return 0
