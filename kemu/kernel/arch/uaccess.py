"""How the kernel accesses user memory (arch/x86/include/asm/uaccess.h, lib/usercopy.c).

    read(2) -> copy_to_user -> a store in kernel mode to a user address
         |- the page is there: done
         |- an ordinary fault (demand paging, copy-on-write), charged to the caller
         `- a fault that cannot be served: no signal; the copy stops and returns how much is left

During the copy the kernel disables SMAP (``stac`` ... ``clac``).
"""

from __future__ import annotations

from kemu.kernel.include.mm_types import PAGE_SIZE
from kemu.kernel.include.system import current, system
from kemu.machine.mmu import READ, WRITE, access
from kemu.trace.frames import linux


def task_size_max() -> int:
    """The first address above user memory."""
    return (1 << (system.geometry.va_bits - 1)) - PAGE_SIZE


def default_map_window() -> int:
    """The end of the area for mappings and stacks, unless a hint asks for more: 47 bits, or all of
    a smaller address space."""
    return min((1 << 47) - PAGE_SIZE, task_size_max())


def access_ok(addr: int, size: int) -> bool:
    """True if [addr, addr+size) lies in the user's half; says nothing about what is mapped
    there."""
    return addr >= 0 and addr + size <= task_size_max()


@linux("include/linux/uaccess.h")
def copy_to_user(to: int, data: bytes) -> int:
    """Store ``data`` at the user address ``to``; the number of bytes that could not be stored."""
    if not access_ok(to, len(data)):
        return len(data)  #: {to:#x} is not an address of user memory
    done = 0
    cpu = system.cpu.hw
    cpu.ac = True
    while done < len(data):
        chunk = data[done : done + _in_page(to + done, len(data) - done)]
        pa = access(cpu, to + done, WRITE, False, system.trap)
        if not isinstance(pa, int):
            break
        system.phys.write(pa, chunk)
        done += len(chunk)
    cpu.ac = False
    return len(data) - done


@linux("include/linux/uaccess.h")
def copy_from_user(addr: int, size: int) -> tuple[bytes, int]:
    """The bytes at the user address ``addr`` that could be read, and the number that could not."""
    if not access_ok(addr, size):
        return b"", size  #: {addr:#x} is not an address of user memory
    data = b""
    cpu = system.cpu.hw
    cpu.ac = True
    while len(data) < size:
        pa = access(cpu, addr + len(data), READ, False, system.trap)
        if not isinstance(pa, int):
            break
        data += system.phys.read(pa, _in_page(addr + len(data), size - len(data)))
    cpu.ac = False
    return data, size - len(data)


def copy_from_user_inatomic(addr: int, size: int) -> bytes:
    """The bytes at ``addr`` that can be read without taking a fault (``__copy_from_user_inatomic``
    under pagefault_disable)."""
    task = current()
    task.pagefault_disabled += 1
    data, _ = copy_from_user(addr, size)
    task.pagefault_disabled -= 1
    return data


@linux("mm/gup.c")
def fault_in_readable(uaddr: int, size: int) -> int:
    """Touch each page of [uaddr, uaddr+size) for reading; the number of bytes from the first
    unreadable one on."""
    if not access_ok(uaddr, size):
        return size
    at = uaddr
    while at < uaddr + size:
        if copy_from_user(at, 1)[1]:
            return uaddr + size - at
        at = (at | PAGE_SIZE - 1) + 1
    return 0


def _in_page(addr: int, size: int) -> int:
    """The number of the ``size`` bytes at ``addr`` that are in the first page."""
    return min(size, PAGE_SIZE - addr % PAGE_SIZE)


def put_user(value: int, addr: int, size: int = 4) -> int:
    """Store an integer of ``size`` bytes; 0 or -EFAULT."""
    return (
        -14 if copy_to_user(addr, (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")) else 0
    )


@linux("arch/x86/include/asm/uaccess_64.h")
def clear_user(to: int, size: int) -> int:
    """Zero ``size`` bytes at the user address ``to``; the number of bytes that could not be
    zeroed."""
    return copy_to_user(to, bytes(size))


STRING_CHUNK = 64
"""Bytes that ``strnlen_user`` reads at a time."""


def strnlen_user(addr: int, count: int) -> int:
    """The length of the string at ``addr`` with its NUL, more than ``count`` if it has none within
    ``count`` bytes, 0 if it cannot be read."""
    length = 0
    while length <= count:
        data, left = copy_from_user(addr + length, STRING_CHUNK - (addr + length) % STRING_CHUNK)
        if 0 in data:
            return length + data.index(0) + 1
        if left:
            return 0
        length += len(data)
    return length
