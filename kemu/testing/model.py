"""What memory must hold, in the simplest way there is: a cell for each page, and no page table anywhere.

    private page         words of its process; fork copies it
    shared page          words that all see
    private file page    the file's words until the first store, then its own
    threads              one arena

Of every page two words of 8 bytes are looked at, so that a copy which forgets the rest of the page is noticed.  A right is a
letter of "rwx".
"""

from __future__ import annotations

from kemu.machine.geometry import Geometry

Words = tuple[int, int]
EMPTY: Words = (0, 0)


def changed(words: Words, word: int, value: int) -> Words:
    """The words with one of them replaced."""
    return (value, words[1]) if word == 0 else (words[0], value)


class Cell:
    """A page of memory: rights, and words that sharers see together."""

    def __init__(self, rights: str, *, shared: bool) -> None:
        self.rights, self.shared, self.words = rights, shared, EMPTY

    def fork(self) -> Cell:
        """What the child has at the same address."""
        if self.shared:
            return View(self)
        copy = Cell(self.rights, shared=False)
        copy.words = self.words
        return copy

    def load(self) -> Words:
        """What loads give."""
        return self.words

    def store(self, value: int, word: int = 0) -> None:
        """Any store of a word: by user code, or by the kernel on its behalf."""
        self.words = changed(self.words, word, value)

    def drop(self) -> None:
        """MADV_DONTNEED: private memory begins again."""
        if not self.shared:
            self.words = EMPTY


class FileCell(Cell):
    """A page of a file: shared, or private and then the file's until the first store."""

    def __init__(self, rights: str, page: Cell, *, shared: bool) -> None:
        super().__init__(rights, shared=shared)
        self.page = page
        self.own: Words | None = None

    def fork(self) -> Cell:
        """The same page, with what was stored so far."""
        copy = FileCell(self.rights, self.page, shared=self.shared)
        copy.own = self.own
        return copy

    def load(self) -> Words:
        """The own words, else the file's."""
        return self.page.words if self.own is None else self.own

    def store(self, value: int, word: int = 0) -> None:
        """To the file, or to a private copy."""
        if self.shared:
            self.page.store(value, word)
        else:
            self.own = changed(self.load(), word, value)

    def drop(self) -> None:
        """The private copy is gone."""
        self.own = None


class View(Cell):
    """Another process's view of a shared page: rights of its own, the words of the first."""

    def __init__(self, other: Cell) -> None:
        super().__init__(other.rights, shared=True)
        self.other = other

    def load(self) -> Words:
        """What all see."""
        return self.other.load()

    def store(self, value: int, word: int = 0) -> None:
        """For all to see."""
        self.other.store(value, word)


def refusal(cell: Cell | None, wanted: str) -> str:
    """What an access gets: "" if it is allowed, else the signal's code; any letter of ``wanted`` is enough."""
    if cell is None:
        return "SEGV_MAPERR"
    return "" if set(cell.rights) & set(wanted) else "SEGV_ACCERR"


def readable(geometry: Geometry) -> str:
    """The rights of which any lets a program read: x86 has no write-only or execute-only pages, RISC-V has execute-only."""
    return "rw" if geometry.name == "sv39" else "rwx"
