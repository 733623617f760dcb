"""The TLB of one CPU: translations that the hardware remembers, and may use until they are
invalidated.

Entries carry the PCID (address-space tag) under which they were filled; an entry of a global page
matches any PCID.  Entries that are not present are never cached, so making a page present needs no
flush; taking away a right does.

The model is direct-mapped, with ``size`` slots indexed by the low bits of the virtual page number,
so the addresses alone determine which entry a new one evicts.  One page of a large leaf takes one
slot, but ``invlpg`` of any page of the leaf drops them all, as the hardware does.  A flush is one
event.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kemu.trace.barrier import Table, struct

TLB_SIZE = 64


class TlbEntry(NamedTuple):
    """A remembered translation of one base page: virtual page number -> frame, with the rights of
    the whole walk.

    ``pages`` is the number of base pages that the leaf maps, 1 unless the leaf is large."""

    pcid: int
    vpn: int
    pfn: int
    write: bool
    user: bool
    exec_: bool
    read: bool
    dirty: bool
    glob: bool
    pages: int = 1


make_entry: Callable[[tuple[int, int, int, bool, bool, bool, bool, bool, bool, int]], TlbEntry] = (
    partial(tuple.__new__, TlbEntry)
)
"""Make a ``TlbEntry`` from all its fields in order, as its constructor does, but without running
Python code."""


@struct
class Tlb:
    """The entries of one CPU by slot; ``large`` is set if some of them may come from large
    leaves."""

    cpu: int
    size: int
    slots: Table[int, TlbEntry]
    large: bool = False

    def lookup(self, vpn: int, pcid: int) -> TlbEntry | None:
        """The entry for page ``vpn`` as seen under ``pcid``, or None."""
        entry = self.slots.get(vpn % self.size)
        if entry is not None and entry.vpn == vpn and (entry.pcid == pcid or entry.glob):
            return entry
        return None

    def fill(self, entry: TlbEntry) -> None:
        """Remember ``entry``, evicting what is in its slot."""
        self.slots.put(entry.vpn % self.size, entry)
        if entry.pages > 1 and not self.large:
            self.large = True

    def invlpg(self, vpn: int, pcid: int) -> None:
        """Forget page ``vpn`` of ``pcid``, and a global entry for it; of a large leaf, all its
        pages."""
        if self.large:
            self._forget_leaf(vpn, pcid)
            return
        entry = self.slots.get(vpn % self.size)
        if entry is not None and entry.vpn == vpn and (entry.pcid == pcid or entry.glob):
            self.slots.put(vpn % self.size, None)

    def _forget_leaf(self, vpn: int, pcid: int) -> None:
        self._keep({i: e for i, e in self.slots.items() if not _of_leaf(e, vpn, pcid)})

    def flush_pcid(self, pcid: int) -> None:
        """Forget all entries of ``pcid`` except global ones (a CR3 load without the no-flush
        bit)."""
        self._keep({i: e for i, e in self.slots.items() if e.pcid != pcid or e.glob})

    def flush_all(self) -> None:
        """Forget everything, global entries too (toggling CR4.PGE)."""
        self._keep({})
        if self.large:
            self.large = False

    def _keep(self, rest: dict[int, TlbEntry]) -> None:
        if len(rest) != len(self.slots):
            self.slots = Table("tlb", rest)

    def entries(self) -> list[TlbEntry]:
        """All entries, by PCID and page."""
        return sorted(self.slots.values())


def _of_leaf(entry: TlbEntry, vpn: int, pcid: int) -> bool:
    """True if ``entry`` comes from the leaf that maps page ``vpn`` under ``pcid``."""
    return entry.vpn // entry.pages == vpn // entry.pages and (entry.pcid == pcid or entry.glob)


def new_tlb(cpu: int, size: int = TLB_SIZE) -> Tlb:
    """An empty TLB for CPU number ``cpu``."""
    return Tlb(cpu=cpu, size=size, slots=Table("tlb"))
