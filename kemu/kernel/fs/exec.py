"""execve: the same task, another program (fs/exec.c).

    do_execve -> do_execveat_common   alloc_bprm     open the file, begin a new address space
                                      copy_strings   file name, envp, argv onto its stack
                  bprm_execve         exec_binprm    which format is it?
                    load_script       #!             once more for its interpreter, up to 5 times
                    load_elf_binary   ELF            begin_new_exec (no return), then segments

Until ``begin_new_exec`` a failure is an errno and the old program goes on; after it, SIGSEGV.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.abi.uapi import *
from kemu.kernel.fs.binfmt_elf import load_elf_binary
from kemu.kernel.fs.binfmt_script import load_script
from kemu.kernel.fs.binprm import (
    MAX_ARG_STRINGS,
    alloc_bprm,
    bprm_stack_limits,
    copy_string_kernel,
    copy_strings,
    free_bprm,
    linux_binprm,
    prepare_binprm,
)
from kemu.kernel.fs.file_table import fput
from kemu.kernel.include.sched_types import PF_KTHREAD
from kemu.kernel.include.system import current
from kemu.kernel.kernel.signal import fatal_signal_pending, force_fatal_sig
from kemu.trace.frames import linux

formats = (load_script, load_elf_binary)
"""The binary formats, in the order in which they are tried."""

DEFAULT_ENVP = (b"HOME=/", b"TERM=linux")
MAX_DEPTH = 5
"""The deepest nesting of interpreters."""


def c_string(text: bytes | str) -> bytes:
    """``text`` as a C program passes it: UTF-8, up to the first NUL."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return data.partition(b"\0")[0]


@linux("fs/exec.c")
def do_execve(
    path: str | bytes, argv: Sequence[bytes | str], envp: Sequence[bytes | str] | None = None
) -> int:
    """execve(2) of the current task: 0 in the new program, or a negative error in the old one.
    ``envp`` None: HOME=/ and TERM=linux.  If it fails past the point of no
    return, SIGSEGV is pending."""
    filename = c_string(path)
    if not filename:
        return -ENOENT  #: the path is empty -> a path
    if len(filename) >= PATH_MAX:
        return -ENAMETOOLONG  #: the path has {PATH_MAX} bytes or more -> a shorter path
    if current().flags & PF_KTHREAD:
        return -EINVAL  #: a kernel thread cannot execute a program
    environment = DEFAULT_ENVP if envp is None else envp
    return do_execveat_common(
        filename, [c_string(text) for text in argv], [c_string(text) for text in environment]
    )


@linux("fs/exec.c")
def do_execveat_common(filename: bytes, argv: list[bytes], envp: list[bytes]) -> int:
    """Prepare, execute, clean up; 0 or a negative error."""
    bprm = alloc_bprm(filename)
    if isinstance(bprm, int):
        return bprm
    retval = put_arguments(bprm, argv, envp) or bprm_execve(bprm)
    free_bprm(bprm)
    return retval


def put_arguments(bprm: linux_binprm, argv: list[bytes], envp: list[bytes]) -> int:
    """Copy file name, environment and arguments to the new stack; 0, -E2BIG, -EINTR.  A program has
    at least an empty argv[0]."""
    if max(len(argv), len(envp)) > MAX_ARG_STRINGS:
        return -E2BIG  #: more than {MAX_ARG_STRINGS} arguments -> fewer arguments
    bprm.argc, bprm.envc = len(argv), len(envp)
    retval = bprm_stack_limits(bprm) or copy_string_kernel(bprm.filename, bprm)
    if retval:
        return retval
    bprm.exec = bprm.p
    retval = copy_strings(envp, bprm) or copy_strings(argv, bprm)
    if not retval and not argv:
        retval = copy_string_kernel(b"", bprm)
        bprm.argc = 1
    return retval


@linux("fs/exec.c")
def bprm_execve(bprm: linux_binprm) -> int:
    """Execute; a task that fails past the point of no return is killed."""
    retval = exec_binprm(bprm)
    if retval < 0 and bprm.point_of_no_return and not fatal_signal_pending(current()):
        force_fatal_sig(SIGSEGV)
    return retval


@linux("fs/exec.c")
def exec_binprm(bprm: linux_binprm) -> int:
    """Find the format, and that of the interpreter if it is a script; 0 or a negative error."""
    for _ in range(MAX_DEPTH + 1):
        retval = search_binary_handler(bprm)
        if retval < 0:
            return retval
        if bprm.interpreter is None:
            return 0
        script, bprm.file, bprm.interpreter = bprm.file, bprm.interpreter, None
        fput(script)
    #: more than {MAX_DEPTH} nested scripts -> an interpreter that is a program
    return -ELOOP


@linux("fs/exec.c")
def search_binary_handler(bprm: linux_binprm) -> int:
    """Try each format; 0 or a negative error, -ENOEXEC if none recognises the file."""
    retval = prepare_binprm(bprm)
    if retval < 0:
        return retval
    for load_binary in formats:
        retval = load_binary(bprm)
        if bprm.point_of_no_return or retval != -ENOEXEC:
            return retval
    #: not an executable format that Linux knows
    #: -> a file that begins with an ELF header for this machine, or with #!
    return -ENOEXEC
