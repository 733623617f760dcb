"""Observe a process of the host, as observation.py does with one of kemu's: smaps, pagemap, status.

    /proc/PID/smaps    VMAs: bounds, rights, offset, file, flags, the numbers that are not 0
    /proc/PID/pagemap  one word per page: present, swap, file, exclusive, guard; for root also
                       the frame number
    /proc/kpagecount   mapcount of a frame                                     root
    /proc/kpageflags   flags of a frame; bit 34 is "exclusive" on anonymous pages    root

Without root the kernel hides frame numbers: pages then have no identity, no mapcount and no flags
(``Eyes.rooted``).
"""

from __future__ import annotations

import os
import re
import struct

import attrs

from kemu.abi.uapi import PAGE_SIZE
from kemu.conform.hostworker import Ended, Member
from kemu.conform.steps import Observation, PageSeen, VmaSeen
from kemu.conform.words import WINDOW_BASE

WINDOW_BELOW, WINDOW_ABOVE = 1024, 256
"""Pages around the window's base; VMAs in them are observed."""

_HEADER = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+) (\d+)\s*(.*)$")
_OURS = re.compile(r"/kemu-\d+-\d+-(\d+) \(deleted\)$")
_NUMBERS = frozenset({
    "Rss", "Pss", "Pss_Dirty", "Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty",
    "Referenced", "Anonymous",
    "KSM", "LazyFree", "AnonHugePages", "ShmemPmdMapped", "Swap", "SwapPss", "Locked",
})  # fmt: skip
_COUNTERS = ("VmSize", "VmLck", "VmPin", "VmData", "VmPTE")

_PRESENT = 1 << 63
_FILE_PAGE = 1 << 61
_SOFT_DIRTY = 1 << 55
_PFN = (1 << 55) - 1
_PAGEMAP_LETTERS = ((63, "P"), (62, "S"), (61, "F"), (56, "X"), (57, "W"), (58, "G"))
_FLAG_LETTERS = (
    (3, "U"), (4, "D"), (8, "W"), (11, "M"), (12, "a"), (14, "b"), (15, "H"), (16, "T"), (18, "u"),
    (21, "x"), (33, "m"),
)  # fmt: skip
_ANON_BIT, _ZERO_BIT, _EXCLUSIVE_BIT = 12, 24, 34


@attrs.frozen
class HostFrame:
    """A page frame of the host."""

    pfn: int


@attrs.frozen
class HostPage:
    """A page found in one process (identity.Sighting)."""

    number: int
    seen: PageSeen
    page: HostFrame
    place: tuple[int, int] | None


@attrs.define
class HostFiles:
    """The names of the host's files: (device, inode) -> a number, and the name in the program.
    ``made``: the program's files in order.  On file systems that show different devices in smaps
    and in stat, the path identifies the file."""

    numbers: dict[tuple[str, int], int] = attrs.Factory(dict)
    names: dict[int, str] = attrs.Factory(dict)
    made: list[str] = attrs.Factory(list)
    shared: int = 0

    def number(self, device: str, inode: int) -> int:
        """A small number for the file."""
        return self.numbers.setdefault((device, inode), len(self.numbers))

    def name(self, device: str, inode: int, path: str) -> str:
        """The name of the file that a VMA maps."""
        if not inode:
            return path if path.startswith("[") else "anon"
        number = self.number(device, inode)
        if number not in self.names:
            ours = _OURS.search(path)
            known = self.made[int(ours[1])] if ours and int(ours[1]) < len(self.made) else path
            self.names[number] = f"shm{self.shared}" if path.startswith("/dev/zero") else known
            self.shared += path.startswith("/dev/zero")
        return self.names[number]


