"""The table of system calls (include/linux/linkage.h, arch/x86/entry/syscall_64.c).

A function that user code can call is marked where it is defined:

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
    """Register ``function``, named sys_NAME, as the system call NAME."""
    SYSCALLS[function.__name__.removeprefix("sys_")] = function
    return function
