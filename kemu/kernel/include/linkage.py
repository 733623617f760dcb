"""The table of system calls (include/linux/linkage.h, arch/x86/entry/syscall_64.c).

A function that user code can call says so itself, wherever it is:

    @asmlinkage
    def sys_munmap(addr: int, length: int) -> int: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., int])

SYSCALLS: dict[str, Callable[..., int]] = {}
"""Every system call by name, as kemu/abi has it."""


def asmlinkage(function: Function) -> Function:
    """User code can call ``function``, which is called sys_NAME."""
    SYSCALLS[function.__name__.removeprefix("sys_")] = function
    return function