class Eyes:
    """The files that are open to observe the host: for root, the two tables of frames.  ``base`` is
    that of the window."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.files = HostFiles()
        self.counts = _open("/proc/kpagecount")
        self.flags = _open("/proc/kpageflags")
        self.rooted = self.counts >= 0 and self.flags >= 0 and os.geteuid() == 0

    def close(self) -> None:
        """Close them."""
        for fd in (self.counts, self.flags):
            if fd >= 0:
                os.close(fd)

    def word(self, table: int, pfn: int) -> int:
        """The word for frame ``pfn`` in a table of frames."""
        return int.from_bytes(os.pread(table, 8, pfn * 8), "little")


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


class Sight:
    """An observed process: its open files under /proc."""

    def __init__(self, eyes: Eyes, member: Member) -> None:
        self.eyes = eyes
        self._fds = [_open(f"/proc/{member.pid}/{name}") for name in ("smaps", "pagemap", "status")]
        if min(self._fds) < 0:
            self.close()
            raise Ended(f"process {member.name} cannot be observed")

    def close(self) -> None:
        """Close them."""
        for fd in self._fds:
            if fd >= 0:
                os.close(fd)
        self._fds = []

    def counters(self) -> dict[str, int]:
        """The numbers of status that are compared, in kB."""
        found = {}
        for line in os.pread(self._fds[2], 1 << 14, 0).decode(errors="replace").split("\n"):
            key, _, value = line.partition(":")
            if key in _COUNTERS:
                found[key] = int(value.split()[0])
        return found

    def look(self, start: dict[str, int]) -> tuple[Observation, list[HostPage]]:
        """The observation, and the pages that still need a name."""
        pages: dict[str, PageSeen] = {}
        found: list[HostPage] = []
        vmas = []
        for vma, file, low in self._vmas():
            vmas.append(vma)
            first = 0 if vma["s"] == "heap0" else low
            self._pages(vma, file, first, pages, found)
        now = self.counters()
        grown = {
            key: now[key] - start[key] for key in _COUNTERS if now.get(key, 0) != start.get(key, 0)
        }
        return {"vmas": vmas, "pages": pages, "mm": grown}, found

    def _vmas(self) -> list[tuple[VmaSeen, int, int]]:
        """The VMAs in the window, each with the number of its file (-1: none) and its first
        page."""
        found: list[tuple[VmaSeen, int, int]] = []
        current: VmaSeen | None = None
        for line in _slurp(self._fds[0]).split("\n"):
            if line[:1] in "0123456789abcdef" and line:
                header = _HEADER.match(line)
                seen = self._header(header.groups()) if header else None
                current = seen[0] if seen else None
                found += [seen] if seen else []
            elif current is not None:
                _number(current, line)
        return found

    def _header(self, header: tuple[str, ...]) -> tuple[VmaSeen, int, int] | None:
        """The VMA that this line of smaps introduces; None if it is outside the window."""
        start, end = int(header[0], 16), int(header[1], 16)
        base, heap = self.eyes.base, self.eyes.base != WINDOW_BASE
        low = base if heap else base - WINDOW_BELOW * PAGE_SIZE + 1
        if end < low or start >= base + WINDOW_ABOVE * PAGE_SIZE:
            return None
        files, inode = self.eyes.files, int(header[5])
        first = (start - base) // PAGE_SIZE
        seen: VmaSeen = {
            "s": "heap0" if heap and start < base else first,
            "e": (end - base) // PAGE_SIZE,
            "perm": header[2],
            "off": int(header[3], 16) // PAGE_SIZE,
            "file": files.name(header[4], inode, header[6]),
            "st": {},
            "fl": "",
        }
        return seen, files.number(header[4], inode) if inode else -1, first

    def _pages(
        self, vma: VmaSeen, file: int, first: int, pages: dict[str, PageSeen], found: list[HostPage]
    ) -> None:
        """Read the words of pagemap for one VMA."""
        where = (self.eyes.base // PAGE_SIZE + first) * 8
        raw = os.pread(self._fds[1], max(0, vma["e"] - first) * 8, where)
        for number, (word,) in enumerate(struct.iter_unpack("<Q", raw), start=first):
            if not word & ~_SOFT_DIRTY:
                continue
            seen: PageSeen = {
                "pm": "".join(letter for bit, letter in _PAGEMAP_LETTERS if word >> bit & 1)
            }
            pages[str(number)] = seen
            pfn = word & _PFN
            if word & _PRESENT and pfn and self.eyes.rooted and self._frame(seen, pfn):
                place = (file, vma["off"] + number - first) if word & _FILE_PAGE else None
                found.append(HostPage(number, seen, HostFrame(pfn), place))

    def _frame(self, seen: PageSeen, pfn: int) -> bool:
        """Add what root can see of a frame; False if it is the zero page, which has a name
        already."""
        flags = self.eyes.word(self.eyes.flags, pfn)
        if flags >> _ZERO_BIT & 1:
            seen["id"] = "zero"
            return False
        seen["mc"] = self.eyes.word(self.eyes.counts, pfn)
        letters = "".join(letter for bit, letter in _FLAG_LETTERS if flags >> bit & 1)
        exclusive = flags >> _ANON_BIT & 1 and flags >> _EXCLUSIVE_BIT & 1
        seen["kf"] = letters + ("E" if exclusive else "")
        return True


def _number(vma: VmaSeen, line: str) -> None:
    """Add one line of smaps to a VMA."""
    key, _, value = line.partition(":")
    if key == "VmFlags":
        vma["fl"] = " ".join(value.split())
    elif key in _NUMBERS:
        kilobytes = int(value.split()[0])
        if kilobytes:
            vma["st"][key] = kilobytes


def _slurp(fd: int) -> str:
    """The contents of a file under /proc, read from its beginning."""
    parts, place = [], 0
    while part := os.pread(fd, 1 << 16, place):
        parts.append(part)
        place += len(part)
    return b"".join(parts).decode(errors="replace")
