"""RAM as a whole: what maps a frame, what each frame is, what is free."""

from __future__ import annotations

from kemu.readings.base import Address, Pairs, Reading
from kemu.readings.spaces import VmaReading


class RmapVisit(Reading):
    """A VMA that the reverse walk looks at. ``address``: where the page would be mapped;
    ``mapped``: the entry there holds the frame."""

    pid: int
    name: str
    mm: int
    vma: VmaReading
    address: Address
    mapped: bool
    letters: str = ""


class RmapReading(Reading):
    """The reverse walk from a frame: through ``via`` (anon_vma#1, inode#3) at ``index`` to the
    VMAs."""

    pfn: int
    kind: str
    via: str
    index: int
    mapcount: int
    visits: tuple[RmapVisit, ...]


class FrameRun(Reading):
    """Neighbouring frames with the same letter."""

    first: int
    count: int
    letter: str


OWNERS = "abcdefghijklmnopqrstuvwxyz0123456789"
"""The letters of frames that belong to one process, in the order in which processes get them."""

MEANINGS = {
    ".": "free",
    "K": "kernel",
    "T": "page table",
    "Z": "the zero page",
    "F": "page cache, not mapped",
    "R": "released, still in a batch",
    "S": "mapped more than once",
    "+": "of a process without a letter",
}
"""The meaning of the letters of frames that do not belong to one process."""


class MemoryMap(Reading):
    """All of RAM, one letter per frame. ``legend``: (letter, what it means, frames)."""

    frames: int
    runs: tuple[FrameRun, ...]
    legend: tuple[tuple[str, str, int], ...]


class FreeReading(Reading):
    """The allocator's numbers, in pages. ``orders``: free blocks of each order; ``lru``: list
    lengths; ``vmstat``: counters."""

    total: int
    managed: int
    free: int
    orders: tuple[int, ...]
    watermarks: Pairs
    lru: Pairs
    vmstat: Pairs
    committed: int
    used: Pairs


class MemoryDump(Reading):
    """Bytes of a range as the tables translate it, read without touching anything, in chunks of a
    page or less; ``data`` None where nothing is mapped."""

    pid: int
    name: str
    start: Address
    chunks: tuple[tuple[Address, bytes | None], ...]


class FileRow(Reading):
    """A file inside kemu. ``kind``: memfd, tmpfs, disk; ``size`` in bytes; ``cached``: pages in the
    page cache."""

    path: str
    kind: str
    size: int
    cached: int


class FileList(Reading):
    """The files that have a path, by path."""

    files: tuple[FileRow, ...]
