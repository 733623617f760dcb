"""Pipes: bytes in pages, between open files that are counted (fs/pipe.c).

    write end --> [page][page][page] --> read end
                   a write appends to the last page if that came from a write; vmsplice(2) puts in
                   pages of other owners

A reader of an empty pipe sleeps while the write end is open, and gets 0, the end of the file, once
it is closed: what counts are open files, not processes.  Writing to a pipe without a reader raises
SIGPIPE.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import copy_from_user, copy_to_user
from kemu.kernel.fs.file_table import fput
from kemu.kernel.fs.files import fd_install, new_inode, open_file
from kemu.kernel.include.mm_types import (
    FMODE_READ,
    FMODE_WRITE,
    PAGE_SHIFT,
    PAGE_SIZE,
    file,
    file_operations,
    inode,
    pipe_inode_info,
    super_operations,
)
from kemu.kernel.include.sched_types import TASK_INTERRUPTIBLE
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.sched import wake_up_process
from kemu.kernel.kernel.signal import send_sig
from kemu.kernel.mm.page_alloc import GFP_KERNEL, alloc_page, folio_put
from kemu.kernel.mm.slab import slab_fails

PIPE_DEF_BUFFERS = 16
"""Pages that a pipe holds."""


def pipe_of(file: file) -> pipe_inode_info | None:
    """The pipe of an open file; None if the file is not a pipe."""
    return file.f_inode.i_pipe


def get_pipe_inode() -> inode | int:
    """A new pipe; -ENFILE without memory for it."""
    if slab_fails("inode_cache"):
        return -ENFILE  #: {slab_fails}
    node = new_inode("pipe", 0, pipe_super_operations)
    node.i_pipe = pipe_inode_info()
    node.i_fop = pipefifo_fops
    return node


def open_end(node: inode, mode: int, flags: int) -> file | int:
    """An open file for one end (FMODE_READ, FMODE_WRITE) or for both; -ENOMEM."""
    if slab_fails("filp"):
        return -ENOMEM  #: {slab_fails}
    pipe = node.i_pipe
    assert pipe is not None
    end = open_file(node, mode, f"pipe:[{node.i_ino}]")
    end.f_flags = flags
    pipe.readers += 1 if mode & FMODE_READ else 0
    pipe.writers += 1 if mode & FMODE_WRITE else 0
    return end


def new_pipe() -> file | int:
    """A pipe whose one file, which never blocks, serves as both ends; -ENFILE, -ENOMEM."""
    node = get_pipe_inode()
    return node if isinstance(node, int) else open_end(node, FMODE_READ | FMODE_WRITE, O_NONBLOCK)


def do_pipe2(fildes: int, flags: int) -> int:
    """pipe2(2): two descriptors, stored as two ints at ``fildes``; 0, -EINVAL, -EFAULT, -EMFILE,
    -ENFILE, -ENOMEM."""
    if flags & ~O_NONBLOCK:
        return -EINVAL  #: the only flag is nonblock -> nonblock, or none
    node = get_pipe_inode()
    if isinstance(node, int):
        return node
    opened: list[file] = []
    for mode in (FMODE_READ, FMODE_WRITE):
        end = open_end(node, mode, flags)
        if isinstance(end, int):
            _close(opened, ())
            return end
        opened.append(end)
    return _install(opened, fildes)


def _install(opened: list[file], fildes: int) -> int:
    """Give the two ends descriptors and store these for the user; on an error both are closed."""
    fds: list[int] = []
    for end in opened:
        fd = fd_install(end)
        if fd < 0:
            _close(opened, fds)
            return fd
        fds.append(fd)
    if copy_to_user(fildes, b"".join(fd.to_bytes(4, "little") for fd in fds)):
        _close(opened, fds)
        #: {copy_to_user} -> an address for two ints that is mapped rw
        return -EFAULT
    return 0


def _close(opened: list[file], fds: list[int] | tuple[int, ...]) -> None:
    files = current().files
    assert files is not None
    for fd in fds:
        files.fd.put(fd, None)
    for end in opened:
        fput(end)


def anon_pipe_read(file: file, addr: int, size: int) -> int:
    """read(2): what the pages hold now; bytes, 0 at the end of the file, -EAGAIN, -EFAULT;
    -ERESTARTSYS: the caller sleeps."""
    pipe, done = pipe_of(file), 0
    assert pipe is not None
    while pipe.bufs and done < size:
        page, offset, part, may_append = pipe.bufs[0]
        take = min(part, size - done)
        data = system.phys.read((page.pfn << PAGE_SHIFT) + offset, take)
        if copy_to_user(addr + done, data):
            #: {copy_to_user} -> a buffer that is mapped rw
            return done or -EFAULT
        done += take
        rest = ((page, offset + take, part - take, may_append),) if take < part else ()
        pipe.bufs = rest + pipe.bufs[1:]
        if not rest:
            folio_put(page)
    if done or not size or not pipe.writers:
        return done
    if file.f_flags & O_NONBLOCK:
        return -EAGAIN  #: the pipe is empty -> another try after a write
    return _sleep_until_readable(pipe)


def _sleep_until_readable(pipe: pipe_inode_info) -> int:
    task = current()
    if task not in pipe.rd_wait:
        pipe.rd_wait += (task,)
    task.state = TASK_INTERRUPTIBLE
    task.blocked_in = "read"
    return -ERESTARTSYS  #: the pipe is empty


def anon_pipe_write(file: file, addr: int, size: int) -> int:
    """write(2): bytes taken, -EPIPE (and SIGPIPE) without a reader, -EAGAIN if the pipe is full,
    -EFAULT, -ENOMEM.  A write that does not fit is cut short: writers never sleep here."""
    pipe, done = pipe_of(file), 0
    assert pipe is not None
    if not size:
        return 0
    if not pipe.readers:
        send_sig(SIGPIPE, current())
        return -EPIPE  #: no process can read the pipe any more -> a reader that keeps its end open
    done = _append(pipe, addr, size % PAGE_SIZE)
    while 0 <= done < size:
        step = _write_page(pipe, addr + done, size - done)
        if step <= 0:
            done = done or step
            break
        done += step
    if done > 0:
        wakeup_pipe_readers(pipe)
    return done


def _append(pipe: pipe_inode_info, addr: int, size: int) -> int:
    """Append what a write has beyond whole pages to the last page, if all of it fits; bytes,
    -EFAULT."""
    if not size or not pipe.bufs:
        return 0
    page, offset, part, may_append = pipe.bufs[-1]
    if not may_append or size > PAGE_SIZE - offset - part:
        return 0
    data, left = copy_from_user(addr, size)
    if left:
        #: {copy_from_user} -> a buffer that is mapped: see maps
        return -EFAULT
    system.phys.write((page.pfn << PAGE_SHIFT) + offset + part, data)
    pipe.bufs = (*pipe.bufs[:-1], (page, offset, part + size, True))
    return size


def _write_page(pipe: pipe_inode_info, addr: int, size: int) -> int:
    """Begin a new page; bytes, -EAGAIN, -EFAULT, -ENOMEM."""
    if len(pipe.bufs) >= PIPE_DEF_BUFFERS:
        return -EAGAIN  #: the pipe is full -> another try after a read
    data, left = copy_from_user(addr, min(size, PAGE_SIZE))
    if left:
        #: {copy_from_user} -> a buffer that is mapped: see maps
        return -EFAULT
    new = alloc_page(GFP_KERNEL)
    if new is None:
        return -ENOMEM  #: {alloc_page}
    system.phys.write(new.pfn << PAGE_SHIFT, data)
    pipe.bufs = (*pipe.bufs, (new, 0, len(data), True))
    return len(data)


def wakeup_pipe_readers(pipe: pipe_inode_info) -> None:
    """Wake the tasks that sleep in read(2), so that they look again."""
    sleepers, pipe.rd_wait = pipe.rd_wait, ()
    for task in sleepers:
        if task.blocked_in == "read":
            wake_up_process(task)


def pipe_release(file: file) -> None:
    """An open file of a pipe is gone; when the last writer goes, readers see the end of the
    file."""
    pipe = pipe_of(file)
    assert pipe is not None
    pipe.readers -= 1 if file.f_mode & FMODE_READ else 0
    pipe.writers -= 1 if file.f_mode & FMODE_WRITE else 0
    if not pipe.writers:
        wakeup_pipe_readers(pipe)


def free_pipe_info(node: inode) -> None:
    """The last open file of the pipe is gone: release its contents."""
    pipe = node.i_pipe
    assert pipe is not None
    bufs, pipe.bufs = pipe.bufs, ()
    for page, _, _, _ in bufs:
        folio_put(page)


pipefifo_fops = file_operations(release=pipe_release)
pipe_super_operations = super_operations(evict_inode=free_pipe_info)
