"""What memory must hold, in the simplest form: dictionaries of bytes, without page tables.

    process     page number -> Cell            fork copies it, threads have the same one
    Cell        offset -> byte (absent: 0)     of private memory, or of a shared page
    FileCell    the file's bytes until the first store, then its own

A permission is a letter of "rwx".  The model has no frames, entries, counts or VMAs.
"""

from __future__ import annotations

from kemu.machine.geometry import Geometry

Bytes = dict[int, int]
"""Offset in the page -> byte; an absent one is 0."""


class Cell:
    """A page of anonymous memory.  ``locked``: by mlock; ``onfault``: locked without faulting pages
    in; ``wipe``, ``lonely``: a child gets it empty, or not at all; ``guard``: every access is
    refused; ``fixed``: sealed."""

    def __init__(self, rights: str, *, shared: bool, locked: bool = False) -> None:
        self.rights, self.shared, self.locked = rights, shared, locked
        self.wipe = self.lonely = self.guard = self.fixed = self.onfault = False
        self.data: Bytes = {}

    def fork(self) -> Cell | None:
        """What the child has at the same address."""
        if self.lonely:
            return None
        copy = Cell(self.rights, shared=self.shared)
        copy.wipe, copy.fixed = self.wipe, self.fixed
        if not self.wipe:
            copy.guard = self.guard
            copy.data = self.data if self.shared else dict(self.data)
        return copy

    def present(self) -> bool:
        """True if the page exists: a file may have become shorter."""
        return True

    def byte(self, offset: int) -> int:
        """The bytes that a load returns."""
        return self.data.get(offset, 0)

    def load(self, offset: int, size: int) -> bytes:
        """``size`` bytes from ``offset``."""
        return bytes(self.byte(at) for at in range(offset, offset + size))

    def store(self, offset: int, data: bytes) -> None:
        """Any store: by user code, or by the kernel on its behalf."""
        self.data.update(enumerate(data, offset))

    def settle(self) -> None:
        """The page is faulted in for writing before a write (MAP_POPULATE, mlock, a pin): this has
        no other visible effect."""

    def drop(self) -> None:
        """MADV_DONTNEED: private memory is reset."""
        if not self.shared:
            self.data = {}


class File:
    """A file: bytes by page, and its number of pages.  ``cuts`` counts for each page how often it
    was cut off."""

    def __init__(self, pages: list[Bytes]) -> None:
        self.pages = pages
        self.size = len(pages)
        self.cuts = [0] * len(pages)

    def resize(self, size: int) -> None:
        """ftruncate(2) to ``size`` pages: what was cut off comes back as zeros."""
        for index in range(size, len(self.pages)):
            if index < self.size:
                self.cuts[index] += 1
            self.pages[index] = {}
        self.size = size

    def punch(self, first: int, count: int) -> None:
        """fallocate(2): a hole of pages, which read as zeros."""
        for index in range(first, min(first + count, len(self.pages))):
            self.pages[index] = {}


class FileCell(Cell):
    """A page of a file: shared, or private and then the file's until the first store."""

    def __init__(
        self, rights: str, file: File, index: int, *, shared: bool, locked: bool = False
    ) -> None:
        super().__init__(rights, shared=shared, locked=locked)
        self.file, self.index = file, index
        self.own: Bytes | None = None
        self.cut = 0

    def fork(self) -> Cell | None:
        """A copy of the page, with what was stored so far."""
        if self.lonely:
            return None
        copy = FileCell(self.rights, self.file, self.index, shared=self.shared)
        copy.fixed, copy.guard, copy.cut = self.fixed, self.guard, self.cut
        copy.own = None if self.own is None else dict(self.own)
        return copy

    def present(self) -> bool:
        """True if the file contains the page."""
        return self.index < self.file.size

    def _bytes(self) -> Bytes:
        """The page's own bytes, unless the file was cut off there since; else the file's."""
        if self.own is not None and self.cut == self.file.cuts[self.index]:
            return self.own
        return self.file.pages[self.index]

    def byte(self, offset: int) -> int:
        """The bytes that a load returns."""
        return self._bytes().get(offset, 0)

    def store(self, offset: int, data: bytes) -> None:
        """Store to the file, or to a private copy."""
        if self.shared:
            self.file.pages[self.index].update(enumerate(data, offset))
            return
        self.own, self.cut = dict(self._bytes()), self.file.cuts[self.index]
        self.own.update(enumerate(data, offset))

    def settle(self) -> None:
        """A private page is copied; from now on changes of the file do not show in it."""
        if not self.shared and "w" in self.rights and self.present():
            self.store(0, b"")

    def drop(self) -> None:
        """Drop the private copy."""
        self.own = None


def refusal(cell: Cell | None, wanted: str) -> str:
    """The result of an access: "" if it is allowed, else the signal's code; any letter of
    ``wanted`` is enough."""
    if cell is None:
        return "SEGV_MAPERR"
    if not set(cell.rights) & set(wanted):
        return "SEGV_ACCERR"
    if cell.guard:
        return "SEGV_MAPERR"
    return "" if cell.present() else "BUS_ADRERR"


def unfetchable(cell: Cell | None) -> str:
    """The result of an instruction fetch: the page is faulted in before the execute permission is
    checked."""
    if cell is not None and cell.rights and "x" not in cell.rights:
        return refusal(cell, cell.rights) or "SEGV_ACCERR"
    return refusal(cell, "x")


def readable(geometry: Geometry) -> str:
    """The permissions of which any one allows reading: x86 has no write-only or execute-only pages,
    RISC-V has execute-only."""
    return "rw" if geometry.name == "sv39" else "rwx"
