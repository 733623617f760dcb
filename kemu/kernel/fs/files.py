"""The small in-memory file system: paths, inodes, open files (fs/).

    system.files   "/bin/a.out" -> inode
    inode          i_size, i_mapping (the page cache); a disk file also has its bytes on ``disk``
    file           one open of it, counted; what a VMA and a descriptor hold

Kinds: ``memfd`` and ``tmpfs`` keep their pages as memory; ``shm`` is the nameless file behind
shared anonymous memory; a ``disk`` file's pages can be dropped and read again, and its file system
is told of the first write to each page.  There are no directories: a path is a name.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.fs.file_table import fput
from kemu.kernel.include.mm_types import (
    FMODE_READ,
    FMODE_WRITE,
    PAGE_SIZE,
    address_space,
    file,
    inode,
    super_operations,
)
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.signal import send_sig
from kemu.kernel.mm.slab import slab_fails
from kemu.kernel.mm.util import __vm_enough_memory, rlimit, vm_unacct_memory
from kemu.machine.atomic import atomic_inc
from kemu.trace.steps import step

INR_OPEN_CUR = 1024


def new_inode(kind: str, size: int = 0, s_op: super_operations | None = None) -> inode:
    """An inode without pages; memfd and shm files never have a name."""
    number = system.counters.next_ino
    system.counters.next_ino = number + 1
    mapping = address_space()
    noreserve = kind in ("memfd", "tmpfs")
    made = inode(number, kind, mapping, i_size=size, s_op=s_op, noreserve=noreserve)
    made.i_nlink = 0 if kind in ("memfd", "shm", "pipe") else 1
    mapping.host = made
    return made


def is_shmem(node: inode) -> bool:
    """True if the file's pages are its only copy (swap-backed memory)."""
    return node.kind != "disk"


LLONG_MAX = (1 << 63) - 1
EXT4_MAX_SIZE = 0xFFFFFFFF << 12
"""The largest file, in bytes: of memory, and of an ext4 with blocks of 4 KiB."""


def s_maxbytes(node: inode) -> int:
    """The largest size of a file in the file system of ``node``."""
    return LLONG_MAX if is_shmem(node) else EXT4_MAX_SIZE


def inode_newsize_ok(node: inode, offset: int) -> int:
    """0 if the file may have ``offset`` bytes; else -EFBIG, with SIGXFSZ if that is the task's
    limit (fs/attr.c)."""
    if offset <= node.i_size:
        return 0
    if offset > rlimit(RLIMIT_FSIZE):
        send_sig(SIGXFSZ, current())
        return -EFBIG  #: {offset:#x} bytes are more than the limit RLIMIT_FSIZE -> setrlimit fsize
    #: {offset:#x} bytes are more than a file of this kind can have
    return -EFBIG if offset > s_maxbytes(node) else 0


def i_size_write(node: inode, i_size: int) -> None:
    """Set the size of the file (include/linux/fs.h).  Faults read it without a lock, so they check
    it again under the page's lock before they map the page."""
    step()
    node.i_size = i_size


def shmem_inode_acct_blocks(pages: int) -> int:
    """Charge ``pages`` to the tmpfs; 0 or -ENOSPC (mm/shmem.c).  Without a limit nothing is
    counted."""
    limit = system.sysctl.shmem_max_blocks
    if limit:
        if system.counters.shmem_used_blocks + pages > limit:
            #: the tmpfs is full: {system.counters.shmem_used_blocks} of {limit} pages
            #: -> truncate a file there
            return -ENOSPC
        system.counters.shmem_used_blocks += pages
    return 0


def shmem_acct_blocks(node: inode, pages: int) -> int:
    """Charge pages of a file of memory whose size was not charged when it was made (VM_NORESERVE)
    to the commit limit; 0 or -ENOSPC (mm/shmem.c)."""
    if node.noreserve and __vm_enough_memory(system.init_mm, pages):
        return -ENOSPC  #: {__vm_enough_memory}
    return 0


def shmem_unacct_blocks(node: inode, pages: int) -> None:
    """Take back the charge."""
    if node.noreserve:
        vm_unacct_memory(pages)


def shmem_inode_unacct_blocks(pages: int) -> None:
    """Uncharge ``pages``."""
    if system.sysctl.shmem_max_blocks:
        system.counters.shmem_used_blocks -= pages


