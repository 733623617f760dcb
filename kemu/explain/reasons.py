"""Why a call on memory failed, in words: which of the things that its errno can mean was so.

    mmap -> -ENOMEM (12): 100 pages more would pass RLIMIT_AS (33 of 50 in use)

One sentence stands for one check of the kernel, in the kernel's order, and is given only where its
condition holds in the state that the failed call has left.  Where none holds there is no sentence,
and the errno's own words must do.

The rule that keeps this file honest: it looks at the arguments and the state, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kemu.abi.uapi import (
    EACCES,
    EBADF,
    EEXIST,
    EFAULT,
    EINVAL,
    ENOMEM,
    EPERM,
    MAP_FIXED,
    MAP_FIXED_NOREPLACE,
    MAP_GROWSDOWN,
    MAP_NORESERVE,
    MAP_PRIVATE,
    MAP_SHARED,
    MAP_SHARED_VALIDATE,
    MAP_TYPE,
    MREMAP_FIXED,
    MREMAP_MAYMOVE,
    PROT_WRITE,
    RLIM_INFINITY,
    RLIMIT_AS,
    RLIMIT_DATA,
)
from kemu.kernel.include.flags import VM_SEALED
from kemu.kernel.include.mm_types import (
    PAGE_ALIGN,
    PAGE_SHIFT,
    PAGE_SIZE,
    U64,
    mm_struct,
    vm_area_struct,
)
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.kernel.mm.util import OVERCOMMIT_GUESS, is_data_mapping


class Failed(NamedTuple):
    """A call that failed: the task, its address space, the arguments, the errno."""

    task: task_struct
    mm: mm_struct
    arguments: tuple[Any, ...]
    errno: int


INJECTED = "an allocation failed because set fail asked for it"

INSTEAD: tuple[tuple[str, str], ...] = (
    (
        "would pass RLIMIT_AS",
        "fewer pages, munmap of others first, or a higher limit: setrlimit TASK as SIZE",
    ),
    (
        "would pass RLIMIT_DATA",
        "fewer pages, munmap of others first, or a higher limit: setrlimit TASK data SIZE",
    ),
    (
        "would end above user memory",
        "a lower address, or a shorter range: all of it must lie below task_size",
    ),
    ("longer than all of user memory", "a shorter range"),
    ("more than all of RAM", "fewer pages, noreserve, or a machine with more --mem"),
    ("no multiple of the page size", "a multiple of the page size (4096)"),
    ("length is 0", "a length above 0"),
    ("no mapping holds", "a range that is mapped without a gap: see maps"),
    ("ends at", "an old size that does not reach beyond the mapping"),
    ("is sealed", "a range without a sealed mapping: mseal cannot be undone"),
    ("cannot grow where it is", "maymove"),
    (
        "is mapped there already",
        "another address, or fixed, which takes the place of what is there",
    ),
    ("is not open", "a descriptor that open gave and that is not closed"),
    ("set fail asked for it", "the same once more: it fails only once"),
)
"""What would have made the call succeed, by the words of the reason."""


def instead_of(why: str) -> str:
    """The advice that belongs to a reason; empty where there is none."""
    return next((advice for words, advice in INSTEAD if words in why), "")


def armed() -> tuple[int, int]:
    """How many allocations are left until one fails on purpose, of frames and of objects."""
    return system.sysctl.fail_alloc, system.sysctl.fail_slab


def reason(
    task: task_struct, call: str, arguments: tuple[Any, ...], errno: int, before: tuple[int, int]
) -> str:
    """The reason in words, or an empty text; to be asked right behind the call.  ``before``: what
    `armed` said before it."""
    if errno == EBADF and call in TAKES_DESCRIPTOR and not _is_open(task, arguments[0]):
        return f"descriptor {arguments[0]} is not open"
    checks = CHECKS.get(call)
    if checks is not None and task.mm is not None:
        found = next(checks(Failed(task, task.mm, arguments, errno)), "")
        if found:
            return found
    fired = any(left and not now for left, now in zip(before, armed(), strict=True))
    return INJECTED if fired and errno == ENOMEM else ""


TAKES_DESCRIPTOR = frozenset(
    {
        "close",
        "pread",
        "pwrite",
        "read",
        "write",
        "lseek",
        "ftruncate",
        "fallocate",
        "fsync",
        "fadvise64",
        "vmsplice",
    }
)
"""The calls whose first argument is a descriptor."""


def _is_open(task: task_struct, fd: int) -> bool:
    return task.files is not None and fd in task.files.fd


# ---------------------------------------------------------------- parts of sentences


def _span(start: int, end: int) -> str:
    return f"{start:#x}-{end:#x}"


def _unaligned(what: str, value: int) -> Iterator[str]:
    if value % PAGE_SIZE:
        yield f"{what} {value:#x} is no multiple of the page size"


def _too_high(failed: Failed, start: int, length: int) -> Iterator[str]:
    """The range does not fit below task_size."""
    size = failed.mm.task_size
    if length > size:
        yield f"it is longer than all of user memory ({size:#x})"
    elif start > size - length:
        yield f"it would end above user memory ({size:#x})"


def _overlapping(mm: mm_struct, start: int, end: int) -> Iterator[vm_area_struct]:
    return (vma for vma in mm.mm_mt if vma.vm_start < end and vma.vm_end > start)


def _sealed(mm: mm_struct, start: int, end: int) -> Iterator[str]:
    for vma in _overlapping(mm, start, end):
        if vma.vm_flags & VM_SEALED:
            yield f"the mapping {_span(vma.vm_start, vma.vm_end)} is sealed"


def _hole(mm: mm_struct, start: int, end: int) -> Iterator[str]:
    """The first address of the range that no mapping holds."""
    at = start
    for vma in _overlapping(mm, start, end):
        if vma.vm_start > at:
            break
        at = vma.vm_end
    if at < end:
        yield f"no mapping holds {at:#x}"


def _past_limit(failed: Failed, pages: int, data: bool) -> Iterator[str]:
    """The limits of an address space, in the order of may_expand_vm."""
    limits = [("RLIMIT_AS", RLIMIT_AS, failed.mm.total_vm)]
    if data:
        limits.append(("RLIMIT_DATA", RLIMIT_DATA, failed.mm.data_vm))
    for name, resource, used in limits:
        most = _limit(failed.task, resource) >> PAGE_SHIFT
        if used + pages > most:
            yield f"{pages} page{'s' * (pages != 1)} more would pass {name} ({used} of {most} in use)"


def _limit(task: task_struct, resource: int) -> int:
    """The limit in force: for data that was limited to nothing it is the hard one."""
    soft, hard = task.signal.rlim.get(resource, (RLIM_INFINITY, RLIM_INFINITY))
    return hard if resource == RLIMIT_DATA and not soft else soft


def _past_ram(pages: int) -> Iterator[str]:
    most = system.zone.managed_pages
    if pages > most and system.sysctl.overcommit_memory == OVERCOMMIT_GUESS:
        yield f"{pages} pages are more than all of RAM ({most})"


# ---------------------------------------------------------------- the calls


def _mmap(failed: Failed) -> Iterator[str]:
    addr, size, prot, flags, fd, _ = failed.arguments
    end = addr + PAGE_ALIGN(size)
    if failed.errno == EINVAL:
        yield from _mmap_arguments(failed)
    elif failed.errno == ENOMEM:
        yield from _mmap_room(failed)
    elif failed.errno == EBADF and not _is_open(failed.task, fd):
        yield f"descriptor {fd} is not open"
    elif failed.errno == EACCES:
        writing = prot & PROT_WRITE and flags & MAP_TYPE != MAP_PRIVATE
        yield f"the file is not open for {'writing' if writing else 'reading'}"
    elif failed.errno == EEXIST:
        for vma in _overlapping(failed.mm, addr, end):
            yield f"{_span(vma.vm_start, vma.vm_end)} is mapped there already"
    elif failed.errno == EPERM:
        yield from _sealed(failed.mm, addr, end)


ANY_FIXED = MAP_FIXED | MAP_FIXED_NOREPLACE


def _mmap_arguments(failed: Failed) -> Iterator[str]:
    """-EINVAL of mmap."""
    addr, size, _, flags, _, offset = failed.arguments
    yield from _unaligned("the offset", offset)
    if not size:
        yield "the length is 0"
    if flags & MAP_TYPE not in (MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE):
        yield "it is neither private nor shared"
    if flags & ANY_FIXED:
        yield from _unaligned("the address", addr)


def _mmap_room(failed: Failed) -> Iterator[str]:
    """-ENOMEM of mmap."""
    addr, size, prot, flags = failed.arguments[:4]
    length = PAGE_ALIGN(size)
    yield from _too_high(failed, addr if flags & ANY_FIXED else 0, length)
    there = _overlapping(failed.mm, addr, addr + length) if flags & MAP_FIXED else ()
    replaced = sum(min(vma.vm_end, addr + length) - max(vma.vm_start, addr) for vma in there)
    private = flags & MAP_TYPE == MAP_PRIVATE and prot & PROT_WRITE
    yield from _past_limit(
        failed, length - replaced >> PAGE_SHIFT, bool(private and not flags & MAP_GROWSDOWN)
    )
    if private and not flags & MAP_NORESERVE:
        yield from _past_ram(length >> PAGE_SHIFT)


def _munmap(failed: Failed) -> Iterator[str]:
    addr, length = failed.arguments
    if failed.errno == EINVAL:
        yield from _unaligned("the address", addr)
        yield from _too_high(failed, addr, length)
        if not length:
            yield "the length is 0"
    elif failed.errno == EPERM:
        yield from _sealed(failed.mm, addr, addr + PAGE_ALIGN(length))


def _range(failed: Failed) -> Iterator[str]:
    """The calls that go over the mappings of a range, which must have no hole."""
    start, length = failed.arguments[:2]
    end = start + PAGE_ALIGN(length)
    if failed.errno == EINVAL:
        yield from _unaligned("the address", start)
    elif failed.errno == EPERM:
        yield from _sealed(failed.mm, start, end)
    elif failed.errno == ENOMEM and end <= U64:
        yield from _hole(failed.mm, start, end)


def _mprotect(failed: Failed) -> Iterator[str]:
    _, length, prot = failed.arguments[:3]
    yield from _range(failed)
    if failed.errno == EACCES:
        yield "a mapping of the range may not get that right: its file is not open for it"
    elif failed.errno == ENOMEM and prot & PROT_WRITE:
        yield from _past_limit(failed, PAGE_ALIGN(length) >> PAGE_SHIFT, True)


def _mlock(failed: Failed) -> Iterator[str]:
    """A range whose ends are rounded outwards."""
    start, length = failed.arguments[:2]
    if failed.errno == ENOMEM:
        yield from _hole(failed.mm, start & -PAGE_SIZE, PAGE_ALIGN(start + length))


def _mremap(failed: Failed) -> Iterator[str]:
    addr, old, new, flags = failed.arguments[:4]
    old, new = PAGE_ALIGN(old), PAGE_ALIGN(new)
    vma = next(_overlapping(failed.mm, addr, addr + 1), None)
    if failed.errno == EINVAL:
        yield from _mremap_arguments(failed, old, new)
    elif failed.errno == EPERM:
        yield from _sealed(failed.mm, addr, addr + old)
    elif vma is None:
        yield f"no mapping holds {addr:#x}"
    elif failed.errno == EFAULT and min(old, new) > vma.vm_end - addr:
        yield f"the mapping ends at {vma.vm_end:#x}, within the old size"
    elif failed.errno == ENOMEM and new > old:
        yield from _past_limit(failed, new - old >> PAGE_SHIFT, is_data_mapping(vma.vm_flags))
        if not flags & MREMAP_MAYMOVE:
            yield "the mapping cannot grow where it is, without maymove"


def _mremap_arguments(failed: Failed, old: int, new: int) -> Iterator[str]:
    """-EINVAL of mremap; the lengths in whole pages."""
    addr, _, _, flags, to = failed.arguments
    yield from _unaligned("the address", addr)
    if not new:
        yield "the new length is 0"
    yield from _too_high(failed, to if flags & MREMAP_FIXED else 0, new)
    if flags & MREMAP_FIXED:
        yield from _unaligned("the new address", to)
        if not flags & MREMAP_MAYMOVE:
            yield "fixed goes only with maymove"
        if addr + old > to and to + new > addr:
            yield "the old range and the new one overlap"


CHECKS: dict[str, Callable[[Failed], Iterator[str]]] = {
    "mmap": _mmap,
    "munmap": _munmap,
    "mprotect": _mprotect,
    "mremap": _mremap,
    "mlock": _mlock,
    "mlock2": _mlock,
    "munlock": _mlock,
    "madvise": _range,
    "msync": _range,
    "mincore": _range,
    "mseal": _range,
}
"""What to look at, by call."""
