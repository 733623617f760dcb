"""Calls on descriptors of every kind: the errno that Linux 6.18 gave for each."""

from functools import cache

import pytest

from kemu.abi import uapi
from kemu.abi.uapi import (
    FALLOC_FL_KEEP_SIZE,
    FALLOC_FL_PUNCH_HOLE,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_PRIVATE,
    MAP_SHARED,
    PROT_READ,
    PROT_WRITE,
)
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm.filemap import load_file, make_memory_file
from kemu.userland.script import Script

PAGE, BUF = 4096, 0x10000
CALLS = {
    "read": ("read", "FD", BUF, 8),
    "write": ("write", "FD", BUF, 8),
    "pread": ("pread", "FD", BUF, 8, 0),
    "pwrite": ("pwrite", "FD", BUF, 8, 0),
    "pread_neg": ("pread", "FD", BUF, 8, -1),
    "pwrite_neg": ("pwrite", "FD", BUF, 8, -1),
    "lseek": ("lseek", "FD", 0, 1),
    "lseek_bad": ("lseek", "FD", 0, 77),
    "lseek_neg": ("lseek", "FD", -1, 0),
    "ftruncate": ("ftruncate", "FD", PAGE),
    "ftruncate_neg": ("ftruncate", "FD", -1),
    "fallocate": ("fallocate", "FD", 0, 0, PAGE),
    "fallocate_len0": ("fallocate", "FD", 0, 0, 0),
    "fallocate_neg": ("fallocate", "FD", 0, -1, PAGE),
    "fallocate_bad": ("fallocate", "FD", 0x4000, 0, PAGE),
    "punch": ("fallocate", "FD", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE),
    "punch_alone": ("fallocate", "FD", FALLOC_FL_PUNCH_HOLE, 0, PAGE),
    "fadvise": ("fadvise64", "FD", 0, 0, 0),
    "fadvise_bad": ("fadvise64", "FD", 0, 0, 77),
    "fadvise_neglen": ("fadvise64", "FD", 0, -1, 0),
    "fadvise_negoff": ("fadvise64", "FD", -PAGE, 0, 0),
    "fsync": ("fsync", "FD"),
    "mmap_priv_r": ("mmap", 0, PAGE, PROT_READ, MAP_PRIVATE, "FD", 0),
    "mmap_priv_rw": ("mmap", 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, "FD", 0),
    "mmap_shared_r": ("mmap", 0, PAGE, PROT_READ, MAP_SHARED, "FD", 0),
    "mmap_shared_rw": ("mmap", 0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, "FD", 0),
    "mmap_len0": ("mmap", 0, 0, PROT_READ, MAP_SHARED, "FD", 0),
    "mmap_notype": ("mmap", 0, PAGE, PROT_READ, 0, "FD", 0),
    "vmsplice": ("vmsplice", "FD", BUF, 8),
    "vmsplice_0": ("vmsplice", "FD", BUF, 0),
    "read_0": ("read", "FD", BUF, 0),
    "write_0": ("write", "FD", BUF, 0),
    "read_badbuf": ("read", "FD", 8, 8),
}
KINDS = ["pipe_r", "pipe_w", "bad", "memfd_rw", "disk_rw", "disk_ro", "disk_wo", "tmpfs_rw"]