def shmem_limit(pages: int) -> int:
    """Remount the tmpfs with room for ``pages`` pages, 0 for no limit; 0, or -EINVAL if it holds
    more (shmem_reconfigure)."""
    used = sum(node.i_mapping.nrpages for node in system.files.values() if node.kind == "tmpfs")
    if pages and used > pages:
        return -EINVAL  #: the tmpfs holds {used} pages already -> a limit of at least that many
    system.sysctl.shmem_max_blocks = pages
    system.counters.shmem_used_blocks = used
    return 0


def create_file(path: str, kind: str, data: bytes = b"") -> inode:
    """Make (or replace) the file ``path``.  A disk file's bytes stay on disk until its pages are
    read; the caller makes the pages of the other kinds."""
    node = new_inode(kind, len(data))
    if kind == "disk":
        for index in range((len(data) + PAGE_SIZE - 1) // PAGE_SIZE):
            node.disk.put(index, data[index * PAGE_SIZE : (index + 1) * PAGE_SIZE])
    system.files.put(path, node)
    return node


def lookup(path: str) -> inode | None:
    """The inode of ``path``, or None; a relative path starts at "/"."""
    return system.files.get(normalize(path))


def normalize(path: str) -> str:
    """The absolute form of ``path``, with ``.`` and ``..`` resolved."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def path_error(path: str) -> int:
    """Why a normalized ``path`` that names no file cannot be made one: -EISDIR, -ENOTDIR or
    -ENAMETOOLONG; 0 if it can. Directories exist only as prefixes of file paths."""
    folder = path.rstrip("/") + "/"
    if folder == "/" or any(known.startswith(folder) for known in system.files):
        return -EISDIR  #: {path} is a directory -> a file: see ls
    if any(path.startswith(known + "/") for known in system.files):
        return -ENOTDIR  #: a component of {path} is a file, not a directory
    parts = path.encode("utf-8", "surrogateescape").split(b"/")
    if any(len(part) > NAME_MAX for part in parts):
        return -ENAMETOOLONG  #: a component of the path has more than {NAME_MAX} bytes
    return 0


def open_file(node: inode, mode: int, path: str) -> file:
    """A new open file with one reference, held by the caller."""
    atomic_inc(node, "i_count")
    return file(f_inode=node, f_mapping=node.i_mapping, f_mode=mode, f_path=path)


def fget(fd: int) -> file | None:
    """The open file of the current task's descriptor, or None."""
    files = current().files
    return files.fd.get(fd) if files is not None else None


def fd_install(file: file) -> int:
    """The lowest free descriptor, now holding ``file``; -EMFILE if there is none."""
    files = current().files
    if files is None:
        return -EBADF  #: the task has closed its descriptors
    for fd in range(3, INR_OPEN_CUR):
        if fd not in files.fd:
            files.fd.put(fd, file)
            return fd
    return -EMFILE  #: all descriptors below {INR_OPEN_CUR} are in use -> close one first


def install_new(file: file) -> int:
    """A descriptor for a file that was just opened; -EMFILE, with the file closed again, if none is
    free."""
    fd = fd_install(file)
    if fd < 0:
        fput(file)
    return fd


def do_open(path: str, flags: int) -> int:
    """open(2): a descriptor, -ENOENT, -EISDIR, -ENOTDIR, -ENAMETOOLONG, -EACCES, -ENOMEM."""
    if not path:
        return -ENOENT  #: the path is empty -> a path, such as /data
    if len(path.encode("utf-8", "surrogateescape")) >= PATH_MAX:
        return -ENAMETOOLONG  #: the path has {PATH_MAX} bytes or more -> a shorter path
    node = lookup(path)
    error = path_error(normalize(path)) if node is None else 0
    if error:
        return error
    if path.endswith("/") and flags & O_CREAT:
        return -EISDIR  #: {path} ends with a slash -> the path without the slash
    if node is not None and path.endswith(("/", "/.")):
        return -ENOTDIR  #: {path} ends with a slash but is a file -> the path without the slash
    if node is None:
        if not flags & O_CREAT:
            #: no file {path} -> creat, or an existing file: see ls; mkfile and load make one
            return -ENOENT
        node = create_file(normalize(path), "tmpfs")
    modes = {O_RDONLY: FMODE_READ, O_WRONLY: FMODE_WRITE, O_RDWR: FMODE_READ | FMODE_WRITE}
    mode = modes.get(flags & O_ACCMODE)
    if mode is None:
        #: {flags:#x} allows neither reading nor writing -> rdonly, wronly or rdwr
        return -EACCES
    if slab_fails("filp"):
        return -ENOMEM  #: {slab_fails}
    return install_new(open_file(node, mode, normalize(path)))
