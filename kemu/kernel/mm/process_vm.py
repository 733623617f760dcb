"""Reading and writing another process's memory (mm/process_vm_access.c, mm/memory.c:
access_remote_vm, fs/proc/base.c: mem_rw).

    process_vm_readv/writev   pin the pages and honour protection; a read unshares too
    /proc/PID/mem             takes plain references; can write read-only memory (to a copy)

The faults happen in the other address space and are charged to the caller.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import access_ok, copy_from_user, copy_to_user
from kemu.kernel.fs.files import LLONG_MAX, fget
from kemu.kernel.fs.pipe import PIPE_DEF_BUFFERS, anon_pipe_read, wakeup_pipe_readers
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    FMODE_WRITE,
    PAGE_ALIGN,
    PAGE_MASK,
    PAGE_SHIFT,
    PAGE_SIZE,
    mm_struct,
    page,
    page_folio,
    pipe_inode_info,
)
from kemu.kernel.include.system import current, current_mm, system
from kemu.kernel.kernel.mm_life import get_task_mm, mmput
from kemu.kernel.kernel.signal import send_sig
from kemu.kernel.mm.filemap import folio_mark_dirty
from kemu.kernel.mm.gup import (
    FOLL_FORCE,
    FOLL_GET,
    FOLL_LONGTERM,
    FOLL_PIN,
    FOLL_WRITE,
    get_user_pages_remote,
    gup_fast_fallback,
    gup_put_folio,
    pin_user_pages_remote,
)
from kemu.kernel.mm.mmap_lock import (
    mmap_read_lock,
    mmap_read_unlock,
    mmap_write_lock,
    mmap_write_unlock,
)
from kemu.kernel.mm.page_alloc import put_page
from kemu.kernel.mm.stack import expand_stack_locked
from kemu.kernel.mm.vma import find_vma, vma_lookup
from kemu.trace.frames import linux

PIN_CHUNK = 16
"""How many pages are pinned at a time."""


def _pieces(addr: int, size: int) -> list[tuple[int, int, int]]:
    """(page address, offset in the page, bytes) for each page of a range."""
    found = []
    while size > 0:
        part = min(size, PAGE_SIZE - addr % PAGE_SIZE)
        found.append((addr & PAGE_MASK, addr % PAGE_SIZE, part))
        addr, size = addr + part, size - part
    return found


@linux("mm/process_vm_access.c")
def process_vm_rw_single_vec(mm: mm_struct, addr: int, data: bytes | int) -> tuple[bytes, int]:
    """Read ``data`` bytes (an int), or write the bytes ``data``: (bytes read, bytes written)."""
    write = isinstance(data, bytes)
    size = len(data) if isinstance(data, bytes) else data
    pieces = _pieces(addr, size)
    done = bytearray()
    for at in range(0, len(pieces), PIN_CHUNK):
        chunk = pieces[at : at + PIN_CHUNK]
        pages: list[page] = []
        mmap_read_lock(mm)
        pin_user_pages_remote(mm, chunk[0][0], len(chunk), FOLL_WRITE if write else 0, pages)
        mmap_read_unlock(mm)
        for (_, offset, part), page in zip(chunk, pages, strict=False):
            pa = (page.pfn << PAGE_SHIFT) + offset
            if isinstance(data, bytes):
                system.phys.write(pa, data[len(done) : len(done) + part])
            done += system.phys.read(pa, part)
        unpin_user_pages_dirty_lock(pages, make_dirty=write)
        if len(pages) < len(chunk):
            break
    return bytes(done), len(done)


@linux("mm/gup.c")
def unpin_user_pages_dirty_lock(pages: list[page], *, make_dirty: bool) -> None:
    """Release pins; pages that were written are marked dirty."""
    for folio in map(page_folio, pages):
        if make_dirty and not folio.flags & PG_dirty:
            folio_mark_dirty(folio)
        gup_put_folio(folio, FOLL_PIN)


def process_vm_rw(pid: int, local: int, remote: int, size: int, flags: int, *, write: bool) -> int:
    """process_vm_readv(2), process_vm_writev(2) with one range on each side: bytes moved, -EINVAL,
    -ESRCH, -EFAULT."""
    task = system.tasks.get(pid)
    if flags:
        return -EINVAL  #: the call does not take flags -> flags 0
    if not size:
        return 0
    mm = None if task is None else get_task_mm(task)
    if mm is None:
        return -ESRCH  #: no process {pid}, or it has no address space
    if not write:
        data, done = process_vm_rw_single_vec(mm, remote, size)
        done -= copy_to_user(local, data)
    else:
        data, _ = copy_from_user(local, size)
        _, done = process_vm_rw_single_vec(mm, remote, data)
    mmput(mm)
    #: {process_vm_rw_single_vec}{copy_from_user}{copy_to_user}
    #: -> mapped addresses on both sides: see maps
    return done or -EFAULT


@linux("mm/memory.c")
def __access_remote_vm(mm: mm_struct, addr: int, data: bytes | int, gup_flags: int) -> bytes:
    """Read ``data`` bytes (an int) or write the bytes ``data``, up to the first fault; the bytes
    read, or the number written."""
    size = len(data) if isinstance(data, bytes) else data
    done = bytearray()
    mmap_read_lock(mm)
    if vma_lookup(mm, addr) is None and not expand_stack(mm, addr):
        mmap_read_unlock(mm)
        return b""
    for base, offset, part in _pieces(addr, size):
        pages: list[page] = []
        if get_user_pages_remote(mm, base, 1, gup_flags, pages) != 1:
            if vma_lookup(mm, base) is not None or not expand_stack(mm, base):
                break
            if get_user_pages_remote(mm, base, 1, gup_flags, pages) != 1:
                break
        pa = (pages[0].pfn << PAGE_SHIFT) + offset
        if isinstance(data, bytes):
            system.phys.write(pa, data[len(done) : len(done) + part])
            folio_mark_dirty(page_folio(pages[0]))
        done += system.phys.read(pa, part)
        put_page(pages[0])
    mmap_read_unlock(mm)
    return bytes(done)


def expand_stack(mm: mm_struct, addr: int) -> bool:
    """Grow a stack down to ``addr``, with the address space locked for reading before and after;
    True if it grew."""
    vma = find_vma(mm, addr)
    if vma is None or not vma.vm_flags & VM_GROWSDOWN:
        return False
    mmap_read_unlock(mm)
    mmap_write_lock(mm)
    error = expand_stack_locked(vma, addr)
    mmap_write_unlock(mm)
    mmap_read_lock(mm)
    return not error


def mem_rw(pid: int, local: int, addr: int, size: int, *, write: bool) -> int:
    """read(2), write(2) on /proc/PID/mem, which is opened for it: bytes moved, -EIO, -ESRCH,
    -EFAULT, -EINVAL."""
    if addr > LLONG_MAX:
        return -EINVAL  #: as an offset, {addr:#x} is negative -> an address of user memory
    task = system.tasks.get(pid)
    if task is None:
        return -ESRCH  #: no process {pid}
    mm = get_task_mm(task)
    if mm is None:
        return -ESRCH  #: process {pid} has no memory: a zombie, or a kernel thread
    done = moved = 0
    while done < size and moved >= 0:
        part = min(size - done, PAGE_SIZE)
        moved = _mem_rw_page(mm, local + done, addr + done, part, write=write)
        done += max(moved, 0)
    mmput(mm)
    return moved if moved == -EFAULT or not done else done


def _mem_rw_page(mm: mm_struct, local: int, addr: int, size: int, *, write: bool) -> int:
    """One page of ``mem_rw``, through a kernel buffer: bytes moved, -EIO, -EFAULT."""
    if write:
        data, left = copy_from_user(local, size)
        if left:
            return -EFAULT  #: {copy_from_user} -> a buffer that is mapped: see maps
        #: nothing is mapped at {addr:#x} there -> an address that maps of the other one shows
        return len(__access_remote_vm(mm, addr, data, FOLL_FORCE | FOLL_WRITE)) or -EIO
    found = __access_remote_vm(mm, addr, size, FOLL_FORCE)
    if copy_to_user(local, found):
        return -EFAULT  #: {copy_to_user} -> a buffer that is mapped rw
    #: nothing is mapped at {addr:#x} there -> an address that maps of the other one shows
    return len(found) or -EIO


# ---------------------------------------------------------------- long-term pins


def io_register_buffer(addr: int, size: int) -> int:
    """io_uring's registered buffer: pin the pages of [addr, addr+size) long-term, for a device that
    writes to them; 0, -EFAULT, -ENOMEM."""
    mm, task = current_mm(), current()
    first = addr & PAGE_MASK
    nr = (PAGE_ALIGN(addr + size) - first) >> PAGE_SHIFT
    pages: list[page] = []
    ret = gup_fast_fallback(first, nr, FOLL_WRITE | FOLL_LONGTERM | FOLL_PIN, pages)
    if ret != nr:
        unpin_user_pages_dirty_lock(pages, make_dirty=False)
        return ret if ret < 0 else -EFAULT  #: only a part of the range could be pinned
    mm.pinned_vm += nr
    task.io_buffers += tuple((first + i * PAGE_SIZE, page) for i, page in enumerate(pages))
    return 0


def io_unregister_buffer(addr: int, size: int) -> int:
    """Release the pins of [addr, addr+size); 0, -EINVAL if there are none."""
    mm, task = current_mm(), current()
    first, last = addr & PAGE_MASK, PAGE_ALIGN(addr + size)
    going = [(at, page) for at, page in task.io_buffers if first <= at < last]
    if not going:
        return -EINVAL  #: no buffer is registered at {addr:#x}
    task.io_buffers = tuple(held for held in task.io_buffers if held not in going)
    mm.pinned_vm -= len(going)
    unpin_user_pages_dirty_lock([page for _, page in going], make_dirty=False)
    return 0


# ---------------------------------------------------------------- vmsplice


def vmsplice(fd: int, addr: int, size: int) -> int:
    """Put the pages of one range into a pipe without copying, by plain references, and without
    waiting for room (SPLICE_F_NONBLOCK); on the reading end, copy from the pipe.  Bytes, -EBADF,
    -EFAULT, -EAGAIN (full, or empty), -EPIPE (and SIGPIPE)."""
    file = fget(fd)
    if file is None:
        return -EBADF  #: descriptor {fd} is not open
    if not access_ok(addr, size):
        return -EFAULT  #: {addr:#x} is not an address of user memory
    pipe = file.f_inode.i_pipe
    if not size:
        return 0
    if pipe is None:
        return -EBADF  #: descriptor {fd} is not a pipe -> a descriptor that pipe gave
    if file.f_mode & FMODE_WRITE:
        return vmsplice_to_pipe(pipe, addr, size)
    if not pipe.bufs and pipe.writers:
        return -EAGAIN  #: the pipe is empty -> another try after a write
    return anon_pipe_read(file, addr, size)


@linux("fs/splice.c")
def vmsplice_to_pipe(pipe: pipe_inode_info, addr: int, size: int) -> int:
    """Put as many pages of the range into the pipe as there is room for; bytes, or an error if
    none."""
    if not pipe.readers:
        send_sig(SIGPIPE, current())
        return -EPIPE  #: no process can read the pipe any more -> a reader that keeps its end open
    room = PIPE_DEF_BUFFERS - len(pipe.bufs)
    if room <= 0:
        return -EAGAIN  #: the pipe is full -> another try after a read
    pieces = _pieces(addr, size)[:room]
    pages: list[page] = []
    ret = gup_fast_fallback(addr & PAGE_MASK, len(pieces), FOLL_GET, pages)
    if ret <= 0:
        return ret
    held = [
        (page, offset, part, False) for (_, offset, part), page in zip(pieces, pages, strict=False)
    ]
    pipe.bufs += tuple(held)
    wakeup_pipe_readers(pipe)
    return sum(part for _, _, part, _ in held)
