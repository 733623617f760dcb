"""Where the files of a program are on the host: in memory for kind tmpfs, on a disk for kind disk.
Their names are removed at once."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from kemu.conform.hostworker import libc
from kemu.errors import HostUnavailable

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- files of kind tmpfs must lie on a tmpfs; O_EXCL and a name of its own
TEMPORARY = Path("/var/tmp")  # noqa: S108 -- the same for a disk

_IN_MEMORY = {0x01021994, 0x858458F6}
"""f_type of tmpfs and ramfs."""


def disk_folder() -> str:
    """A folder on a file system that stores files on a device."""
    for folder in (TEMPORARY, Path.cwd()):
        room = ctypes.create_string_buffer(256)
        if os.access(folder, os.W_OK) and libc().statfs(os.fsencode(folder), room) == 0:
            kind = int.from_bytes(room.raw[:8], "little")
            if kind not in _IN_MEMORY:
                return str(folder)
    raise HostUnavailable(
        "files of kind disk need a writable folder on a disk file system; this host has none"
    )
