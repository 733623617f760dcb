"""Scripts: ``#!INTERPRETER [ARGUMENT]`` in the first line (fs/binfmt_script.c).

    ./script a b    with  #!/bin/sh -x    runs    /bin/sh -x ./script a b

Everything after the interpreter's path is one argument.  A first line longer than the 256 bytes
that the kernel reads is accepted if the path fits.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.fs.binprm import (
    BINPRM_BUF_SIZE,
    copy_string_kernel,
    linux_binprm,
    open_exec,
    remove_arg_zero,
)

SPACETAB = b" \t"


def first_line(buf: bytes) -> bytes | None:
    """The text between ``#!`` and the end of the line, without surrounding spaces and tabs; None if
    the interpreter's path may be cut off."""
    line, newline, _ = buf[2:].partition(b"\n")
    if not newline:
        rest = line.lstrip(SPACETAB)
        if not any(c in rest for c in b" \t\0"):
            return None
        line = line[: BINPRM_BUF_SIZE - 3]
    return line.strip(SPACETAB)


def split_line(line: bytes) -> tuple[bytes, bytes | None]:
    """(path of the interpreter, its argument or None); a NUL ends either, and a NUL after the path
    ends the line."""
    for at, c in enumerate(line):
        if c == 0:
            return line[:at], None
        if c in SPACETAB:
            argument = line[at:].lstrip(SPACETAB)
            return line[:at], argument.partition(b"\0")[0]
    return line, None


def load_script(bprm: linux_binprm) -> int:
    """Ask for the interpreter if ``bprm`` is a script; 0, -ENOEXEC (the next format is tried), or
    another error.

    argv[0] is replaced by the interpreter, its argument and the script's path."""
    if not bprm.buf.startswith(b"#!"):
        return -ENOEXEC  #: the file does not begin with #!
    line = first_line(bprm.buf)
    if not line:
        return -ENOEXEC  #: the line after #! names no interpreter -> a path after #!
    name, argument = split_line(line)
    retval = remove_arg_zero(bprm)
    for text in (bprm.interp, argument, name):
        if not retval and text is not None:
            retval = copy_string_kernel(text, bprm)
            bprm.argc += 1
    if retval:
        return retval
    bprm.interp = name
    file = open_exec(name)
    if isinstance(file, int):
        return file
    bprm.interpreter = file
    return 0
