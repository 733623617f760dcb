"""Which page is which, over the whole run: the names that pages get in a recording.

A frame is reused after it is freed, so a frame number is not a name.  An anonymous page keeps its
name while it stays at one address of one process; it keeps it when it moves (mremap), and so does
the child's page after a fork.  Every page in the range of a fresh mmap is new.  A page of a file is
identified by file, index and frame, until the file is cut and nothing maps the page any more.

The recorder considered a file cut only if the call succeeded.  But a call that failed half-way
(MADV_REMOVE into a hole) had also cut it.  Linux hands out the frame freed last first, so if one
page was lost and then made again, it has the old name in a recording.  kemu's allocator does not
prefer the frame freed last, so the name is kept here (``_spare``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from kemu.conform.steps import PageSeen


class Frame(Protocol):
    """What is known about a page frame: its number."""

    @property
    def pfn(self) -> int:
        """The frame number."""


class Sighting(Protocol):
    """A page found in a process of kemu or of the host (for the fields see observation.Mapped)."""

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
        """For a page of a file: the file, and the index in it."""


@attrs.frozen
class Happened:
    """What the operation did to pages, for naming them: the pages ``fresh`` (from, to) of the
    address space ``fresh_in`` were newly mapped; ``parent`` was copied to ``child``; pages of
    ``mover`` may have moved; files may have been ``cut``, or ``half_cut`` by a call that then
    failed."""

    fresh_in: str = ""
    fresh: tuple[int, int] = (0, 0)
    parent: str = ""
    child: str = ""
    mover: str = ""
    cut: bool = False
    half_cut: bool = False


class Identities:
    """The names given so far.  ``spaces`` maps each process to a name for its address space, so
    that it shows which processes share one."""

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
        """The name of a page of a file; a new name if it was not seen at that ``place`` before."""
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
        """The name that an anonymous page has already, found by its present or previous place."""
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
