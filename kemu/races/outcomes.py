"""The outcome of a run as each CPU sees it: results, signals, bytes read, and what happened to the
pages that were touched.

Two runs have the same outcome if this text is the same.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from kemu.kernel.include.mm_types import mm_struct
from kemu.kernel.include.sched_types import TASK_DEAD, TASK_RUNNING, siginfo
from kemu.kernel.include.system import system
from kemu.observe.entries import leaves
from kemu.races.racers import Racer


class Words(Protocol):
    """The names of tasks and of the numbers of the system-call interface."""

    def errno(self, number: int) -> str:
        """``EFAULT``."""

    def signal(self, number: int) -> str:
        """``SIGSEGV``."""

    def task(self, pid: int) -> str:
        """The name of the pid."""


@attrs.frozen
class Seen:
    """A page as it was found: its frame (None: not present) and whether the entry allows
    writing."""

    pfn: int | None = None
    writable: bool = False


class Before:
    """The pages that the racers are about to touch, their address space, and the faults of their
    tasks so far."""

    def __init__(self, racers: tuple[Racer, ...]) -> None:
        self.spaces: list[mm_struct | None] = [racer.task.mm for racer in racers]
        self.faults = [faults(racer) for racer in racers]
        self.pages = [
            look(mm, racer.address) for racer, mm in zip(racers, self.spaces, strict=True)
        ]


def faults(racer: Racer) -> int:
    """Faults that were charged to the racer's task."""
    return racer.task.min_flt + racer.task.maj_flt


def look(mm: mm_struct | None, address: int) -> Seen:
    """The page at ``address``."""
    if mm is None or not mm.pgd:
        return Seen()
    start = address & ~4095
    for leaf in leaves(mm.pgd, start, start + 4096):
        if leaf.entry & system.bits.present:
            return Seen(system.geometry.entry_pfn(leaf.entry), bool(leaf.entry & system.bits.write))
    return Seen()


def tell(
    racers: tuple[Racer, ...],
    before: Before,
    results: list[int],
    delivered: list[list[siginfo]],
    words: Words,
) -> str:
    """The outcome of a complete run."""
    parts = []
    for number, racer in enumerate(racers):
        said = _signalled(racer, delivered[number], words) or _returned(
            racer, results[number], words
        )
        faulted = faults(racer) > before.faults[number]
        said = said or _touched(
            racer, faulted, before.pages[number], look(before.spaces[number], racer.address)
        )
        parts.append(f"{words.task(racer.task.pid)} {said}")
    return "; ".join([*parts, *_last_writer(racers, before)])


def _signalled(racer: Racer, delivered: list[siginfo], words: Words) -> str:
    """What a CPU reports if its task took a signal or has ended; else nothing."""
    if delivered:
        killed = racer.task.exit_state or racer.task.state == TASK_DEAD
        return f"takes {words.signal(delivered[0].signo)}" + (" and dies" if killed else "")
    if racer.task.exit_state or racer.task.state == TASK_DEAD:
        return "has ended"
    return f"waits in {racer.task.blocked_in}" if racer.task.state != TASK_RUNNING else ""


def _returned(racer: Racer, ret: int, words: Words) -> str:
    """The result of a system call; nothing for an access."""
    if racer.touch is not None:
        return ""
    return (
        f"gets -{words.errno(-ret)}" if ret < 0 else f"gets {ret:#x}" if ret > 9 else f"gets {ret}"
    )


def _touched(racer: Racer, faulted: bool, page: Seen, now: Seen) -> str:
    """What an access did to its page."""
    kind = racer.touch.kind if racer.touch is not None else ""
    if kind == "read":
        return f"reads {bytes(racer.got[:8]).hex()}"
    if now.pfn is None:
        return f"{VERBS[kind]}; the page is gone"
    return (faulted and _changed(page, now)) or f"{VERBS[kind]} in place"


VERBS = {"write": "writes", "fetch": "fetches", "": "does"}
"""What an access does, in a sentence."""


def _changed(page: Seen, now: Seen) -> str:
    """What a fault made of a page, or nothing."""
    if page.pfn is None:
        return "faults the page in"
    if page.pfn != now.pfn:
        return "copies the page"
    return "keeps the page" if now.writable and not page.writable else ""


def lost_write(racers: tuple[Racer, ...], before: Before) -> str:
    """The error if the first byte that a racer stored is not in its memory at the end and no other
    racer stored one there; empty if all is well.  A page that is gone or a racer that is dead is
    not a loss; with a racing system call that may write to memory, nothing is checked."""
    if not all(racer.touch is not None or racer.text.split()[0] in HARMLESS for racer in racers):
        return ""
    stored = _stored(racers, before)
    for pa, written in sorted(stored.items()):
        found = system.phys.read(pa, 1)
        if found not in [data for _, data in written]:
            racer, data = written[0]
            return f"{racer.text}: memory holds {found.hex()}, but {data.hex()} was stored"
    return ""


HARMLESS = frozenset({"fork", "vfork", "clone", "mprotect", "munmap", "exit", "mlock", "munlock"})
"""Commands that change no byte of the racers' memory."""


def _stored(racers: tuple[Racer, ...], before: Before) -> dict[int, list[tuple[Racer, bytes]]]:
    """Physical address -> (racer, byte) of each store, for racers that are alive and pages that are
    still there."""
    found: dict[int, list[tuple[Racer, bytes]]] = {}
    for racer, mm in zip(racers, before.spaces, strict=True):
        touch = racer.touch
        page = look(mm, racer.address)
        if touch is None or touch.kind != "write" or page.pfn is None or racer.task.exit_state:
            continue
        found.setdefault((page.pfn << 12) + (touch.address & 4095), []).append(
            (racer, touch.data[:1])
        )
    return found


def _last_writer(racers: tuple[Racer, ...], before: Before) -> list[str]:
    """The byte at an address that two racers wrote: that of the last writer."""
    stored = _stored(racers, before)
    return [
        f"memory holds {system.phys.read(pa, 1).hex()}"
        for pa, written in sorted(stored.items())
        if len(written) > 1
    ]
