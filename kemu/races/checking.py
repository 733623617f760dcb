"""Invariants along every event of many runs.

    run 1   e1  e2  e3  e4 ...        every state is examined
    run 2   e1  e2  f3  f4 ...        e1, e2 are known; f4 may be a state that run 1
                                      reached in another order

Conditions that always hold are checked after each event; those that hold only at rest, where no CPU
is inside a call, at the end of a run. A state that was seen in an earlier run is not examined again
(``fingerprint.py``).
"""

from __future__ import annotations

from kemu.invariants import Broken, Violation, examine
from kemu.invariants.along import LINKS
from kemu.observe.names import Names
from kemu.races.baton import FALLS
from kemu.races.fingerprint import Fingerprint, reachable
from kemu.trace.barrier import sealed
from kemu.trace.journal import SLOTS, Journal

Verdict = tuple[Violation, ...]


class Checker:
    """The violations found in each state so far.  Create it in the state in which the race begins,
    with that kernel active."""

    def __init__(self, names: Names = None) -> None:
        self.names = names
        self.known = reachable()
        self.always: dict[int, Verdict] = {}
        self.resting: dict[int, Verdict] = {}

    @property
    def states(self) -> int:
        """The number of different states examined."""
        return len(self.always)

    def along(self, journal: Journal, *, quiet: bool) -> Broken | None:
        """The first event of the run after which an invariant does not hold; ``quiet``: no call is
        under way at its end. The journal holds the run from its beginning, with its cursor at the
        end."""
        journal.catch_up()
        end = len(journal)
        journal.seek(0)
        with sealed():
            found = self._walk(journal, end, quiet=quiet)
        journal.seek(end)
        return found

    def _walk(self, journal: Journal, end: int, *, quiet: bool) -> Broken | None:
        mark = Fingerprint(self.known)
        for event in range(1, end + 1):
            mark.follow(journal.log, event - 1)
            journal.seek(event)
            if journal.log[event * SLOTS - SLOTS + 1] in LINKS:
                continue
            found = self._examine(mark.number, quiescent=False)
            if found:
                return Broken(event, found)
        resting = self._examine(mark.number, quiescent=True) if quiet else ()
        return Broken(end, resting) if resting else None

    def _examine(self, number: int, *, quiescent: bool) -> Verdict:
        seen = self.resting if quiescent else self.always
        found = seen.get(number)
        if found is None:
            found = seen[number] = self._look(quiescent=quiescent)
        return found

    def _look(self, *, quiescent: bool) -> Verdict:
        """The violations; data so corrupt that a check crashes is a violation too."""
        try:
            return tuple(examine(self.names, quiescent=quiescent))
        except FALLS as fall:
            return (
                Violation(
                    "data_can_be_read",
                    "the machine",
                    f"{type(fall).__name__}: {fall}",
                    "every check reads it",
                ),
            )
