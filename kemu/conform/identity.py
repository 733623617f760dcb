"""Which page is which, over the whole run: the names that pages get in a recording.

A frame is used again after it was freed, so a frame number is not a name.  An anonymous page keeps
its name while it stays at one place of one process; it takes it along when it moves (mremap) and
hands it on when it is inherited (fork).  Whatever lies in the range of a fresh mmap is new.  A page
of a file is known by file, index and frame, until the file was cut and nothing maps the page any
more.

The recorder took a file for cut when a call succeeded.  One that failed half-way (MADV_REMOVE into
a hole) had cut it all the same; Linux hands out next the frame that was freed last, so a page made
anew in the place of the only one that was lost has its name in a recording.  kemu's allocator has
no such short memory: the name is kept for it here (``_spare``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from kemu.conform.steps import PageSeen


class Frame(Protocol):
    """What is known of a page frame: its number."""

    @property
    def pfn(self) -> int:
        """The frame number."""


class Sighting(Protocol):
    """A page found in one process, of kemu or of the host (observation.Mapped says what the fields
    mean)."""

    @property
    def number(self) -> int:
        """The page's number in the window."""

    @property
    def seen(self) -> PageSeen:
        """What is shown of it; its ``id`` is filled in here."""

    @property
    def page(self) -> Frame:
        """The frame."""

    @property
    def place(self) -> tuple[int, int] | None:
        """For a page of a file: which file, and where in it."""


@attrs.frozen
class Happened:
    """What the operation did to pages, for naming them: pages ``fresh`` (from, to) of the address
    space ``fresh_in`` were mapped anew; ``parent`` was copied to ``child``; pages of ``mover`` may
    have moved; files may have been ``cut``, or ``half_cut`` by a call that failed then."""

    fresh_in: str = ""
    fresh: tuple[int, int] = (0, 0)
    parent: str = ""
    child: str = ""
    mover: str = ""
    cut: bool = False
    half_cut: bool = False


class Identities:
    """The names given so far.  ``spaces`` tells which processes share one address space: name -> a
    name for the space."""

    def __init__(self) -> None:
        self.spaces: dict[str, str] = {"A": "A"}
        self._next = 1
        self._seen: dict[str, dict[int, tuple[int, int]]] = {}
        self._files: dict[tuple[int, int], tuple[int, int]] = {}
        self._mapped: set[tuple[int, int]] = set()
        self._spare: tuple[int, int] | None = None

    def fork(self, child: str) -> None:
        """``child`` has an address space of its own."""
        self.spaces[child] = child

    def share(self, parent: str, child: str) -> None:
        """``child`` runs in the address space of ``parent``."""
        self.spaces[child] = self.spaces[parent]
        self._seen[child] = dict(self._seen.get(parent, {}))

    def name_pages(self, found: Mapping[str, Sequence[Sighting]], happened: Happened) -> None:
        """Fill in the ``id`` of every page in ``found`` (process -> its pages)."""
        mapped_now = {mapped.place for pages in found.values() for mapped in pages if mapped.place}
        if happened.cut:
            self._forget_unmapped(found)
        if happened.half_cut and len(self._mapped - mapped_now) == 1:
            (self._spare,) = self._mapped - mapped_now
        self._mapped = mapped_now
        kept: dict[int, int] = {}
        unnamed: list[tuple[str, Sighting]] = []
        for name, pages in found.items():
            for mapped in pages:
                place = mapped.place
                known = (
                    self._file_page(mapped, place)
                    if place
                    else self._anonymous(name, mapped, happened)
                )
                if known is None:
                    unnamed.append((name, mapped))
                    continue
                mapped.seen["id"] = known
                if not place:
                    kept[mapped.page.pfn] = known
        for _, mapped in unnamed:
            frame = mapped.page.pfn
            if frame not in kept:
                kept[frame] = self._new()
            mapped.seen["id"] = kept[frame]
        self._seen = {name: _anonymous_names(pages) for name, pages in found.items()}

    def _new(self) -> int:
        self._spare = None
        self._next += 1
        return self._next - 1

    def _file_page(self, mapped: Sighting, place: tuple[int, int]) -> int:
        """The name of a page of a file, a new one if it was not met at that ``place`` before."""
        frame, name = self._files.get(place, (-1, 0))
        if frame != mapped.page.pfn:
            name = name if place == self._spare else self._new()
            self._spare = None
            self._files[place] = (mapped.page.pfn, name)
        return name

    def _forget_unmapped(self, found: Mapping[str, Sequence[Sighting]]) -> None:
        live = {mapped.page.pfn for pages in found.values() for mapped in pages if mapped.place}
        self._files = {place: known for place, known in self._files.items() if known[0] in live}

    def _anonymous(self, name: str, mapped: Sighting, happened: Happened) -> int | None:
        """The name that an anonymous page has already, by the place where it is or from which it
        came."""
        if (
            happened.fresh_in == self.spaces[name]
            and happened.fresh[0] <= mapped.number < happened.fresh[1]
        ):
            return None
        here = self._seen.get(name, {}).get(mapped.number)
        if here is not None and here[0] == mapped.page.pfn:
            return here[1]
        if name == happened.child:
            there = self._seen.get(happened.parent, {}).get(mapped.number)
            return there[1] if there is not None and there[0] == mapped.page.pfn else None
        if name == happened.mover:
            return next(
                (
                    known
                    for frame, known in self._seen.get(name, {}).values()
                    if frame == mapped.page.pfn
                ),
                None,
            )
        return None


def _anonymous_names(pages: Sequence[Sighting]) -> dict[int, tuple[int, int]]:
    """Page number -> (frame, name) of the anonymous pages."""
    names: dict[int, tuple[int, int]] = {}
    for mapped in pages:
        known = mapped.seen.get("id")
        if not mapped.place and isinstance(known, int):
            names[mapped.number] = (mapped.page.pfn, known)
    return names
