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


# ---------------------------------------------------------------- large offsets, limits, addresses

MAX, EXT4 = 2**63 - 1, 0xFFFFFFFF000
BEYOND, UNMAPPED = 0xFFFF888000000000, 0x1000
"""Addresses of the kernel's half, and of nothing."""
KEEP, PUNCH = FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE

LARGE = [  # call and arguments after the descriptor, in memory, on disk: the result, or the errno
    (("ftruncate", EXT4), 0, 0),
    (("ftruncate", EXT4 + 1), 0, "EFBIG"),
    (("ftruncate", MAX), 0, "EFBIG"),
    (("pwrite", BUF, 1, EXT4), 1, "EFBIG"),
    (("pwrite", BUF, 100, EXT4 - 10), 100, 10),
    (("pwrite", BUF, 1, 0x7FFFFFFFFFFFF000), 1, "EFBIG"),
    (("pwrite", BUF, 1, MAX), "EINVAL", "EINVAL"),
    (("pwrite", BUF, 1, MAX - 1), 1, "EFBIG"),
    (("pread", BUF, 1, MAX), "EINVAL", "EINVAL"),
    (("pread", BUF, 1, MAX - 1), 0, 0),
    (("pread", BUF, 0, MAX), 0, 0),
    (("pwrite", BUF, 0, MAX), 0, 0),
    (("lseek", MAX, 0), MAX, "EINVAL"),
    (("lseek", EXT4, 0), EXT4, EXT4),
    (("lseek", EXT4 + 1, 0), EXT4 + 1, "EINVAL"),
    (("fallocate", 0, MAX, 1), "EFBIG", "EFBIG"),
    (("fallocate", KEEP, MAX, 1), "EFBIG", "EFBIG"),
    (("fallocate", 0, EXT4, 1), 0, "EFBIG"),
    (("fallocate", PUNCH, MAX - 1, 1), 0, "EFBIG"),
    (("fallocate", 0, 1, MAX), "EFBIG", "EFBIG"),
    (("pwrite", BEYOND, 8, 8192), "EFAULT", "EFAULT"),
    (("pwrite", 0x7FFFFFFFF000, 8, 8192), "EFAULT", "EFAULT"),
    (("pwrite", UNMAPPED, 8, 8192), "EFAULT", "EFAULT"),
    (("pread", BEYOND, 8, 0), "EFAULT", "EFAULT"),
    (("pread", BEYOND, 0, 0), "EFAULT", "EFAULT"),
    (("pwrite", BEYOND, 0, 0), "EFAULT", "EFAULT"),
    (("pread", BEYOND, 8, -1), "EINVAL", "EINVAL"),
    (("pread", BEYOND, 8, 1 << 20), "EFAULT", "EFAULT"),
]

LIMITED = [  # with RLIMIT_FSIZE of 4096: what the file has before, the call, its result
    (8192, ("ftruncate", 8192), 0),
    (8192, ("ftruncate", 8193), "XFSZ"),
    (8192, ("ftruncate", 4096), 0),
    (4096, ("ftruncate", 4097), "XFSZ"),
    (4096, ("ftruncate", 100), 0),
    (100, ("pwrite", BUF, 8, 4096), "XFSZ"),
    (100, ("pwrite", BUF, 200, 4000), 96),
    (100, ("pwrite", BUF, 0, 4096), 0),
    (100, ("pwrite", UNMAPPED, 8, 4096), "XFSZ"),
    (100, ("pwrite", BEYOND, 8, 4096), "EFAULT"),
    (100, ("pwrite", BUF, 8, 5000), "XFSZ"),
    (8192, ("pwrite", BUF, 8, 4096), "XFSZ"),
    (100, ("fallocate", 0, 0, 4096), 0),
    (100, ("fallocate", 0, 0, 4097), "XFSZ"),
    (100, ("fallocate", PUNCH, 0, 8192), 0),
]


def again(kind):
    """The prepared machine of a kind, at its start."""
    kernel, script, task, fd, start = prepared(kind)
    kernel.activate()
    kernel.journal.seek(start)
    kernel.journal.truncate()
    return script, task, fd


def result(outcome):
    """The value, or the name of the errno, or the signal in its place."""
    if outcome.signal is not None:
        assert outcome.signal.signo == uapi.SIGXFSZ
        assert outcome.errno in (0, uapi.EFBIG)
        return "XFSZ"
    known = {number: name for name, number in vars(uapi).items() if name[0] == "E" and number}
    return known[outcome.errno] if outcome.errno else outcome.value


@pytest.mark.parametrize(("call", "in_memory", "on_disk"), LARGE, ids=str)
def test_offsets_and_addresses_at_the_ends_are_judged_as_by_linux(call, in_memory, on_disk):
    for kind, expected in (("memfd_rw", in_memory), ("disk_rw", on_disk)):
        script, task, fd = again(kind)
        assert result(script.syscall(task, call[0], fd, *call[1:])) == expected, kind


@pytest.mark.parametrize("kind", ["memfd_rw", "disk_rw", "tmpfs_rw"])
@pytest.mark.parametrize(("size", "call", "expected"), LIMITED, ids=str)
def test_a_file_does_not_grow_beyond_the_limit(kind, size, call, expected):
    script, task, fd = again(kind)
    script.syscall(task, "ftruncate", fd, size)
    script.syscall(task, "setrlimit", uapi.RLIMIT_FSIZE, 4096, uapi.RLIM_INFINITY)
    assert result(script.syscall(task, call[0], fd, *call[1:])) == expected


