"""A program on its way into memory: its file, its strings, the address space in the making
(fs/exec.c).

    STACK_TOP_MAX  +----------------+
                   | 8 bytes of 0   |
                   | file name      |  bprm.exec          copied downwards, the last string first
                   | envp strings   |
                   | argv strings   |  bprm.p             by get_user_pages: the mm is not loaded
                   +----------------+

The caller is still the old program: a failure here is an errno, and nothing has changed.

The strings reach the new address space through ``get_arg_page`` only.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.fs.file_table import fput
from kemu.kernel.fs.files import is_shmem, lookup, normalize, open_file, path_error
from kemu.kernel.include.mm_types import (
    FMODE_READ,
    MM_ANONPAGES,
    PAGE_MASK,
    PAGE_SHIFT,
    PAGE_SIZE,
    file,
    mm_struct,
    page,
    vm_area_struct,
    vma_pages,
)
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.mm_life import mm_alloc, mmput
from kemu.kernel.kernel.sched import mmdrop
from kemu.kernel.kernel.signal import fatal_signal_pending
from kemu.kernel.mm.filemap import cached_page, file_pages
from kemu.kernel.mm.gup import FOLL_WRITE, get_user_pages_remote
from kemu.kernel.mm.lru import folio_mark_accessed
from kemu.kernel.mm.mmap_lock import (
    mmap_read_lock,
    mmap_read_unlock,
    mmap_write_lock,
    mmap_write_unlock,
)
from kemu.kernel.mm.page_alloc import put_page
from kemu.kernel.mm.slab import slab_fails
from kemu.kernel.mm.stack import expand_downwards
from kemu.kernel.mm.vma_exec import create_init_stack_vma
from kemu.trace.frames import linux

BINPRM_BUF_SIZE = 256
"""Bytes of the file by which its format is recognised."""

MAX_ARG_STRLEN = 32 * PAGE_SIZE
MAX_ARG_STRINGS = 0x7FFFFFFF
ARG_MAX = 131072
_STK_LIM = 8 << 20


class linux_binprm:
    """``struct linux_binprm``, on the stack of one execve, so not journalled.

    ``filename`` as the caller gave it, ``interp`` what runs it (a script's interpreter); ``file``
    the program, ``interpreter`` the one that a script asks for; ``mm`` and ``vma`` the new address
    space and its stack; ``p`` the lowest byte used there, ``argmin`` the lowest that may be used;
    ``exec`` the address of ``filename``; ``rlim_stack`` (soft, hard) in bytes; ``vma_pages`` what
    ``acct_arg_size`` has counted."""

    __slots__ = (
        "argc", "argmin", "buf", "envc", "exec", "file", "filename", "interp", "interpreter", "mm",
        "p",
        "point_of_no_return", "rlim_stack", "vma", "vma_pages",
    )  # fmt: skip

    def __init__(self, program: file, filename: bytes) -> None:
        self.file = program
        self.filename = self.interp = filename
        self.interpreter: file | None = None
        self.mm: mm_struct | None = None
        self.vma: vm_area_struct
        self.vma_pages = 0
        self.p = self.argmin = self.exec = 0
        self.argc = self.envc = 0
        self.buf = b""
        self.rlim_stack = (RLIM_INFINITY, RLIM_INFINITY)
        self.point_of_no_return = False


# ---------------------------------------------------------------- the file


@linux("fs/exec.c")
def do_open_execat(name: bytes) -> file | int:
    """The file ``name``, open for reading with one reference; -ENOENT, -EACCES (a directory),
    -ENOTDIR, -ENAMETOOLONG, -ENOMEM."""
    if len(name) >= PATH_MAX:
        return -ENAMETOOLONG  #: the path has {PATH_MAX} bytes or more
    text = name.decode("utf-8", "surrogateescape")
    path = normalize(text)
    node = lookup(text)
    if node is None:
        error = path_error(path)
        if error == -EISDIR:
            return -EACCES  #: {path} is a directory -> a file: see ls
        #: no file {path} -> load it first: load HOSTFILE as PATH
        return error or -ENOENT
    if name.endswith((b"/", b"/.")):
        return -ENOTDIR  #: {text} ends with a slash but is a file -> the path without the slash
    if slab_fails("filp"):
        return -ENOMEM  #: {slab_fails}
    return open_file(node, FMODE_READ, path)


@linux("fs/exec.c")
def open_exec(name: bytes) -> file | int:
    """The interpreter ``name`` that a program or script asks for."""
    return do_open_execat(name)


def kernel_read(file: file, count: int, pos: int) -> bytes | int:
    """Up to ``count`` bytes from ``pos`` (a u64 that C takes for signed), through the page cache;
    -EINVAL, -ENOMEM."""
    if pos + count >= 1 << 63:
        return -EINVAL  #: the range ends beyond the largest file
    node = file.f_inode
    end = min(pos + count, node.i_size)
    data = b""
    while pos < end:
        folio = cached_page(node, pos >> PAGE_SHIFT)
        size = min(end - pos, PAGE_SIZE - pos % PAGE_SIZE)
        if folio is not None:
            folio_mark_accessed(folio)
            data += system.phys.read((folio.pfn << PAGE_SHIFT) + pos % PAGE_SIZE, size)
        elif is_shmem(node) and pos >> PAGE_SHIFT < file_pages(node):
            data += bytes(size)
        else:
            return -ENOMEM  #: {cached_page}
        pos += size
    return data


@linux("fs/exec.c")
def prepare_binprm(bprm: linux_binprm) -> int:
    """Fill ``buf`` with the beginning of the file, and zeros past its end; 0 or more, or a negative
    error."""
    data = kernel_read(bprm.file, BINPRM_BUF_SIZE, 0)
    if isinstance(data, int):
        return data
    bprm.buf = data.ljust(BINPRM_BUF_SIZE, b"\0")
    return len(data)


# ---------------------------------------------------------------- beginning and end


@linux("fs/exec.c")
def alloc_bprm(filename: bytes) -> linux_binprm | int:
    """Open the file and begin a new address space; on a negative error everything is undone."""
    file = do_open_execat(filename)
    if isinstance(file, int):
        return file
    if slab_fails("linux_binprm"):
        fput(file)
        return -ENOMEM  #: {slab_fails}
    bprm = linux_binprm(file, filename)
    error = bprm_mm_init(bprm)
    if error:
        free_bprm(bprm)
        return error
    return bprm


@linux("fs/exec.c")
def bprm_mm_init(bprm: linux_binprm) -> int:
    """An empty mm with a stack of one page at its very top; 0 or -ENOMEM."""
    mm = mm_alloc()
    if mm is None:
        return -ENOMEM  #: {mm_alloc}
    bprm.rlim_stack = current().signal.rlim.get(RLIMIT_STACK, bprm.rlim_stack)
    vma, p = create_init_stack_vma(mm)
    if vma is None:
        mmdrop(mm)
        return p
    bprm.mm, bprm.vma, bprm.p = mm, vma, p
    return 0


@linux("fs/exec.c")
def free_bprm(bprm: linux_binprm) -> None:
    """Drop what was not handed over to the new program."""
    if bprm.mm is not None:
        acct_arg_size(bprm, 0)
        mmput(bprm.mm)
    fput(bprm.file)


@linux("fs/exec.c")
def acct_arg_size(bprm: linux_binprm, pages: int) -> None:
    """Count the pages of the strings as the caller's memory until exec is done, for the OOM
    killer."""
    mm = current().mm
    diff = pages - bprm.vma_pages
    if mm is not None and diff:
        bprm.vma_pages = pages
        mm.rss_stat.put(MM_ANONPAGES, mm.rss_stat[MM_ANONPAGES] + diff)


# ---------------------------------------------------------------- limits


@linux("fs/exec.c")
def bprm_stack_limits(bprm: linux_binprm) -> int:
    """Set ``argmin``: strings and the pointers to them may take a quarter of the stack limit, at
    least 128 KiB and at most 6 MiB; 0 or -E2BIG."""
    limit = max(min(_STK_LIM // 4 * 3, bprm.rlim_stack[0] // 4), ARG_MAX)
    pointers = (max(bprm.argc, 1) + bprm.envc) * 8
    if limit <= pointers or bprm.p < limit - pointers:
        #: the arguments need more than {limit} bytes, a quarter of the stack limit
        #: -> fewer or shorter arguments
        return -E2BIG
    bprm.argmin = bprm.p - (limit - pointers)
    return 0


# ---------------------------------------------------------------- strings


@linux("mm/mmap.c")
def mmap_read_lock_maybe_expand(mm: mm_struct, vma: vm_area_struct, addr: int, write: bool) -> bool:
    """Lock for reading, after expanding the stack ``vma`` for a write below it.  False, with
    nothing locked, if it cannot grow."""
    if write and addr < vma.vm_start:
        mmap_write_lock(mm)
        error = expand_downwards(vma, addr)
        mmap_write_unlock(mm)
        if error:
            return False
    mmap_read_lock(mm)
    return True


@linux("fs/exec.c")
def get_arg_page(bprm: linux_binprm, pos: int, write: bool) -> page | None:
    """The page of the new stack that contains ``pos``, with a reference; None if the stack cannot
    grow or there is no memory."""
    mm, vma = bprm.mm, bprm.vma
    assert mm is not None
    if not mmap_read_lock_maybe_expand(mm, vma, pos, write):
        return None
    pages: list[page] = []
    get_user_pages_remote(mm, pos & PAGE_MASK, 1, FOLL_WRITE if write else 0, pages)
    mmap_read_unlock(mm)
    if write and pages:
        acct_arg_size(bprm, vma_pages(vma))
    return pages[0] if pages else None


class _kmapped:
    """The page of the new stack that the kernel holds at the moment."""

    __slots__ = ("kpos", "page")

    def __init__(self) -> None:
        self.page: page | None = None
        self.kpos = 0

    def at(self, bprm: linux_binprm, pos: int) -> page | None:
        """The page for ``pos``; the previous one is put."""
        if self.page is None or self.kpos != pos & PAGE_MASK:
            found = get_arg_page(bprm, pos, True)
            self.put()
            self.page, self.kpos = found, pos & PAGE_MASK
        return self.page

    def put(self) -> None:
        """Drop the reference."""
        if self.page is not None:
            put_page(self.page)
            self.page = None


@linux("fs/exec.c")
def copy_strings(strings: list[bytes], bprm: linux_binprm) -> int:
    """Copy the strings below ``bprm.p``, the last one first; 0, -E2BIG, -EINTR."""
    kmapped = _kmapped()
    ret = 0
    for text in reversed(strings):
        ret = _copy_down(text, bprm, kmapped)
        if ret:
            break
    kmapped.put()
    return ret


@linux("fs/exec.c")
def copy_string_kernel(text: bytes, bprm: linux_binprm) -> int:
    """Copy one string below ``bprm.p``; 0, -E2BIG, -EINTR."""
    kmapped = _kmapped()
    ret = _copy_down(text, bprm, kmapped)
    kmapped.put()
    return ret


def _copy_down(text: bytes, bprm: linux_binprm, kmapped: _kmapped) -> int:
    """Copy one string and its NUL, from its end, page by page."""
    data = text + b"\0"
    if len(data) > MAX_ARG_STRLEN:
        return -E2BIG  #: an argument is longer than {MAX_ARG_STRLEN} bytes -> shorter arguments
    pos = bprm.p
    bprm.p -= len(data)
    if bprm.p < bprm.argmin:
        #: the arguments are longer than a quarter of the stack limit -> fewer or shorter arguments
        return -E2BIG
    while data:
        if fatal_signal_pending(current()):
            return -EINTR  #: a fatal signal is pending
        size = min(len(data), pos % PAGE_SIZE or PAGE_SIZE)
        pos -= size
        folio = kmapped.at(bprm, pos)
        if folio is None:
            return -E2BIG  #: {get_arg_page}
        _copy_to_page(folio, pos % PAGE_SIZE, data[-size:])
        data = data[:-size]
    return 0


def _copy_to_page(folio: page, offset: int, data: bytes) -> None:
    """Store within one frame; a whole frame is one event."""
    if len(data) == PAGE_SIZE:
        system.phys.set_page(folio.pfn, data)
    else:
        system.phys.write((folio.pfn << PAGE_SHIFT) + offset, data)


@linux("fs/exec.c")
def remove_arg_zero(bprm: linux_binprm) -> int:
    """Drop argv[0]: move ``bprm.p`` past the first NUL; 0 or -EFAULT."""
    if not bprm.argc:
        return 0
    while True:
        page = get_arg_page(bprm, bprm.p, False)
        if page is None:
            return -EFAULT  #: {get_arg_page}
        offset = bprm.p % PAGE_SIZE
        rest = system.phys.read((page.pfn << PAGE_SHIFT) + offset, PAGE_SIZE - offset)
        put_page(page)
        if 0 in rest:
            break
        bprm.p += len(rest)
    bprm.p += rest.index(0) + 1
    bprm.argc -= 1
    return 0
