"""The words of a recorded program, and the numbers that the system calls take for them.

This is data only.  ``program.py`` refuses any other word.
"""

from __future__ import annotations

from kemu.abi import uapi, words

WINDOW_BASE = 0x200000000000
"""Where the window of most programs begins: aligned to 2 MiB, so that one table covers it."""

PROCESSES = "ABCDEFGH"

PROT = {**words.PROT, "d": uapi.PROT_GROWSDOWN, "u": uapi.PROT_GROWSUP, "?": 0x100}
"""Letters of ``prot``; ``?`` is a bit that mprotect refuses."""

OPEN_MODE = {"ro": uapi.O_RDONLY, "wo": uapi.O_WRONLY, "rw": uapi.O_RDWR}
FILE_KINDS = ("memfd", "tmpfs", "disk")

SEGV_CODES, BUS_CODES = (
    {
        code: name.removeprefix(prefix)
        for (number, code), name in words.SIGNAL_CODES.items()
        if number == signo
    }
    for signo, prefix in ((uapi.SIGSEGV, "SEGV_"), (uapi.SIGBUS, "BUS_"))
)
SEGV_CODES[uapi.SI_KERNEL] = "SI_KERNEL"
PF_LETTERS = "PWURI"
"""Bits 0 to 4 of the page-fault error code."""