def test_keeping_the_size_is_limited_in_memory_and_not_on_disk():
    for kind, expected in (("memfd_rw", "XFSZ"), ("disk_rw", 0)):
        script, task, fd = again(kind)
        script.syscall(task, "ftruncate", fd, 100)
        script.syscall(task, "setrlimit", uapi.RLIMIT_FSIZE, 4096, uapi.RLIM_INFINITY)
        assert result(script.syscall(task, "fallocate", fd, KEEP, 0, 8192)) == expected


def test_a_write_from_no_address_of_user_memory_does_not_even_grow_the_file():
    script, task, fd = again("memfd_rw")
    script.syscall(task, "ftruncate", fd, 0)
    script.syscall(task, "pwrite", fd, BEYOND, 8, PAGE)
    assert script.syscall(task, "lseek", fd, 0, uapi.SEEK_END).value == 0
    script.syscall(task, "pwrite", fd, UNMAPPED, 8, PAGE)
    assert script.syscall(task, "lseek", fd, 0, uapi.SEEK_END).value == PAGE


# ---------------------------------------------------------------- holes, and ranges that move

SEEKS = [  # offset, the next data, the next hole
    (0, 8192, 0),
    (2 * PAGE + 9, 2 * PAGE + 9, 3 * PAGE),
    (3 * PAGE, 5 * PAGE, 3 * PAGE),
    (5 * PAGE, 5 * PAGE, 6 * PAGE),
    (6 * PAGE, "ENXIO", 6 * PAGE),
    (10 * PAGE + 99, "ENXIO", 10 * PAGE + 99),
    (10 * PAGE + 100, "ENXIO", "ENXIO"),
    (-1, "ENXIO", "ENXIO"),
]


@pytest.mark.parametrize("kind", ["memfd_rw", "disk_rw", "tmpfs_rw"])
def test_data_and_holes_are_found(kind):
    script, task, fd = again(kind)
    for call in (
        ("ftruncate", fd, 0),
        ("ftruncate", fd, 10 * PAGE + 100),
        ("pwrite", fd, BUF, PAGE, 2 * PAGE),
        ("pwrite", fd, BUF, 1, 5 * PAGE + 5),
    ):
        script.syscall(task, *call)
    for offset, data, hole in SEEKS:
        assert result(script.syscall(task, "lseek", fd, offset, uapi.SEEK_DATA)) == data
        assert result(script.syscall(task, "lseek", fd, offset, uapi.SEEK_HOLE)) == hole
    script.syscall(task, "pread", fd, BUF, 1, 8 * PAGE)
    found = result(script.syscall(task, "lseek", fd, 6 * PAGE, uapi.SEEK_DATA))
    assert found == "ENXIO", "what is only read stays a hole"


COLLAPSE, ZERO, INSERT, UNSHARE = 8, 0x10, 0x20, 0x40
MOVES = [  # mode, offset, length, the result, and what each page of the file begins with then
    (COLLAPSE, PAGE, 2 * PAGE, 0, "10 13 14 15 16 17"),
    (COLLAPSE, PAGE, 100, "EINVAL", ""),
    (COLLAPSE, 100, PAGE, "EINVAL", ""),
    (COLLAPSE, PAGE, 5 * PAGE, "EINVAL", ""),
    (COLLAPSE, PAGE, 6 * PAGE, "EINVAL", ""),
    (COLLAPSE | KEEP, PAGE, PAGE, "EOPNOTSUPP", "10 13 14 15 16 17"),
    (INSERT, PAGE, 2 * PAGE, 0, "10 00 00 13 14 15 16 17"),
    (INSERT, 100, PAGE, "EINVAL", ""),
    (INSERT, 8 * PAGE, PAGE, "EINVAL", ""),
    (INSERT | KEEP, PAGE, PAGE, "EOPNOTSUPP", ""),
    (INSERT, 7 * PAGE, PAGE, 0, "10 00 00 13 14 15 16 00 17"),
    (ZERO, PAGE + 100, 2 * PAGE, 0, "10 00 00 00 14 15 16 00 17"),
    (ZERO, 8 * PAGE, 2 * PAGE, 0, "10 00 00 00 14 15 16 00 00 00"),
    (ZERO | KEEP, 8 * PAGE, 80192, 0, "10 00 00 00 14 15 16 00 00 00"),
    (UNSHARE, 0, PAGE, "EOPNOTSUPP", ""),
    (ZERO | COLLAPSE, 0, PAGE, "EOPNOTSUPP", ""),
    (ZERO | PUNCH, 0, PAGE, "EOPNOTSUPP", ""),
    (COLLAPSE | PUNCH, 0, PAGE, "EOPNOTSUPP", ""),
]


def contents(script, task, fd):
    """The first byte of each page of the file, in hexadecimal."""
    size = script.syscall(task, "lseek", fd, 0, uapi.SEEK_END).value
    firsts = []
    for offset in range(0, size, PAGE):
        script.syscall(task, "pread", fd, BUF, 1, offset)
        firsts.append(script.load(task, BUF, 1).data.hex())
    return " ".join(firsts)


def test_ranges_of_a_file_on_disk_are_cut_out_and_moved():
    script, task, fd = again("disk_rw")
    for page in range(8):
        script.store(task, BUF, bytes([0x10 + page]) * PAGE)
        script.syscall(task, "pwrite", fd, BUF, PAGE, page * PAGE)
    for mode, offset, length, expected, after in MOVES:
        got = result(script.syscall(task, "fallocate", fd, mode, offset, length))
        assert got == expected, (mode, offset, length)
        if after:
            assert contents(script, task, fd) == after


def test_memory_has_no_ranges_that_move():
    script, task, fd = again("memfd_rw")
    for mode in (COLLAPSE, INSERT, ZERO, UNSHARE):
        outcome = script.syscall(task, "fallocate", fd, mode, 0, PAGE)
        assert result(outcome) == "EOPNOTSUPP"
