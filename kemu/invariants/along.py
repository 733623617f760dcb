"""Invariants along a history: find the event that first broke one.

    events      #57  folio_put     #58  set_pte_at     #59  flush     ALWAYS     after each of them
    the call    is under way       is under way        has returned   QUIESCENT  only here

Events that only link lists are skipped: no ``ALWAYS`` invariant reads a list.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs

from kemu import interrupts
from kemu.invariants.registry import ALWAYS, INVARIANTS, Violation
from kemu.invariants.scan import Scan
from kemu.kernel.init.boot import Kernel
from kemu.observe.look import looking, travelling
from kemu.observe.names import Names

LINKS = ("next", "prev")


@attrs.frozen
class Broken:
    """The first event after which invariants did not hold, and the violations."""

    event: int
    violations: tuple[Violation, ...]


def check(kernel: Kernel, names: Names = None, *, quiescent: bool = True) -> list[Violation]:
    """The violations in the current state; without ``quiescent``, only those of ``ALWAYS``
    invariants."""
    with looking(kernel):
        return examine(names, quiescent=quiescent)


def check_at(
    kernel: Kernel, event: int, names: Names = None, *, quiescent: bool
) -> list[Violation]:
    """The violations after ``event``; ``quiescent`` if no call was under way at that point."""
    with travelling(kernel) as journal:
        journal.seek(event)
        return examine(names, quiescent=quiescent)


def first_broken(
    kernel: Kernel, first: int, last: int, quiet: Collection[int] = (), names: Names = None
) -> Broken | None:
    """The first event of [first, last] after which an invariant does not hold; None if all hold.
    ``quiet``: the events after which no call was under way, that is, between two commands."""
    with interrupts.deferred(), travelling(kernel) as journal:
        for event in range(first, last + 1):
            interrupts.check(
                f"nothing is broken before #{event}; from there to #{last} is not checked".__str__
            )
            journal.seek(event)
            resting = event in quiet
            if not resting and event > first and journal.event(event)[1] in LINKS:
                continue
            found = examine(names, quiescent=resting)
            if found:
                return Broken(event, tuple(found))
    return None


def examine(names: Names = None, *, quiescent: bool) -> list[Violation]:
    """The violations in the active kernel; changes nothing."""
    scan = Scan(names)
    return [
        violation
        for invariant in INVARIANTS.values()
        if quiescent or invariant.when == ALWAYS
        for violation in invariant.violations(scan)
    ]