LINUX = """
read            EAGAIN      EBADF       EBADF  ok          ok          ok          EBADF       ok
write           EBADF       ok          EBADF  ok          ok          EBADF       ok          ok
pread           ESPIPE      ESPIPE      EBADF  ok          ok          ok          EBADF       ok
pwrite          ESPIPE      ESPIPE      EBADF  ok          ok          EBADF       ok          ok
pread_neg       EINVAL      EINVAL      EINVAL EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
pwrite_neg      EINVAL      EINVAL      EINVAL EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
lseek           ESPIPE      ESPIPE      EBADF  ok          ok          ok          ok          ok
lseek_bad       EINVAL      EINVAL      EBADF  EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
lseek_neg       ESPIPE      ESPIPE      EBADF  EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
ftruncate       EINVAL      EINVAL      EBADF  ok          ok          EINVAL      ok          ok
ftruncate_neg   EINVAL      EINVAL      EINVAL EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
fallocate       EBADF       ESPIPE      EBADF  ok          ok          EBADF       ok          ok
fallocate_len0  EINVAL      EINVAL      EBADF  EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
fallocate_neg   EINVAL      EINVAL      EBADF  EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
fallocate_bad   EOPNOTSUPP  EOPNOTSUPP  EBADF  EOPNOTSUPP  EOPNOTSUPP  EOPNOTSUPP  EOPNOTSUPP  EOPNOTSUPP
punch           EBADF       ESPIPE      EBADF  ok          ok          EBADF       ok          ok
punch_alone     EOPNOTSUPP  EOPNOTSUPP  EBADF  EOPNOTSUPP  EOPNOTSUPP  EOPNOTSUPP  EOPNOTSUPP  EOPNOTSUPP
fadvise         ESPIPE      ESPIPE      EBADF  ok          ok          ok          ok          ok
fadvise_bad     ESPIPE      ESPIPE      EBADF  EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
fadvise_neglen  ESPIPE      ESPIPE      EBADF  EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
fadvise_negoff  ESPIPE      ESPIPE      EBADF  ok          ok          ok          ok          ok
fsync           EINVAL      EINVAL      EBADF  ok          ok          ok          ok          ok
mmap_priv_r     ENODEV      EACCES      EBADF  ok          ok          ok          EACCES      ok
mmap_priv_rw    ENODEV      EACCES      EBADF  ok          ok          ok          EACCES      ok
mmap_shared_r   ENODEV      EACCES      EBADF  ok          ok          ok          EACCES      ok
mmap_shared_rw  EACCES      EACCES      EBADF  ok          ok          EACCES      EACCES      ok
mmap_len0       EINVAL      EINVAL      EBADF  EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
mmap_notype     EINVAL      EINVAL      EBADF  EINVAL      EINVAL      EINVAL      EINVAL      EINVAL
vmsplice        EAGAIN      ok          EBADF  EBADF       EBADF       EBADF       EBADF       EBADF
vmsplice_0      ok          ok          EBADF  ok          ok          ok          ok          ok
read_0          ok          EBADF       EBADF  ok          ok          ok          EBADF       ok
write_0         EBADF       ok          EBADF  ok          ok          EBADF       ok          ok
read_badbuf     EAGAIN      EBADF       EBADF  EFAULT      EFAULT      EFAULT      EBADF       EFAULT
"""
ANSWERS = [
    (name, kind, answer)
    for name, *answers in (line.split() for line in LINUX.strip().splitlines())
    for kind, answer in zip(KINDS, answers, strict=True)
]


def opened(kind, script, task):
    """The descriptor of a new file of the kind."""
    if kind.startswith("pipe"):
        script.syscall(task, "pipe2", BUF, uapi.O_NONBLOCK)
        return 3 if kind == "pipe_r" else 4
    if kind == "memfd_rw":
        script.syscall(task, "memfd_create", "m")
        script.syscall(task, "ftruncate", 3, 2 * PAGE)
        return 3
    if kind == "bad":
        return 99
    if kind.startswith("disk"):
        load_file("/f", bytes(2 * PAGE))
    else:
        make_memory_file("/f", b"", 2 * PAGE)
    flags = {"ro": uapi.O_RDONLY, "wo": uapi.O_WRONLY, "rw": uapi.O_RDWR}[kind[-2:]]
    return script.syscall(task, "open", "/f", flags).value


@cache
def prepared(kind):
    """A machine, a task on it, and a descriptor of the kind."""
    kernel = Kernel()
    script = Script(kernel)
    task = script.spawn("a")
    where = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
    script.syscall(task, "mmap", BUF, 2 * PAGE, PROT_READ | PROT_WRITE, where, -1, 0)
    fd = opened(kind, script, task)
    kernel.journal.catch_up()
    return kernel, script, task, fd, len(kernel.journal)


@pytest.mark.parametrize(("name", "kind", "answer"), ANSWERS)
def test_a_call_answers_as_linux_does(name, kind, answer):
    kernel, script, task, fd, start = prepared(kind)
    kernel.activate()
    kernel.journal.seek(start)
    kernel.journal.truncate()
    call, *arguments = CALLS[name]
    passed = [fd if argument == "FD" else argument for argument in arguments]
    outcome = script.syscall(task, call, *passed)
    assert outcome.errno == (0 if answer == "ok" else getattr(uapi, answer))
